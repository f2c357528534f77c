"""`IndefiniteSpectrum.largest`: many diagonals at once, against dense eigenvalues."""

import numpy as np
import pytest

from bigkd.kernels import Gaussian
from bigkd.linalg import IndefiniteSpectrum, indefinite_spectrum


def dense_largest(factor, diagonals):
    return np.asarray([np.linalg.eigvalsh(factor.T @ (s[:, None] * factor))[-1] for s in diagonals])


def random_signs(n_draws, n_rows, *, centred=True):
    signs = np.random.default_rng(3).choice([-1.0, 1.0], (n_draws, n_rows))
    return signs - signs.mean(axis=1, keepdims=True) if centred else signs


@pytest.mark.parametrize("width", [2, 64])
@pytest.mark.parametrize("sigma", [0.05, 1.0, 8.0, 100.0])
def test_largest__matches_dense_eigenvalues(width, sigma):
    rows = np.random.default_rng(0).standard_normal((240, width))
    spectrum = indefinite_spectrum(Gaussian(sigma)(rows, rows))
    signs = random_signs(30, 240)

    expected = dense_largest(spectrum.factor, signs)

    np.testing.assert_allclose(spectrum.largest(signs), expected, rtol=1e-4)


def test_largest__many_modes_of_nearly_equal_size():
    generator = np.random.default_rng(0)
    rows = 3.0 * generator.standard_normal((12, 40))[generator.integers(12, size=300)]
    rows = rows + 0.1 * generator.standard_normal(rows.shape)
    spectrum = indefinite_spectrum(Gaussian(2.0)(rows, rows))
    signs = random_signs(40, 300)

    expected = dense_largest(spectrum.factor, signs)

    np.testing.assert_allclose(spectrum.largest(signs), expected, rtol=1e-4)


@pytest.mark.parametrize("rank", [1, 2, 5, 30])
def test_largest__of_low_rank(rank):
    factor = np.random.default_rng(1).standard_normal((50, rank))
    signs = random_signs(20, 50, centred=False)

    found = IndefiniteSpectrum(factor).largest(signs)

    np.testing.assert_allclose(found, dense_largest(factor, signs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sign", [1.0, -1.0, 0.0])
def test_largest__where_every_vector_is_an_eigenvector(sign):
    found = IndefiniteSpectrum(np.eye(30)).largest(np.full((4, 30), sign))

    np.testing.assert_allclose(found, np.full(4, sign), rtol=1e-5)


def test_largest__of_nothing():
    assert IndefiniteSpectrum(np.zeros((5, 0))).largest(np.ones((2, 5))).tolist() == [0.0, 0.0]
    assert IndefiniteSpectrum(np.eye(5)).largest(np.ones((0, 5))).shape == (0,)
