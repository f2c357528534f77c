"""Subspaces that explain a distribution, made by jobs."""

import shutil

import numpy as np
import pytest
import xarray as xr

from bigkd import errors, mmdpca
from bigkd.engine import graph, stripes
from bigkd.io import load_dataset
from bigkd.jobs import load_job, run_job
from bigkd.kernels import Laplace, Matern

TAIL = "output: {store: out/result.zarr}\nrun: {scheduler: sync}\n"


@pytest.fixture
def folder(tmp_path):
    """Folder with rows, a map of the world in time, and a video."""
    generator = np.random.default_rng(0)
    np.save(tmp_path / "rows.npy", generator.normal(size=(200, 6)) * [5, 3, 2, 1, 1, 1])
    np.save(tmp_path / "later.npy", generator.normal(size=(90, 6)) * [1, 3, 2, 1, 1, 5])
    np.save(tmp_path / "weights.npy", np.arange(1.0, 7.0))
    video = generator.integers(180, 190, (30, 8, 10, 3)).astype(np.uint8)
    video[range(10), 2, range(10)] = 20
    np.save(tmp_path / "video.npy", video)
    coords = {"time": np.arange(12), "lat": np.linspace(-60, 60, 9), "lon": np.linspace(0, 330, 14)}
    world = xr.DataArray(generator.random((12, 9, 14)), coords=coords, name="t")
    world[:, 2, 3] = np.nan
    world.to_dataset().chunk(time=5).to_zarr(
        tmp_path / "world.zarr", zarr_format=3, consolidated=False
    )
    return tmp_path


@pytest.fixture
def carry_out(folder):
    """Runs a job from its text."""

    def run(text, **how):
        (folder / "job.yaml").write_text(text if "output:" in text else text + TAIL)
        return run_job(load_job(folder / "job.yaml"), **how)

    return run


@pytest.fixture
def fitted(folder):
    """A stored fit of the rows."""
    (folder / "fit.yaml").write_text(
        "mmdpca: {data: rows.npy, k: 2}\noutput: {store: fit.zarr}\nrun: {scheduler: sync}\n"
    )
    return run_job(load_job(folder / "fit.yaml")).only.result


def stored(folder, kind):
    return load_dataset(folder / "out" / "result.zarr", kind=kind)


def world(folder):
    return xr.open_zarr(folder / "world.zarr", consolidated=False)["t"].load()


def same(found, direct, **names):
    """The variables, labels and attributes of `direct`, and what files are called."""
    assert {name: found.attrs[name] for name in names} == names
    rest = {name: value for name, value in found.attrs.items() if name not in names}
    xr.testing.assert_identical(found.assign_coords().drop_attrs(), direct.drop_attrs())
    assert rest == direct.attrs


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("gauss", "gauss"),
        ("{name: poisson}", "poisson"),
        ("laplace", "laplace"),
        ("kurtosis", "kurtosis"),
        ("{name: laplace, length_scale: 3}", Laplace(3.0)),
        ("{name: higher_moments, weights: [0, 1]}", mmdpca.HigherMoments((0.0, 1.0))),
        ("{name: matern, nu: 1.5, length_scale: 4}", Matern(1.5, 4.0)),
    ],
)
def test_mmdpca__is_what_the_function_returns(carry_out, folder, text, kernel):
    found = carry_out(f"mmdpca:\n  data: rows.npy\n  k: 2\n  kernel: {text}\n").only.result
    direct = mmdpca.fit(folder / "rows.npy", k=2, kernel=kernel, scheduler="sync")
    same(found, direct, data="rows.npy")
    xr.testing.assert_identical(stored(folder, "subspace"), found)


def test_mmdpca__takes_every_key(carry_out, folder):
    found = carry_out(
        "mmdpca:\n  data: {path: rows.npy, block_rows: 50}\n  k: 3\n  kernel: laplace\n  a: 0.5\n"
        "  center: true\n  weights: weights.npy\n  method: features\n  n_landmarks: 40\n"
        "  n_frequencies: 60\n  n_directions: 5\n  n_points: 30\n  mmd: false\n  seed: 4\n"
        "  nonfinite: drop\n"
    ).only.result
    direct = mmdpca.fit(
        folder / "rows.npy", k=3, kernel="laplace", a=0.5, center=True,
        weights=np.load(folder / "weights.npy"), method="features", n_landmarks=40,
        n_frequencies=60, n_directions=5, n_points=30, mmd=False, seed=4, nonfinite="drop",
        block_rows=50, scheduler="sync",
    )  # fmt: skip
    same(found, direct, data="rows.npy")
    assert "mmd2" not in found


