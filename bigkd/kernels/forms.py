"""What compiled loops have to know of each kernel, and how far rounding may take its sums."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from bigkd.errors import InputError
from bigkd.kernels import fused
from bigkd.kernels._rows import positive_integer
from bigkd.kernels.base import Kernel
from bigkd.kernels.compact import Epanechnikov, Triangle
from bigkd.kernels.covariance import CovarianceGaussian
from bigkd.kernels.families import Gaussian, InverseMultiquadric, Laplace, Matern

PRODUCT_WIDTH = 16
"""Width of the rows from which on a matrix product pays; measured, see the benchmarks."""

_PRODUCT_TOLERANCE = 5e-13
_PRODUCT_SPREADS = 4.0
_OTHERS_TOLERANCE = 1e-5


class Form(NamedTuple):
    """A kernel of unit length, as compiled loops take it."""

    loops: fused.Loops
    a: float
    """What squared distances are multiplied by."""

    b: float = 0.0
    c: float = 0.0
    smooth: float = 0.0
    """Largest change of K, relative to K, by a unit of squared distance; 0 if it has a cusp."""


_LOG2_E = math.log2(math.e)


def _gaussian(kernel: Any) -> Form:
    del kernel
    return Form(fused.gaussian, a=-0.5 * _LOG2_E, smooth=0.5)


def _laplace(kernel: Any) -> Form:
    del kernel
    return Form(fused.laplace, a=_LOG2_E**2)


def _matern(kernel: Any) -> Form | None:
    ln2 = math.log(2.0)
    if kernel.nu == 0.5:
        return _laplace(kernel)
    if kernel.nu == 1.5:
        return Form(fused.matern, a=3 * _LOG2_E**2, b=ln2, smooth=1.5)
    if kernel.nu == 2.5:
        return Form(fused.matern, a=5 * _LOG2_E**2, b=ln2, c=ln2**2 / 3, smooth=5 / 6)
    return None


def _inverse_multiquadric(kernel: Any) -> Form:
    return Form(fused.inverse_multiquadric, a=1.0, b=-kernel.beta, smooth=kernel.beta)


def _triangle(kernel: Any) -> Form:
    del kernel
    return Form(fused.triangle, a=1.0)


def _epanechnikov(kernel: Any) -> Form:
    del kernel
    return Form(fused.epanechnikov, a=1.0, smooth=1.0)


_FORMS: Mapping[type, Callable[[Any], Form | None]] = {
    Gaussian: _gaussian,
    Laplace: _laplace,
    Matern: _matern,
    InverseMultiquadric: _inverse_multiquadric,
    Triangle: _triangle,
    Epanechnikov: _epanechnikov,
}


def form_of(kernel: object) -> Form | None:
    """Form of `kernel`; None for one without a sweep, subclasses of the known ones included."""
    make = _FORMS.get(type(kernel))
    return None if make is None else make(kernel)


def product_error(dtype: Any, width: int) -> float:
    """Largest error of squared distances by a product, in units of the sum of squared norms."""
    return (1.25 * width + 12) * float(np.finfo(dtype).eps) / 2


def product_tolerance(dtype: Any, width: int) -> float:
    """Error of a kernel value that is put up with for the sake of a product."""
    if dtype == np.float64:
        return _PRODUCT_TOLERANCE
    return _PRODUCT_SPREADS * product_error(dtype, width)


def rounding_bound(kernel: Kernel, dtype: Any, width: int) -> float:
    r"""How far rounding may take `pair_sum`, in units of the sum of absolute strengths.

    .. math:: |\hat\kappa - \kappa| \le B \sum_{ij} \lVert u_i \rVert \lVert v_j \rVert

    Parameters
    ----------
    kernel
        Kernel of distances.
    dtype
        Dtype of computation of the rows, float32 or float64.
    width
        Width `d` of the rows.

    Returns
    -------
    float
        The B above: the worst case, of which the errors that occur are a small part. For NumPy rows
        and the kernels with a sweep about 3e-6 to 4e-5 in float32 and below 1e-12 in float64 (up
        to width 1000); what is computed from `squared_distances` instead (other Matérn kernels,
        other array namespaces) may err by half of the digits where two rows are nearer to each
        other than to the mean by such a factor.

    Raises
    ------
    InputError
        If the kernel has no bound, or `dtype` is neither.

    Notes
    -----
    With unit roundoff u: ``(d + 4) u`` from squared distances, since every kernel here moves by
    less than the relative change of its argument; ``(16 + beta) u`` from the kernel's formula;
    ``24 u`` (float32) or ``300 u`` (float64) from adding up. Values below 1e-26 (float32)
    or 1e-295 (float64) may count as 0. From width 16 on squared distances may come from a matrix
    product, wherever its worst error moves no value by more than 5e-13 (float64) or
    ``(5 d + 48) u`` (float32) of itself.
    The whitening of `CovarianceGaussian` adds u times the spread of the whitened rows.
    """
    width = positive_integer("width", width)
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise InputError(f"dtype must be float32 or float64; got {dtype}.")
    roundoff = float(np.finfo(dtype).eps) / 2
    if isinstance(kernel, CovarianceGaussian):
        kernel = Gaussian(1.0)
    if kernel.maximum != 1.0:
        raise InputError(f"rounding_bound needs a kernel whose largest value is 1; got {kernel!r}.")
    form = form_of(kernel)
    if form is None:
        return width * math.sqrt(2 * roundoff)
    added = 24 if dtype == np.float32 else 300
    exponent = -form.b if form.loops is fused.inverse_multiquadric else 0.0
    product = product_tolerance(dtype, width) if width >= PRODUCT_WIDTH else 0.0
    return (width + 4 + 16 + exponent + added) * roundoff + product
