"""Compiled sweeps: kernel values of pairs of rows, weighted and added up as they come.

A sweep takes four rows at a time past a tile of columns that stays in the first-level cache: their
squared distances, then the kernel of them, then the weighted sum, each in a loop that vectorises.
That takes arrays whose last axis is contiguous, loops over whole arrays, and an exponential of our
own, since Numba's calls the C library once for each element. Only the contraction of a product and
a sum into one operation is left to the compiler; nothing is reordered, so the bits depend on the
machine and the rows alone.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numba import njit
from numba.extending import overload, register_jitable

Compiled = TypeVar("Compiled", bound=Callable[..., Any])
Sweep = Callable[..., None]
Sweeps = Mapping[Any, Sweep]
"""Sweep of each dtype."""

ROWS = 4
"""Rows at a time; a sweep takes a multiple of it."""


def _compiled(function: Compiled, *, cache: bool = False) -> Compiled:
    """Numba's `function`, without the interpreter lock."""
    options: dict[str, Any] = {"cache": cache, "nogil": True, "error_model": "numpy"}
    compiled: Compiled = njit(fastmath={"contract"}, **options)(function)
    return compiled


def _inlined(function: Compiled) -> Compiled:
    """`function`, for compiled functions to call."""
    inlined: Compiled = register_jitable(function)
    return inlined


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


@_inlined
def _gaussian(tile: Any, numbers: Any) -> None:
    """2^(a s) of every s."""
    a = numbers[1]
    for r in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            tile[r, j] = _exp2(tile[r, j] * a)


@_inlined
def _matern(tile: Any, numbers: Any) -> None:
    """(1 + b z + c z^2) 2^-z, z = sqrt(a s), of every s."""
    one, a, b, c = numbers[0], numbers[1], numbers[2], numbers[3]
    for r in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            z = np.sqrt(tile[r, j] * a)
            tile[r, j] = (one + z * (b + c * z)) * _exp2(-z)


@_inlined
def _inverse_multiquadric(tile: Any, numbers: Any) -> None:
    """(1 + a s)^b of every s."""
    one, a, b = numbers[0], numbers[1], numbers[2]
    for r in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            tile[r, j] = _exp2(_log2(one + tile[r, j] * a) * b)


@_inlined
def _triangle(tile: Any, numbers: Any) -> None:
    """max(0, 1 - sqrt(a s)) of every s."""
    one, a, zero = numbers[0], numbers[1], numbers[0] - numbers[0]
    for r in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            value = one - np.sqrt(tile[r, j] * a)
            tile[r, j] = value if value > zero else zero


@_inlined
def _epanechnikov(tile: Any, numbers: Any) -> None:
    """max(0, 1 - a s) of every s."""
    one, a, zero = numbers[0], numbers[1], numbers[0] - numbers[0]
    for r in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            value = one - tile[r, j] * a
            tile[r, j] = value if value > zero else zero


@_compiled
def _start(x: Any, i: int, y: Any, t: int, out: Any, r: int, n: int) -> None:
    """Squared differences of the first `n` coordinates, 1 to 4, of row `i` and tile `t`."""
    size = out.shape[1]
    if n == 1:
        a = x[i, 0]
        for j in range(size):
            e = y[t, 0, j] - a
            out[r, j] = e * e
    elif n == 2:
        a, b = x[i, 0], x[i, 1]
        for j in range(size):
            e, f = y[t, 0, j] - a, y[t, 1, j] - b
            out[r, j] = e * e + f * f
    elif n == 3:
        a, b, c = x[i, 0], x[i, 1], x[i, 2]
        for j in range(size):
            e, f, g = y[t, 0, j] - a, y[t, 1, j] - b, y[t, 2, j] - c
            out[r, j] = e * e + (f * f + g * g)
    else:
        a, b, c, d = x[i, 0], x[i, 1], x[i, 2], x[i, 3]
        for j in range(size):
            e, f, g, h = y[t, 0, j] - a, y[t, 1, j] - b, y[t, 2, j] - c, y[t, 3, j] - d
            out[r, j] = (e * e + f * f) + (g * g + h * h)


@_compiled
def _add_four(x: Any, i: int, y: Any, t: int, out: Any, r: int, k: int) -> None:
    """Add the squared differences of four coordinates from `k` on."""
    a, b, c, d = x[i, k], x[i, k + 1], x[i, k + 2], x[i, k + 3]
    for j in range(out.shape[1]):
        e, f = y[t, k, j] - a, y[t, k + 1, j] - b
        g, h = y[t, k + 2, j] - c, y[t, k + 3, j] - d
        out[r, j] += (e * e + f * f) + (g * g + h * h)


@_compiled
def _add_eight(x: Any, i: int, y: Any, t: int, out: Any, r: int, k: int) -> None:
    """Add the squared differences of eight coordinates from `k` on."""
    a, b, c, d = x[i, k], x[i, k + 1], x[i, k + 2], x[i, k + 3]
    a2, b2, c2, d2 = x[i, k + 4], x[i, k + 5], x[i, k + 6], x[i, k + 7]
    for j in range(out.shape[1]):
        e, f = y[t, k, j] - a, y[t, k + 1, j] - b
        g, h = y[t, k + 2, j] - c, y[t, k + 3, j] - d
        first = (e * e + f * f) + (g * g + h * h)
        e, f = y[t, k + 4, j] - a2, y[t, k + 5, j] - b2
        g, h = y[t, k + 6, j] - c2, y[t, k + 7, j] - d2
        out[r, j] += first + ((e * e + f * f) + (g * g + h * h))


