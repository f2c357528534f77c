import numpy as np
import pytest
from scipy import stats

from bigkd import distance, shapes
from bigkd.errors import DataError, InputError
from bigkd.kernels import Gaussian, Polynomial, Triangle

KERNEL = Gaussian(1.5)


def p_value(x, y, **options):
    options = {"kernel": KERNEL, "n_permutations": 199, "scheduler": "sync", **options}
    return float(distance.two_sample_test(x, y, **options)["p_value"])


def reference(x, y, *, n_permutations, seed):
    """The permutation test of Gretton et al., by definition."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([x, y])
    squared = ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)
    gram = np.exp(-squared / (2 * 1.5**2))

    def mmd2(order):
        one, other = order[: len(x)], order[len(x) :]
        parts = ((one, one, 1.0), (other, other, 1.0), (one, other, -2.0))
        return sum(times * gram[np.ix_(a, b)].mean() for a, b, times in parts)

    observed = mmd2(np.arange(len(rows)))
    null = [mmd2(rng.permutation(len(rows))) for _ in range(n_permutations)]
    return observed, (1 + sum(value >= observed for value in null)) / (1 + n_permutations)


@pytest.mark.parametrize(
    ("n", "m", "method"),
    [(2000, 2000, "features"), (200, 9000, "features"), (700, 40, "features"), (40, 60, "exact")],
)
def test_p_values__are_uniform_under_the_null(n, m, method):
    values = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        x, y = rng.standard_t(3, size=(n, 2)), rng.standard_t(3, size=(m, 2))
        values.append(p_value(x, y, method=method, n_frequencies=20, seed=seed))
    assert stats.kstest(values, "uniform").pvalue > 0.01
    assert np.mean(np.array(values) <= 0.1) <= 0.19  # binomial: more has probability 0.002


def test_p_values__of_sorted_rows_are_not_too_small():
    values = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x, y = (np.sort(rng.normal(size=(1500, 1)), axis=0) for _ in range(2))
        values.append(p_value(x, y, method="features", n_frequencies=20, seed=seed))
    assert stats.kstest(values, "uniform").pvalue > 0.01


@pytest.mark.parametrize("method", ["features", "exact"])
def test_power__is_that_of_the_reference(method):
    mine, theirs = [], []
    for seed in range(60):
        rng = np.random.default_rng(1000 + seed)
        x, y = rng.normal(size=(200, 2)), rng.normal([0.22, 0.0], size=(200, 2))
        mine.append(p_value(x, y, method=method, n_frequencies=300, seed=seed) <= 0.05)
        theirs.append(reference(x, y, n_permutations=199, seed=seed)[1] <= 0.05)
    assert 0.3 < np.mean(theirs) < 0.95
    assert np.mean(mine) >= np.mean(theirs) - 0.15


def test_exact__has_the_statistic_of_the_reference():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(50, 2)), rng.normal(size=(40, 2)) + 0.3
    observed, p = reference(x, y, n_permutations=999, seed=0)
    result = distance.two_sample_test(x, y, kernel=KERNEL)
    assert result.attrs["method"] == "exact"
    assert float(result["statistic"]) == pytest.approx(observed, rel=1e-12)
    assert float(result["p_value"]) == pytest.approx(p, abs=0.04)
    assert bool(result["rejected"]) == (float(result["p_value"]) <= 0.05)


def test_clear_differences__have_the_smallest_p_value():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(3000, 5)), rng.normal(size=(3000, 5)) + 0.3
    result = distance.two_sample_test(x, y, kernel="median")
    assert result.attrs["method"] == "features"
    assert float(result["p_value"]) == 0.001
    assert float(result["statistic"]) > float(result["null_quantile"]) > float(result["null_mean"])


@pytest.mark.parametrize("case", ["dropped", "zero weights", "large weights"])
def test_p_values__are_valid_where_rows_or_weights_make_sizes_differ(case):
    values = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        x, y, weights = rng.normal(size=(500, 2)), rng.normal(size=(500, 2)), None
        few = rng.random(500) < 0.1
        if case == "dropped":
            x[~few] = np.nan
        else:
            weights = few * 1.0 if case == "zero weights" else np.full(500, 1000.0)
        values.append(
            p_value(
                x, y, x_weights=weights, method="features", n_frequencies=20, seed=seed,
                nonfinite="drop",
            )
        )  # fmt: skip
    assert np.mean(np.array(values) <= 0.05) <= 0.125  # binomial: more has probability 0.004
    assert stats.kstest(values, "uniform").pvalue > 0.005


@pytest.mark.parametrize("method", ["features", "exact"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_ties__count_as_reached(method, dtype):
    z = np.full((1000, 2), 0.3, dtype=dtype)
    for seed in range(3):
        assert p_value(z, z[:700], method=method, seed=seed) == 1.0
    pairs = np.array([[0.0], [1.0]] * 2)
    negative = p_value(pairs, pairs, method="exact", kernel=Polynomial((0.0, -1.0)))
    assert negative > 0.02


def test_overflow__is_an_error_and_no_p_value():
    kernel = Polynomial((*(0.0,) * 15, 1.0))
    with pytest.raises(DataError, match="not finite"), np.errstate(all="ignore"):
        p_value(np.full((9, 2), 1e30), np.ones((9, 2)), kernel=kernel)


def test_weights__count_in_both_methods():
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + 5])
    y, away = rng.normal(size=(300, 2)), np.repeat([1.0, 0.0], 300)
    for method in ("features", "exact"):
        assert p_value(x, y, method=method) <= 0.01
        assert p_value(x, y, method=method, x_weights=away) > 0.05


def test_runs__have_the_same_bits_on_threads():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(900, 2)), rng.normal(size=(900, 2))
    options = {"method": "features", "block_rows": 100}
    assert p_value(x, y, **options) == p_value(x, y, scheduler="threads", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "bootstrap"}, "method must be 'auto', 'features' or 'exact'; got 'bootstrap'"),
        ({"alpha": 1.0}, "alpha must lie between 0 and 1"),
        ({"n_permutations": 0}, "n_permutations must be a whole number of at least 1"),
        ({"n_groups": 8}, "n_groups must be a whole number of at least 64"),
        ({"method": "features", "kernel": Triangle(1.0)}, "triangle kernel has no spectrum"),
    ],
)
def test_bad_arguments__are_refused(options, message):
    with pytest.raises(InputError, match=message):
        p_value(np.ones((9, 2)), np.zeros((9, 2)), **options)


def test_shapes__with_vectors_are_refused():
    circle = shapes.polyline(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), closed=True)
    with pytest.raises(InputError, match="two_sample_test is of points"):
        p_value(circle, circle)


def test_exact__refuses_what_does_not_fit():
    with pytest.raises(InputError, match=r"every pair of the 5000 rows .* Pass method='features'"):
        p_value(np.ones((2500, 1)), np.ones((2500, 1)), method="exact")
