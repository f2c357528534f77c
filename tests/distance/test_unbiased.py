import numpy as np
import pytest

from bigkd import distance
from bigkd.errors import InputError
from bigkd.kernels import Gaussian, Polynomial
from tests.distance.conftest import gaussian

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(80, 3)), RNG.normal(size=(60, 3)) + 0.2


def found(x=X, y=Y, **options):
    return distance.unbiased_mmd2(x, y, **{"kernel": Gaussian(1.0), "scheduler": "sync", **options})


def statistic(kernel, x, y, mu, nu):
    """The sums over pairs of different rows, by loops."""
    total = 0.0
    for rows, weights in ((x, mu), (y, nu)):
        gram = kernel(rows, rows)
        pairs = np.outer(weights, weights)
        off = ~np.eye(len(rows), dtype=bool)
        total += (pairs * gram)[off].sum() / pairs[off].sum()
    return float(total - 2 * (mu @ kernel(x, y) @ nu) / (mu.sum() * nu.sum()))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ["exact", "nufft", "rff"])
def test_unbiased__is_the_u_statistic(method, weighted):
    mu, nu = (
        (RNG.uniform(size=80), RNG.uniform(size=60)) if weighted else (np.ones(80), np.ones(60))
    )
    expected = statistic(gaussian(1.0), X, Y, mu, nu)
    result = found(x_weights=mu, y_weights=nu, method=method, n_frequencies=2000, eps=1e-6)
    error = abs(float(result["mmd2"]) - expected)
    assert error <= float(result["promise"])
    assert error <= (1e-9 if method != "rff" else 5 * float(result["standard_error"]))


def test_unbiased__of_a_kernel_that_is_not_constant_on_the_diagonal():
    expected = statistic(lambda x, y: (1 + x @ y.T) ** 2, X, Y, np.ones(80), np.ones(60))
    assert float(found(kernel=Polynomial((1, 2, 1)))["mmd2"]) == pytest.approx(expected, rel=1e-10)


def test_unbiased__is_zero_on_average_for_one_source():
    values = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(30, 2)), rng.normal(size=(20, 2))
        result = found(x, y, method="exact")
        values.append(float(result["mmd2"]))
        assert float(result["mmd2_biased"]) > values[-1]
    assert abs(np.mean(values)) < 3 * np.std(values) / 200**0.5
    assert min(values) < 0 < max(values)


@pytest.mark.parametrize("weights", [None, np.array([1.0, 0.0, 0.0])])
def test_unbiased__needs_two_rows_of_positive_weight(weights):
    x = X[:1] if weights is None else X[:3]
    with pytest.raises(InputError, match="x has less than two rows of positive weight"):
        found(x, x_weights=weights)
