"""Theorems 9, 10 and 11 on random rows, on hard ones, and against other subspaces and measures."""

import numpy as np
import pytest

from bigkd import mmdpca
from bigkd.backends import rng
from tests.mmdpca import plain, samples
from tests.mmdpca.plain import KERNELS, Plain

ROWS = {**samples.SPECTRA, **samples.HARD}
SEEDS = range(3)
ROUNDING = 1e-12  # of what the terms of a distance add up to
MOMENTS = [(1.0, 1.0), (0.5, 0.0, 2.0), (0.0, 1.0, 0.0, 0.0, 1.0)]


def cases(name, make, a=1.0):
    """The reference for rows of one kind, of some shapes, and a k from 1 up to the rank."""
    for seed in SEEDS:
        generator = rng(seed, 5)
        n = int(generator.integers(2, 13))
        x = ROWS[name](int(generator.integers(4, 40)), n, seed)
        truth = Plain(x, min(n, 5), make, a=a)
        rank = int((truth.eigenvalues > 1e-11 * truth.trace).sum())
        k = int(generator.integers(1, min(rank, 5) + 1))
        truth.k, truth.vectors = k, truth.vectors[:, :k]
        yield truth


def fit(truth, kernel="gauss", **options):
    options = {"method": "pairs", "scheduler": "sync", **options}
    return mmdpca.fit(truth.rows, k=truth.k, kernel=kernel, **options)


def slack(truth):
    """Rounding of a distance, whose terms may cancel."""
    x, h = truth.rows, truth.h
    lengths = float((x**2).sum(axis=1).mean())
    return ROUNDING * (truth.trace + lengths * float(abs(plain.values(h, x, x)).mean()))


def orthonormal(generator, n, k):
    return np.linalg.qr(generator.standard_normal((n, k)))[0]


def best_weights(h, x, y):
    """Weights of the points y that come nearest, of any sign: more than a distribution may have."""
    k_yy = (y @ y.T) * plain.values(h, y, y)
    k_yx = (y @ x.T) * plain.values(h, y, x)
    return np.linalg.lstsq(k_yy, k_yx.mean(axis=1), rcond=1e-10)[0]


def other_measures(truth, generator):
    """Weighted points on k dimensions: other subspaces, other points, other weights."""
    x, k, n = truth.rows, truth.k, truth.rows.shape[1]
    subspaces = [truth.vectors, truth.pca, orthonormal(generator, n, k), np.eye(n)[:, :k]]
    for vectors in subspaces:
        inside = x @ plain.projector(vectors)
        yield inside, None
        yield 0.8 * inside, None
        yield inside, generator.standard_normal(len(x)) / len(x)
        yield inside, best_weights(truth.h, x, inside)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_lower_bound__holds_for_every_measure_on_k_dimensions(kernel, name):
    for truth in cases(name, KERNELS[kernel]):
        found, rounding = fit(truth, kernel), slack(truth)
        low = float(found["mmd2_lower"])
        assert 0 <= low <= float(found["mmd2"]) + rounding
        assert low <= float(found["mmd2_pca"]) + rounding
        for points, weights in other_measures(truth, rng(truth.k, len(truth.rows))):
            size = 1.0 if weights is None else len(points) * float(abs(weights).max()) + 1
            other = plain.mmd2(truth.h, truth.rows, points, weights)
            assert low <= other + rounding * size**2


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("method", ["pairs", "moments"])
def test_upper_bound__of_kurtosis_is_four_times_the_tail(method, name):
    for truth in cases(name, plain.kurtosis):
        found, rounding = fit(truth, "kurtosis", method=method), slack(truth)
        low, upper = float(found["mmd2_lower"]), float(found["mmd2_upper"])
        tail = plain.tail(truth.eigenvalues, truth.k)
        assert low <= tail + rounding
        np.testing.assert_allclose(upper, 4 * tail, rtol=1e-6, atol=4 * rounding)
        if method == "pairs":
            np.testing.assert_allclose(low, tail, atol=rounding)
        assert float(found["mmd2"]) <= upper + rounding
        own = plain.mmd2_to(truth.h, truth.rows, found["component"].values.T)
        assert own <= upper + rounding


@pytest.mark.parametrize("shares", MOMENTS)
def test_upper_bound__of_higher_moments_is_their_number_times_the_tail(shares):
    def make(n, a):
        del a
        return plain.higher_moments(n, shares)

    for name in ROWS:
        for truth in cases(name, make):
            found, rounding = fit(truth, mmdpca.HigherMoments(shares)), slack(truth)
            upper = float(found["mmd2_upper"])
            tail = plain.tail(truth.eigenvalues, truth.k)
            assert upper == pytest.approx(len(shares) * tail, rel=1e-6, abs=5 * rounding)
            assert float(found["mmd2"]) <= upper + rounding


@pytest.mark.parametrize("a", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", ROWS)
def test_upper_bound__of_gauss_is_reached_by_damped_projections(name, a):
    for truth in cases(name, plain.gauss, a):
        found, rounding = fit(truth, a=a), slack(truth)
        points, weights = plain.damped(truth.rows, found["component"].values.T, a)
        reached = plain.mmd2(truth.h, truth.rows, points, weights)
        low, upper = float(found["mmd2_lower"]), float(found["mmd2_upper"])
        assert low - rounding <= reached <= upper + rounding


def test_bounds__hold_where_the_tail_is_next_to_nothing():
    """From 1e-4 of the trace down to what rounding leaves."""
    for power in range(4, 17, 2):
        scale = np.where(np.arange(8) < 3, 1.0, 10.0 ** (-power / 2))
        x = rng(power).standard_normal((30, 8)) * scale
        for kernel, make in KERNELS.items():
            truth = Plain(x, 3, make)
            found, rounding = fit(truth, kernel), slack(truth)
            low = float(found["mmd2_lower"])
            assert 0 <= low <= float(found["mmd2"]) + rounding
            np.testing.assert_allclose(low, plain.tail(truth.eigenvalues, 3), atol=rounding)


@pytest.mark.parametrize("method", ["gram", "pairs"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_projections__on_all_directions_are_the_rows(kernel, method):
    """Of Laplace's cusp the root of the rounding of a squared distance remains."""
    x = samples.decaying(6, 12)
    found = mmdpca.fit(x, k=6, kernel=kernel, method=method, scheduler="sync")
    rounding = 1e-6 if kernel == "laplace" else 1e-12
    assert float(found["mmd2"]) <= rounding * float(found["trace"])
    assert float(found["mmd2_lower"]) <= 1e-12 * float(found["trace"])


def test_kurtosis__is_nearly_always_nearer_than_pca():
    """For radial kernels PCA is as often the nearer one, which `mmd2_pca` tells."""
    nearer = []
    for seed in range(30):
        x = samples.heavy_tails(40, 8, seed) if seed % 2 else samples.clusters(40, 8, seed)
        found = fit(Plain(x, 2, plain.kurtosis), "kurtosis")
        nearer.append(float(found["mmd2"]) <= float(found["mmd2_pca"]) * (1 + 1e-9))
    assert np.mean(nearer) >= 0.95
