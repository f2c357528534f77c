"""Distances, tests and coresets carried out by jobs."""

import json
import shutil

import numpy as np
import pytest
import xarray as xr

from bigkd import coreset, distance, errors, shapes
from bigkd.engine import graph, stripes
from bigkd.io import load_dataset
from bigkd.jobs import load_job, run_job
from bigkd.kernels import CovarianceGaussian, Gaussian, Laplace, Triangle

TAIL = "output: {store: out/result.zarr}\nrun: {scheduler: sync}\n"
TETRAHEDRON = "OFF\n4 4 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n"
OUTWARD = "3 0 2 1\n3 0 1 3\n3 0 3 2\n3 1 2 3\n"
INWARD = "3 0 1 2\n3 0 3 1\n3 0 2 3\n3 1 3 2\n"


@pytest.fixture
def carry_out(rows):
    """Runs a job from its text; gives its result, which is the stored one, and its kind."""
    generator = np.random.default_rng(1)
    np.save(rows / "w.npy", generator.random(160))
    np.save(rows / "u.npy", np.tile([1.0, 0.0], (160, 1)))
    np.save(rows / "v.npy", np.tile([0.6, 0.8], (200, 1)))

    def run(text, **how):
        (rows / "job.yaml").write_text(text + TAIL)
        job = load_job(rows / "job.yaml")
        outcome = run_job(job, **how)
        stored = load_dataset(rows / "out" / "result.zarr", kind=job.comparison.kind)
        xr.testing.assert_identical(stored, outcome.only.result)
        return outcome

    return run


def arrays(rows):
    return [np.load(rows / f"{name}.npy") for name in ("test", "reference")]


def require_same(found, direct):
    """The variables of `direct`, to rounding, and its attributes."""
    same = found[list(direct.data_vars)]
    xr.testing.assert_allclose(same, direct, rtol=1e-10, atol=1e-13)
    assert found.attrs.items() >= direct.attrs.items()


def test_distance__is_what_the_function_returns(carry_out, rows):
    found = carry_out(
        "distance:\n"
        "  x: {path: test.npy, weights: w.npy, vectors: u.npy}\n"
        "  y: {path: reference.npy, vectors: v.npy}\n"
        "  kernel: {name: laplace, length_scale: 2}\n"
        "  normalize: false\n  method: rff\n  eps: 0.1\n  delta: 0.05\n  n_frequencies: 64\n"
        "  sizing: value\n  seed: 4\n  nonfinite: drop\n"
    ).only.result
    x, y = arrays(rows)
    direct = distance.kernel_distance(
        x, y, kernel=Laplace(2.0), x_weights=np.load(rows / "w.npy"),
        x_vectors=np.load(rows / "u.npy"), y_vectors=np.load(rows / "v.npy"), normalize=False,
        method="rff", eps=0.1, delta=0.05, n_frequencies=64, sizing="value", seed=4,
        nonfinite="drop", scheduler="sync",
    )  # fmt: skip
    require_same(found, direct)
    assert (found.attrs["x"], found.attrs["y"]) == ("test.npy", "reference.npy")
    assert "p_value" not in found


def test_distance__has_the_test_beside_it(carry_out, rows):
    found = carry_out(
        "distance:\n  x: test.npy\n  y: reference.npy\n  test: {n_permutations: 99, alpha: 0.1}\n"
    ).only.result
    x, y = arrays(rows)
    require_same(found, distance.kernel_distance(x, y, kernel="median", scheduler="sync"))
    direct = distance.two_sample_test(x, y, n_permutations=99, alpha=0.1, scheduler="sync")
    require_same(found[list(direct.data_vars)].drop_attrs(), direct.drop_attrs())
    assert bool(found["rejected"])
    assert found.attrs["test_method"] == direct.attrs["method"]
    assert (found.attrs["test_n_permutations"], found.attrs["test_alpha"]) == (99, 0.1)


