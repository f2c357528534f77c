import math

import numpy as np
import pytest

from bigkd import kernels
from bigkd.backends import to_host
from bigkd.errors import InputError
from bigkd.kernels import DotTimes, Gaussian, Laplace, Polynomial


def rows(n, d, seed):
    return np.random.default_rng(seed).normal(0.0, 1.0, (n, d))


@pytest.mark.parametrize("coefficients", [(2.0,), (0, 1), (1, -2, 0, 0.5), (0, 0, 0, 0, 1)])
@pytest.mark.parametrize("d", [1, 2, 30])
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-13), ("float32", 2e-5)])
def test_polynomial__matches_definition(put, coefficients, d, dtype, rtol):
    x, y = rows(5, d, 0).astype(dtype), rows(4, d, 1).astype(dtype)
    got = to_host(Polynomial(coefficients)(put(x), put(y)))
    products = [[math.fsum(a * b) for b in y.astype("f8")] for a in x.astype("f8")]
    want = [[math.fsum(c * t**i for i, c in enumerate(coefficients)) for t in p] for p in products]
    size = [[sum(abs(c * t**i) for i, c in enumerate(coefficients)) for t in p] for p in products]
    assert got.dtype == dtype
    assert (abs(got - want) <= rtol * np.maximum(size, 1.0) * d).all()


def test_polynomial__of_degree_one_measures_the_distance_of_means():
    x, y = rows(50, 3, 0), rows(40, 3, 1) + 0.5
    linear = Polynomial((0, 1))
    squared = linear(x, x).mean() + linear(y, y).mean() - 2 * linear(x, y).mean()
    assert squared == pytest.approx(((x.mean(axis=0) - y.mean(axis=0)) ** 2).sum(), rel=1e-12)


def test_polynomial__knows_where_it_is_bounded_and_positive():
    assert Polynomial((-3, 0, 0)).maximum == 3.0
    assert Polynomial((0, 1)).maximum is None
    assert Polynomial((0, 1, 2)).is_positive_definite(5)
    assert not Polynomial((0, 1, -1e-9)).is_positive_definite(5)


def test_polynomial__is_the_same_however_its_coefficients_come():
    kernel = Polynomial([0, np.float32(1)])
    assert kernel == Polynomial((0.0, 1.0))
    assert hash(kernel) == hash(Polynomial((0, 1)))
    assert all(type(value) is float for value in kernel.coefficients)


@pytest.mark.parametrize(
    "bad", [(), (0, 0.0), 3, "01", (1, math.nan), (1, math.inf), (1, "2"), (1, 1j), (True,), None]
)
def test_polynomial__refuses_bad_coefficients(bad):
    with pytest.raises(InputError, match=r"Polynomial.coefficients must be a sequence of finite"):
        Polynomial(bad)


@pytest.mark.parametrize("inner", [Gaussian(1.3), Laplace(0.7), Polynomial((1, 1))], ids=repr)
@pytest.mark.parametrize("d", [1, 3, 30])
def test_dot_times__matches_definition(put, inner, d):
    x, y = rows(5, d, 0), rows(4, d, 1)
    got = to_host(DotTimes(inner)(put(x), put(y)))
    products = np.array([[math.fsum(a * b) for b in y] for a in x])
    np.testing.assert_allclose(got, products * inner(x, y), rtol=0, atol=1e-12 * d)


def test_dot_times__is_its_kernel_with_rows_as_vectors():
    x, y = rows(6, 3, 0), rows(5, 3, 1)
    mu, nu = np.arange(1.0, 7.0), np.linspace(-1, 1, 5)
    left, right = mu[:, None] * x, nu[:, None] * y
    by_vectors = np.einsum("ic,jc,ij->", left, right, Gaussian(1.3)(x, y))
    assert mu @ DotTimes(Gaussian(1.3))(x, y) @ nu == pytest.approx(by_vectors, rel=1e-12)


@pytest.mark.parametrize("bad", ["gaussian", 1.0, Gaussian, None])
def test_dot_times__needs_a_kernel(bad):
    with pytest.raises(InputError, match=r"DotTimes.kernel must be a kernel such as"):
        DotTimes(bad)


@pytest.mark.parametrize("stored", [None, "gaussian", {"name": "gaussian"}, {"sigma": 1.0}])
def test_from_parameters__refuses_a_broken_inner_kernel(stored):
    with pytest.raises(InputError, match="'dot_times' must have a name and parameters; got "):
        kernels.from_parameters("dot_times", {"kernel": stored})
