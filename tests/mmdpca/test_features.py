"""Features of compressed kernels, and the terms of distances, in every namespace."""

import numpy as np
import pytest

from bigkd.backends import to_host
from bigkd.kernels import Gaussian, Laplace, Matern, Polynomial, squared_distances
from bigkd.mmdpca.compressed import CompressedFeatures, Monomials, Sketch, landmarks
from bigkd.mmdpca.kernels import HigherMoments
from bigkd.mmdpca.measures import PairMeasure, PointMeasure
from bigkd.mmdpca.points import Draw
from bigkd.mmdpca.subspace import leading, nystrom_factor, sine
from bigkd.protocols import Rows

N, WIDTH, Q = 60, 7, 3
KURTOSIS = HigherMoments((1, 1, 1, 1)).of_width(WIDTH)
KERNELS = {
    "gauss": Gaussian(2.0), "laplace": Laplace(3.0), "matern": Matern(1.5, 3.0),
    "kurtosis": KURTOSIS, "pca": Polynomial((0.0, 1.0)),
}  # fmt: skip


@pytest.fixture
def x():
    return np.random.default_rng(0).standard_normal((N, WIDTH)) * np.linspace(2, 0.3, WIDTH)


@pytest.fixture
def basis(x):
    return np.linalg.svd(x, full_matrices=False)[2][:Q].T


def compressed(kernel, x, basis):
    """The compressed kernel between all rows, by definition; of a row with itself, too."""
    y = x @ basis
    if isinstance(kernel, Polynomial):
        return kernel(y, y)
    rest = (x**2).sum(axis=1) - (y**2).sum(axis=1)
    squared = squared_distances(y, y) + rest[:, None] + rest[None, :]
    return kernel.of_squared(squared)


@pytest.mark.parametrize("name", KERNELS)
def test_landmarks__features_of_all_rows_give_the_compressed_kernel(put, name, x, basis):
    kernel, y, lengths = KERNELS[name], x @ basis, (x**2).sum(axis=1)
    # Only what is correlated with the rows along `correlated` is kept: here, everything.
    every = np.eye(N)
    found = landmarks(kernel, y, lengths, every, jitter=1e-13)
    features = to_host(found(put(y), put(lengths)))
    exact = compressed(kernel, x, basis)
    np.testing.assert_allclose(features @ features.T, exact, rtol=1e-5, atol=1e-7 * exact.max())


@pytest.mark.parametrize("name", ["gauss", "laplace", "kurtosis"])
def test_landmarks__keep_what_rows_are_correlated_with(name, x, basis):
    kernel, y, lengths = KERNELS[name], x @ basis, (x**2).sum(axis=1)
    features = landmarks(kernel, y, lengths, x, jitter=1e-13)(y, lengths)
    assert features.shape == (N, WIDTH)
    cross = x.T @ features
    exact = x.T @ compressed(kernel, x, basis) @ x
    np.testing.assert_allclose(cross @ cross.T, exact, rtol=1e-5, atol=1e-6 * np.abs(exact).max())


@pytest.mark.parametrize("orders", [(1.0,), (0.0, 2.0), (1.0, 0.0, 0.5), (1.0, 1.0, 1.0, 1.0)])
def test_monomials__inner_products_are_the_polynomial(put, orders, x, basis):
    kernel, y = Polynomial(orders), x @ basis
    found = Monomials(kernel=kernel, n_directions=Q)
    features = to_host(found(put(y), put((x**2).sum(axis=1))))
    assert features.shape == (N, found.n_features)
    exact = kernel(y, y)
    np.testing.assert_allclose(features @ features.T, exact, atol=1e-14 * np.abs(exact).max())


@pytest.mark.parametrize("name", KERNELS)
def test_compressed_features__tell_what_rows_with_themselves_lack(put, name, x, basis):
    kernel = KERNELS[name]
    y, lengths = x @ basis, (x**2).sum(axis=1)
    part = landmarks(kernel, y[:20], lengths[:20], x[:20], jitter=1e-9)
    features = CompressedFeatures(kernel=kernel, basis=basis, expansion=part)
    found = to_host(features(put(x)))
    assert found.shape == (N, features.n_features)
    missing = found[:, part.n_features :]
    smooth = np.diagonal(compressed(kernel, x, basis))
    lacking = kernel.diagonal(x) - smooth
    assert (lacking > -1e-12).all()
    lost = smooth - (found[:, : part.n_features] ** 2).sum(axis=1)
    assert lost.min() > -1e-9 * smooth.max()
    lacking = lacking + np.maximum(lost, 0.0)
    np.testing.assert_allclose(missing, lacking[:, None] * (x @ basis), atol=1e-11)