def test_mmdpca__of_a_field_keeps_its_coordinates(carry_out, folder):
    found = carry_out("mmdpca:\n  data: world.zarr\n  k: 2\n  weights: coslat\n  center: true\n")
    direct = mmdpca.fit(world(folder), k=2, weights="coslat", center=True, scheduler="sync")
    xr.testing.assert_allclose(found.only.result.drop_attrs(), direct.drop_attrs(), rtol=1e-10)
    assert found.only.result["component"].dims == ("k", "lat", "lon")
    assert np.isnan(found.only.result["component"].values[:, 2, 3]).all()
    xr.testing.assert_identical(stored(folder, "subspace"), found.only.result)


def test_mmdpca__of_rows_along_another_axis(carry_out, folder):
    text = "mmdpca:\n  data: world.zarr\n  k: 2\n  dim: lon\n  nonfinite: drop\n"
    found = carry_out(text).only.result
    assert found["component"].dims == ("k", "time", "lat")
    direct = mmdpca.fit(world(folder), k=2, dim="lon", nonfinite="drop", scheduler="sync")
    xr.testing.assert_allclose(found.drop_attrs(), direct.drop_attrs(), rtol=1e-10)
    assert found.attrs["n_dropped"] == 1


@pytest.mark.parametrize("suffix", ["png", "html"])
def test_mmdpca__draws_components(carry_out, folder, suffix):
    image = pytest.importorskip("PIL.Image")
    sheet = f"output: {{sheet: new/parts.{suffix}}}\nrun: {{scheduler: sync}}\n"
    outcome = carry_out(f"mmdpca: {{data: world.zarr, k: 2}}\n{sheet}")
    assert outcome.only.sheet == folder / "new" / f"parts.{suffix}"
    if suffix == "html":
        page = outcome.only.sheet.read_text(encoding="utf-8")
        assert page.count("<figure>") == 2
        assert "component 2: eigenvalue" in page
        return
    pixels = np.asarray(image.open(outcome.only.sheet))
    (first, second), zoom = outcome.only.result["component"].values, 4
    assert pixels.shape == (2 * 9 * zoom + 2, 14 * zoom, 3)
    for top, one in ((0, first), (9 * zoom + 2, second)):
        drawn = pixels[top : top + 9 * zoom : zoom, ::zoom, 0]
        grey = np.round(127.5 * (1 + one / np.nanmax(np.abs(one))))
        np.testing.assert_allclose(drawn, np.nan_to_num(grey, nan=255), atol=1)


def test_mmdpca__draws_only_pictures(carry_out, folder):
    sheet = "output: {store: out/result.zarr, sheet: parts.png}\n"
    with pytest.raises(errors.InputError, match=r"images must have shape .* a row has shape \(6,"):
        carry_out(f"mmdpca: {{data: rows.npy, k: 2}}\n{sheet}")
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("method", "label"), [("pairs", "distance to projections"), ("nystrom", "rows times features")]
)
def test_mmdpca__resumes_to_the_same_bits(carry_out, folder, monkeypatch, method, label):
    monkeypatch.setattr(stripes, "STRIPE_WORK", 10_000)
    text = (
        f"mmdpca:\n  data: {{path: rows.npy, block_rows: 10}}\n  k: 2\n  method: {method}\n"
        "  n_landmarks: 50\n"
    )
    whole = carry_out(text).only.result
    shutil.rmtree(folder / "out")
    restored, original = [], graph.restore
    monkeypatch.setattr(graph, "restore", lambda *given: restored.append(1) or original(*given))

    def stop(event):
        if event.label == label and event.done > event.total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(text, progress=stop)
    assert not (folder / "out" / "result.zarr").exists()
    outcome = carry_out(text, resume=True)
    xr.testing.assert_identical(outcome.only.result, whole)
    assert outcome.only.result["component"].values.tobytes() == whole["component"].values.tobytes()
    assert outcome.n_resumed >= len(restored) > 1  # a sum may stand for several
    assert {path.name for path in (folder / "out").iterdir()} == {"result.zarr"}


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_mmdpca_project__is_what_the_function_returns(carry_out, folder, fitted, scheduler):
    events = []
    text = "mmdpca_project:\n  data: {path: later.npy, block_rows: 20}\n  fit: fit.zarr\n"
    run = f"output: {{store: out/result.zarr}}\nrun: {{scheduler: {scheduler}}}\n"
    found = carry_out(text + run, progress=events.append).only.result
    direct = mmdpca.project(folder / "later.npy", fitted, block_rows=20).compute()
    xr.testing.assert_identical(found["score"], direct)
    assert found.attrs == {"data": "later.npy", "fit": "fit.zarr"}
    assert (events[-1].label, events[-1].done) == ("projecting", 90)
    xr.testing.assert_identical(stored(folder, "scores"), found)


def test_mmdpca_project__keeps_the_labels_of_rows(carry_out, folder):
    carry_out("mmdpca: {data: world.zarr, k: 2, weights: coslat, center: true}\n")
    (folder / "out" / "result.zarr").rename(folder / "world_fit.zarr")
    found = carry_out("mmdpca_project: {data: world.zarr, fit: world_fit.zarr}\n").only.result
    fit = load_dataset(folder / "world_fit.zarr", kind="subspace")
    direct = mmdpca.project(world(folder), fit, scheduler="sync").compute()
    xr.testing.assert_allclose(found["score"], direct, rtol=1e-10)
    assert found["time"].values.tolist() == list(range(12))


