"""Promises are kept: the true errors of many seeds, on data made to break them."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
import threadpoolctl

from bigkd.errors import EmptyInputError, InputError
from bigkd.kernels import Gaussian, InverseMultiquadric, Laplace, Matern, promises

SEEDS = 200
DELTA = 0.1
MOST_FAILURES = DELTA * SEEDS + 3 * math.sqrt(DELTA * (1 - DELTA) * SEEDS)
KERNEL = Gaussian(1.0)


@pytest.fixture(autouse=True)
def one_thread():
    """Products this small lose by being shared among threads."""
    with threadpoolctl.threadpool_limits(limits=1):
        yield


def collections():
    """Pairs of points and strengths, shapes (n, 2) and (n, c), of total absolute weight 1."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(40, 2))
    clusters = np.repeat([[0.0, 0.0], [3.0, 0.0]], 20, axis=0) + 1e-3 * x
    outlier = np.vstack([x[1:], [[100.0, 0.0]]])
    heavy = 10.0 ** generator.uniform(-6, 0, (40, 1))
    signed = generator.choice([-1.0, 1.0], (40, 1))
    normals = generator.normal(size=(40, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    ones = np.ones((40, 1))
    return {
        "same law": (x, ones, generator.normal(size=(40, 2)), ones),
        "near": (x, ones, x + 1e-3, ones),
        "clusters": (clusters, ones, clusters[:20], ones[:20]),
        "outlier": (x, ones, outlier, ones),
        "one point": (x[:1], ones[:1], x[1:2], ones[:1]),
        "far apart": (1e-2 * x, ones, 1e-2 * x + 50.0, ones),
        "heavy": (x, heavy, x[::-1], heavy),
        "signed": (x, signed, x + 1.0, ones),
        "opposite": (x[:1], ones[:1], x[:1], -ones[:1]),
        "vectors": (x, normals, x + 0.5, normals),
        "offset": (x + 1e4, ones, x[:20] + 1e4, ones[:20]),
    }


COLLECTIONS = {
    name: (x, a / np.linalg.norm(a, axis=1).sum(), y, b / np.linalg.norm(b, axis=1).sum())
    for name, (x, a, y, b) in collections().items()
}
by_name = pytest.mark.parametrize("name", COLLECTIONS)


@cache
def draws(kernel, width, r, seeds):
    """So many independent sets of `r` frequencies."""
    return kernel.frequencies(seeds * r, width, seed=5).reshape(seeds, r, width)


def squared_distance(x, a, y, b):
    points, strengths = np.vstack([x, y]), np.vstack([a, -b])
    return float(np.sum(strengths @ strengths.T * KERNEL(points, points)))


def values_of(x, a, y, b, frequencies):
    """Terms of the estimate of the squared distance, one for each frequency."""
    points, strengths = np.vstack([x, y]), np.vstack([a, -b])
    waves = np.exp(1j * (points @ frequencies.T))
    return np.sum(np.abs(waves.T @ strengths) ** 2, axis=1)


@by_name
@pytest.mark.parametrize("r", [30, 300])
def test_value_promise__is_kept(name, r):
    case = COLLECTIONS[name]
    truth = squared_distance(*case)
    failures = 0
    for frequencies in draws(KERNEL, 2, r, SEEDS):
        values = values_of(*case, frequencies)
        found = promises.value_promise(values, 4.0, DELTA)
        assert 0.0 <= found.lower <= values.mean() <= found.upper <= 4.0
        failures += not found.lower - 1e-12 <= truth <= found.upper + 1e-12
        assert found.eps == pytest.approx(
            max(found.upper - values.mean(), values.mean() - found.lower), abs=1e-12
        )
    assert failures <= MOST_FAILURES


def stake_by_definition(values, mean, delta):
    """What a stake of 1 on values above `mean` has become, a bet after the other."""
    stake, n = 1.0, len(values)
    total, spread, guess = 0.5, 0.25, 0.25
    for t, value in enumerate(values, start=1):
        bet = min(math.sqrt(2 * math.log(2 / delta) / (n * guess)), 0.9 / mean)
        stake *= 1 + bet * (value - mean)
        total += value
        spread += (value - total / (t + 1)) ** 2
        guess = spread / (t + 1)
    return stake


@pytest.mark.parametrize("delta", [0.3, 0.01])
@pytest.mark.parametrize("power", [1, 6])
def test_value_promise__ends_where_the_stake_reaches_its_target(delta, power):
    values = np.random.default_rng(4).random(60) ** power
    found = promises.value_promise(values, 1.0, delta)
    below = stake_by_definition(values, found.lower, delta / 2)
    above = stake_by_definition(1 - values, 1 - found.upper, delta / 2)
    assert below == pytest.approx(2 / (delta / 2), rel=1e-6)
    assert above == pytest.approx(2 / (delta / 2), rel=1e-6)


def test_stake__is_a_fair_game():
    for mean in (0.1, 0.5, 0.8):
        expected = 0.0
        for outcome in product((0.0, 1.0), repeat=8):
            chance = math.prod(mean if value else 1 - mean for value in outcome)
            expected += chance * stake_by_definition(outcome, mean, 0.05)
        assert expected == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("chance", [1e-3, 1e-2, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("r", [10, 300])
def test_value_promise__is_kept_where_all_values_are_extreme(chance, r):
    generator = np.random.default_rng(1)
    failures = 0
    for _ in range(SEEDS):
        found = promises.value_promise(4.0 * (generator.random(r) < chance), 4.0, DELTA)
        failures += not found.lower <= 4.0 * chance <= found.upper
    assert failures <= MOST_FAILURES


@by_name
def test_value_promise__holds_what_the_sizing_said(name):
    eps = 0.5
    r = promises.frequencies_for_value(eps, DELTA)
    case = COLLECTIONS[name]
    for frequencies in draws(KERNEL, 2, r, 10):
        values = values_of(*case, frequencies)
        assert promises.value_promise(values, 4.0, DELTA).eps <= eps * (1 + 1e-9)
        assert abs(values.mean() - squared_distance(*case)) <= eps


@pytest.mark.parametrize(
    ("name", "most"),
    [("far apart", 2), ("clusters", 2), ("one point", 2), ("signed", 2), ("heavy", 6)],
)
def test_value_promise__is_not_vacuous(name, most):
    case = COLLECTIONS[name]
    truth, errors, eps = squared_distance(*case), [], []
    for frequencies in draws(KERNEL, 2, 4000, 50):
        values = values_of(*case, frequencies)
        errors.append(abs(values.mean() - truth))
        eps.append(promises.value_promise(values, 4.0, 0.02).eps)
    assert np.median(eps) < most * max(errors)


def test_value_promise__beats_the_empirical_bernstein_bound():
    for name, gain in (("far apart", 1.1), ("same law", 2.0), ("near", 2.0)):
        values = values_of(*COLLECTIONS[name], KERNEL.frequencies(2000, 2))
        eps = promises.value_promise(values, 4.0, 0.01).eps
        log = math.log(4 / 0.01)
        bernstein = math.sqrt(2 * np.var(values, ddof=1) * log / 2000) + 4 * 7 * log / 3 / 1999
        assert gain * eps < bernstein


def test_value_promise__scales_with_the_values():
    values = np.random.default_rng(0).random(100)
    one = promises.value_promise(values, 1.0, 0.01)
    many = promises.value_promise(1e6 * values, 1e6, 0.01)
    np.testing.assert_allclose(many, np.multiply(one, 1e6), rtol=1e-9)


@pytest.mark.parametrize("constant", [0.0, 1.0, 4.0])
def test_value_promise__of_equal_values(constant):
    found = promises.value_promise(np.full(500, constant), 4.0, 0.01)
    assert found.lower <= constant <= found.upper
    assert found.eps < 0.1
    assert promises.value_promise(np.array([constant]), 4.0, 0.01).eps <= 4.0


@pytest.mark.parametrize(
    ("values", "error", "pattern"),
    [
        (np.zeros(0), EmptyInputError, r"shape \(r,\), r at least 1; got \(0,\)"),
        (np.zeros((3, 2)), EmptyInputError, r"got \(3, 2\)"),
        (np.array([0.0, 5.0]), InputError, "between 0 and upper=4; they go from 0 to 5"),
        (np.array([-0.1, 1.0]), InputError, "go from -0.1 to 1"),
        (np.array([np.nan, 1.0]), InputError, "between 0 and upper"),
    ],
)
def test_value_promise__refuses(values, error, pattern):
    with pytest.raises(error, match=pattern):
        promises.value_promise(values, 4.0, 0.01)


def test_value_promise__forgives_rounding():
    assert promises.value_promise(np.array([4.0 + 1e-12, -1e-15]), 4.0, 0.01).upper == 4.0


def test_standard_error__is_that_of_the_mean():
    case = COLLECTIONS["far apart"]
    means, errors = [], []
    for frequencies in draws(KERNEL, 2, 100, SEEDS):
        values = values_of(*case, frequencies)
        means.append(values.mean())
        errors.append(promises.standard_error(values))
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.15)
    with pytest.raises(InputError, match=r"at least two samples; got shape \(1,\)"):
        promises.standard_error(np.ones(1))


@pytest.mark.parametrize(
    ("name", "most"),
    [("same law", 2), ("outlier", 2), ("clusters", 4), ("far apart", 4), ("one point", 8)],
)
@pytest.mark.parametrize("kernel", [KERNEL, Laplace(1.0)], ids=repr)
def test_points_promise__is_kept_and_not_vacuous(name, most, kernel):
    x, _, y, _ = COLLECTIONS[name]
    points = np.vstack([x, y])
    exact, promise = kernel(points, points), promises.points_promise(300, DELTA, len(points))
    errors = []
    for frequencies in draws(kernel, 2, 300, SEEDS // 2):
        waves = np.exp(1j * (points @ frequencies.T))
        errors.append(np.abs((waves @ waves.conj().T).real / 300 - exact).max())
    assert max(errors) <= promise  # a union bound over many pairs has room
    assert promise < most * np.quantile(errors, 1 - DELTA)


@pytest.mark.parametrize(
    "kernel", [KERNEL, InverseMultiquadric(1.0, 0.5), Matern(1.5, 1.0)], ids=repr
)
@pytest.mark.parametrize("width", [1, 2])
def test_domain_promise__is_kept_and_not_vacuous(kernel, width):
    diameter, r = 6.0, 400
    axis = np.linspace(-diameter, diameter, 121 if width == 1 else 41)
    gaps = np.stack(np.meshgrid(*[axis] * width), axis=-1).reshape(-1, width)
    gaps = gaps[np.linalg.norm(gaps, axis=1) <= diameter]
    exact = kernel(gaps, np.zeros((1, width)))[:, 0]
    moment = kernel.spectral_moment(width)
    promise = promises.domain_promise(r, DELTA, width, diameter, second_moment=moment)
    errors = []
    for frequencies in draws(kernel, width, r, SEEDS // 4):
        waves = np.cos(gaps @ frequencies.T)
        errors.append(np.abs(waves.mean(axis=1) - exact).max())
    assert max(errors) <= promise  # a union bound over a fine net has room
    assert promise < 3 * np.quantile(errors, 1 - DELTA)


@pytest.mark.parametrize("eps", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("delta", [0.5, 0.01, 1e-9])
def test_sizes__are_the_smallest_that_promise(eps, delta):
    r = promises.frequencies_for_points(eps, delta, 1000)
    assert promises.points_promise(r, delta, 1000) <= eps
    assert promises.points_promise(r - 1, delta, 1000) > eps

    domain = {"width": 3, "diameter": 7.0, "second_moment": 2.0}
    r = promises.frequencies_for_domain(eps, delta, **domain)
    assert promises.domain_promise(r, delta, **domain) <= eps * (1 + 1e-9)
    assert promises.domain_promise(r - 1, delta, **domain) > eps

    r = promises.frequencies_for_value(eps, delta)
    assert 2 * math.exp(-2 * r * (eps / 4) ** 2) <= delta / 2 * (1 + 1e-9)
    assert 2 * math.exp(-2 * (r - 1) * (eps / 4) ** 2) > delta / 2


def test_sizes__are_below_those_of_the_papers():
    for eps, delta, n in ((0.1, 0.1, 100), (0.01, 1e-3, 10**6)):
        printed = 64 / eps**2 * math.log(2 * n * n / delta) / 2
        assert 16 * promises.frequencies_for_points(eps, delta, n) < printed + 16
    for eps, width in ((0.1, 1), (0.02, 3), (0.1, 100)):
        spread = 10.0 * math.sqrt(width)
        printed = 4 * (width + 2) / eps**2 * math.log(2**8 * (spread / eps) ** 2 / 0.01)
        ours = promises.frequencies_for_domain(eps, 0.01, width, 10.0, second_moment=float(width))
        assert 5 * ours < printed < 12 * ours


def test_promises__are_never_worse_than_what_is_always_true():
    assert promises.points_promise(1, 0.01, 10**9) == 2.0
    assert promises.domain_promise(1, 0.01, 5, 1e6, second_moment=1.0) == 2.0
    assert promises.frequencies_for_points(100.0, 0.5, 1) == 1
    assert promises.frequencies_for_value(100.0, 0.5) == 1


@pytest.mark.parametrize("kernel", [Laplace(1.0), Matern(1.0, 1.0)], ids=repr)
def test_frequencies_for_domain__refuse_heavy_tails(kernel):
    with pytest.raises(InputError, match=r"second_moment is infinite.*frequencies_for_value"):
        promises.frequencies_for_domain(0.1, 0.1, 2, 1.0, second_moment=kernel.spectral_moment(2))


@pytest.mark.parametrize(
    ("call", "pattern"),
    [
        (lambda: promises.frequencies_for_points(0.0, 0.1, 9), "eps must be a finite positive"),
        (lambda: promises.frequencies_for_points(0.1, 1.0, 9), "delta must be a probability"),
        (lambda: promises.frequencies_for_points(0.1, 0.1, 0), "n must be an integer of at least"),
        (lambda: promises.points_promise(0, 0.1, 9), "r must be an integer of at least 1"),
        (lambda: promises.frequencies_for_value(0.1, -1), "delta must be a finite positive"),
        (lambda: promises.frequencies_for_value(0.1, 0.1, upper=0), "upper must be"),
        (lambda: promises.domain_promise(9, 0.1, 2, -1.0, second_moment=1.0), "diameter must be"),
        (lambda: promises.domain_promise(9, 0.1, 2, 1.0, second_moment=-1), "second_moment must"),
    ],
)
def test_promises__refuse_bad_arguments(call, pattern):
    with pytest.raises(InputError, match=pattern):
        call()