def test_distance__of_shapes_in_files(carry_out, rows):
    pytest.importorskip("trimesh")
    (rows / "a.off").write_text(TETRAHEDRON + OUTWARD)
    (rows / "b.off").write_text(TETRAHEDRON + INWARD)
    text = "distance:\n  x: a.off\n  y: b.off\n  kernel: {name: gaussian, sigma: 0.5}\n"
    found = carry_out(f"{text}  normalize: false\n").only.result
    a, b = (shapes.read_mesh(rows / f"{name}.off") for name in "ab")
    require_same(
        found,
        distance.kernel_distance(a, b, kernel=Gaussian(0.5), normalize=False, scheduler="sync"),
    )
    np.testing.assert_allclose(found["distance_squared"], 4 * found["kappa_xx"], rtol=1e-9)
    sideless = text.replace("a.off", "{path: a.off, shape: varifold}")
    sideless = sideless.replace("b.off", "{path: b.off, shape: varifold}")
    assert float(carry_out(sideless).only.result["distance"]) < 1e-5


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("median", Gaussian),
        ("{name: triangle, bandwidth: median, factor: 2}", lambda length: Triangle(2.0 * length)),
        (
            "{name: covariance_gaussian, covariance: [[4, 1, 0, 0], [1, 4, 0, 0], [0, 0, 4, 0], "
            "[0, 0, 0, 4]]}",
            lambda _: CovarianceGaussian(
                ((4.0, 1.0, 0.0, 0.0), (1.0, 4.0, 0.0, 0.0), (0.0, 0.0, 4.0, 0.0),
                 (0.0, 0.0, 0.0, 4.0))
            ),
        ),
    ],
)  # fmt: skip
def test_distance__kernels_and_rules(carry_out, rows, text, kernel):
    done = carry_out(f"distance:\n  x: test.npy\n  y: reference.npy\n  kernel: {text}\n")
    found = done.only.result
    x, y = arrays(rows)
    by_rule = distance.kernel_distance(x, y, kernel="median", scheduler="sync")
    wanted = kernel(json.loads(by_rule.attrs["kernel_parameters"])["sigma"])
    require_same(found, distance.kernel_distance(x, y, kernel=wanted, scheduler="sync"))
    assert ("bandwidth_rule" in found.attrs) == ("median" in text)
    assert found.attrs.get("bandwidth_factor") == (2.0 if "factor" in text else None)


def test_two_sample__is_what_the_function_returns(carry_out, rows):
    found = carry_out(
        "two_sample:\n  x: {path: test.npy, weights: w.npy}\n  y: reference.npy\n"
        "  kernel: {name: gaussian, sigma: 3}\n  method: features\n  n_permutations: 99\n"
        "  n_frequencies: 40\n  n_groups: 64\n  alpha: 0.2\n  seed: 3\n"
    ).only.result
    x, y = arrays(rows)
    direct = distance.two_sample_test(
        x, y, kernel=Gaussian(3.0), x_weights=np.load(rows / "w.npy"), method="features",
        n_permutations=99, n_frequencies=40, n_groups=64, alpha=0.2, seed=3, scheduler="sync",
    )  # fmt: skip
    require_same(found, direct)


def test_distance_matrix__is_what_the_function_returns(carry_out, rows):
    found = carry_out(
        "distance_matrix:\n  collections:\n    a: {path: test.npy, weights: w.npy}\n"
        "    b: reference.npy\n    c: test.npy\n  kernel: {name: gaussian, sigma: 3}\n"
        "  method: exact\n  seed: 2\n"
    ).only.result
    x, y = arrays(rows)
    direct = distance.matrix(
        {"a": x, "b": y, "c": x}, weights={"a": np.load(rows / "w.npy")}, kernel=Gaussian(3.0),
        method="exact", seed=2, scheduler="sync",
    )  # fmt: skip
    require_same(found, direct)


def test_coreset__is_what_the_functions_return(carry_out, rows):
    data = "coreset:\n  data: {path: test.npy, weights: w.npy}\n  size: 9\n  seed: 2\n"
    x, weights = np.load(rows / "test.npy"), np.load(rows / "w.npy")
    found = carry_out(
        f"{data}  kernel: {{name: gaussian, sigma: 3}}\n  reweight: mass\n  measure: exact\n"
    ).only.result
    direct = coreset.thin(
        x, 9, kernel=Gaussian(3.0), weights=weights, reweight="mass", measure="exact", seed=2,
        scheduler="sync",
    )  # fmt: skip
    require_same(found, direct)
    assert found.attrs["data"] == "test.npy"

    drawn = carry_out(f"{data}  method: sample\n  replacement: false\n  delta: 0.2\n").only.result
    direct = coreset.sample(
        x, 9, weights=weights, replacement=False, seed=2, delta=0.2, scheduler="sync"
    )
    require_same(drawn, direct)


