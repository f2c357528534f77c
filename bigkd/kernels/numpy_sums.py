"""Weighted kernel sums of NumPy rows, by compiled sweeps."""

import math
from typing import Any, NamedTuple

import numpy as np

from bigkd.kernels import fused
from bigkd.kernels._rows import tiles
from bigkd.kernels.base import RadialKernel
from bigkd.kernels.forms import (
    PRODUCT_WIDTH,
    Form,
    form_of,
    product_error,
    product_tolerance,
)

NumPy = np.ndarray[Any, Any]

_BLOCK_BYTES = 2**20
_BLOCK_ROWS = 2**14
_TILE_BYTES = 4096
_RUN = {4: 16, 8: 128}
_PRODUCT_ROWS = 512
_PRODUCT_COLUMNS = 1024
_LARGEST = {4: 2.0**50, 8: 2.0**505}
_LARGEST_EXPONENT = {4: 100, 8: 1000}
_SMALL_EXPONENT = 10


class Problem(NamedTuple):
    """Two sets of rows and a kernel, to be taken in units of about the kernel's length."""

    form: Form
    length: float
    """Length of the kernel in these units."""

    unit: float
    """What rows are multiplied by: a power of 2, so that nothing is rounded."""

    dtype: Any
    x: NumPy
    y: NumPy

    @property
    def reach(self) -> float:
        """What the elements of rows in these units stay below, so that no square overflows."""
        return _LARGEST[self.dtype.itemsize] * min(1.0, self.length)


def problem_of(kernel: object, x: NumPy, y: NumPy, dtype: Any) -> Problem | None:
    """What the sweeps take; None for another kernel, no rows, or rows that are not finite.

    In these units squared distances and what they are multiplied by stay far from the ends of the
    range of `dtype`. float32 rows further out than that are computed in float64; float64 rows more
    than 2^505 lengths away are not taken.
    """
    if form_of(kernel) is None or min(x.shape + y.shape) == 0:
        return None
    largest = float(np.maximum(_largest(x), _largest(y)))  # NaN, if one of them is
    for fitting in (np.dtype(dtype), np.dtype(np.float64)):
        problem = problem_if_near(kernel, x, y, fitting)
        if problem is not None and largest * problem.unit < problem.reach:
            return problem
    return None


def problem_if_near(kernel: object, x: NumPy, y: NumPy, dtype: Any) -> Problem | None:
    """What compiled loops take if the rows are within reach; None for another kernel."""
    form = form_of(kernel)
    if form is None or not isinstance(kernel, RadialKernel):
        return None
    exponent = math.frexp(kernel.length)[1]
    if abs(exponent) <= _SMALL_EXPONENT:
        return Problem(form, kernel.length, 1.0, dtype, x, y)
    if abs(exponent) > _LARGEST_EXPONENT[dtype.itemsize]:
        return None
    unit = math.ldexp(1.0, -exponent)
    return Problem(form, kernel.length * unit, unit, dtype, x, y)


def column_sums(problem: Problem, strengths: NumPy) -> NumPy:
    """Sum over i of ``strengths[i, c]`` times K(x_i, y_j), shape ``(c, m)``, float64."""
    y, dtype = problem.y, problem.dtype
    power = _power(strengths)
    strengths = np.ldexp(strengths, -power)
    out = np.empty((strengths.shape[1], y.shape[0]))
    for columns in tiles(y.shape[0], _block_rows(problem)):
        packed = _packed(in_units(problem, y[columns]))
        total = np.zeros((packed.shape[0], strengths.shape[1], packed.shape[2]))
        for rows in tiles(problem.x.shape[0], _block_rows(problem)):
            x, weights = in_units(problem, problem.x[rows]), strengths[rows].astype(dtype)
            missing = -x.shape[0] % fused.ROWS
            x = _filled(x, x.shape[0] + missing)
            weights = np.concatenate([weights, np.zeros((missing, weights.shape[1]), dtype)])
            part = np.zeros_like(total)  # a sum of sums errs less than one long sum
            _add(problem, x, packed, weights, part)
            total += part
        sums = total.transpose(1, 0, 2).reshape(strengths.shape[1], -1)
        out[:, columns] = sums[:, : columns.stop - columns.start]
    return np.ldexp(out, power)


def symmetric_sum(problem: Problem, strengths: NumPy) -> float:
    """Sum over all pairs of the rows `x`: those below the diagonal count twice."""
    x = problem.x
    n = x.shape[0]
    total = 0.0
    for columns in tiles(n, min(4096, max(512, 512 * math.ceil(n / 4096)))):
        right = strengths[columns].T
        square = problem._replace(x=x[columns], y=x[columns])
        total += float(np.sum(column_sums(square, strengths[columns]) * right))
        if columns.stop < n:
            below = problem._replace(x=x[columns.stop :], y=x[columns])
            sums = column_sums(below, strengths[columns.stop :])
            total += 2.0 * float(np.sum(sums * right))
    return total


