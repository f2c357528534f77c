import math
import pickle

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from bigkd import kernels
from bigkd.backends import to_host
from bigkd.errors import InputError, ShapeError
from bigkd.kernels import Gaussian, InverseMultiquadric, Laplace, Matern

KERNELS = [
    Gaussian(1.5),
    Laplace(1.5),
    Matern(0.5, 1.5),
    Matern(1.5, 1.5),
    Matern(2.5, 1.5),
    Matern(0.8, 1.5),
    Matern(7.3, 1.5),
    InverseMultiquadric(1.5, 0.7),
]
by_repr = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def by_definition(kernel, r):
    """The textbook's scalar formula in Python floats."""
    if isinstance(kernel, Gaussian):
        return math.exp(-(r**2) / (2 * kernel.sigma**2))
    if isinstance(kernel, InverseMultiquadric):
        return (1 + r**2 / kernel.length_scale**2) ** -kernel.beta
    if isinstance(kernel, Laplace):
        return math.exp(-r / kernel.length_scale)
    if r == 0:
        return 1.0
    z = math.sqrt(2 * kernel.nu) * r / kernel.length_scale
    factor = 2 ** (1 - kernel.nu) / math.gamma(kernel.nu)
    return factor * z**kernel.nu * float(special.kv(kernel.nu, z))


def gram_by_definition(kernel, x, y):
    return np.array([[by_definition(kernel, math.dist(a, b)) for b in y] for a in x])


def rows(dtype, d, offset, n=9, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(0.0, 2.0 / math.sqrt(d), (n, d)) + offset
    if np.issubdtype(dtype, np.integer):
        x = generator.integers(0, 4, (n, d))
    x[3] = x[5]
    return x.astype(dtype)


@by_repr
@pytest.mark.parametrize("d", [1, 3, 4, 5, 40])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-9), ("float32", 2e-6)])
def test_gram__matches_definition_far_from_origin(put, kernel, d, offset, dtype, atol):
    x, y = rows(dtype, d, offset), rows(dtype, d, offset, n=7, seed=1)
    y[2] = x[1]
    got = kernel(put(x), put(y))
    assert to_host(got).dtype == dtype
    want = gram_by_definition(kernel, x.astype("f8"), y.astype("f8"))
    np.testing.assert_allclose(to_host(got), want, rtol=0, atol=atol)
    assert to_host(got)[1, 2] == 1.0


@by_repr
@pytest.mark.parametrize(
    ("dtype", "computed"),
    [("float16", "f4"), ("uint8", "f4"), ("int16", "f4"), ("int64", "f8"), ("uint32", "f8")],
)
@pytest.mark.parametrize("d", [3, 20])
def test_gram__casts_narrow_and_integer_rows(kernel, dtype, computed, d):
    x = rows(dtype, d, 0.0)
    got = kernel(x, x[:4])
    assert got.dtype == computed
    want = gram_by_definition(kernel, x.astype("f8"), x[:4].astype("f8"))
    np.testing.assert_allclose(got, want, rtol=0, atol=3e-6)


@by_repr
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 4, 5, 300])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
def test_gram__is_exactly_one_on_equal_rows(put, kernel, dtype, d, offset):
    x = rows(dtype, d, offset, n=30)
    for other in (put(x), put(x.copy())):
        gram = to_host(kernel(put(x), other))
        np.testing.assert_array_equal(np.diagonal(gram), 1.0)
        assert gram[3, 5] == gram[5, 3] == 1.0
    block = put(x)
    np.testing.assert_array_equal(np.diagonal(to_host(kernel(block, block))), 1.0)


def test_gram__promotes_unequal_dtypes():
    x = rows("float32", 6, 0.0)
    assert Gaussian(1.0)(x, x.astype("f8")).dtype == np.float64


@pytest.mark.parametrize("shape", [(0, 6), (0, 2)])
def test_gram__of_no_rows_is_empty(put, shape):
    x = put(np.ones((3, shape[1])))
    assert tuple(Gaussian(1.0)(x, put(np.zeros(shape))).shape) == (3, 0)
    assert tuple(Gaussian(1.0)(put(np.zeros(shape)), x).shape) == (0, 3)


def test_gram__keeps_a_bad_row_to_itself():
    x = rows("float64", 6, 0.0)
    y = x.copy()
    y[4, 2] = np.nan
    got = Laplace(1.0)(x, y)
    assert np.isnan(got[:, 4]).all()
    keep = np.arange(9) != 4
    np.testing.assert_allclose(got[:, keep], Laplace(1.0)(x, x)[:, keep], atol=1e-12)


@by_repr
@pytest.mark.parametrize(
    ("x", "y", "pattern"),
    [
        (np.ones(3), np.ones((2, 3)), r"\(3,\) and \(2, 3\)"),
        (np.ones((2, 3)), np.ones((2, 4)), r"equal width; got \(2, 3\) and \(2, 4\)"),
    ],
)
def test_gram__refuses_bad_shapes(kernel, x, y, pattern):
    with pytest.raises(ShapeError, match=pattern):
        kernel(x, y)


def test_gram__refuses_complex_rows():
    with pytest.raises(InputError, match="real rows; got complex128"):
        Gaussian(1.0)(np.ones((2, 3), complex), np.ones((2, 3)))