def test_coreset__length_is_the_median_distance(carry_out, rows):
    found = carry_out("coreset:\n  data: test.npy\n  size: 9\n").only.result
    x = np.load(rows / "test.npy")
    by_rule = distance.kernel_distance(x, x, kernel="median", scheduler="sync")
    given = json.loads(found.attrs["kernel_parameters"])["sigma"]
    assert given == pytest.approx(json.loads(by_rule.attrs["kernel_parameters"])["sigma"], rel=0.1)
    assert found.attrs["bandwidth_rule"] == "median distance of a sample"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (
            "distance:\n  x: {path: test.npy, block_rows: 20}\n  y: {path: reference.npy, "
            "block_rows: 20}\n  method: rff\n  n_frequencies: 50\n  test: {method: features, "
            "n_permutations: 9, n_frequencies: 50}\n",
            "summing over y",
        ),
        ("coreset:\n  data: {path: test.npy, block_rows: 20}\n  size: 5\n", "coreset of data"),
    ],
)
def test_run_job__resumes_to_the_same_bits(carry_out, rows, monkeypatch, text, label):
    monkeypatch.setattr(stripes, "STRIPE_WORK", 100_000)
    whole = carry_out(text).only.result
    shutil.rmtree(rows / "out")
    restored = []
    original = graph.restore
    monkeypatch.setattr(
        graph, "restore", lambda *arguments: restored.append(1) or original(*arguments)
    )

    def stop(event):
        if event.label == label and event.done > event.total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(text, progress=stop)
    assert (rows / "out" / "result.zarr.checkpoint").exists()
    assert not (rows / "out" / "result.zarr").exists()
    outcome = carry_out(text, resume=True)
    xr.testing.assert_identical(outcome.only.result, whole)
    assert outcome.n_resumed >= len(restored) > 1  # a sum may stand for several
    assert {path.name for path in (rows / "out").iterdir()} == {"result.zarr"}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("  x: {path: test.npy, weights: v.npy}\n", errors.ShapeError, "weights of x must be one"),
        ("  x: {path: test.npy, weights: no.npy}\n", errors.StoreError, "weights of x: .*no.npy"),
        ("  x: {path: test.npy, vectors: u.npy}\n", errors.ShapeError, "y of no; they must be eq"),
        ("  x: no.ply\n", errors.StoreError, "no.ply does not exist"),
        (
            "  x: test.npy\n  kernel: {name: triangle, radius: 1}\n  method: rff\n",
            errors.InputError,
            "Triangle",
        ),
    ],
)
def test_distance__refuses(carry_out, text, error, message):
    with pytest.raises(error, match=message):
        carry_out(f"distance:\n  y: reference.npy\n{text}")


def test_run_job__refuses_to_replace_a_result_of_another_kind_only_if_told(carry_out, rows):
    carry_out("coreset:\n  data: test.npy\n  size: 5\n")
    carry_out("two_sample:\n  x: test.npy\n  y: reference.npy\n  n_permutations: 9\n")
    (rows / "job.yaml").write_text(
        "coreset:\n  data: test.npy\n  size: 5\noutput: {store: out/result.zarr, overwrite: false}"
    )
    with pytest.raises(errors.InputError, match="exists already"):
        run_job(load_job(rows / "job.yaml"))


@pytest.mark.parametrize("kind", ["distance", "two_sample"])
def test_comparison__of_rows_that_do_not_fit_together_says_so(tmp_path, kind):
    np.save(tmp_path / "a.npy", np.ones((50, 4)))
    np.save(tmp_path / "b.npy", np.ones((60, 5)))
    (tmp_path / "job.yaml").write_text(f"{kind}: {{x: a.npy, y: b.npy, kernel: median}}\n")
    with pytest.raises(errors.ShapeError, match=r"x has rows of 4 elements .* and y of 5"):
        run_job(load_job(tmp_path / "job.yaml"))