def test_mmdpca_project__of_rows_that_are_not_finite(carry_out, folder, fitted):
    rows = np.load(folder / "rows.npy")
    rows[3, 1] = np.nan
    np.save(folder / "gaps.npy", rows)
    with pytest.raises(errors.DataError, match="not finite"):
        carry_out("mmdpca_project: {data: gaps.npy, fit: fit.zarr}\n")
    done = carry_out("mmdpca_project: {data: gaps.npy, fit: fit.zarr, nonfinite: drop}\n")
    found = done.only.result
    assert np.flatnonzero(np.isnan(found["score"]).any("k")).tolist() == [3]


@pytest.mark.parametrize("method", ["exact", "sample"])
def test_mmdpca_distance__is_what_the_function_returns(carry_out, folder, fitted, method):
    text = f"  data: later.npy\n  fit: fit.zarr\n  method: {method}\n  n_points: 20\n  seed: 2\n"
    found = carry_out(f"mmdpca_distance:\n{text}").only.result
    direct = mmdpca.mmd_to_projection(
        folder / "later.npy", fitted, method=method, n_points=20, seed=2, scheduler="sync"
    )
    same(found, direct, data="later.npy", fit="fit.zarr")
    xr.testing.assert_identical(stored(folder, "projection"), found)
    own = carry_out("mmdpca_distance: {data: rows.npy, fit: fit.zarr}\n").only.result
    assert float(own["mmd2"]) == pytest.approx(float(fitted["mmd2"]), rel=1e-9)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("data: rows.npy, fit: no.zarr", errors.StoreError, "no.zarr holds no bigkd store"),
        ("data: rows.npy, fit: world.zarr", errors.StoreError, "world.zarr"),
        ("data: no.npy, fit: fit.zarr", errors.StoreError, "data: .*no.npy does not exist"),
        ("data: video.npy, fit: fit.zarr", errors.ShapeError, r"\(8, 10, 3\).*\(6,\)"),
    ],
)
@pytest.mark.parametrize("key", ["mmdpca_project", "mmdpca_distance"])
def test_of_a_fit__refuse(carry_out, folder, fitted, key, text, error, message):
    with pytest.raises(error, match=message):
        carry_out(f"{key}: {{{text}}}\n")
    assert not (folder / "out" / "result.zarr").exists()


def test_mmdpca_background__is_what_the_function_returns(carry_out, folder):
    image = pytest.importorskip("PIL.Image")
    text = "mmdpca_background:\n  frames: video.npy\n  k: 2\n  kernel: laplace\n  a: 5\n"
    how = {"k": 2, "kernel": "laplace", "a": 5.0, "scheduler": "sync"}
    output = "output: {store: out/result.zarr, sheet: out/bg.png}\nrun: {scheduler: sync}\n"
    outcome = carry_out(text + output)
    direct = mmdpca.background(folder / "video.npy", **how)
    xr.testing.assert_identical(outcome.only.result["background"], direct.drop_attrs())
    assert outcome.only.result.attrs == {**direct.attrs, "frames": "video.npy"}
    xr.testing.assert_identical(stored(folder, "background"), outcome.only.result)
    pixels = np.asarray(image.open(outcome.only.sheet))[::5, ::5]
    np.testing.assert_allclose(pixels, direct, atol=0.51)

    other = carry_out(f"{text}  statistic: mean\n  white: 100\n").only.result["background"]
    direct = mmdpca.background(folder / "video.npy", statistic="mean", white=100.0, **how)
    xr.testing.assert_identical(other, direct.drop_attrs())


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("data: rows.npy, k: 7", errors.InputError, "k=7 .* at most 6"),
        ("data: rows.npy, k: 2, kernel: {name: triangle, radius: 1}", errors.InputError, "Triangl"),
        ("data: rows.npy, k: 2, kernel: kurtosis, a: 2", errors.InputError, "a goes with"),
        ("data: rows.npy, k: 2, weights: no.npy", errors.StoreError, "weights: .*no.npy does not"),
        ("data: rows.npy, k: 2, weights: video.npy", errors.ShapeError, "weights must have one"),
        ("data: world.zarr, k: 2, dim: tim", errors.InputError, "dim='tim'"),
        ("data: job.yaml, k: 2", errors.StoreError, "data: .*job.yaml is not a collection"),
        ("data: {path: world.zarr, missing: skip}, k: 2", errors.InputError, "missing='skip'"),
    ],
)
def test_mmdpca__refuses(carry_out, folder, text, error, message):
    with pytest.raises(error, match=message):
        carry_out(f"mmdpca: {{{text}}}\n")
    assert not (folder / "out" / "result.zarr").exists()
