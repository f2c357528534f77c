"""What went wrong once, or would have: small errors, odd weights, sets of one kind."""

import numpy as np
import pytest
import xarray as xr

from bigkd import distance
from bigkd.backends import to_host
from bigkd.distance import samples
from bigkd.distance.opening import Given, opened
from bigkd.distance.question import Question
from bigkd.errors import DataError, InputError
from bigkd.io import open_rows, sample
from bigkd.kernels import Gaussian, Laplace, Polynomial, Triangle
from tests.distance.conftest import distance_squared, gaussian

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(200, 3)), RNG.normal(size=(150, 3)) + 0.3
KERNEL = Gaussian(1.0)


def found(x=X, y=Y, **options):
    return distance.kernel_distance(x, y, **{"kernel": KERNEL, "scheduler": "sync", **options})


@pytest.mark.parametrize("eps", [1e-9, 1e-14, 1e-300])
@pytest.mark.parametrize("width", [3, 20])
def test_auto__of_a_tiny_eps_is_exact(width, eps):
    x = RNG.normal(size=(100, width))
    assert found(x, x[:50], eps=eps).attrs["method"] in ("exact", "nufft")


def test_auto__of_signed_weights_takes_no_sample():
    x, w = RNG.normal(size=(2000, 10)), RNG.normal(size=2000)
    costs = distance.Costs(wave=1.0, pair=1.0)
    result = found(x, x[:900], x_weights=w, normalize=False, eps=0.3, costs=costs)
    assert result.attrs["method"] in ("exact", "rff")


def test_rff__has_at_least_two_frequencies_and_never_a_promise_of_nothing():
    result = found(method="rff", sizing="value", eps=10.0)
    assert result.attrs["n_frequencies"] == 2
    assert float(result["promise"]) > 0


def test_rff__of_too_many_frequencies_is_refused_before_they_are_drawn():
    with pytest.raises(InputError, match="n_frequencies=1000000000 is more than"):
        found(method="rff", n_frequencies=10**9)
    with pytest.raises(InputError, match="eps=1e-09 is more than"):
        found(method="rff", eps=1e-9)


@pytest.mark.parametrize("scale", [1e-44, 1e-20, 1e30])
def test_weights__of_any_size_keep_their_digits_beside_float32_rows(scale):
    x, y = X.astype("f4"), Y.astype("f4")
    mu = RNG.uniform(size=200) * scale
    expected = distance_squared(gaussian(1.0), x, y, mu / scale)
    result = found(x, y, x_weights=mu, method="rff", n_frequencies=4000)
    assert abs(float(result["distance_squared"]) - expected) <= 5 * float(result["standard_error"])


@pytest.mark.parametrize("total", [1e-170, 1e200])
def test_weights__whose_square_is_no_number_are_refused(total):
    with pytest.raises(DataError, match=r"x: its weights sum to .* Divide them by their largest"):
        found(x_weights=np.full(200, total / 200))


def test_overflow__is_an_error_and_no_nan():
    kernel = Polynomial((*(0.0,) * 15, 1.0))
    with pytest.raises(DataError, match="overflow"), np.errstate(all="ignore"):
        found(X * 1e30, Y * 1e30, kernel=kernel, method="exact")


def test_promise__of_an_unbounded_kernel_that_is_not_positive_definite_is_none():
    result = found(kernel=Polynomial((1.0, -1.0)), method="exact")
    assert float(result["promise"]) == np.inf


def test_dim__is_that_of_weights_and_vectors_too():
    points = xr.DataArray(X[:3], dims=("row", "axis"))
    normals = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    turned = xr.DataArray(normals.T, dims=("component", "row"))
    plain = found(X[:3], Y[:3], x_vectors=normals, y_vectors=normals, method="exact")
    other = found(points, Y[:3], x_vectors=turned, y_vectors=normals, method="exact", dim="row")
    assert float(other["distance"]) == pytest.approx(float(plain["distance"]), rel=1e-12)


def test_unbiased__of_samples_has_no_bias_of_its_own():
    rng = np.random.default_rng(2)
    x, y, w = rng.normal(size=(1500, 2)), rng.normal(size=(1500, 2)), rng.uniform(size=1500)
    for weights in (None, w):
        exact = distance.unbiased_mmd2(x, y, kernel=KERNEL, x_weights=weights, method="exact")
        values = [
            float(
                distance.unbiased_mmd2(
                    x, y, kernel=KERNEL, x_weights=weights, method="coreset", coreset_size=50,
                    seed=seed, scheduler="sync",
                )["mmd2"]
            )
            for seed in range(60)
        ]  # fmt: skip
        error = abs(np.mean(values) - float(exact["mmd2"]))
        assert error <= 3.5 * np.std(values) / 60**0.5


