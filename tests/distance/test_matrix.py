import itertools

import numpy as np
import pytest

from bigkd import distance
from bigkd.errors import InputError, ShapeError
from bigkd.kernels import Gaussian, Triangle
from tests.distance.conftest import distance_squared, gaussian

RNG = np.random.default_rng(0)
SETS = {name: RNG.normal(size=(100 + 10 * at, 2)) + 0.3 * at for at, name in enumerate("abcd")}
WEIGHTS = {"b": RNG.uniform(size=110)}


def found(sets=SETS, **options):
    return distance.matrix(sets, **{"kernel": Gaussian(1.0), "scheduler": "sync", **options})


@pytest.mark.parametrize("method", ["exact", "nufft", "rff"])
def test_matrix__holds_every_distance(method):
    result = found(method=method, weights=WEIGHTS, n_frequencies=3000)
    for (one, x), (other, y) in itertools.product(SETS.items(), repeat=2):
        expected = distance_squared(gaussian(1.0), x, y, WEIGHTS.get(one), WEIGHTS.get(other))
        cell = result.sel(x=one, y=other)
        error = abs(float(cell["distance_squared"]) - expected)
        assert error <= float(cell["promise"]) + 1e-15
        assert error <= (1e-8 if method != "rff" else 0.02)
    np.testing.assert_array_equal(result["distance"], result["distance"].T)
    np.testing.assert_array_equal(result["n_rows"], [100, 110, 120, 130])
    assert (np.diag(result["distance"]) == 0).all()


@pytest.mark.parametrize("method", ["exact", "nufft", "rff"])
def test_matrix__agrees_with_kernel_distance(method):
    result = found(method=method, n_frequencies=500).sel(x="a", y="c")
    pair = distance.kernel_distance(
        SETS["a"], SETS["c"], kernel=Gaussian(1.0), method=method, n_frequencies=500
    )
    for name in ("distance", "distance_squared"):
        assert float(result[name]) == pytest.approx(float(pair[name]), rel=1e-6)
    assert float(result["kappa"]) == pytest.approx(float(pair["kappa_xy"]), rel=1e-6)


def test_kappa__of_a_collection_and_itself_is_on_the_diagonal():
    pair = distance.kernel_distance(SETS["a"], SETS["b"], kernel=Gaussian(1.0), method="exact")
    for method in ("exact", "nufft"):
        result = found(method=method)
        assert float(result["kappa"].sel(x="a", y="a")) == pytest.approx(
            float(pair["kappa_xx"]), rel=1e-7
        )


def test_auto__depends_on_the_width():
    assert found().attrs["method"] == "nufft"
    wide = {name: RNG.normal(size=(50, 6)) for name in "ab"}
    assert found(wide).attrs["method"] == "rff"
    assert found(wide, kernel=Triangle(9.0)).attrs["method"] == "exact"


@pytest.mark.parametrize(
    ("sets", "options", "error", "message"),
    [
        ({"a": SETS["a"]}, {}, InputError, "collections must be two or more, by name; got 1"),
        (SETS, {"weights": {"z": WEIGHTS["b"]}}, InputError, r"weights are given for \['z'\]"),
        (SETS, {"method": "coreset"}, InputError, "method must be"),
        ({"a": np.ones((3, 2)), "b": np.ones((3, 3))}, {}, ShapeError, "b of 3"),
    ],
)
def test_bad_arguments__are_refused(sets, options, error, message):
    with pytest.raises(error, match=message):
        found(sets, **options)