@_compiled
def _by_differences(x: Any, i: int, y: Any, t: int, out: Any) -> None:
    """Squared distances of the rows from `i` on and the columns of tile `t`."""
    d = x.shape[1]
    k = (d - 1) % 4 + 1
    for r in range(out.shape[0]):
        _start(x, i + r, y, t, out, r, k)
    if (d - k) % 8:
        for r in range(out.shape[0]):
            _add_four(x, i + r, y, t, out, r, k)
        k += 4
    while k < d:
        for r in range(out.shape[0]):
            _add_eight(x, i + r, y, t, out, r, k)
        k += 8


@_compiled
def _by_product(product: Any, x_norms: Any, i: int, y_norms: Any, out: Any) -> None:
    """Squared distances from ``-2 x.y``, ``x.x`` and ``y.y``, not below 0."""
    for r in range(out.shape[0]):
        norm = x_norms[i + r]
        zero = norm - norm
        for j in range(out.shape[1]):
            value = (product[i + r, j] + norm) + y_norms[j]
            out[r, j] = value if value > zero else zero


@_compiled
def _below(squared: Any, threshold: Any) -> int:
    """How many are below `threshold`."""
    count = 0
    for r in range(squared.shape[0]):
        for j in range(squared.shape[1]):
            count += int(squared[r, j] < threshold)
    return count


@_compiled
def _mend(x: Any, i: int, y: Any, t: int, out: Any, threshold: Any) -> None:
    """Compute again, one by one, what is below `threshold`."""
    for r in range(out.shape[0]):
        for j in range(out.shape[1]):
            if out[r, j] < threshold:
                value = threshold - threshold
                for k in range(x.shape[1]):
                    value += (x[i + r, k] - y[t, k, j]) ** 2
                out[r, j] = value


@_compiled
def _distances(
    x: Any, i: int, y: Any, t: int, out: Any, product: Any, x_norms: Any, y_norms: Any, least: Any
) -> None:
    """Squared distances of the rows from `i` on and the columns of tile `t`.

    From the product, if there is one; but those below `least` have lost their digits.
    """
    if not product.size:
        _by_differences(x, i, y, t, out)
        return
    _by_product(product, x_norms, i, y_norms, out)
    lost = _below(out, least) if least > 0 else 0
    if lost * 32 > out.size:
        _by_differences(x, i, y, t, out)
    elif lost:
        _mend(x, i, y, t, out, least)


@_compiled
def _weigh(values: Any, strengths: Any, i: int, out: Any) -> None:
    """Add strength times value of the four rows from `i` on to every column of every vector."""
    for c in range(out.shape[0]):
        w0, w1 = strengths[i, c], strengths[i + 1, c]
        w2, w3 = strengths[i + 2, c], strengths[i + 3, c]
        for j in range(out.shape[1]):
            first = w0 * values[0, j] + w1 * values[1, j]
            out[c, j] += first + (w2 * values[2, j] + w3 * values[3, j])


@_compiled
def _flush(partial: Any, total: Any, t: int) -> None:
    """Add `partial` to `total` and empty it."""
    for c in range(partial.shape[0]):
        for j in range(partial.shape[1]):
            total[t, c, j] += partial[c, j]
            partial[c, j] = 0


def _sweep(values: Callable[..., Any], dtype: str) -> Sweep:
    """Sweep of the kernel that `values` turns squared distances into, for one dtype.

    Only the sweep is kept on disk, with what it calls, under a name of its own and for one
    signature: Numba numbers the variants of one name, and processes that compile different ones at
    the same time would overwrite each other's. `values` is a plain function, not a compiled one,
    which would be another in every process and never be found again.
    """

    def sweep(
        x: Any,
        y: Any,
        strengths: Any,
        numbers: Any,
        run: int,
        total: Any,
        product: Any,
        x_norms: Any,
        y_norms: Any,
    ) -> None:
        tile = np.empty((ROWS, y.shape[2]), x.dtype)
        partial = np.zeros((strengths.shape[1], y.shape[2]), x.dtype)
        for t in range(y.shape[0]):
            for i in range(0, x.shape[0], ROWS):
                _distances(x, i, y, t, tile, product, x_norms, y_norms, numbers[4])
                values(tile, numbers)
                _weigh(tile, strengths, i, partial)
                if i + ROWS == x.shape[0] or (i + ROWS) % run == 0:
                    _flush(partial, total, t)

    sweep.__name__ = sweep.__qualname__ = f"sweep{values.__name__}_{dtype}"
    return _compiled(sweep, cache=True)


def _sweeps(values: Callable[..., Any]) -> Sweeps:
    return {np.dtype(name): _sweep(values, name) for name in ("float32", "float64")}


gaussian = _sweeps(_gaussian)
matern = _sweeps(_matern)
inverse_multiquadric = _sweeps(_inverse_multiquadric)
triangle = _sweeps(_triangle)
epanechnikov = _sweeps(_epanechnikov)