def test_coreset__promise_meets_eps_where_it_chose_the_size():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(60_000, 5)), rng.normal(size=(60_000, 5)) + 0.5
    for seed in range(5):
        result = found(x, y, kernel=Gaussian(2.0), method="coreset", eps=0.1, seed=seed)
        assert float(result["promise"]) <= 0.1
        assert result.attrs["coreset_size"] < 60_000


def test_coreset__shares_delta_between_both_samples():
    result = found(method="coreset", coreset_size=50, delta=0.1)
    slack = float(result["distance_upper"] - result["distance"])
    assert slack == pytest.approx(2 * samples.sample_promise(50, 0.05), rel=1e-9)


def test_coreset__slack_is_in_units_of_each_mass():
    result = found(method="coreset", coreset_size=50, delta=0.1, normalize=False)
    slack = float(result["distance_upper"] - result["distance"])
    assert slack == pytest.approx((200 + 150) * samples.sample_promise(50, 0.05), rel=1e-9)


def test_pilot__plays_no_part_in_the_estimate():
    piloted = found(method="rff", eps=0.2)
    given = found(method="rff", n_frequencies=piloted.attrs["n_frequencies"])
    assert float(piloted["distance_squared"]) == float(given["distance_squared"])


@pytest.mark.parametrize("vectors", [False, True])
def test_pilot__values_are_those_of_weighted_rows_with_their_vectors(vectors):
    mu, u, v = RNG.uniform(size=200) ** 4, None, None
    if vectors:
        u, v = (RNG.normal(size=(n, 2)) for n in (200, 150))
        u, v = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (u, v))
    given = {"x": Given(X, mu, u), "y": Given(Y, None, v)}
    with opened(given, KERNEL, Question(), {"scheduler": "sync"}) as begun:
        values = begun.setting.pilot
    expected = distance_squared(gaussian(1.0), X, Y, mu, None, u, v)
    assert values.mean() == pytest.approx(expected, abs=4 * values.std() / values.size**0.5)


def test_samples__take_the_weights_of_their_rows_where_chunks_are_missing(tmp_path):
    rows = np.arange(60.0)[:, None]
    xr.Dataset({"x": (("row", "c"), rows)}).chunk(row=10).to_zarr(
        tmp_path / "x.zarr", zarr_format=3, consolidated=False
    )
    (tmp_path / "x.zarr" / "x" / "c" / "2" / "0").unlink()
    source = open_rows(
        str(tmp_path / "x.zarr" / "x"), name="x", missing="skip", weights=np.arange(60.0)
    )
    taken = sample(source, 30, seed=0)
    np.testing.assert_array_equal(to_host(taken.values)[:, 0], taken.weights)
    np.testing.assert_array_equal(taken.index, taken.weights)


def test_matrix__falls_back_where_a_grid_would_be_too_large():
    sets = {"a": X, "b": Y * 1e6}
    assert distance.matrix(sets, kernel=KERNEL).attrs["method"] == "rff"
    rough = distance.matrix({"a": X, "b": Y}, kernel=Laplace(1e-3))
    assert rough.attrs["method"] == "rff"
    assert rough.attrs["W"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"kernel": np.ones(2)}, "kernel must be"),
        ({"costs": {"pair": 1}}, "costs must be those of measure_costs"),
        ({"method": np.ones(2)}, "method must be one of"),
        ({"normalize": "no"}, "normalize must be True or False; got 'no'"),
        ({"block_rows": 2.5}, "block_rows must be a whole number"),
        ({"method": "rff", "sizing": "domain", "kernel": Laplace(1.0)}, "second moment"),
        ({"method": "nufft", "eps": 1e-14}, "eps of at least 4e-13"),
    ],
)
def test_odd_arguments__are_refused_in_words(options, pattern):
    with pytest.raises(InputError, match=pattern):
        found(**options)


@pytest.mark.parametrize("options", [{"collections": [X, Y]}, {"weights": [1, 2]}])
def test_matrix__takes_mappings_only(options):
    with pytest.raises(InputError, match="must be a mapping by name"):
        distance.matrix(**{"collections": {"x": X, "y": Y}, "kernel": KERNEL, **options})


def test_matrix__of_kernels_without_spectrum_uses_each_pairs_own_norms():
    result = distance.matrix({"a": X, "b": Y, "c": X[:9]}, kernel=Triangle(2.0), normalize=False)
    promise = result["promise"]
    assert float(promise.sel(x="a", y="b")) > 2 * float(promise.sel(x="b", y="c"))
