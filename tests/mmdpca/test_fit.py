"""Exact methods against the dense matrix by its definition."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

from bigkd import mmdpca
from bigkd.kernels import Gaussian, Laplace
from tests.mmdpca import plain, samples
from tests.mmdpca.plain import KERNELS, Plain

EXACT = [(kernel, method) for kernel in KERNELS for method in ("gram", "pairs")]
EXACT.append(("kurtosis", "moments"))
SHAPES = {"N < n": (9, 14), "N = n": (12, 12), "N > n": (50, 7)}


def fit(x, k, kernel="gauss", method="auto", **options):
    return mmdpca.fit(x, k=k, kernel=kernel, method=method, **{"scheduler": "sync", **options})


def assert_is(found, truth, *, values=1e-10, projector=1e-8):
    """The fit is the reference up to relative `values` and, in Frobenius norm, `projector`."""
    top = truth.eigenvalues[: truth.k]
    np.testing.assert_allclose(found["eigenvalue"], top, rtol=values)
    np.testing.assert_allclose(found["trace"], truth.trace, rtol=values)
    np.testing.assert_allclose(found["explained_share"], top / truth.trace, rtol=values)
    own = truth.white(found["component"])
    assert np.linalg.norm(plain.projector(own) - plain.projector(truth.vectors)) <= projector
    np.testing.assert_allclose(own.T @ own, np.eye(truth.k), atol=10 * projector)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("kernel", "method"), EXACT)
def test_fit__is_the_dense_matrix(kernel, method, shape):
    x = samples.decaying(*SHAPES[shape])
    assert_is(fit(x, 3, kernel, method), Plain(x, 3, KERNELS[kernel]))


@pytest.mark.parametrize("spectrum", samples.SPECTRA)
@pytest.mark.parametrize(("kernel", "method"), EXACT)
def test_fit__is_the_dense_matrix_for_many_spectra(kernel, method, spectrum):
    x = samples.SPECTRA[spectrum](40, 12, seed=2)
    assert_is(fit(x, 4, kernel, method), Plain(x, 4, KERNELS[kernel]))


@pytest.mark.parametrize("a", [0.01, 0.5, 25.0])
@pytest.mark.parametrize("method", ["gram", "pairs"])
@pytest.mark.parametrize("kernel", ["gauss", "laplace", "poisson"])
def test_fit__is_the_dense_matrix_at_any_scale(kernel, method, a):
    x = samples.decaying(15, 15)
    assert_is(fit(x, 2, kernel, method, a=a), Plain(x, 2, KERNELS[kernel], a=a))


@pytest.mark.parametrize(("kernel", "method"), EXACT)
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit__takes_means_off_weighs_features_and_leaves_out_land_and_rows(
    kernel, method, center, weighted
):
    x = samples.shifted(20, 16)
    x[:, [3, 8]] = np.nan
    x[[2, 17], [1, 5]] = np.nan, np.inf
    weights = np.linspace(0.0, 2.0, 16) if weighted else None
    found = fit(x, 3, kernel, method, center=center, weights=weights, nonfinite="drop")
    x[17, 5] = np.nan
    truth = Plain(x, 3, KERNELS[kernel], center=center, weights=weights)
    assert_is(found, truth)
    land = np.isnan(found["component"].values)
    np.testing.assert_array_equal(land, np.tile(~truth.kept, (3, 1)))
    assert ("mean" in found) == center
    assert ("weight" in found) == weighted
    if center:
        np.testing.assert_allclose(found["mean"][truth.kept], truth.mean, rtol=1e-12)
    if weighted:
        np.testing.assert_allclose(found["weight"][truth.kept], truth.weights, rtol=1e-12)


@pytest.mark.parametrize("method", ["gram", "pairs"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_fit__knows_copies_of_rows(kernel, method):
    """Laplace has a cusp at distance 0: a rounding of 1e-16 of the square costs eight digits."""
    x = np.repeat(samples.decaying(5, 20), 3, axis=0)[np.random.default_rng(0).permutation(15)]
    assert_is(fit(x, 3, kernel, method), Plain(x, 3, KERNELS[kernel]))
    x[:4] += 1e-9  # nearly copies: distances of 4e-9 are below the roots of their squares' rounding
    loose = {"values": 1e-7, "projector": 1e-7} if kernel == "laplace" else {}
    assert_is(fit(x, 3, kernel, method), Plain(x, 3, KERNELS[kernel]), **loose)


@pytest.mark.parametrize("method", ["gram", "pairs"])
@pytest.mark.parametrize("kernel", ["gauss", "laplace", "poisson"])
@pytest.mark.parametrize("center", [False, True])
def test_fit__keeps_its_digits_far_from_the_origin(kernel, method, center):
    """What an offset of 1e4 costs: distances keep the digits of the spread, products of the rows
    those of the rows."""
    x = samples.decaying(14, 14) + 1e4
    found = fit(x, 2, kernel, method, center=center)
    loose = {} if not center else {"values": 1e-9, "projector": 1e-8}
    truth = Plain(x, 2, KERNELS[kernel], center=center)
    if not center:  # the second eigenvalue is 1e-9 of the first
        loose = {"values": 1e-6, "projector": 1e-6}
    assert_is(found, truth, **loose)


@pytest.mark.parametrize(("kernel", "method"), EXACT)
def test_fit__reports_the_distance_and_its_bounds(kernel, method):
    x, k = samples.decaying(12, 12), 3
    found, truth = fit(x, k, kernel, method), Plain(x, k, KERNELS[kernel])
    low, slack = plain.tail(truth.eigenvalues, k), 1e-12 * truth.trace
    np.testing.assert_allclose(found["mmd2"], truth.mmd2, rtol=1e-9)
    np.testing.assert_allclose(found["mmd2_lower"], low, atol=slack)
    of_pca = plain.mmd2_to(truth.h, truth.rows, truth.pca)
    np.testing.assert_allclose(found["mmd2_pca"], of_pca, rtol=1e-9)
    assert float(found["mmd2_standard_error"]) == 0
    assert float(found["subspace_error"]) < 1e-8
    upper = {
        "gauss": plain.gauss_upper(truth.rows, truth.vectors, truth.eigenvalues),
        "kurtosis": 4 * low,
    }
    np.testing.assert_allclose(found["mmd2_upper"], upper.get(kernel, np.nan), atol=4 * slack)


@pytest.mark.parametrize("method", ["gram", "pairs", "moments"])
def test_second_moments__are_pca(method):
    x = samples.shifted(13, 13)
    found = fit(x, 4, mmdpca.HigherMoments((0, 1)), method)
    values, vectors = plain.eigenpairs(x.T @ x / len(x))
    own = found["component"].values.T
    assert np.linalg.norm(own @ own.T - plain.projector(vectors[:, :4])) < 1e-8
    np.testing.assert_allclose(found["eigenvalue"], values[:4] ** 2 / 13**2, rtol=1e-10)
    np.testing.assert_allclose(
        found["mmd2"], found["mmd2_lower"], atol=1e-12 * float(found["trace"])
    )
    np.testing.assert_allclose(found["mmd2_pca"], found["mmd2"], rtol=1e-9)


@pytest.mark.parametrize("method", ["gram", "pairs", "moments"])
def test_first_moment__is_the_mean_direction(method):
    x = samples.shifted(13, 13)
    found = fit(x, 1, mmdpca.HigherMoments((1,)), method)
    mean = x.mean(axis=0)
    along = found["component"].values[0] @ mean / np.linalg.norm(mean)
    assert abs(along) == pytest.approx(1, abs=1e-12)
    assert float(found["eigenvalue"][0]) == pytest.approx(mean @ mean / 13, rel=1e-12)
    assert abs(float(found["mmd2"])) < 1e-12 * float(found["trace"])


@pytest.mark.parametrize("shares", [(1.0, 0.5), (0.0, 0.0, 1.0), (2.0, 0.0, 0.0, 0.0, 0.3)])
@pytest.mark.parametrize("method", ["gram", "pairs", "moments"])
def test_higher_moments__are_the_dense_matrix(shares, method):
    x, n = samples.decaying(8, 8), 8
    truth = Plain(x, 2, lambda n, a: plain.higher_moments(n, shares))
    found = fit(x, 2, mmdpca.HigherMoments(shares), method)
    assert_is(found, truth)
    assert float(found["mmd2_upper"]) <= len(shares) * plain.tail(truth.eigenvalues, 2) * (1 + 1e-9)
    del n


@pytest.mark.parametrize(
    ("method", "values", "sine"), [("gram", 1e-10, 1e-8), ("nystrom", 1e-7, 1e-6)]
)
def test_poisson__of_a_hundred_thousand_dimensions_is_pca(method, values, sine):
    """Its values fall below any float64 off the diagonal; H_f is the second moment over N."""
    n = 100_000
    few = samples.decaying(12, 12)
    turned = np.linalg.qr(np.random.default_rng(1).standard_normal((n, 12)))[0]
    x = 1e3 * few @ turned.T
    found = fit(x, 3, "poisson", method)
    moments, vectors = plain.eigenpairs(few.T @ few)
    np.testing.assert_allclose(found["eigenvalue"], 1e6 * moments[:3] / 12**2, rtol=values)
    assert plain.sine(found["component"].values.T, turned @ vectors[:, :3]) < sine
    near = fit(x / 1e3, 3, "poisson", method)  # where it is neither 0 nor 1
    truth = Plain(few, 3, lambda _, a: plain.poisson(n, a))
    np.testing.assert_allclose(near["eigenvalue"], truth.eigenvalues[:3], rtol=values)
    np.testing.assert_allclose(near["mmd2"], truth.mmd2, rtol=10 * values)
    assert plain.sine(near["component"].values.T, turned @ truth.vectors) < sine


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("a", [30.0, 200.0, 400.0, 500.0, 2000.0])
def test_nystrom__of_a_kernel_that_is_0_off_the_diagonal_is_pca(a, dtype):
    """Along a few directions landmarks have values next to 0, or 0, even with themselves."""
    x = np.random.default_rng(0).standard_normal((300, 1500))
    x[:, :5] *= 4
    found = fit(x.astype(dtype), 5, "gauss", "nystrom", a=a)
    vectors = np.linalg.svd(x, full_matrices=False)[2][:5].T
    off = plain.sine(found["component"].values.T, vectors)
    assert off <= (1e-4 if dtype == "f4" else 1e-6)
    assert off <= float(found["subspace_error"]) <= 1e-3


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplace(3.0)])
@pytest.mark.parametrize("method", ["gram", "pairs"])
def test_fit__takes_any_kernel(kernel, method):
    x = samples.decaying(12, 12)
    shapes = {"gaussian": lambda s: np.exp(-s / 8), "laplace": lambda s: np.exp(-np.sqrt(s) / 3)}
    shape = shapes[kernel.name]
    truth = Plain(x, 2, lambda n, a: lambda one, y: shape(plain.squared(one, y)))
    assert_is(fit(x, 2, kernel, method), truth)


def single(truth):
    """What float32 may lose: a sum of n terms sqrt(n) roundings of its size; H, whose argument is
    such a sum, that times its slope, which is at most the argument's own size or 3."""
    n_rows, n = truth.rows.shape
    lengths = (truth.rows**2).sum(axis=1)
    own = [float(truth.h(row, row[None])[0]) for row in truth.rows]
    slope = 3 + 2 * float(lengths.max()) / n
    loss = np.finfo("f4").eps * (n**0.5 * slope + n_rows**0.5) * float((lengths * own).mean())
    top = truth.eigenvalues
    projector = np.sqrt(2 * truth.k) * loss / (top[truth.k - 1] - top[truth.k])
    assert projector < 3e-3
    return {"values": loss / top[truth.k - 1], "projector": projector}


