"""Bad input: one clear error that names the argument, what came, and what to do."""

import numpy as np
import pytest
import xarray as xr

from bigkd import distance, errors
from bigkd.kernels import Gaussian, Laplace, Polynomial, Triangle

X = np.random.default_rng(0).standard_normal((40, 3))
ONES = np.ones(40)
U = np.eye(3)[np.arange(40) % 3]


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "pattern"),
    [
        (X, X[:, :2], {}, errors.ShapeError, "x has rows of 3 .* and y of 2"),
        (X[:0], X, {}, errors.EmptyInputError, "x is empty: 0 rows"),
        (X[:, 0], X, {}, errors.ShapeError, r"x has shape \(40,\).*x\[:, None\]"),
        (X.tolist(), X, {}, errors.InputError, "x must be an array .* got list"),
        ("nowhere.zarr", X, {}, errors.StoreError, "x: nowhere.zarr does not exist"),
        (X, X, {"x_weights": ONES[:9]}, errors.ShapeError, "weights of x must be one for each"),
        (X, X, {"x_weights": [1.0] * 40}, errors.InputError, "weights of x must be an array"),
        (X, X, {"y_weights": X}, errors.ShapeError, "weights of y must be one number"),
        (X, X, {"x_weights": -ONES}, errors.DataError, "x: row 0 has the weight -1; prob.*normal"),
        (X, X, {"y_weights": 0 * ONES}, errors.EmptyInputError, "y: the weights .* all zero"),
        (X, X, {"x_vectors": U}, errors.ShapeError, "x has vectors of 3 components and y of no"),
        (
            X,
            X,
            {"x_vectors": U, "y_vectors": U[:, :2]},
            errors.ShapeError,
            "x has vectors of 3 components and y of 2",
        ),
        (X, X, {"kernel": "mean"}, errors.InputError, "kernel must be .* got 'mean'"),
        (X * 0, X * 0, {"kernel": "median"}, errors.InputError, "all equal"),
        (X, X, {"method": "fast"}, errors.InputError, "method must be one of .* got 'fast'"),
        (X, X, {"sizing": "fast"}, errors.InputError, "sizing must be one of"),
        (X, X, {"eps": 0.0}, errors.InputError, "eps must be finite and positive; got 0.0"),
        (X, X, {"eps": "small"}, errors.InputError, "eps must be finite and positive"),
        (X, X, {"delta": 1.0}, errors.InputError, "delta must lie between 0 and 1; got 1.0"),
        (X, X, {"n_frequencies": 1}, errors.InputError, "n_frequencies must be a whole number"),
        (X, X, {"coreset_size": 0}, errors.InputError, "coreset_size must be a whole number"),
        (X, X, {"seed": -1}, errors.InputError, "seed must be"),
        (
            X,
            X,
            {"kernel": Triangle(1.0), "method": "rff"},
            errors.InputError,
            "method='rff' needs .* Triangle",
        ),
        (X, X, {"kernel": Triangle(1.0), "method": "nufft"}, errors.InputError, "Triangle"),
        (
            X,
            X,
            {"kernel": Polynomial((1, 1)), "method": "coreset"},
            errors.InputError,
            "method='coreset' needs .* Polynomial",
        ),
        (np.ones((9, 4)), np.ones((9, 4)), {"method": "nufft"}, errors.InputError, "width|column"),
        (
            X,
            X,
            {"method": "nufft", "kernel": Laplace(1e-3)},
            errors.InputError,
            "modes for eps",
        ),
        (
            X,
            X,
            {"method": "rff", "sizing": "points", "eps": 1e-4},
            errors.InputError,
            "random frequencies .* limit",
        ),
        (
            X,
            X,
            {"x_vectors": U, "y_vectors": U, "method": "coreset"},
            errors.InputError,
            "method='coreset' .* vectors",
        ),
        (X, X, {"memory_limit": 1000}, errors.MemoryPlanError, "one task needs"),
    ],
)
def test_kernel_distance__refuses(x, y, options, error, pattern):
    with pytest.raises(error, match=pattern):
        distance.kernel_distance(x, y, **{"kernel": Gaussian(1.0), **options})


def test_kernel_distance__names_the_row_that_is_not_finite():
    spoilt = X.copy()
    spoilt[33, 1] = np.nan
    with pytest.raises(errors.DataError, match=r"y: row 33 \(row 3 of block 3\)"):
        distance.kernel_distance(X, spoilt, kernel=Gaussian(1.0), block_rows=10, scheduler="sync")


def test_unknown_keywords__are_refused_with_the_nearest_one():
    with pytest.raises(TypeError, match=r"'scheduler_'\. Did you mean 'scheduler'"):
        distance.kernel_distance(X, X, kernel=Gaussian(1.0), scheduler_="sync")


def test_shapes__bring_their_own_weights():
    shape = xr.Dataset(
        {"point": (("element", "axis"), X), "weight": ("element", ONES)},
        attrs={"bigkd_kind": "shape"},
    )
    plain = distance.kernel_distance(X, X[:9], kernel=Gaussian(1.0), method="exact")
    found = distance.kernel_distance(shape, X[:9], kernel=Gaussian(1.0), method="exact")
    assert float(found["distance"]) == float(plain["distance"])
    with pytest.raises(errors.InputError, match="x is a shape, which has weights"):
        distance.kernel_distance(shape, X, kernel=Gaussian(1.0), x_weights=ONES)
