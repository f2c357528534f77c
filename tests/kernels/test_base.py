"""What all kernels have in common."""

import json
import math
import pickle

import numpy as np
import pytest

from bigkd import kernels
from bigkd.backends import to_host
from bigkd.engine.tokens import spec_token
from bigkd.errors import InputError, ShapeError
from bigkd.kernels import (
    CovarianceGaussian,
    DotTimes,
    Epanechnikov,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Matern,
    Polynomial,
    RadialKernel,
    Triangle,
    variance_rule,
)

COVARIANCE = ((2.0, 0.3, 0.0), (0.3, 1.0, -0.2), (0.0, -0.2, 0.7))
SPECTRAL = [
    Gaussian(1.5),
    Laplace(1.5),
    Matern(0.8, 1.5),
    InverseMultiquadric(1.5, 0.7),
    CovarianceGaussian(COVARIANCE),
]
OTHERS = [
    Triangle(1.5),
    Epanechnikov(1.5),
    Polynomial((0, 1)),
    Polynomial((0.5, 1, 0.25)),
    DotTimes(Gaussian(1.5)),
    DotTimes(DotTimes(Epanechnikov(2.0))),
]
KERNELS = SPECTRAL + OTHERS
by_repr = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def rows(n=12, d=3, seed=0, offset=0.0):
    return np.random.default_rng(seed).normal(offset, 1.0, (n, d))


@by_repr
def test_kernel__is_stored_as_json_and_comes_back(kernel):
    text = json.dumps({"name": kernel.name, "parameters": kernel.parameters})
    back = kernels.from_parameters(**json.loads(text))
    assert back == kernel
    assert hash(back) == hash(kernel)
    assert spec_token(back) == spec_token(kernel)
    assert json.dumps(back.parameters) == json.dumps(kernel.parameters)


@by_repr
def test_kernel__survives_pickle_whether_used_or_not(kernel):
    fresh = pickle.loads(pickle.dumps(kernel))
    kernel(rows(), rows())
    used = pickle.loads(pickle.dumps(kernel))
    assert fresh == used == kernel
    assert repr(used) == repr(fresh)


@by_repr
def test_kernel__differs_from_every_other(kernel):
    assert sum(other == kernel for other in KERNELS) == 1
    assert len({spec_token(other) for other in KERNELS}) == len(KERNELS)


@by_repr
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64"])
def test_diagonal__is_that_of_the_matrix(put, kernel, dtype):
    x = (3 * rows()).astype(dtype)
    got = kernel.diagonal(put(x))
    gram = to_host(kernel(put(x), put(x)))
    assert tuple(got.shape) == (12,)
    assert to_host(got).dtype == gram.dtype
    np.testing.assert_allclose(to_host(got), np.diagonal(gram), rtol=1e-6)


@by_repr
def test_diagonal__is_not_finite_where_a_row_is_not(kernel):
    x = rows()
    x[3, 1], x[5, 0] = np.nan, np.inf
    bad = ~np.isfinite(kernel.diagonal(x))
    np.testing.assert_array_equal(np.flatnonzero(bad), [3, 5])


@by_repr
def test_kernel__takes_no_rows(put, kernel):
    x, none = put(rows()), put(np.zeros((0, 3)))
    assert tuple(kernel(x, none).shape) == (12, 0)
    assert tuple(kernel(none, x).shape) == (0, 12)
    assert tuple(kernel.diagonal(none).shape) == (0,)


@by_repr
def test_kernel__refuses_bad_shapes(kernel):
    for x, y in ((np.ones(3), np.ones((2, 3))), (np.ones((2, 3)), np.ones((2, 4)))):
        with pytest.raises(ShapeError, match=f"{type(kernel).__name__} kernel needs"):
            kernel(x, y)
    with pytest.raises(ShapeError, match=r"rows of shape \(n, d\); got \(3,\)"):
        kernel.diagonal(np.ones(3))
    with pytest.raises(InputError, match="real rows"):
        kernel(np.ones((2, 3), complex), np.ones((2, 3)))


@by_repr
def test_maximum__bounds_the_kernel(kernel):
    x = rows(200)
    if kernel.maximum is None:
        assert abs(kernel(1e6 * x, 1e6 * x)).max() > 1e6
    else:
        assert abs(kernel(x, x)).max() == kernel.maximum == 1.0


