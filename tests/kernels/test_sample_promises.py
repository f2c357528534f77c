"""Promises of random samples are kept over many seeds."""

import math

import numpy as np
import pytest

from bigkd.errors import InputError
from bigkd.kernels import Gaussian, Laplace, sample_promises

SEEDS = 200
DELTA = 0.1
MOST_FAILURES = DELTA * SEEDS + 3 * math.sqrt(DELTA * (1 - DELTA) * SEEDS)
KERNELS = [Gaussian(1.0), Gaussian(1e-3), Laplace(1.0)]


def collections():
    """Points and strengths, shapes (n, 3) and (n, c), of total absolute weight 1."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(100, 3))
    signed = generator.choice([-1.0, 1.0], (100, 1))
    normals = generator.normal(size=(100, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return {
        "uniform": (x, np.ones((100, 1))),
        "heavy": (x, 10.0 ** generator.uniform(-6, 0, (100, 1))),
        "signed": (x, signed * generator.random((100, 1))),
        "vectors": (x, normals),
        "two clusters": (np.sign(x[:, :1]) * 10 + 1e-2 * x, np.ones((100, 1))),
    }


COLLECTIONS = {
    name: (x, a / np.linalg.norm(a, axis=1).sum()) for name, (x, a) in collections().items()
}


def sample(strengths, m, generator):
    """Strengths of a random sample of `m` rows, over all rows."""
    lengths = np.linalg.norm(strengths, axis=1)
    counts = generator.multinomial(m, lengths / lengths.sum())
    return strengths / lengths[:, None] * counts[:, None] / m


def norm(kernel_matrix, strengths):
    return math.sqrt(max(0.0, float(np.sum(strengths * (kernel_matrix @ strengths)))))


@pytest.mark.parametrize("name", COLLECTIONS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("m", [5, 200])
def test_sample_promise__is_kept_and_not_vacuous(name, kernel, m):
    x, strengths = COLLECTIONS[name]
    gram, generator = kernel(x, x), np.random.default_rng(1)
    errors = [norm(gram, sample(strengths, m, generator) - strengths) for _ in range(SEEDS)]
    promise = sample_promises.sample_promise(m, DELTA)
    assert np.count_nonzero(np.array(errors) > promise) <= MOST_FAILURES
    assert promise < 3.5 * np.quantile(errors, 1 - DELTA)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_squared_promise__bounds_the_squared_distance(name):
    x, left = COLLECTIONS[name]
    right = np.roll(left, 7, axis=0)
    gram, generator = Gaussian(1.0)(x, x), np.random.default_rng(2)
    truth = norm(gram, left - right)
    for _ in range(50):
        s, t = sample(left, 60, generator), sample(right, 60, generator)
        error = norm(gram, s - left) + norm(gram, t - right)
        found = norm(gram, s - t)
        for distance in (truth, found):
            bound = sample_promises.squared_promise(distance, error)
            assert abs(found**2 - truth**2) <= bound + 1e-12


def test_sample_promise__is_the_mean_and_the_deviation():
    assert sample_promises.sample_promise(1, math.exp(-0.5)) == 2.0
    assert sample_promises.sample_promise(100, math.exp(-8.0)) == 0.5


@pytest.mark.parametrize("eps", [1.0, 0.1, 0.003])
@pytest.mark.parametrize("delta", [0.5, 1e-6])
def test_size_for_sample__is_the_smallest_that_promises(eps, delta):
    m = sample_promises.size_for_sample(eps, delta)
    assert sample_promises.sample_promise(m, delta) <= eps
    assert m == 1 or sample_promises.sample_promise(m - 1, delta) > eps


def test_size_by_features__promises_what_a_smaller_sample_does():
    for eps, n in ((0.5, 10), (0.1, 10**3), (0.01, 10**6)):
        by_lemma = sample_promises.size_by_features(eps, 0.01, n)
        assert by_lemma > sample_promises.size_for_sample(math.sqrt(eps), 0.01)
    features = 64 / 0.0125**2 * math.log(4e6 / 0.01)
    want = 4 * features / 0.1 * math.log(4 * features / 0.01)
    assert sample_promises.size_by_features(0.1, 0.01, 1000) == math.ceil(want)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_size_by_ranges__keeps_the_density_within_eps(width):
    eps, generator = 0.1, np.random.default_rng(3)
    m = sample_promises.size_by_ranges(eps, DELTA, width)
    x = generator.normal(size=(2000, width))
    queries = generator.normal(size=(300, width))
    values = Gaussian(0.5)(queries, x)
    full = values.mean(axis=1)
    errors = [
        np.abs(values[:, generator.integers(0, 2000, m)].mean(axis=1) - full).max()
        for _ in range(50)
    ]
    assert max(errors) <= eps


def test_size_by_discrepancy__grows_more_slowly_in_few_dimensions():
    sizes = [sample_promises.size_by_discrepancy(1e-4, width) for width in (1, 2, 3, 20)]
    assert sizes[0] == 10_000
    assert sizes == sorted(sizes)
    assert sizes[1] < sample_promises.size_by_ranges(1e-4, 0.1, 2)
    ratio = sample_promises.size_by_discrepancy(1e-3, 2) / 1000 ** (4 / 3)
    assert ratio == pytest.approx(math.log(1000) ** (5 / 3), rel=1e-3)
    doubled = sample_promises.size_by_discrepancy(1e-3, 2, constant=2.0)
    assert doubled == pytest.approx(2 * sample_promises.size_by_discrepancy(1e-3, 2), abs=2)


@pytest.mark.parametrize(
    ("call", "pattern"),
    [
        (lambda: sample_promises.sample_promise(0, 0.1), "size must be an integer of at least 1"),
        (lambda: sample_promises.sample_promise(5, 2.0), "delta must be a probability"),
        (lambda: sample_promises.size_for_sample(-1, 0.1), "eps must be a finite positive"),
        (lambda: sample_promises.squared_promise(-0.1, 0.1), "distance must be finite and not neg"),
        (lambda: sample_promises.squared_promise(math.nan, 0.1), "distance must be finite"),
        (lambda: sample_promises.size_by_discrepancy(1.5, 2), "eps must be a probability"),
        (lambda: sample_promises.size_by_ranges(0.1, 0.1, 0), "width must be an integer"),
    ],
)
def test_sample_promises__refuse_bad_arguments(call, pattern):
    with pytest.raises(InputError, match=pattern):
        call()
