"""The true error is within the promise, at the promised rate, and the promise says something."""

import numpy as np
import pytest

from bigkd import distance
from bigkd.kernels import Gaussian, Matern
from tests.distance.conftest import HARD, distance_squared, gaussian

SIGMA = 1.0


def found(data, **options):
    x, y, mu, nu = data
    options = {"kernel": Gaussian(SIGMA), "scheduler": "sync", **options}
    return distance.kernel_distance(x, y, x_weights=mu, y_weights=nu, **options)


def truth(data):
    return distance_squared(gaussian(SIGMA), *data)


@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("name", HARD)
def test_exact__errs_by_rounding_only(name, d):
    data = HARD[name](np.random.default_rng(1), d)
    result = found(data, method="exact")
    assert abs(float(result["distance_squared"]) - truth(data)) <= float(result["promise"]) <= 1e-11
    assert result.attrs["promise_kind"] == "rounding"


@pytest.mark.parametrize("eps", [1e-1, 1e-8])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("name", HARD)
def test_nufft__never_breaks_its_promise(name, d, eps):
    if (name, d) in {("outliers", 3), ("far apart", 3)} and eps < 1e-2:
        pytest.skip("more modes than a test should take")
    data = HARD[name](np.random.default_rng(2), d)
    result = found(data, method="nufft", eps=eps)
    error = abs(float(result["distance_squared"]) - truth(data))
    assert error <= float(result["promise"]) <= eps
    assert result.attrs["promise_kind"] == "deterministic"


@pytest.mark.parametrize("d", [2, 30])
@pytest.mark.parametrize("name", HARD)
def test_rff__keeps_its_promise_at_the_promised_rate(name, d):
    data = HARD[name](np.random.default_rng(3), d)
    expected, broken, ratios = truth(data), 0, []
    for seed in range(40):
        result = found(data, method="rff", n_frequencies=300, delta=0.1, seed=seed)
        error = abs(float(result["distance_squared"]) - expected)
        broken += error > float(result["promise"])
        ratios.append(float(result["promise"]) / max(error, 1e-12))
    assert broken <= 9  # of 40 with probability 0.1 each: more has probability 0.005
    if expected > 0.3:
        assert np.median(ratios) < 25


def test_rff__standard_error_is_the_scatter_over_seeds():
    data = HARD["heavy weights"](np.random.default_rng(4), 5)
    results = [found(data, method="rff", n_frequencies=400, seed=seed) for seed in range(60)]
    values = np.array([float(result["distance_squared"]) for result in results])
    claimed = np.mean([float(result["standard_error"]) for result in results])
    assert claimed == pytest.approx(values.std(), rel=0.3)
    assert abs(values.mean() - truth(data)) < 3 * claimed / 60**0.5


@pytest.mark.parametrize("sizing", ["pilot", "value", "points", "domain"])
def test_rff__sizings_meet_eps(sizing):
    data = HARD["clusters"](np.random.default_rng(5), 4)
    eps = {"points": 0.5, "domain": 0.5}.get(sizing, 0.15)
    result = found(data, method="rff", sizing=sizing, eps=eps)
    assert result.attrs["sizing"] == sizing
    assert float(result["promise"]) <= eps
    assert abs(float(result["distance_squared"]) - truth(data)) <= eps


def test_promise__bounds_the_distance_as_well():
    data = HARD["heavy weights"](np.random.default_rng(6), 2)
    for method in ("exact", "nufft", "rff", "coreset"):
        result = found(data, method=method, eps=0.05)
        root = truth(data) ** 0.5
        assert float(result["distance_lower"]) <= root <= float(result["distance_upper"])
        relative = float(result["promise"] / result["distance_squared"])
        assert float(result["relative_promise"]) == pytest.approx(relative)


@pytest.mark.parametrize("d", [2, 10])
@pytest.mark.parametrize("name", HARD)
def test_coreset__keeps_its_promise_at_the_promised_rate(name, d):
    data = HARD[name](np.random.default_rng(7), d)
    expected, broken = truth(data), 0
    for seed in range(30):
        result = found(data, method="coreset", coreset_size=60, delta=0.1, seed=seed)
        error = abs(float(result["distance_squared"]) - expected)
        broken += error > float(result["promise"])
    assert broken <= 7


def test_coreset__promise_falls_with_the_root_of_the_size():
    """The norm of the embedding is bounded, of which one number is only a part: it is careful."""
    rng = np.random.default_rng(9)
    data = (rng.normal(size=(9000, 5)), rng.normal(size=(9000, 5)) + 0.3, None, None)
    small, large = (found(data, method="coreset", coreset_size=size) for size in (400, 6400))
    slack = [float(result["distance_upper"] - result["distance"]) for result in (small, large)]
    assert slack[0] / slack[1] == pytest.approx(4.0, rel=1e-6)
    assert float(large["promise"]) < 0.1
    error = abs(
        float(large["distance_squared"]) - float(found(data, method="exact")["distance_squared"])
    )
    assert error <= float(large["promise"])


def test_rough_kernels__have_larger_grids_and_the_same_promise():
    rng = np.random.default_rng(8)
    x, y = rng.uniform(size=(200, 2)), rng.uniform(size=(200, 2)) + 0.1
    kernel = Matern(1.5, 0.3)
    exact = found((x, y, None, None), method="exact", kernel=kernel)
    rough = found((x, y, None, None), method="nufft", kernel=kernel, eps=1e-2)
    difference = abs(float(exact["distance_squared"] - rough["distance_squared"]))
    assert difference <= float(rough["promise"]) <= 1e-2
