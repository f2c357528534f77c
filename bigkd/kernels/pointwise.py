"""Compiled kernels of squared distances, in place, with an exponential and a logarithm of our own.

Numba's call the C library once for each element; these are polynomials, so that loops over whole
arrays vectorise. Only the contraction of a product and a sum into one operation is left to the
compiler; nothing is reordered, so the bits depend on the machine and the numbers alone.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit
from numba.extending import overload, register_jitable

Compiled = TypeVar("Compiled", bound=Callable[..., Any])


def compiled(function: Compiled, *, cache: bool = False) -> Compiled:
    """Numba's `function`, without the interpreter lock."""
    options: dict[str, Any] = {"cache": cache, "nogil": True, "error_model": "numpy"}
    made: Compiled = njit(fastmath={"contract"}, **options)(function)
    return made


def inlined(function: Compiled) -> Compiled:
    """`function`, for compiled functions to call."""
    made: Compiled = register_jitable(function)
    return made


def _exp2(t: Any) -> Any:
    """2 to the power of `t`, for ``t < 1000`` (float32: 100); 0 below minus that: no subnormals."""
    raise NotImplementedError("for compiled functions only")


def _log2(t: Any) -> Any:
    """Base-2 logarithm of a normal ``t >= 1``."""
    raise NotImplementedError("for compiled functions only")


@overload(_exp2)
def _exp2_of(t: Any) -> Any:
    """2^t = 2^n 2^f, n the nearest integer, 2^f by a polynomial that is 1 at 0.

    Adding 1.5 * 2^52 (or 2^23) leaves n in the lowest bits, from which it is added to the exponent.
    """
    return _exp2_double if t.bitwidth == 64 else _exp2_single


@overload(_log2)
def _log2_of(t: Any) -> Any:
    """log2(t) = e + log2(m), m in [sqrt(1/2), sqrt(2)), by a polynomial of (m - 1)/(m + 1)."""
    return _log2_double if t.bitwidth == 64 else _log2_single


def _exp2_double(t: Any) -> Any:
    shifted = t + 6755399441055744.0
    f = t - (shifted - 6755399441055744.0)
    p = 4.4549605981865186e-10 * f + 7.072585949269223e-09
    p = p * f + 1.0178062445845774e-07
    p = p * f + 1.321544258792169e-06
    p = p * f + 1.525273382983612e-05
    p = p * f + 0.0001540353044173605
    p = p * f + 0.0013333558146416936
    p = p * f + 0.009618129107606888
    p = p * f + 0.0555041086648216
    p = p * f + 0.24022650695910097
    p = p * f + 0.6931471805599453
    p = p * f + 1.0
    bits = np.float64(p).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)
    value = np.int64(bits).view(np.float64)
    return 0.0 if t < -1000.0 else value


_S_MAGIC, _S_ZERO, _S_ONE, _S_LEAST = map(np.float32, (12582912.0, 0.0, 1.0, -100.0))
_S1, _S2, _S3, _S4, _S5, _S6 = map(
    np.float32,
    (
        0.6931471880262288,
        0.24022650760568126,
        0.05550357114219078,
        0.009618082557277852,
        0.0013390863364671234,
        0.0001545316294512069,
    ),
)


def _exp2_single(t: Any) -> Any:
    shifted = t + _S_MAGIC
    f = t - (shifted - _S_MAGIC)
    p = _S6 * f + _S5
    p = p * f + _S4
    p = p * f + _S3
    p = p * f + _S2
    p = p * f + _S1
    p = p * f + _S_ONE
    n = np.int32(np.float32(shifted).view(np.int32) << np.int32(23))
    value = np.int32(np.float32(p).view(np.int32) + n).view(np.float32)
    return _S_ZERO if t < _S_LEAST else value


def _log2_double(t: Any) -> Any:
    bits = np.float64(t).view(np.uint64)
    n = (bits - np.uint64(0x3FE6A09E667F3BCD)) >> np.uint64(52)
    m = np.uint64(bits - (n << np.uint64(52))).view(np.float64)
    e = np.uint64(n | np.uint64(0x4330000000000000)).view(np.float64) - 4503599627370496.0
    z = (m - 1.0) / (m + 1.0)
    w = z * z
    p = 0.2136589569431927 * w + 0.2209130842311768
    p = p * w + 0.262334352504183
    p = p * w + 0.32059853491395984
    p = p * w + 0.4121985858409005
    p = p * w + 0.5770780163455203
    p = p * w + 0.9617966939259898
    p = p * w + 2.8853900817779268
    return e + z * p


_L0, _L1, _L2, _L3 = map(
    np.float32, (2.8853900798033365, 0.96179883880211, 0.5767151860190234, 0.43171769745887384)
)
_S_HALF_BITS, _S_WIDTH, _S_ZERO_BITS = map(np.uint32, (0x3F3504F3, 23, 0x4B000000))
_S_SHIFT = np.float32(8388608.0)


def _log2_single(t: Any) -> Any:
    bits = np.float32(t).view(np.uint32)
    n = np.uint32(np.uint32(bits - _S_HALF_BITS) >> _S_WIDTH)
    m = np.uint32(bits - np.uint32(n << _S_WIDTH)).view(np.float32)
    e = np.uint32(n | _S_ZERO_BITS).view(np.float32) - _S_SHIFT
    z = (m - _S_ONE) / (m + _S_ONE)
    w = z * z
    p = _L3 * w + _L2
    p = p * w + _L1
    p = p * w + _L0
    return e + z * p


@inlined
def gaussian(values: Any, numbers: Any) -> None:
    """2^(a s) of every s."""
    a = numbers[1]
    for j in range(values.shape[0]):
        values[j] = _exp2(values[j] * a)


@inlined
def laplace(values: Any, numbers: Any) -> None:
    """2^-sqrt(a s) of every s."""
    a = numbers[1]
    for j in range(values.shape[0]):
        values[j] = _exp2(-np.sqrt(values[j] * a))


@inlined
def matern(values: Any, numbers: Any) -> None:
    """(1 + b z + c z^2) 2^-z, z = sqrt(a s), of every s."""
    one, a, b, c = numbers[0], numbers[1], numbers[2], numbers[3]
    for j in range(values.shape[0]):
        z = np.sqrt(values[j] * a)
        values[j] = (one + z * (b + c * z)) * _exp2(-z)


@inlined
def inverse_multiquadric(values: Any, numbers: Any) -> None:
    """(1 + a s)^b of every s."""
    one, a, b = numbers[0], numbers[1], numbers[2]
    for j in range(values.shape[0]):
        values[j] = _exp2(_log2(one + values[j] * a) * b)


@inlined
def triangle(values: Any, numbers: Any) -> None:
    """max(0, 1 - sqrt(a s)) of every s."""
    one, a, zero = numbers[0], numbers[1], numbers[0] - numbers[0]
    for j in range(values.shape[0]):
        value = one - np.sqrt(values[j] * a)
        values[j] = value if value > zero else zero


@inlined
def epanechnikov(values: Any, numbers: Any) -> None:
    """max(0, 1 - a s) of every s."""
    one, a, zero = numbers[0], numbers[1], numbers[0] - numbers[0]
    for j in range(values.shape[0]):
        value = one - values[j] * a
        values[j] = value if value > zero else zero
