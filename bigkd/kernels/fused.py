"""Compiled loops over pairs of rows: kernel values as they are, or weighted and added up.

A loop takes a few rows at a time past a tile of columns that stays in the first-level cache: their
squared distances, then the kernel of them, then what is done with the values, each in a loop that
vectorises. That takes arrays whose last axis is contiguous. Nothing is reordered, so the bits
depend on the machine and the rows alone.
"""

import inspect
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from bigkd.kernels import pointwise
from bigkd.kernels.pointwise import compiled

Sweep = Callable[..., None]
Fill = Callable[..., bool]

ROWS = 4
"""Rows at a time; a sweep takes a multiple of it."""

_FILLED = 4096
"""About how many values a fill computes at a time."""

_STAMP = f"{zlib.crc32(inspect.getsource(pointwise).encode()):08x}"
"""Part of the names on disk, since Numba looks for changes in this file only."""


class Loops(NamedTuple):
    """What is compiled for one kernel."""

    sweeps: Mapping[Any, Sweep]
    """Weighted sums, for each dtype."""

    fills: Mapping[Any, Fill]
    """Values, for each dtype."""


@compiled
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


@compiled
def _add_four(x: Any, i: int, y: Any, t: int, out: Any, r: int, k: int) -> None:
    """Add the squared differences of four coordinates from `k` on."""
    a, b, c, d = x[i, k], x[i, k + 1], x[i, k + 2], x[i, k + 3]
    for j in range(out.shape[1]):
        e, f = y[t, k, j] - a, y[t, k + 1, j] - b
        g, h = y[t, k + 2, j] - c, y[t, k + 3, j] - d
        out[r, j] += (e * e + f * f) + (g * g + h * h)


@compiled
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


@compiled
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


@compiled
def _by_product(product: Any, x_norms: Any, i: int, y_norms: Any, out: Any) -> None:
    """Squared distances from ``-2 x.y``, ``x.x`` and ``y.y``, not below 0."""
    for r in range(out.shape[0]):
        norm = x_norms[i + r]
        zero = norm - norm
        for j in range(out.shape[1]):
            value = (product[i + r, j] + norm) + y_norms[j]
            out[r, j] = value if value > zero else zero


@compiled
def _below(squared: Any, threshold: Any) -> int:
    """How many are below `threshold`."""
    count = 0
    for r in range(squared.shape[0]):
        for j in range(squared.shape[1]):
            count += int(squared[r, j] < threshold)
    return count


@compiled
def _mend(x: Any, i: int, y: Any, t: int, out: Any, threshold: Any) -> None:
    """Compute again, one by one, what is below `threshold`."""
    for r in range(out.shape[0]):
        for j in range(out.shape[1]):
            if out[r, j] < threshold:
                value = threshold - threshold
                for k in range(x.shape[1]):
                    value += (x[i + r, k] - y[t, k, j]) ** 2
                out[r, j] = value


@compiled
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


@compiled
def _weigh(values: Any, strengths: Any, i: int, out: Any) -> None:
    """Add strength times value of the four rows from `i` on to every column of every vector."""
    for c in range(out.shape[0]):
        w0, w1 = strengths[i, c], strengths[i + 1, c]
        w2, w3 = strengths[i + 2, c], strengths[i + 3, c]
        for j in range(out.shape[1]):
            first = w0 * values[0, j] + w1 * values[1, j]
            out[c, j] += first + (w2 * values[2, j] + w3 * values[3, j])


@compiled
def _flush(partial: Any, total: Any, t: int) -> None:
    """Add `partial` to `total` and empty it."""
    for c in range(partial.shape[0]):
        for j in range(partial.shape[1]):
            total[t, c, j] += partial[c, j]
            partial[c, j] = 0


@compiled
def _within(x: Any, reach: Any) -> bool:
    """Whether all elements are smaller than `reach`, and none is NaN."""
    outside = 0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            outside += int(not abs(x[i, k]) < reach)
    return outside == 0


def _kept(function: Callable[..., Any], kind: str, values: Callable[..., Any], dtype: str) -> Any:
    """`function` compiled and kept on disk with what it calls, for one kernel and one dtype.

    Under a name of its own and for one signature: Numba numbers the variants of one name, and
    processes that compile different ones at the same time would overwrite each other's. `values` is
    a plain function, not a compiled one, which would be another in every process and never be found
    again.
    """
    name = f"{kind}_{values.__name__}_{dtype}_{_STAMP}"
    function.__name__ = function.__qualname__ = name
    return compiled(function, cache=True)


def _sweep(values: Callable[..., Any], dtype: str) -> Sweep:
    """Weighted sums of the kernel that `values` turns squared distances into, for one dtype."""

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
        flat = np.empty(ROWS * y.shape[2], x.dtype)
        tile = flat.reshape(ROWS, y.shape[2])
        partial = np.zeros((strengths.shape[1], y.shape[2]), x.dtype)
        for t in range(y.shape[0]):
            for i in range(0, x.shape[0], ROWS):
                _distances(x, i, y, t, tile, product, x_norms, y_norms, numbers[4])
                values(flat, numbers)
                _weigh(tile, strengths, i, partial)
                if i + ROWS == x.shape[0] or (i + ROWS) % run == 0:
                    _flush(partial, total, t)

    made: Sweep = _kept(sweep, "sweep", values, dtype)
    return made


def _fill(values: Callable[..., Any], dtype: str) -> Fill:
    """Values, in `out`, of the kernel that `values` turns squared distances into, for one dtype.

    False, and nothing in `out`, unless all rows of `x` are within reach. All columns are one tile.
    """

    def fill(x: Any, y: Any, reach: Any, numbers: Any, out: Any) -> bool:
        if not _within(x, reach):
            return False
        n, m = out.shape
        flat = out.reshape(n * m)
        rows = max(1, _FILLED // m)
        for i in range(0, n, rows):
            _by_differences(x, i, y, 0, out[i : i + rows])
            values(flat[i * m : (i + rows) * m], numbers)
        return True

    made: Fill = _kept(fill, "fill", values, dtype)
    return made


def _loops(values: Callable[..., Any]) -> Loops:
    names = ("float32", "float64")
    return Loops(
        sweeps={np.dtype(name): _sweep(values, name) for name in names},
        fills={np.dtype(name): _fill(values, name) for name in names},
    )


gaussian = _loops(pointwise.gaussian)
laplace = _loops(pointwise.laplace)
matern = _loops(pointwise.matern)
inverse_multiquadric = _loops(pointwise.inverse_multiquadric)
triangle = _loops(pointwise.triangle)
epanechnikov = _loops(pointwise.epanechnikov)
