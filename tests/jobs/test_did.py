"""Dissimilarities up to deformation, made by jobs."""

import numpy as np
import pytest
import xarray as xr

from bigkd import did, errors
from bigkd.engine import tiles
from bigkd.io import load_dataset, open_tiled, read_images
from bigkd.jobs import load_job, run_job
from bigkd.kernels import Gaussian, Laplace

FEW = "  y_landmarks: 4\n  x_landmarks: 6\n"
COARSE = {"y_landmarks": 4, "x_landmarks": 6}
TAIL = "output: {store: out/result.zarr}\nrun: {scheduler: sync}\n"
SERIES = "  x_landmarks: 6\n  y_landmarks: 8\n  dims: [time, variable]\n"


@pytest.fixture
def folder(tmp_path):
    """Folder with pictures, series, a map of the world in time, and a mask."""
    image = pytest.importorskip("PIL.Image")
    generator = np.random.default_rng(0)
    (tmp_path / "photos" / "b").mkdir(parents=True)
    for name in ("p0.png", "p1.png", "b/p2.png", "p3.png"):
        small = image.fromarray(generator.integers(0, 256, (4, 5, 3)).astype(np.uint8))
        small.resize((20, 16)).save(tmp_path / "photos" / name)
    image.fromarray(np.zeros((8, 10, 3), np.uint8)).save(tmp_path / "small.png")
    np.save(tmp_path / "series.npy", generator.normal(size=(7, 30, 2)).cumsum(axis=1))
    np.save(tmp_path / "mask.npy", generator.random((16, 20)))
    coords = {"time": np.arange(5), "lat": np.linspace(-60, 60, 9), "lon": np.linspace(0, 330, 12)}
    world = xr.DataArray(generator.random((5, 9, 12)), coords=coords)
    both = xr.Dataset(
        {"t": world, "p": world.isel(lon=slice(None, None, -1)).drop_vars("lon") ** 2}
    )
    both.chunk(time=2).to_zarr(tmp_path / "world.zarr", zarr_format=3, consolidated=False)
    return tmp_path


@pytest.fixture
def carry_out(folder):
    """Runs a job from its text."""

    def run(text, **how):
        (folder / "job.yaml").write_text(text + TAIL)
        return run_job(load_job(folder / "job.yaml"), **how)

    return run


def stored(folder, kind):
    return load_dataset(folder / "out" / "result.zarr", kind=kind)


def same(found, direct):
    """The variables and labels of `direct`, and its attributes."""
    xr.testing.assert_allclose(found.drop_attrs(), direct.drop_attrs(), rtol=1e-10, atol=1e-15)
    units = ("value_mean", "value_std")
    for name in units:
        np.testing.assert_allclose(found.attrs[name], direct.attrs[name], rtol=1e-12)
    for name in set(direct.attrs) - {*units}:
        assert found.attrs[name] == direct.attrs[name], name


def test_did__is_what_the_function_returns(carry_out, folder):
    found = carry_out(
        "did:\n  f: photos/p0.png\n  g: {path: photos, row: 3}\n  lam: [1e-3, 1e-2]\n"
        "  promise: true\n  mask: mask.npy\n  scale: unit\n"
        "  y_kernel: {name: laplace, length_scale: 0.3}\n" + FEW
    ).only.result
    photos = read_images(folder / "photos").values
    assert read_images(folder / "photos")["sample"].values.tolist()[0] == "b/p2.png"
    direct = did.dissimilarity(
        photos[1], photos[3], lam=[1e-3, 1e-2], mask=np.load(folder / "mask.npy"), scale="unit",
        promise=True, y_kernel=Laplace(0.3), **COARSE,
    )  # fmt: skip
    same(found, direct)
    assert (found.attrs["f"], found.attrs["g"]) == ("p0.png", "photos[3]")
    xr.testing.assert_identical(stored(folder, "dissimilarity"), found)


