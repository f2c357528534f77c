import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bigkd.kernels import (
    Epanechnikov,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Matern,
    pair_sum,
    potential,
    rounding_bound,
)
from tests.kernels.exact_sums import (
    CLOUDS,
    KINDS,
    cloud,
    pair_sum_by_definition,
    spread,
    strengths,
    values,
)

WIDTHS = (1, 2, 3, 5, 15, 16, 33, 100)


def bound_of(kernel, dtype, width):
    return 1e-12 if dtype == "f8" else rounding_bound(kernel, dtype, width)


def assert_accurate(kernel, x, y, left=None, right=None):
    """pair_sum of float64 to 1e-12 of the sum of absolute values, of float32 to its bound."""
    expected, scale, whole = pair_sum_by_definition(kernel, x, y, left, right)
    scale = scale if x.dtype == np.float64 else whole
    got = pair_sum(kernel, x, y, left, right)
    assert got.dtype == np.float64
    assert got.shape == ()
    relative = bound_of(kernel, x.dtype.str[1:], x.shape[1])
    assert abs(got - expected) <= relative * scale + 1e-295 * whole


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("factor", [0.05, 1.0, 1e6])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CLOUDS)
def test_pair_sum__matches_definition_on_difficult_rows(name, kind, factor, dtype):
    for width in WIDTHS:
        x = cloud(name, 44, width)
        kernel = KINDS[kind](spread(x) * factor)
        x, y = x.astype(dtype), np.concatenate([x[20:], cloud(name, 9, width)]).astype(dtype)
        left, right = strengths("signed", len(x)), strengths("probability", len(y))
        assert_accurate(kernel, x, y, left, right)
        assert_accurate(kernel, x, x, left, left)


@settings(max_examples=100)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    name=st.sampled_from(sorted(CLOUDS)),
    n=st.integers(1, 70),
    m=st.integers(1, 70),
    d=st.integers(1, 40),
    exponent=st.floats(-3, 3),
    weights=st.sampled_from(["none", "probability", "signed"]),
    c=st.sampled_from([None, 1, 2, 3, 6]),
    seed=st.integers(0, 1000),
    dtype=st.sampled_from(["f4", "f8"]),
)
def test_pair_sum__matches_definition(kind, name, n, m, d, exponent, weights, c, seed, dtype):
    both = cloud(name, n + m, d, seed)
    kernel = KINDS[kind](spread(both) * 10.0**exponent)
    x, y = both[:n].astype(dtype), both[n:].astype(dtype)
    left, right = strengths(weights, n, c, seed), strengths(weights, m, c, seed + 1)
    assert_accurate(kernel, x, y, left, right)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [2, 20])
def test_potential__matches_definition(kind, width, dtype):
    x, y = cloud("clusters", 30, width).astype(dtype), cloud("clusters", 50, width).astype(dtype)
    kernel, right = KINDS[kind](spread(x)), strengths("signed", 50, 3)
    of_pairs = values(kernel, x, y)
    scale = (of_pairs if dtype == "f8" else np.ones_like(of_pairs)) @ np.abs(right)
    bound = bound_of(kernel, dtype, width) * scale.astype("f8")
    exact = of_pairs @ right
    assert np.all(np.abs(potential(kernel, x, y, right) - exact) <= bound)
    assert np.all(np.abs(potential(kernel, x, y, right[:, 1]) - exact[:, 1]) <= bound[:, 1])
    ones = potential(kernel, x, y) - of_pairs.sum(axis=1)
    assert np.all(np.abs(ones) <= bound_of(kernel, dtype, width) * of_pairs.shape[1])


@pytest.mark.parametrize("length", [1e-150, 1e-30, 1e-5, 3.0, 1e30, 1e100])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", KINDS)
def test_pair_sum__takes_any_length(kind, dtype, length):
    reach = float(np.finfo(dtype).max) / 1e8
    x = (cloud("plain", 40, 3) * min(length, reach)).astype(dtype)
    assert_accurate(KINDS[kind](length), x, x[::-1].copy(), strengths("signed", 40))
    assert_accurate(KINDS[kind](length), cloud("plain", 40, 3).astype(dtype), x)


@pytest.mark.parametrize(("dtype", "ulps"), [("f4", 2.5), ("f8", 2.0)])
@pytest.mark.parametrize(
    ("kernel", "reach"),
    [(Gaussian(0.7), 0.9), (InverseMultiquadric(1.0, 1.0), 1.0), (Epanechnikov(2.0), 1.4)],
)
def test_potential__of_one_pair_errs_in_the_last_digit_only(kernel, reach, dtype, ulps):
    x = np.linspace(0, reach, 5000).astype(dtype)[:, None]
    got, exact = potential(kernel, x, x[:1]), values(kernel, x, x[:1])[:, 0]
    assert np.max(np.abs(got / exact - 1)) <= ulps * np.finfo(dtype).eps
    assert got[0] == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_pair_sum__keeps_relative_digits_of_small_values(kind):
    x, y = cloud("plain", 64, 2), cloud("plain", 64, 2) + 25
    expected = np.sum(values(KINDS[kind](1.0), x, y))
    got = pair_sum(KINDS[kind](1.0), x, y)
    np.testing.assert_allclose(got, float(expected), rtol=1e-12, atol=1e-295)


@pytest.mark.parametrize(("dtype", "rtol"), [("f4", 1e-7), ("f8", 1e-13)])
def test_sums__of_many_rows_lose_no_digits(dtype, rtol):
    x, weights = np.zeros((1_000_000, 1), dtype), np.full(1_000_000, 0.1)
    sums = potential(Laplace(1.0), x[:3], x, weights)
    np.testing.assert_allclose(sums, 100_000.0, rtol=rtol)
    np.testing.assert_allclose(pair_sum(Laplace(1.0), x, x[:3], weights), 300_000.0, rtol=rtol)
    assert pair_sum(Laplace(1.0), x[:4100], x[:4100]) == 4100.0**2


def test_pair_sum__is_nan_if_a_row_or_a_strength_is():
    x = cloud("plain", 50, 2)
    bad = x.copy()
    bad[7, 1] = np.nan
    for one, other in ((x, bad), (bad, x)):
        assert np.isnan(pair_sum(Gaussian(1.0), one, other))
    found = potential(Gaussian(1.0), bad, x)
    assert np.flatnonzero(np.isnan(found)).tolist() == [7]
    weights = np.ones(50)
    weights[3] = np.nan
    assert np.isnan(pair_sum(Gaussian(1.0), x, x, weights, weights))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [1e-3, 0.5, 1e3])
def test_pair_sum__of_rows_almost_out_of_range(kind, length, dtype):
    x = np.linspace(-1.0, 1.0, 3)[:, None].repeat(15, axis=1) * (1e15 if dtype == "f4" else 1e152)
    x = x.astype(dtype)
    assert_accurate(KINDS[kind](length), x, x)


def test_pair_sum__of_rows_infinitely_far_is_nothing():
    x = np.array([[np.inf, 0.0]])
    assert pair_sum(Gaussian(1.0), x, np.zeros((3, 2))) == 0.0


def test_rounding_bound__is_small():
    for kernel in (Gaussian(1.0), Laplace(1.0), InverseMultiquadric(1.0, 2.0)):
        for width in (1, 3, 10, 100, 1000):
            assert rounding_bound(kernel, "f8", width) < 1e-12
        assert rounding_bound(kernel, np.float32, 3) < 4e-6
        assert rounding_bound(kernel, np.float32, 100) < 5e-5
    assert rounding_bound(Matern(2.2, 1.0), "f8", 3) < 1e-7