@pytest.mark.parametrize(("kernel", "method"), EXACT)
def test_fit__takes_frames_of_bytes(kernel, method):
    """As float32 where pairs are summed; their inner products are exact."""
    shared = np.random.default_rng(0).integers(0, 3, (1, 3, 2, 2), dtype=np.uint8)
    frames = shared + np.random.default_rng(1).integers(0, 3, (12, 3, 2, 2), dtype=np.uint8)
    truth = Plain(frames, 1, KERNELS[kernel])
    loose = {} if method == "gram" else single(truth)
    assert_is(fit(frames, 1, kernel, method), truth, **loose)


@pytest.mark.parametrize(("kernel", "method"), EXACT)
def test_fit__of_float32_is_near_and_says_how_near(kernel, method):
    x = samples.flat_tail(12, 12, rank=2).astype("f4") / 3
    truth = Plain(x, 2, KERNELS[kernel])
    found = fit(x, 2, kernel, method)
    assert_is(found, truth, **single(truth))
    off = plain.sine(truth.white(found["component"]), truth.vectors)
    assert off <= float(found["subspace_error"]) + 1e-14


@pytest.mark.parametrize("method", ["gram", "pairs"])
def test_fit__has_the_same_answer_in_every_namespace(put, method):
    x = samples.decaying(12, 12)
    assert_is(fit(put(x), 3, "laplace", method), Plain(x, 3, plain.laplace))