@pytest.mark.parametrize("suffix", [".png", ".html"])
def test_did__draws_what_matches(carry_out, folder, suffix):
    path = folder / "new" / f"match{suffix}"
    pair = "did:\n  f: photos/p0.png\n  g: photos/p1.png\n"
    (folder / "job.yaml").write_text(f"{pair}{FEW}output: {{sheet: new/match{suffix}}}\n")
    outcome = run_job(load_job(folder / "job.yaml"))
    assert (outcome.only.sheet, outcome.only.store) == (path, None)
    f, g = (read_images(folder / "photos" / f"p{at}.png").values[0] for at in (0, 1))
    did.match(f, g, path=folder / f"direct{suffix}", **COARSE)
    assert path.read_bytes() == (folder / f"direct{suffix}").read_bytes()


def test_did__of_series_and_of_fields_with_coordinates(carry_out, folder):
    found = carry_out(
        "did:\n  f: {path: series.npy, row: 1}\n  g: {path: series.npy, row: 4}\n" + SERIES
    )
    series = np.load(folder / "series.npy")
    how = {"x_landmarks": 6, "y_landmarks": 8, "dims": ("time", "variable")}
    same(found.only.result, did.dissimilarity(series[1], series[4], **how))

    fields = "did:\n  f: {path: world.zarr/t, row: 1}\n  g: {path: world.zarr/t, row: 4}\n"
    found = carry_out(f"{fields}  weights: coslat\n")
    world = xr.open_zarr(folder / "world.zarr", consolidated=False).load()
    direct = did.dissimilarity(world["t"][1], world["t"][4], weights="coslat")
    same(found.only.result, direct)


def test_did__of_several_variables(carry_out, folder):
    text = (
        "did:\n  f: {path: world.zarr, row: 1}\n  g: {path: world.zarr, row: 4}\n  y_landmarks: 5\n"
    )
    world = xr.open_zarr(folder / "world.zarr", consolidated=False)[["p", "t"]].load()
    f, g = world.isel(time=1), world.isel(time=4)
    for value_dim in ("variable", "what"):
        found = carry_out(f"{text}  value_dim: {value_dim}\n").only.result
        same(found, did.dissimilarity(f, g, y_landmarks=5, value_dim=value_dim))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "  f: photos\n  g: small.png\n",
            errors.InputError,
            "f: .* holds 4 data; expected one.*--f",
        ),
        ("  f: small.png\n  g: photos/p0.png\n", errors.ShapeError, "--image-size HEIGHT,WIDTH"),
        ("  f: {path: photos, row: 4}\n  g: small.png\n", errors.InputError, "no row 4; it has 4"),
        (
            "  f: {path: series.npy, row: 7}\n  g: small.png\n",
            errors.InputError,
            "it has 7, from 0",
        ),
        (
            "  f: {path: world.zarr/t, row: 5}\n  g: small.png\n",
            errors.InputError,
            "it has 5, from",
        ),
        ("  f: no.npy\n  g: small.png\n", errors.StoreError, "f: .*no.npy does not exist"),
        ("  f: job.yaml\n  g: small.png\n", errors.StoreError, "f: .*job.yaml is not a collection"),
        ("  f: series.npy\n  g: series.npy\n  mask: no.npy\n", errors.StoreError, "mask: .*exist"),
        ("  f: small.png\n  g: small.png\n  mask: mask.npy\n", errors.ShapeError, "mask must have"),
        ("  f: small.png\n  g: small.png\n  weights: coslat\n", errors.InputError, "latitude"),
        (
            "  f: {path: world.zarr/t, row: 1, missing: skip}\n  g: small.png\n",
            errors.InputError,
            "missing='skip'",
        ),
    ],
)
def test_did__refuses(carry_out, folder, text, error, message):
    with pytest.raises(error, match=message):
        carry_out(f"did:\n{text}")
    assert not (folder / "out" / "result.zarr").exists()


def test_did_matrix__writes_tiles(carry_out, folder):
    outcome = carry_out(f"did_matrix:\n  collection: photos\n  lam: [1e-3, 1e-2]\n{FEW}")
    photos = read_images(folder / "photos")
    direct = did.matrix(photos, lam=[1e-3, 1e-2], scheduler="sync", **COARSE)
    same(outcome.only.result.load(), direct)
    searched = outcome.only.result["searched"].values.tolist()
    assert searched == ["b/p2.png", "p0.png", "p1.png", "p3.png"]
    found = open_tiled(folder / "out" / "result.zarr", kind="dissimilarities")
    assert found["dissimilarity"].chunks is not None
    xr.testing.assert_identical(found.load(), outcome.only.result)
    assert {path.name for path in (folder / "out").iterdir()} == {"result.zarr"}