@by_repr
@pytest.mark.parametrize("width", [1, 2, 3])
def test_is_positive_definite__tells_the_sign_of_eigenvalues(kernel, width):
    if isinstance(kernel, CovarianceGaussian) and width != 3:
        with pytest.raises(ShapeError, match=f"for rows of width 3; got rows of width {width}"):
            kernel.is_positive_definite(width)
        return
    # An evenly spaced cluster, some way from the origin, finds the negative part of a spectrum.
    steps = np.linspace(0, 6, {1: 60, 2: 20, 3: 8}[width])
    x = 20.0 + np.stack(np.meshgrid(*[steps] * width), axis=-1).reshape(-1, width)
    values = np.linalg.eigvalsh(kernel(x, x))
    assert (values[0] > -1e-10 * values[-1]) == kernel.is_positive_definite(width)


@pytest.mark.parametrize("width", [0, 2.0, True])
@by_repr
def test_is_positive_definite__refuses_what_is_no_width(kernel, width):
    with pytest.raises(InputError, match="width"):
        kernel.is_positive_definite(width)


@pytest.mark.parametrize("kernel", OTHERS, ids=repr)
def test_frequencies__are_refused_where_there_is_no_spectrum(kernel):
    assert not kernel.has_spectrum
    with pytest.raises(InputError, match=f"{kernel.name} kernel has no spectrum .* exact method"):
        kernel.frequencies(10, 3)


@pytest.mark.parametrize("kernel", SPECTRAL, ids=repr)
def test_frequencies__are_there_where_there_is_a_spectrum(kernel):
    assert kernel.has_spectrum
    assert kernel.maximum == 1.0
    assert kernel.frequencies(10, 3).shape == (10, 3)


@pytest.mark.parametrize(
    "kernel",
    [*SPECTRAL, Matern(1.5, 1.5), Matern(3.0, 0.7), InverseMultiquadric(2.0, 4.0)],
    ids=repr,
)
def test_spectral_moment__is_minus_the_laplacian_at_zero(kernel):
    def curvature(step):
        values = kernel(np.zeros((1, 3)), step * np.eye(3))[0]
        return 2 * float(np.sum(1 - values)) / step**2

    if np.isinf(kernel.spectral_moment(3)):
        assert curvature(1e-6) > 2 * curvature(1e-4)
    else:
        assert kernel.spectral_moment(3) == pytest.approx(curvature(1e-4), rel=1e-2)


def test_spectral_moment__needs_a_spectrum():
    with pytest.raises(InputError, match="triangle kernel has no spectrum"):
        Triangle(1.0).spectral_moment(3)


def test_radial_kernels__have_a_length():
    radial = [kernel for kernel in KERNELS if isinstance(kernel, RadialKernel)]
    assert [kernel.length for kernel in radial] == [1.5] * 6
    assert Triangle(2.0).with_length(3) == Triangle(3.0)
    assert Epanechnikov(2.0).scaled(2) == Epanechnikov(4.0)


@pytest.mark.parametrize("kernel", [Polynomial((0, 1)), CovarianceGaussian(COVARIANCE), "gaussian"])
def test_variance_rule__needs_a_length(kernel):
    with pytest.raises(InputError, match="needs a kernel with a length"):
        variance_rule(rows(), kernel=kernel)


def test_kernels__agree_with_their_formulas_to_the_last_digits():
    r = np.geomspace(1e-3, 3.9, 100)
    formulas = {
        Gaussian(2.0): lambda v: math.exp(-(v**2) / 8),
        Triangle(4.0): lambda v: 1 - v / 4,
        Epanechnikov(4.0): lambda v: 1 - v**2 / 16,
    }
    for kernel, formula in formulas.items():
        got = kernel(np.zeros((1, 1)), r[:, None])[0]
        np.testing.assert_allclose(got, [formula(float(v)) for v in r], rtol=1e-13)


def test_gaussians__of_rows_far_apart_are_zero():
    for kernel in (Gaussian(1e-3), CovarianceGaussian(np.eye(3) * 1e-6)):
        np.testing.assert_array_equal(kernel(np.zeros((2, 3)), 1e150 * np.ones((2, 3))), 0.0)