def test_fit__reads_any_store(tmp_path):
    x = samples.decaying(30, 10)
    zarr.create_array(tmp_path / "x.zarr", data=x, chunks=(8, 10))
    zarr.create_array(tmp_path / "by_column.zarr", data=x, chunks=(30, 3))
    np.save(tmp_path / "x.npy", x)
    given = {
        "dask": da.from_array(x, chunks=(7, 10)),
        "dask by columns": da.from_array(x, chunks=(30, 4)),
        "zarr": str(tmp_path / "x.zarr"),
        "zarr by columns": str(tmp_path / "by_column.zarr"),
        "npy": tmp_path / "x.npy",
        "xarray": xr.DataArray(x, dims=("time", "station")),
    }
    truth = Plain(x, 3, plain.gauss)
    for data in given.values():
        for method in ("pairs", "gram"):
            assert_is(fit(data, 3, method=method), truth)


def field(n_time=18, *, seed=0):
    """A field on a small globe with land and a sample dimension that is not the first."""
    x = samples.shifted(n_time, 20, seed).reshape(n_time, 4, 5)
    x[:, 1:3, 2] = np.nan
    return xr.DataArray(
        x,
        dims=("time", "lat", "lon"),
        coords={
            "time": np.arange(n_time) * 10,
            "lat": [-60.0, -20.0, 20.0, 60.0],
            "lon": np.arange(0.0, 360.0, 72.0),
        },
        name="sst",
    )


