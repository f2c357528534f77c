"""Bad input: one clear error that names the argument, what came, and what to do."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr

from bigkd import errors, mmdpca
from bigkd.kernels import Gaussian, Triangle

X = np.random.default_rng(0).standard_normal((30, 6))
NAN = np.full((30, 6), np.nan)


@pytest.mark.parametrize(
    ("x", "options", "error", "pattern"),
    [
        (X[:0], {}, errors.EmptyInputError, "is empty"),
        (X[:, :0], {}, errors.EmptyInputError, "is empty"),
        (X[:, 0], {}, errors.ShapeError, r"shape \(30,\)"),
        (X.tolist(), {}, errors.InputError, "must be an array .* got list"),
        (X + 1j, {}, errors.InputError, "complex128"),
        (X.astype(str), {}, errors.InputError, "<U"),
        ("nowhere.zarr", {}, errors.StoreError, "nowhere.zarr does not exist"),
        (X, {"k": 0}, errors.InputError, "k must be .* got 0"),
        (X, {"k": 7}, errors.InputError, "k=7|k must be"),
        (X[:3], {"k": 4}, errors.InputError, "k=4|k must be"),
        (X, {"k": 1.5}, errors.InputError, "k must be"),
        (X, {"k": True}, errors.InputError, "k must be"),
        (X, {"kernel": "normal"}, errors.InputError, "kernel must be .* got 'normal'"),
        (X, {"kernel": 3}, errors.InputError, "kernel must be .* got 3"),
        (X, {"kernel": mmdpca.HigherMoments((1,)), "k": 2}, errors.InputError, "k"),
        (X, {"a": 0}, errors.InputError, "a must be .*positive.*; got 0"),
        (X, {"a": -1.0}, errors.InputError, "a must be .*positive.*; got -1"),
        (X, {"a": np.nan}, errors.InputError, "a must be"),
        (X, {"a": "wide"}, errors.InputError, "a must be"),
        (X, {"a": 2.0, "kernel": Gaussian(1.0)}, errors.InputError, "a"),
        (X, {"method": "fast"}, errors.InputError, "method must be .* got 'fast'"),
        (X, {"method": "moments"}, errors.InputError, "moments"),
        (X, {"method": "features", "kernel": "kurtosis"}, errors.InputError, "features"),
        (X, {"kernel": Triangle(1.0)}, errors.InputError, "not positive definite in 6"),
        (X, {"n_landmarks": 0}, errors.InputError, "n_landmarks must be"),
        (X, {"n_landmarks": 2.5}, errors.InputError, "n_landmarks must be"),
        (X, {"seed": -1}, errors.InputError, "seed"),
        (X, {"seed": 0.5}, errors.InputError, "seed"),
        (X, {"center": "mean"}, errors.InputError, "center must be"),
        (X, {"weights": np.ones(5)}, errors.ShapeError, "weights"),
        (X, {"weights": -np.ones(6)}, errors.InputError, "weights"),
        (X, {"weights": np.zeros(6)}, errors.InputError, "weights"),
        (X, {"weights": np.full(6, np.nan)}, errors.InputError, "weights"),
        (X, {"weights": "sinlat"}, errors.InputError, "weights"),
        (X, {"weights": "coslat"}, errors.InputError, "coslat"),
        (X, {"weights": 1j * np.ones(6)}, errors.InputError, "weights"),
        (NAN, {}, errors.EmptyInputError, "no feature is finite"),
        (np.where(np.eye(30, 6) > 0, np.nan, X), {}, errors.DataError, "row 0"),
        (np.where(np.eye(30, 6) > 0, np.inf, X), {}, errors.DataError, "row 0"),
        (X, {"nonfinite": "keep"}, errors.InputError, "nonfinite must be"),
        (X, {"memory_limit": 1000}, errors.MemoryPlanError, "one task needs"),
        (xr.DataArray(X, dims=("a", "b")), {"dim": "c"}, errors.InputError, "dim"),
        (X * 0, {}, errors.DataError, "every row is zero"),
    ],
)
def test_fit__refuses(x, options, error, pattern):
    with pytest.raises(error, match=pattern):
        mmdpca.fit(x, **{"k": 2, "scheduler": "sync", **options})


def test_unknown_keywords__are_refused_with_the_nearest_one():
    with pytest.raises(TypeError, match=r"'scheduler_'\. Did you mean 'scheduler'"):
        mmdpca.fit(X, k=2, scheduler_="sync")


def test_k_beyond_the_rank__is_an_error_that_tells_the_rank():
    low = X[:, :2] @ np.random.default_rng(1).standard_normal((2, 6))
    for method in ("pairs", "gram"):
        with pytest.raises(errors.InputError, match=r"k=3.*\b2\b"):
            mmdpca.fit(low[:6], k=3, method=method, scheduler="sync")
        mmdpca.fit(low[:6], k=2, method=method, scheduler="sync")


def test_one_sample__has_one_component():
    found = mmdpca.fit(X[:1], k=1, scheduler="sync")
    along = found["component"].values[0] @ X[0] / np.linalg.norm(X[0])
    assert abs(along) == pytest.approx(1)
    with pytest.raises(errors.DataError, match="the same after it was centred"):
        mmdpca.fit(X[:1], k=1, center=True, scheduler="sync")


def test_constant_features__are_no_trouble():
    x = np.concatenate([X, np.zeros((30, 1)), np.full((30, 1), 2.0)], axis=1)
    found = mmdpca.fit(x, k=2, center=True, scheduler="sync")
    np.testing.assert_allclose(found["component"].values[:, 6:], 0, atol=1e-12)


def test_project__refuses_other_features():
    found = mmdpca.fit(X, k=2, scheduler="sync")
    with pytest.raises(errors.ShapeError, match="6"):
        mmdpca.project(X[:, :5], found, scheduler="sync")
    with pytest.raises(errors.InputError, match="fit"):
        mmdpca.project(X, found.drop_vars("component"), scheduler="sync")
    with pytest.raises(
        errors.InputError, match=r"scores must be an xarray.DataArray .* got ndarray"
    ):
        mmdpca.reconstruct(np.ones((4, 2)), found)


def test_chunks_along_the_wrong_axis__are_no_blow_up():
    """Few long rows chunked by rows, and many short ones chunked by columns."""
    few = np.random.default_rng(0).standard_normal((8, 4000))
    for chunks in ((1, 4000), (8, 100), (3, 700)):
        own = mmdpca.fit(da.from_array(few, chunks=chunks), k=2, method="gram", scheduler="sync")
        np.testing.assert_allclose(
            own["eigenvalue"], mmdpca.fit(few, k=2, scheduler="sync")["eigenvalue"], rtol=1e-10
        )
    many = np.random.default_rng(0).standard_normal((4000, 8))
    own = mmdpca.fit(da.from_array(many, chunks=(4000, 3)), k=2, method="nystrom", scheduler="sync")
    assert own["component"].shape == (2, 8)