def test_did_matrix__of_two_collections_in_memory(carry_out, folder):
    text = (
        "did_matrix:\n  collection: world.zarr/t\n  other: {path: world.zarr/t, block_rows: 2}\n"
        "  weights: coslat\n  dim: lat\n"
    )
    with pytest.raises(errors.InputError, match="latitude"):
        carry_out(text)
    (folder / "job.yaml").write_text(text.replace("lat\n", "time\n").replace("cos", "coslat\n#"))
    found = run_job(load_job(folder / "job.yaml")).only.result
    world = xr.open_zarr(folder / "world.zarr", consolidated=False)["t"].load()
    same(found, did.matrix(world, world, weights="coslat", scheduler="sync"))
    assert list((folder / "out").iterdir()) == []


def test_did_matrix__replaces_only_what_it_may(carry_out, folder):
    text = f"did_matrix:\n  collection: series.npy\n{SERIES}"
    once = carry_out(text).only.result.load()
    xr.testing.assert_identical(carry_out(text).only.result.load(), once)
    carry_out("did:\n  f: photos/p0.png\n  g: photos/p1.png\n" + FEW)
    xr.testing.assert_identical(carry_out(text).only.result.load(), once)
    (folder / "job.yaml").write_text(
        f"{text}output: {{store: out/result.zarr, overwrite: false}}\n"
    )
    with pytest.raises(errors.InputError, match="exists already; pass --overwrite"):
        run_job(load_job(folder / "job.yaml"))
    (folder / "mine.zarr").mkdir()
    (folder / "mine.zarr" / "dear.txt").touch()
    (folder / "job.yaml").write_text(f"{text}output: {{store: mine.zarr}}\n")
    with pytest.raises(errors.InputError, match="left alone"):
        run_job(load_job(folder / "job.yaml"))
    assert [path.name for path in (folder / "mine.zarr").iterdir()] == ["dear.txt"]


@pytest.fixture
def in_many_tiles(monkeypatch):
    """Seven data are 49 tiles."""
    monkeypatch.setattr(tiles, "TILE_WORK", 1)


def stop_while_comparing(event):
    if event.label == "comparing pairs" and event.done > event.total / 2:
        raise KeyboardInterrupt


MANY = f"did_matrix:\n  collection: series.npy\n{SERIES}"


def test_did_matrix__resumes_to_the_same_bits(carry_out, folder, in_many_tiles, monkeypatch):
    made = counted(monkeypatch)
    whole = carry_out(MANY).only.result.load()
    n_tiles = len(made)
    with pytest.raises(KeyboardInterrupt) as caught:
        carry_out(MANY, progress=stop_while_comparing)
    (note,) = caught.value.__notes__
    assert "are kept in" in note
    assert "and beside" in note
    np.testing.assert_array_equal(  # the earlier result is still whole
        open_tiled(folder / "out" / "result.zarr", kind="dissimilarities")["dissimilarity"],
        whole["dissimilarity"],
    )
    made.clear()
    outcome = carry_out(MANY, resume=True)
    assert outcome.n_resumed > 49 / 2
    assert outcome.n_resumed + len(made) == n_tiles
    xr.testing.assert_identical(outcome.only.result.load(), whole)
    assert {path.name for path in (folder / "out").iterdir()} == {"result.zarr"}


