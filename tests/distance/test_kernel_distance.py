import dask.array as da
import numpy as np
import pytest
import xarray as xr

from bigkd import distance
from bigkd.backends import to_host
from bigkd.kernels import (
    CovarianceGaussian,
    Epanechnikov,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Matern,
    Polynomial,
    Triangle,
)
from tests.distance.conftest import distance_squared, gaussian, laplace

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(120, 2)), RNG.normal(size=(90, 2)) + 0.4
MU, NU = RNG.uniform(0, 2, size=120), RNG.normal(size=90)
U = RNG.normal(size=(120, 3))
U /= np.linalg.norm(U, axis=1, keepdims=True)
V = U[:90][::-1].copy()
METHODS = ("exact", "nufft", "rff")


def found(x=X, y=Y, **options):
    return distance.kernel_distance(
        x, y, **{"kernel": Gaussian(1.0), "scheduler": "sync", **options}
    )


def value(*args, **options):
    return float(found(*args, **options)["distance_squared"])


@pytest.mark.parametrize("method", METHODS)
def test_distance__of_signed_weights_and_vectors_is_the_definition(method):
    options = {
        "x_weights": MU, "y_weights": NU, "x_vectors": U, "y_vectors": V, "normalize": False,
    }  # fmt: skip
    expected = distance_squared(gaussian(1.0), X, Y, MU, NU, U, V, normalize=False)
    result = found(method=method, n_frequencies=4000, eps=1e-6, **options)
    error = abs(float(result["distance_squared"]) - expected)
    scale = max(np.abs(MU).sum(), np.abs(NU).sum()) ** 2
    assert error <= float(result["promise"])
    assert error <= {"rff": 2e-3}.get(method, 1e-9) * scale
    assert result.attrs["W"] == pytest.approx(scale**0.5)


@pytest.mark.parametrize("method", METHODS)
def test_distance__is_symmetric_and_zero_for_equal_sets(method):
    assert value(method=method, n_frequencies=500) == pytest.approx(
        value(Y, X, method=method, n_frequencies=500), abs=1e-13
    )
    same = found(X, X, method=method, n_frequencies=500)
    assert abs(float(same["distance_squared"])) <= max(float(same["promise"]), 1e-14)


def test_distance__keeps_the_triangle_inequality():
    z = RNG.normal(size=(80, 2)) * 2
    xy, yz, xz = (
        float(found(*pair, method="exact")["distance"]) for pair in ((X, Y), (Y, z), (X, z))
    )
    assert xz <= xy + yz + 1e-12


def test_distance__of_the_trivial_kernel_is_the_symmetric_difference():
    x, y = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [2.0], [3.0], [4.0]])
    assert value(x, y, kernel=Triangle(0.5), normalize=False, method="exact") == 3.0


def test_distance__of_the_linear_kernel_is_the_distance_of_means():
    expected = np.sum((X.mean(axis=0) - Y.mean(axis=0)) ** 2)
    assert value(kernel=Polynomial((0.0, 1.0))) == pytest.approx(expected, rel=1e-12)


def test_distance__that_is_negative_is_reported_as_it_is():
    x, signs = 0.55 * np.arange(10.0)[:, None], (-1.0) ** np.arange(10)
    result = distance.kernel_distance(
        x, x + 99, kernel=Epanechnikov(1.0), x_weights=signs, y_weights=0.01 * signs,
        normalize=False,
    )  # fmt: skip
    expected = (1 + 0.01**2) * (10 - 2 * 9 * (1 - 0.55**2))  # only neighbours see each other
    assert expected < -2
    assert float(result["distance_squared"]) == pytest.approx(expected)
    assert bool(result["negative"])
    assert float(result["distance"]) == 0.0
    assert result.attrs["positive_definite"] == 0


@pytest.mark.parametrize(
    ("kernel", "definition"),
    [
        (Laplace(0.7), laplace(0.7)),
        (Matern(0.5, 0.7), laplace(0.7)),
        (Gaussian(0.3), gaussian(0.3)),
    ],
)
def test_exact__is_the_definition(kernel, definition):
    expected = distance_squared(definition, X, Y, MU)
    assert value(x_weights=MU, kernel=kernel, method="exact") == pytest.approx(expected, rel=1e-11)


def test_float32__is_summed_in_float64_and_promises_its_rounding():
    x, y = X.astype("f4"), Y.astype("f4")
    expected = distance_squared(gaussian(1.0), x, y)
    result = found(x, y, method="exact")
    error = abs(float(result["distance_squared"]) - expected)
    assert error <= float(result["promise"]) < 1e-4


def test_float32__is_computed_in_float64_where_its_rounding_might_miss_eps():
    x, y = X.astype("f4"), Y.astype("f4")
    expected = distance_squared(gaussian(1.0), x, y)
    result = found(x, y, method="exact", eps=1e-9)
    assert abs(float(result["distance_squared"]) - expected) <= float(result["promise"]) < 1e-11