def numbers_of(problem: Problem, threshold: float = 0.0) -> NumPy:
    """What a kernel of squared distances is told, and below which a product must be mended."""
    form = problem.form
    scale = form.a / problem.length / problem.length
    return np.array([1.0, scale, form.b, form.c, threshold], dtype=problem.dtype)


def _largest(x: NumPy) -> float:
    """Largest absolute value; infinite or NaN if one of them is."""
    return max(abs(float(x.max())), abs(float(x.min())))


def _block_rows(problem: Problem) -> int:
    """Rows that are cast and packed at once."""
    row = problem.x.shape[1] * int(problem.dtype.itemsize)
    fitting: int = _BLOCK_BYTES // row // fused.ROWS * fused.ROWS
    return min(_BLOCK_ROWS, max(64, fitting))


def in_units(problem: Problem, x: NumPy) -> NumPy:
    """A copy of `x` in the units and the dtype of `problem`, contiguous."""
    wide = x.dtype.itemsize > problem.dtype.itemsize  # its range may be, before it is scaled
    if wide and problem.unit != 1.0:
        return np.array(x * np.float64(problem.unit), dtype=problem.dtype, order="C")
    x = np.array(x, dtype=problem.dtype, order="C")
    if problem.unit != 1.0:
        x *= problem.dtype.type(problem.unit)
    return x


def _power(strengths: NumPy) -> int:
    """Exponent of the largest of the strengths, 0 if they are not finite."""
    largest = float(np.max(np.abs(strengths), initial=0.0))
    return math.frexp(largest)[1] if math.isfinite(largest) else 0


def _packed(y: NumPy) -> NumPy:
    """Tiles of columns that stay in cache, shape ``(n_tiles, d, width)``; the last is filled up."""
    m, d = y.shape
    widest = _PRODUCT_COLUMNS if d >= PRODUCT_WIDTH else _TILE_BYTES // y.dtype.itemsize
    n_tiles = math.ceil(m / widest)
    width = 16 * math.ceil(m / n_tiles / 16)
    filled = _filled(y, n_tiles * width).reshape(n_tiles, width, d)
    return np.ascontiguousarray(filled.transpose(0, 2, 1))


def _filled(x: NumPy, n: int) -> NumPy:
    """`x`, and its last row as often as it takes to make `n` rows."""
    missing = n - x.shape[0]
    return np.concatenate([x, np.broadcast_to(x[-1:], (missing, x.shape[1]))]) if missing else x


def _add(problem: Problem, x: NumPy, packed: NumPy, strengths: NumPy, total: NumPy) -> None:
    """Add the sums of the rows `x` and the tiles `packed` to `total`."""
    if x.shape[1] >= PRODUCT_WIDTH:
        for t in range(packed.shape[0]):
            _add_by_products(problem, x, packed[t : t + 1], strengths, total[t : t + 1])
    else:
        _swept(problem, x, packed, strengths, total)


def _add_by_products(
    problem: Problem, x: NumPy, columns: NumPy, strengths: NumPy, total: NumPy
) -> None:
    """Add the sums of `x` and one tile, from matrix products where these are accurate enough.

    Both are centred at the mean of the columns, so that the error follows the spread of the tile.
    """
    dtype = problem.dtype
    centre = columns[0].mean(axis=1, dtype=np.float64).astype(dtype)
    right = columns[0] - centre[:, None]
    norms = np.sum(right * right, axis=0)
    for part in tiles(x.shape[0], _PRODUCT_ROWS):
        left = x[part] - centre
        left_norms = np.sum(left * left, axis=1)
        threshold = _threshold(problem, float(np.max(norms)) + float(np.max(left_norms)))
        if threshold is None:
            _swept(problem, x[part], columns, strengths[part], total)
        else:
            left *= dtype.type(-2.0)
            product = left @ right, left_norms, norms
            _swept(problem, x[part], columns, strengths[part], total, threshold, product)


def _swept(
    problem: Problem,
    x: NumPy,
    packed: NumPy,
    strengths: NumPy,
    total: NumPy,
    threshold: float = 0.0,
    product: tuple[NumPy, NumPy, NumPy] | None = None,
) -> None:
    """Call the sweep."""
    dtype = problem.dtype
    if product is None:
        product = np.empty((0, 0), dtype), np.empty(0, dtype), np.empty(0, dtype)
    x, packed, strengths = (np.ascontiguousarray(part) for part in (x, packed, strengths))
    numbers, run = numbers_of(problem, threshold), _RUN[dtype.itemsize]
    problem.form.loops.sweeps[dtype](x, packed, strengths, numbers, run, total, *product)


def _threshold(problem: Problem, reach: float) -> float | None:
    """Squared distance below which those of a product must be mended; None if all must be.

    A kernel with a cusp, a function of the distance r, errs by the error of r^2 over r.
    """
    form, length, width = problem.form, problem.length, problem.x.shape[1]
    error = product_error(problem.dtype, width) * reach
    tolerance = product_tolerance(problem.dtype, width)
    if form.smooth:
        return 0.0 if form.smooth * error / length**2 <= tolerance else None
    threshold = max((error / (length * tolerance)) ** 2, 4 * error)
    return threshold if threshold < reach / 2 else None
