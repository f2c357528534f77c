import numpy as np
import pytest

from bigkd.backends import to_host
from bigkd.kernels import FourierFeatures, Gaussian, Polynomial
from bigkd.protocols import Rows
from bigkd.summaries import Extent, MeanEmbedding
from tests.reference import group

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5000, 4))
MU = RNG.normal(size=5000)
U = RNG.normal(size=(5000, 3))
FEATURES = FourierFeatures(Gaussian(1.0).frequencies(30, 4))
PHI = np.concatenate([np.cos(X @ FEATURES.frequencies.T), np.sin(X @ FEATURES.frequencies.T)], 1)
PHI /= 30**0.5


def state_of(summary, rows):
    state = summary.init(rows.values)
    for start in range(0, 5000, 1000):
        part = slice(start, start + 1000)
        state = summary.update(state, Rows(*(p if p is None else p[part, ...] for p in rows)))
    return type(state)(*(to_host(part) for part in state))


@pytest.mark.parametrize("n_vectors", [None, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_embedding__is_the_sum_of_weighted_features(weighted, n_vectors, put):
    weights, vectors = (MU if weighted else None), (U if n_vectors else None)
    rows = Rows(*(p if p is None else put(p) for p in (X, np.arange(5000), weights, vectors)))
    found = state_of(MeanEmbedding(features=FEATURES, n_vectors=n_vectors or 1), rows)
    mass = MU if weighted else np.ones(5000)
    strengths = mass[:, None] * (U if n_vectors else np.ones((5000, 1)))
    np.testing.assert_allclose(found.total[0], strengths.T @ PHI, atol=1e-10)
    assert found.weight == pytest.approx(mass.sum())


def test_embedding__of_float32_rows_keeps_their_digits():
    rows = Rows((X + 1e4).astype("f4"), np.arange(5000))
    wide = rows._replace(values=rows.values.astype("f8"))
    summary = MeanEmbedding(features=FEATURES)
    narrow, exact = state_of(summary, rows).total, state_of(summary, wide).total
    np.testing.assert_allclose(narrow, exact, atol=5000 * 3e-6)


def test_groups__are_those_of_the_hash_and_the_rest_is_left_out():
    summary = MeanEmbedding(features=FEATURES, n_groups=3, n_dealt=5, seed=7)
    found = state_of(summary, Rows(X, np.arange(5000), MU))
    groups = np.array([group(int(at), 5, 7) for at in range(5000)])
    for at in range(3):
        of = groups == at
        np.testing.assert_allclose(found.total[at, 0], MU[of] @ PHI[of], atol=1e-10)
        assert found.weight[at] == pytest.approx(MU[of].sum())


@pytest.mark.parametrize("kernel", [None, Gaussian(2.0), Polynomial((0.0, 1.0))])
def test_extent__is_mass_diagonal_and_box(kernel, put):
    rows = Rows(*map(put, (X, np.arange(5000), MU, U)))
    found = state_of(Extent(width=4, kernel=kernel), rows)
    diagonal = (X * X).sum(axis=1) if isinstance(kernel, Polynomial) else np.ones(5000)
    sizes = np.abs(MU) * np.linalg.norm(U, axis=1)
    assert found.count == 5000
    assert found.mass == pytest.approx(MU.sum())
    assert found.absolute == pytest.approx(sizes.sum())
    assert found.norm == pytest.approx(sizes @ diagonal**0.5)
    assert found.squares == pytest.approx((sizes**2).sum())
    assert found.diagonal == pytest.approx(sizes**2 @ diagonal)
    assert found.negative == MU.argmin()
    assert found.least == MU.min()
    np.testing.assert_array_equal(found.lower, X.min(axis=0))
    np.testing.assert_array_equal(found.upper, X.max(axis=0))


def test_extent__of_weights_that_are_not_negative_names_no_row():
    found = state_of(Extent(width=4), Rows(X, np.arange(5000), np.abs(MU)))
    assert found.negative == -1
    assert state_of(Extent(width=4), Rows(X, np.arange(5000))).mass == 5000
