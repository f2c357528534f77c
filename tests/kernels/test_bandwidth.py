import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigkd.errors import DataError, EmptyInputError, InputError, ShapeError
from bigkd.kernels import Gaussian, Laplace, median_distance, variance_rule


def median_by_definition(x):
    pairs = [math.dist(x[i], x[j]) for i in range(len(x)) for j in range(i)]
    return statistics.median(pairs)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
@pytest.mark.parametrize("d", [1, 6])
def test_median_distance__matches_definition(put, dtype, offset, d):
    x = (np.random.default_rng(0).normal(size=(25, d)) + offset).astype(dtype)
    got = median_distance(put(x))
    assert type(got) is float
    assert got == pytest.approx(median_by_definition(x.astype("f8")), rel=1e-7)


@given(
    n_equal=st.integers(0, 12),
    others=st.lists(st.integers(1, 50), min_size=2, max_size=5, unique=True),
)
def test_median_distance__ignores_duplicates_when_they_are_most(n_equal, others):
    x = np.array([0] * n_equal + others, np.uint8)[:, None]
    values = x[:, 0].tolist()
    pairs = [abs(a - b) for i, a in enumerate(values) for b in values[:i]]
    want = statistics.median(pairs) or statistics.median([p for p in pairs if p])
    assert median_distance(x) == want


def test_median_distance__samples_rows_by_seed(put):
    x = np.random.default_rng(0).normal(size=(300, 2))
    a, b, other = (median_distance(put(x), n_rows=20, seed=s) for s in (1, 1, 2))
    assert a == b != other
    assert median_distance(put(x), n_rows=200) == pytest.approx(median_distance(x), rel=0.1)


@pytest.mark.parametrize(
    ("x", "options", "error", "pattern"),
    [
        (np.ones((5, 2)), {}, InputError, "the 5 sampled rows are all equal.*pass a bandwidth"),
        (np.ones((1, 2)), {}, EmptyInputError, "at least two rows; got 1"),
        (np.ones(4), {}, ShapeError, r"got \(4,\)"),
        (np.array([[1.0], [np.nan]]), {}, DataError, "1 of 2 sampled rows"),
        (np.ones((5, 2)), {"n_rows": 1}, InputError, "n_rows must be .* at least 2; got 1"),
        (np.ones((5, 2)), {"seed": -1}, InputError, "seed must be .* at least 0; got -1"),
    ],
)
def test_median_distance__refuses(x, options, error, pattern):
    with pytest.raises(error, match=pattern):
        median_distance(x, **options)


@pytest.fixture(scope="module")
def modes():
    """Four well-separated clusters of unit radius, so that tiny bandwidths isolate every row."""
    generator = np.random.default_rng(0)
    centres = 20.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    return centres[generator.integers(0, 4, 800)] + generator.normal(size=(800, 2))


def score_by_definition(x, sigma):
    total = sum(math.exp(-(math.dist(a, b) ** 2) / sigma**2) for a in x for b in x)
    return len(x) ** 2 / total


def test_variance_rule__stops_at_the_first_violation(modes):
    got = variance_rule(modes, subset_rows=60, limit=2e-3)
    i = got.grid.index(got.bandwidth)
    assert got.met
    assert got.variance == got.variances[i] <= 2e-3
    assert all(v <= 2e-3 for v in got.variances[: i + 1])
    assert got.variances[i + 1] > 2e-3
    assert all(math.isnan(v) for v in got.variances[i + 2 :])
    assert list(got.grid) == sorted(got.grid, reverse=True)
    assert len(got.grid) == 25
    assert got.grid[0] == pytest.approx(2 * median_distance(modes))
    assert got.grid[-1] == pytest.approx(median_distance(modes) / 20)


def test_variance_rule__does_not_fall_for_the_identity(modes):
    got = variance_rule(modes, grid=[1e-9, 5.0, 0.3, 100.0], subset_rows=60, limit=0.05)
    assert got.grid == (100.0, 5.0, 0.3, 1e-9)
    assert got.variances[2] > 0.05
    assert got.bandwidth == 5.0
    alone = variance_rule(modes, grid=[1e-9], subset_rows=60, limit=0.05)
    assert alone.met
    assert alone.variance < 1e-20


def test_variance_rule__reports_a_limit_not_met(modes):
    got = variance_rule(modes, grid=[0.3, 0.5], subset_rows=60, limit=1e-9)
    assert (got.bandwidth, got.met) == (0.5, False)
    assert got.variance == got.variances[0] > 1e-9
    assert math.isnan(got.variances[1])


def test_variance_rule__uses_the_variance_of_the_score():
    # Half of four rows: the six possible subsets have one of these scores each.
    x = np.array([[0.0], [1.0], [3.0], [7.0]])
    possible = [score_by_definition(x[[i, j]], 2.0) for j in range(4) for i in range(j)]
    got = variance_rule(x, grid=[2.0], n_subsets=4000, limit=1.0)
    assert got.variance == pytest.approx(statistics.pvariance(possible), rel=0.1)


def test_variance_rule__takes_the_shape_of_the_kernel_only(modes):
    options = {"subset_rows": 60, "limit": 2e-3}
    a = variance_rule(modes, kernel=Laplace(1.0), **options)
    b = variance_rule(modes, kernel=Laplace(123.0), **options)
    np.testing.assert_equal(a, b)
    assert a.variances[0] != variance_rule(modes, **options).variances[0]
    np.testing.assert_equal(
        variance_rule(modes, kernel=Gaussian(9.0), **options), variance_rule(modes, **options)
    )


def test_variance_rule__is_reproducible_on_any_namespace(put, modes):
    options = {"subset_rows": 30, "n_subsets": 4}
    got = variance_rule(put(modes), **options)
    np.testing.assert_equal(got, variance_rule(modes, **options))
    other = variance_rule(modes, seed=1, grid=got.grid, **options)
    assert other.variances[0] != got.variances[0]


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"grid": []}, "grid must hold at least one bandwidth"),
        ({"grid": [1.0, -1.0]}, r"grid must be a finite positive number; got -1\.0"),
        ({"n_subsets": 1}, "n_subsets must be an integer of at least 2; got 1"),
        ({"subset_rows": 1}, "subset_rows must be an integer of at least 2; got 1"),
        ({"limit": 0.0}, r"limit must be a finite positive number; got 0\.0"),
        ({"seed": 0.5}, r"seed must be an integer of at least 0; got 0\.5"),
    ],
)
def test_variance_rule__refuses_bad_arguments(modes, options, pattern):
    with pytest.raises(InputError, match=pattern):
        variance_rule(modes, **options)


def test_variance_rule__refuses_unusable_rows():
    with pytest.raises(EmptyInputError, match="at least four rows; got 3"):
        variance_rule(np.ones((3, 2)))
    with pytest.raises(InputError, match="all equal"):
        variance_rule(np.ones((9, 2)))
    with pytest.raises(ShapeError, match="variance_rule needs rows"):
        variance_rule(np.ones(9))