@pytest.mark.parametrize("method", ["gram", "pairs"])
def test_fit__gives_fields_their_coordinates_back(method):
    x = field()
    weights = np.repeat(np.cos(np.deg2rad(x["lat"].values)), 5)
    truth = Plain(x.values, 3, plain.gauss, weights=weights, center=True)
    for data in (x, x.transpose("lat", "lon", "time")):
        found = fit(data, 3, method=method, dim="time", weights="coslat", center=True)
        assert found["component"].dims == ("k", "lat", "lon")
        assert found["mean"].dims == found["weight"].dims == ("lat", "lon")
        assert found["k"].values.tolist() == [1, 2, 3]
        xr.testing.assert_equal(found["lat"], x["lat"])
        xr.testing.assert_equal(found["lon"], x["lon"])
        assert_is(found, truth)


def test_fit__names_features_of_arrays():
    x = samples.decaying(9, 12)
    assert fit(x, 2)["component"].dims == ("k", "feature")
    frames = fit(x.reshape(9, 3, 4), 2)
    assert frames["component"].dims == ("k", "feature_0", "feature_1")
    np.testing.assert_allclose(frames["component"].values.reshape(2, 12), fit(x, 2)["component"])


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("weights", [None, "coslat"])
def test_scores__are_coordinates_on_components(center, weights):
    x = field()
    found = fit(x, 3, center=center, weights=weights)
    w = None if weights is None else np.repeat(np.cos(np.deg2rad(x["lat"].values)), 5)
    truth = Plain(x.values, 3, plain.gauss, center=center, weights=w)
    scores = mmdpca.project(x, found, scheduler="sync")
    assert scores.dims == ("time", "k")
    assert scores.name == "score"
    np.testing.assert_array_equal(scores["time"], x["time"])
    own = truth.white(found["component"])
    np.testing.assert_allclose(scores, truth.rows @ own, rtol=1e-9, atol=1e-9)
    again = mmdpca.reconstruct(scores, found)
    assert again.dims == ("time", "lat", "lon")
    xr.testing.assert_equal(again["lat"], x["lat"])
    flat = again.values.reshape(len(x), -1)
    assert np.isnan(flat[:, ~truth.kept]).all()
    inside = truth.rows @ own @ own.T / truth.root + truth.mean
    np.testing.assert_allclose(flat[:, truth.kept], inside, rtol=1e-9, atol=1e-9)
    distance = mmdpca.mmd_to_projection(x, found, method="exact", scheduler="sync")
    np.testing.assert_allclose(distance["mmd2"], truth.mmd2, rtol=1e-9)
    np.testing.assert_allclose(distance["mmd2"], found["mmd2"], rtol=1e-9)