def test_sketch__is_the_rows_along_directions(put, x, basis):
    np.testing.assert_allclose(to_host(Sketch(directions=basis)(put(x))), x @ basis, atol=1e-14)


def test_nystrom_factor__is_exact_along_the_basis(x):
    matrix = x.T @ x
    basis = np.linalg.qr(np.random.default_rng(1).standard_normal((WIDTH, 3)))[0]
    factor = nystrom_factor(matrix @ basis, basis)
    np.testing.assert_allclose(factor @ factor.T @ basis, matrix @ basis, rtol=1e-10)
    assert np.linalg.eigvalsh(matrix - factor @ factor.T).min() > -1e-10


def test_leading__are_the_eigenvectors(x):
    values, vectors = np.linalg.eigh(x.T @ x)
    found = leading(x.T, 3)
    np.testing.assert_allclose(found.values, values[::-1][:3], rtol=1e-12)
    assert sine(found.vectors, vectors[:, ::-1][:, :3]) < 1e-12


def terms(kernel, x, basis):
    """The four means, by definition, with whole projected rows."""
    p = x @ basis @ basis.T

    def k(a, b):
        return (a @ b.T) * kernel(a, b)

    full = k(x, x)
    tail = ((x - p) @ (x - p).T) * kernel(x, x)
    parts = full, full - k(x, p) - k(p, x) + k(p, p), tail, (p @ p.T) * tail
    return np.asarray([part.mean() for part in parts])


@pytest.mark.parametrize("name", KERNELS)
def test_pair_measure__is_the_mean_over_pairs(put, name, x, basis):
    kernel = KERNELS[name]
    other = np.linalg.qr(np.random.default_rng(2).standard_normal((WIDTH, Q)))[0]
    measure = PairMeasure(kernel=kernel, vectors=(basis, other))
    cut = [Rows(put(x[at]), put(np.arange(N)[at])) for at in (slice(0, 25), slice(25, N))]
    state = measure.init(cut[0].values)
    for at, left in enumerate(cut):
        for right in cut[at:]:
            same = left is right
            state = measure.update(state, left, right, mirrored=not same, diagonal=same)
    found = to_host(measure.finalize(state))
    for got, vectors in zip(found, (basis, other), strict=True):
        np.testing.assert_allclose(got, terms(kernel, x, vectors), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_point_measure__of_every_row_is_the_mean_over_pairs(put, name, x, basis):
    kernel, index = KERNELS[name], np.arange(N)
    measure = PointMeasure(
        kernel=kernel, vectors=(basis,), points=x, index=index, chance=np.ones(N)
    )
    rows = Rows(put(x), put(index))
    found, errors = measure.finalize(measure.update(measure.init(rows.values), rows))
    np.testing.assert_allclose(to_host(found)[0], terms(kernel, x, basis), rtol=1e-9, atol=1e-12)
    assert (to_host(errors) == 0.0).all()  # nothing was left to chance


def test_point_measure__covers_the_mean_over_pairs(x, basis):
    kernel = KERNELS["gauss"]
    exact, away = terms(kernel, x, basis), []
    for seed in range(200):
        draw = Draw.of(WIDTH, 15, seed, x)
        points = draw.finalize(draw.update(draw.init(x), Rows(x, np.arange(N))))
        assert points.index.size == 15
        measure = PointMeasure(
            kernel=kernel, vectors=(basis,), points=points.values, index=points.index,
            chance=points.chance,
        )  # fmt: skip
        state = measure.update(measure.init(x), Rows(x, np.arange(N)))
        means, errors = measure.finalize(state)
        away.append((means[0] - exact) / errors[0])
    away = np.asarray(away)
    assert (np.abs(away.mean(axis=0)) < 0.5).all()  # t with 14 degrees of freedom, skewed
    assert (np.abs(away) < 2.0).mean(axis=0).min() > 0.85
