import numpy as np
import pytest

from bigkd.backends import to_host
from bigkd.kernels import FourierFeatures, Gaussian, InverseMultiquadric
from bigkd.protocols import Rows
from bigkd.summaries import CrossMoment, PairMoment


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(2.0, 1.0, (70, 5))


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_moment__is_the_sum_of_rows_times_features(put, x, weighted):
    features = FourierFeatures(Gaussian(2.0).frequencies(4, 5))
    weights = np.linspace(0.0, 2.0, 70) if weighted else np.ones(70)
    summary = CrossMoment(features=features, tile_rows=16)
    rows = Rows(put(x), put(np.arange(70)), put(weights) if weighted else None)
    state = summary.update(summary.init(rows.values), rows)
    np.testing.assert_allclose(
        to_host(state.cross), (weights[:, None] * x).T @ features(x), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(to_host(state.total), weights @ x, rtol=1e-13)
    assert int(state.count) == 70
    assert float(state.weight) == pytest.approx(weights.sum())


def test_cross_moment__of_bytes_is_that_of_numbers(x):
    class Same:
        width = n_features = 5

        def __call__(self, rows):
            return rows

    whole = np.round(x * 20).astype(np.uint8)
    summary = CrossMoment(features=Same())
    state = summary.update(summary.init(whole), Rows(whole, np.arange(70)))
    assert np.array_equal(state.cross, whole.astype(float).T @ whole.astype(float))


@pytest.mark.parametrize("weighted", [False, True])
def test_pair_moment__is_the_sum_over_pairs(put, x, weighted):
    kernel = Gaussian(1.5)
    weights = np.linspace(0.5, 2.0, 70) if weighted else np.ones(70)
    summary = PairMoment(width=5, kernel=kernel)
    rows = Rows(put(x), put(np.arange(70)), put(weights) if weighted else None)
    state = summary.init(rows.values)
    cut = [Rows(*(None if part is None else part[at, ...] for part in rows)) for at in
           (slice(0, 30), slice(30, 70))]  # fmt: skip
    for at, left in enumerate(cut):
        for right in cut[at:]:
            same = left is right
            state = summary.update(state, left, right, mirrored=not same, diagonal=same)
    mass = weights[:, None] * x
    np.testing.assert_allclose(
        to_host(summary.finalize(state)),
        mass.T @ kernel(x, x) @ mass / weights.sum() ** 2,
        rtol=1e-12,
    )


def test_pair_moment__takes_subnormal_values_for_zero():
    rows = np.random.default_rng(1).standard_normal((30, 400)).astype(np.float32) * 10
    kernel = InverseMultiquadric(20.0, 18.0)
    assert 0 < kernel(rows, rows).min() < np.finfo(np.float32).smallest_normal
    summary = PairMoment(width=400, kernel=kernel)
    state = summary.init(rows)
    state = summary.update(
        state, Rows(rows, np.arange(30)), Rows(rows, np.arange(30)), mirrored=False, diagonal=True
    )
    wide = rows.astype(float)
    exact = wide.T @ kernel(wide, wide) @ wide / 30**2
    np.testing.assert_allclose(summary.finalize(state), exact, rtol=1e-4, atol=1e-6 * exact.max())