def test_did_matrix__starts_anew_without_resume(carry_out, folder, in_many_tiles, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        carry_out(MANY, progress=stop_while_comparing)
    assert {path.name for path in (folder / "out").iterdir()} == {
        ".result.zarr.partial", "result.zarr.checkpoint",
    }  # fmt: skip
    made = counted(monkeypatch)
    assert carry_out(MANY, resume=False).n_resumed == 0
    assert len(made) > 49
    assert {path.name for path in (folder / "out").iterdir()} == {"result.zarr"}


def test_did_matrix__keeps_nothing_if_told_so(folder, in_many_tiles):
    (folder / "job.yaml").write_text(
        f"{MANY}{TAIL}".replace("sync", "sync, keep_checkpoints: false")
    )
    with pytest.raises(KeyboardInterrupt):
        run_job(load_job(folder / "job.yaml"), progress=stop_while_comparing)
    assert list((folder / "out").iterdir()) == []


def test_did_matrix__refuses_an_output_that_another_job_writes(carry_out):
    def meanwhile(event):
        with pytest.raises(errors.LockedError):
            carry_out(MANY)

    carry_out(MANY, progress=meanwhile)


def counted(monkeypatch):
    """Tiles that are made from now on."""
    made, original = [], tiles.fill
    monkeypatch.setattr(tiles, "fill", lambda *given: made.append(1) or original(*given))
    return made


def test_did_nearest__names_pictures(carry_out, folder):
    text = f"did_nearest:\n  query: photos/p1.png\n  collection: photos\n  k: 3\n{FEW}"
    found = carry_out(text).only.result
    photos = read_images(folder / "photos")
    direct = did.nearest(
        photos.sel(sample="p1.png", drop=True), photos, 3, scheduler="sync", **COARSE
    )
    same(found, direct.assign_coords(query=["p1.png"]))
    assert found["name"].values[0, 0] == "p1.png"
    assert found.attrs["query"] == "p1.png"
    xr.testing.assert_identical(stored(folder, "nearest"), found)


@pytest.mark.parametrize("query", ["series.npy", "{path: series.npy, row: 2}", "one.npy"])
def test_did_nearest__takes_one_query_or_several(carry_out, folder, query):
    series = np.load(folder / "series.npy")
    np.save(folder / "one.npy", series[2])
    found = carry_out(f"did_nearest:\n  query: {query}\n  collection: series.npy\n  k: 2\n{SERIES}")
    several = series if query == "series.npy" else series[2]
    how = {"x_landmarks": 6, "y_landmarks": 8, "dims": ("time", "variable"), "scheduler": "sync"}
    same(found.only.result, did.nearest(several, series, 2, **how))


def test_did_nearest__in_fields_with_coordinates(carry_out, folder):
    text = (
        "did_nearest:\n  query: {path: world.zarr/t, row: 2}\n  collection: world.zarr/t\n  k: 2\n"
    )
    found = carry_out(
        f"{text}  weights: coslat\n  x_kernel: {{name: gaussian, sigma: 0.3}}\n"
    ).only.result
    world = xr.open_zarr(folder / "world.zarr", consolidated=False)["t"].load()
    how = {"weights": "coslat", "x_kernel": Gaussian(0.3), "scheduler": "sync"}
    same(found, did.nearest(world[2], world, 2, **how))


def test_pictures__of_two_sizes_are_resampled_if_told_so(carry_out, folder):
    text = "did_nearest:\n  query: small.png\n  collection: {}\n" + FEW
    with pytest.raises(errors.ShapeError, match="--image-size HEIGHT,WIDTH, for pictures in files"):
        carry_out(text.format("photos"))
    to = text.replace("small.png", "{{path: small.png, image_size: [16, 20]}}")
    assert carry_out(to.format("photos")).only.result.attrs["grid"] == "y 16, x 20, channel 3"


def test_modes__takes_folders_of_pictures(carry_out, folder):
    text = (
        "modes:\n  test: {path: photos, image_size: [6, 6]}\n"
        "  reference: {path: photos, image_size: [6, 6]}\n"
        "  kernel: {name: gaussian, sigma: 200}\n  n_frequencies: 20\n  n_modes: 2\n  n_top: 2\n"
    )
    (folder / "job.yaml").write_text(text + "output: {sheet: modes.png}\nrun: {scheduler: sync}\n")
    outcome = run_job(load_job(folder / "job.yaml"))
    assert outcome.only.result.attrs["n_rows_test"] == 4
    assert outcome.only.sheet.exists()