def test_namespaces__give_the_same_answers(put):
    x, y, mu, nu = (put(part) for part in (X, Y, MU, NU))
    for method in METHODS:
        plain = value(x_weights=MU, y_weights=NU, normalize=False, method=method, n_frequencies=50)
        moved = value(
            x, y, x_weights=mu, y_weights=nu, normalize=False, method=method, n_frequencies=50
        )
        assert moved == pytest.approx(plain, rel=1e-9)
    assert to_host(mu).sum() == pytest.approx(MU.sum())


@pytest.mark.parametrize("method", [*METHODS, "coreset"])
def test_chunks__change_nothing_beyond_rounding(method):
    options = {"method": method, "n_frequencies": 300, "x_weights": MU}
    whole = value(**options)
    for x in (
        da.from_array(X, chunks=(17, 2)),
        xr.DataArray(X, dims=("row", "column")).chunk(row=40),
    ):
        assert value(x, **options) == pytest.approx(whole, rel=1e-10)
    assert value(block_rows=13, **options) == pytest.approx(whole, rel=1e-10)


@pytest.mark.parametrize("method", [*METHODS, "coreset"])
def test_runs__have_the_same_bits_on_threads_and_after_a_resume(method, tmp_path):
    options = {"method": method, "n_frequencies": 300, "block_rows": 11, "x_weights": MU}
    sync = value(**options)
    assert value(**{**options, "scheduler": "threads"}) == sync
    for _ in range(2):
        assert value(**options, checkpoint=tmp_path / "kept") == sync


def test_auto__takes_the_grid_in_low_dimension_and_says_why():
    result = found(np.tile(X, (40, 1)), Y, eps=0.05)
    assert result.attrs["method"] == "nufft"
    for method in METHODS:
        assert method in result.attrs["method_reason"]


@pytest.mark.parametrize(
    "kernel", [InverseMultiquadric(1.0, 0.5), Triangle(1.0), Polynomial((1, 1))]
)
def test_auto__falls_back_to_what_the_kernel_allows(kernel):
    result = found(kernel=kernel, eps=0.01)
    assert result.attrs["method"] in ("exact", "rff")
    assert float(result["promise"]) <= 0.01


def test_auto__is_exact_for_few_rows_of_many_columns():
    x, y = RNG.normal(size=(300, 40)), RNG.normal(size=(300, 40))
    result = found(x, y, kernel="median", eps=0.05)
    assert result.attrs["method"] == "exact"
    assert result.attrs["bandwidth_rule"]


def test_auto__takes_features_for_many_rows_of_many_columns():
    costs = distance.Costs(pair=1.0)
    x, y = RNG.normal(size=(300, 40)), RNG.normal(size=(300, 40)) + 1
    result = found(x, y, kernel=Gaussian(6.0), eps=0.1, costs=costs)
    assert result.attrs["method"] in ("rff", "coreset")
    assert float(result["promise"]) <= 0.1


def test_costs__of_this_machine_are_of_the_right_order():
    costs = distance.measure_costs()
    assert 1e-12 < costs.pair < 1e-6
    assert 1e-10 < costs.wave < 1e-5
    assert all(1e-9 < point < 1e-4 for point in costs.point)


def test_covariance_gaussian__is_the_gaussian_of_whitened_rows():
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    whiten = np.linalg.inv(np.linalg.cholesky(covariance)).T
    expected = distance_squared(gaussian(1.0), X @ whiten, Y @ whiten)
    for method in ("exact", "nufft"):
        found = value(kernel=CovarianceGaussian(covariance), method=method, eps=1e-8)
        assert found == pytest.approx(expected, abs=1e-7)


def test_result__records_every_choice_and_no_date():
    result = found(method="rff", n_frequencies=10, seed=3, x_weights=MU)
    assert result.attrs["kernel"] == "gaussian"
    assert result.attrs["n_rows_x"] == 120
    assert result.attrs["mass_x"] == pytest.approx(MU.sum())
    assert result.attrs["seed"] == 3
    assert result.identical(found(method="rff", n_frequencies=10, seed=3, x_weights=MU))
    assert all(variable.attrs["units"] == "1" for variable in result.data_vars.values())


def test_dropped_rows__take_their_weights_with_them():
    x, mu = X.copy(), MU.copy()
    x[5, 0], mu[7] = np.nan, np.inf
    kept = np.setdiff1d(np.arange(120), [5, 7])
    for method in METHODS:
        options = {"method": method, "n_frequencies": 50}
        dropped = value(x, x_weights=mu, nonfinite="drop", **options)
        assert dropped == pytest.approx(value(X[kept], x_weights=MU[kept], **options), rel=1e-9)