def test_laplace__equals_matern_one_half():
    x = rows("float64", 6, 0.0)
    np.testing.assert_allclose(Laplace(0.7)(x, x), Matern(0.5, 0.7)(x, x), rtol=1e-15)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern__half_integers_agree_with_bessel(nu):
    r = np.geomspace(1e-8, 50, 60)
    got = Matern(nu, 2.0).of_squared(r**2)
    want = [by_definition(Matern(nu, 2.0), float(v)) for v in r]
    np.testing.assert_allclose(got, want, rtol=1e-11)


@pytest.mark.parametrize("nu", [0.01, 0.3, 1.0, 1.001, 2.0, 3.0, 20.0, 99.9])
def test_matern__is_one_at_zero_and_falls_without_a_jump(nu):
    r = np.concatenate([[0.0], np.geomspace(1e-160, 1e3, 4000)])
    got = Matern(nu, 1.0).of_squared(r**2)
    assert got[0] == 1.0
    assert got[-1] < 1e-3
    assert np.diff(got).max() < 1e-12
    if nu >= 1.0:
        assert np.abs(np.diff(got)).max() < 0.1


def test_matern__keeps_its_curvature_where_bessel_overflows():
    r = np.geomspace(3e-4, 1e-2, 50)
    nu = 99.9
    loss = 1 - Matern(nu, 1.0).of_squared(r**2)
    np.testing.assert_allclose(loss, 0.5 * nu / (nu - 1) * r**2, rtol=1e-3)


def test_matern__approaches_gaussian():
    squared = np.linspace(0, 3, 200) ** 2
    gap = np.abs(Matern(100, 1.0).of_squared(squared) - Gaussian(1.0).of_squared(squared))
    assert gap.max() < 0.01


def test_matern_sobolev__has_the_smoothness_left_over():
    assert Matern.sobolev(3, 4, 2.0) == Matern(1.0, 2.0)
    assert Matern.sobolev(smoothness=2.5, dimension=2, length_scale=1) == Matern(1.5, 1.0)
    with pytest.raises(InputError, match=r"exceed half the dimension, 2, .* got 2\.0"):
        Matern.sobolev(2, 4, 1.0)
    with pytest.raises(InputError, match=r"dimension must be an integer .* got 2\.5"):
        Matern.sobolev(2, 2.5, 1.0)


@given(
    family=st.sampled_from([Gaussian, Laplace]),
    length=st.floats(1e-3, 1e3),
    factor=st.floats(1e-3, 1e3),
)
def test_scaled__multiplies_the_length(family, length, factor):
    x = np.linspace(0, 3 * length, 8)[:, None]
    kernel = family(length)
    assert kernel.scaled(factor) == family(length * factor)
    got = kernel.scaled(factor)(x * factor, x * factor)
    np.testing.assert_allclose(got, kernel(x, x), rtol=1e-10)


def test_scaled__keeps_the_shape():
    assert Matern(1.5, 2.0).scaled(3) == Matern(1.5, 6.0)
    assert InverseMultiquadric(2.0, 0.5).scaled(0.5) == InverseMultiquadric(1.0, 0.5)
    assert InverseMultiquadric(2.0, 0.5).with_length(7) == InverseMultiquadric(7.0, 0.5)
    with pytest.raises(InputError, match="factor must be a finite positive number; got 0"):
        Gaussian(1.0).scaled(0)


@by_repr
def test_kernel__survives_pickle_storage_and_hashing(kernel):
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert kernels.from_parameters(kernel.name, kernel.parameters) == kernel
    assert {kernel: 1}[kernels.from_parameters(kernel.name, kernel.parameters)] == 1
    assert all(type(value) is float for value in kernel.parameters.values())
    assert kernel.length == 1.5


def test_kernel__takes_any_real_number():
    assert Gaussian(sigma=2) == Gaussian(np.float32(2)) == Gaussian(2.0)
    assert type(Gaussian(np.float32(2)).sigma) is float
    assert [k.name for k in (KERNELS[0], KERNELS[1], KERNELS[2], KERNELS[-1])] == [
        "gaussian",
        "laplace",
        "matern",
        "inverse_multiquadric",
    ]


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "1", None, True, 1j])
@pytest.mark.parametrize(
    ("build", "name"),
    [
        (Gaussian, "Gaussian.sigma"),
        (Laplace, "Laplace.length_scale"),
        (lambda v: Matern(v, 1.0), "Matern.nu"),
        (lambda v: Matern(1.0, v), "Matern.length_scale"),
        (lambda v: InverseMultiquadric(1.0, v), "InverseMultiquadric.beta"),
        (lambda v: InverseMultiquadric(v, 1.0), "InverseMultiquadric.length_scale"),
    ],
)
def test_kernel__refuses_parameters_out_of_range(build, name, bad):
    with pytest.raises(InputError, match=f"{name} must be a finite positive number; got "):
        build(bad)


def test_kernel__refuses_a_matern_too_smooth():
    with pytest.raises(InputError, match=r"at most 100; got 101\.0\. Pass Gaussian\(2\.0\)"):
        Matern(101, 2)


def test_from_parameters__refuses_what_it_does_not_know():
    with pytest.raises(InputError, match=r"one of gaussian, laplace, matern, .*; got 'rbf'"):
        kernels.from_parameters("rbf", {})
    with pytest.raises(InputError, match="takes the parameters nu, length_scale; got nu"):
        kernels.from_parameters("matern", {"nu": 1.0})
    with pytest.raises(InputError, match="takes the parameters sigma; got none"):
        kernels.from_parameters("gaussian", {})


def test_gram__runs_on_the_namespace_of_its_rows():
    x = array_api_strict.ones((2, 7))
    for kernel in KERNELS:
        assert type(kernel(x, x)) is type(x)
