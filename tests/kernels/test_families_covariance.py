import math

import numpy as np
import pytest

from bigkd.backends import to_host
from bigkd.errors import InputError, ShapeError
from bigkd.kernels import CovarianceGaussian, FourierFeatures, Gaussian


def covariance(d, seed=0, stretch=10.0):
    generator = np.random.default_rng(seed)
    q, _ = np.linalg.qr(generator.normal(size=(d, d)))
    return (q * np.geomspace(1.0, stretch, d)) @ q.T


def rows(n, d, seed, offset=0.0):
    return np.random.default_rng(seed).normal(0.0, 1.5 / math.sqrt(d), (n, d)) + offset


@pytest.mark.parametrize("d", [1, 2, 5, 30])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-13), ("float32", 2e-6)])
def test_gram__matches_definition_far_from_origin(put, d, offset, dtype, atol):
    s = covariance(d)
    s = (s + s.T) / 2
    x, y = rows(6, d, 0, offset).astype(dtype), rows(5, d, 1, offset).astype(dtype)
    y[2] = x[1]
    got = to_host(CovarianceGaussian(s)(put(x), put(y)))
    gaps = x.astype("f8")[:, None] - y.astype("f8")[None]
    want = np.exp(-0.5 * np.einsum("ija,ab,ijb->ij", gaps, np.linalg.inv(s), gaps))
    assert got.dtype == dtype
    assert got[1, 2] == 1.0
    np.testing.assert_allclose(got, want, rtol=0, atol=atol)


def test_gram__of_a_multiple_of_the_identity_is_the_gaussian():
    x, y = rows(6, 3, 0), rows(5, 3, 1)
    got = CovarianceGaussian(np.eye(3) * 2.25)(x, y)
    np.testing.assert_allclose(got, Gaussian(1.5)(x, y), rtol=1e-14)


def test_gram__of_stretched_coordinates():
    x, y = rows(6, 2, 0), rows(5, 2, 1)
    scale = np.array([1e-3, 1e4])
    kernel = CovarianceGaussian(np.diag(scale**2))
    np.testing.assert_allclose(kernel(x * scale, y * scale), Gaussian(1.0)(x, y), rtol=1e-13)


def test_reduced__gives_whitened_rows_of_the_unit_gaussian(put):
    x, y = put(rows(6, 3, 0, 1e4)), put(rows(5, 3, 1, 1e4))
    kernel = CovarianceGaussian(covariance(3))
    gaussian, left, right = kernel.reduced(x, y)
    assert gaussian == Gaussian(1.0)
    np.testing.assert_array_equal(to_host(gaussian(left, right)), to_host(kernel(x, y)))
    np.testing.assert_allclose(to_host(right).mean(axis=0), 0.0, atol=1e-9)
    factor = np.linalg.inv(kernel.whitening)
    np.testing.assert_allclose(factor @ factor.T, covariance(3), rtol=1e-12)


@pytest.mark.parametrize("sampling", ["iid", "orthogonal"])
def test_frequencies__estimate_the_kernel(sampling):
    kernel, x, r = CovarianceGaussian(covariance(4)), rows(8, 4, 0), 4096
    features = FourierFeatures(kernel.frequencies(r, 4, seed=1, sampling=sampling))(x)
    np.testing.assert_allclose(features @ features.T, kernel(x, x), atol=4.5 / math.sqrt(r))


def test_frequencies__have_the_inverse_covariance():
    s = covariance(3)
    w = CovarianceGaussian(s).frequencies(200_000, 3, seed=2)
    np.testing.assert_allclose(w.T @ w / len(w), np.linalg.inv(s), atol=0.02)
    np.testing.assert_array_equal(CovarianceGaussian(s).frequencies(7, 3, seed=2), w[:7])
    with pytest.raises(ShapeError, match=r"rows of width 3; got rows of width 2"):
        CovarianceGaussian(s).frequencies(5, 2)


def test_kernel__is_a_value_however_its_matrix_comes(put):
    s = np.array([[2.0, 0.5], [0.5, 1.0]])
    kernels = {CovarianceGaussian(given) for given in (s, put(s), s.tolist(), ((2, 0.5), (0.5, 1)))}
    assert kernels == {CovarianceGaussian(s)}
    assert kernels.pop().covariance == ((2.0, 0.5), (0.5, 1.0))
    nearly = CovarianceGaussian([[2.0, 0.5 + 1e-14], [0.5, 1.0]]).covariance
    assert nearly[0][1] == nearly[1][0]


@pytest.mark.parametrize(
    ("bad", "pattern"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], "must be symmetric; it differs from its transpose by up to 0.1"),
        ([[1.0, 2.0], [2.0, 1.0]], r"positive definite; its eigenvalues go from -1 to 3\. Add"),
        ([[1.0, 1.0], [1.0, 1.0]], "must be positive definite"),
        ([[0.0]], "must be positive definite"),
        ([[1.0, np.nan], [np.nan, 1.0]], "2 of its 4 elements are not"),
        ([[1.0, 0.0]], r"got shape \(1, 2\)"),
        ([], r"got shape \(0,\)"),
        ([1.0, 2.0], r"got shape \(2,\)"),
        ([[1.0], [1.0, 2.0]], "its rows of equal width"),
        (2.0, "square matrix of finite numbers; got 2.0"),
        ([["a"]], "square matrix of finite numbers"),
    ],
)
def test_kernel__refuses_what_is_no_covariance(bad, pattern):
    with pytest.raises(InputError, match=pattern):
        CovarianceGaussian(bad)
