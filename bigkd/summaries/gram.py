"""The Gram matrix of few long rows, summed over their columns; and sums of such rows.

Here a *column* is a feature with a number for each sample, and summaries see columns as rows of
width ``n_samples``: `bigkd.io.columns` turns collections so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bigkd.backends import device, namespace
from bigkd.errors import DataError, EmptyInputError
from bigkd.protocols import Array, Footprint, Rows
from bigkd.summaries.moments import require_width

PANEL = 1024
"""Columns of one product. Of numbers of at most 128, the sum of so many products is a whole number
of at most ``2**24``, which float32 holds exactly."""

COPIED_ELEMENTS = 2**18
"""Elements that are copied to float64 at once."""


class ColumnGramState(NamedTuple):
    """Sums over columns; every field is an array, so it persists as it is.

    Each column is shifted by a number of its own before it is multiplied.
    """

    shifted: Array  # (n_samples, n_samples), sum of outer products of shifted columns
    cross: Array  # (n_samples,), sum of shifted columns times their shift
    square: Array  # (), sum of squares of the shifts
    columns: Array  # (), columns that were summed
    bad: Array  # (n_samples,), columns where this sample is not finite, and another one is
    absent: Array  # (n_columns,), whether the column is NaN in every sample


class Grams(NamedTuple):
    """Inner products and distances of the samples, each ``(n_samples, n_samples)``, float64."""

    gram: Array
    """Inner products."""

    centred: Array
    """Inner products of the samples less their mean."""

    squared_distances: Array
    """Squared distances, not negative."""


@dataclass(frozen=True, kw_only=True)
class ColumnGram:
    r"""Inner products of all samples, ``C = sum_j s_j^2 x_j x_j^T`` over columns ``x_j``.

    Columns are shifted by ``m_j``, about their mean over the samples, before they are multiplied:
    ``C_ab = S_ab + c_a + c_b + q`` with ``S`` the products of shifted columns, ``c = sum_j
    s_j^2 m_j (x_j - m_j)`` and ``q = sum_j s_j^2 m_j^2``. What the samples have in common then
    takes no digits from their distances, which are those of ``S``.

    Columns of 8 bits, or bool, are multiplied in float32 without any rounding, so that their Gram
    matrix is exact (up to ``2**53``). float32 columns are multiplied in float32, `PANEL` at a time,
    and the products summed in float64: about 1e-8 of the shifted squares is lost, and up to 2e-6
    where rows differ by few units in their last place. Wider columns are multiplied in float64;
    whole numbers stay whole.

    A column that is NaN in every sample is left out, and remembered. A column that is not finite
    in some samples is left out, too, and counted for each of these, unless its scale is 0: the
    answer holds only if there are none. Cost: ``n_samples**2 / 2`` multiply-adds a column.

    Attributes
    ----------
    width
        Number of samples.
    n_columns
        Number of columns of the whole collection.
    scale
        The ``s_j``, shape ``(n_columns,)``, float64; all 1 by default.
    """

    width: int
    n_columns: int
    scale: Array | None = None
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> ColumnGramState:
        """State of no columns, on the namespace and device of `like`."""
        xp, on = namespace(like), device(like)
        return ColumnGramState(
            shifted=xp.zeros((self.width, self.width), dtype=xp.float64, device=on),
            cross=xp.zeros((self.width,), dtype=xp.float64, device=on),
            square=xp.zeros((), dtype=xp.float64, device=on),
            columns=xp.zeros((), dtype=xp.int64, device=on),
            bad=xp.zeros((self.width,), dtype=xp.int64, device=on),
            absent=xp.zeros((self.n_columns,), dtype=xp.bool, device=on),
        )

    def update(self, state: ColumnGramState, rows: Rows) -> ColumnGramState:
        """State after some consecutive columns, shape ``(n, width)``, too; adds into `state`."""
        require_width(rows, self.width)
        # What is not finite is found and left out below; what overflows, in `finalize`.
        with np.errstate(over="ignore", invalid="ignore"):
            for part in _runs(rows.values.shape[0], PANEL):
                state = self._add(state, rows.values[part, :].T, rows.index[part])
        return state

    def _add(self, state: ColumnGramState, values: Array, index: Array) -> ColumnGramState:
        xp = namespace(values)
        x = _copied(values, _product_dtype(xp, values.dtype))
        shift = _shift(xp, x, values.dtype, scaled=self.scale is not None)
        if not bool(xp.isfinite(xp.sum(shift))):
            state, kept = _marked(xp, state, x, index, self._counted(xp, x, index))
            x, index = xp.take(x, kept, axis=1), xp.take(index, kept)
            shift = _mean(xp, x)
        x -= shift[None, :]
        if self.scale is not None:
            scale = xp.astype(xp.take(self._scale(xp, x), index), x.dtype)
            x *= scale[None, :]
            shift = shift * scale
        shifted = state.shifted
        shifted += x @ x.T
        return state._replace(
            shifted=shifted,
            cross=state.cross + xp.astype(x @ shift, xp.float64),
            square=state.square + xp.sum(shift * shift, dtype=xp.float64),
            columns=state.columns + x.shape[1],
        )

    def _counted(self, xp: Any, x: Array, index: Array) -> Array:
        """Which columns take part."""
        if self.scale is None:
            return xp.ones(index.shape, dtype=xp.bool, device=device(x))
        return xp.take(self._scale(xp, x), index) != 0.0

    def _scale(self, xp: Any, like: Array) -> Array:
        return xp.asarray(self.scale, device=device(like))

    def merge(self, left: ColumnGramState, right: ColumnGramState) -> ColumnGramState:
        """State of both sets of columns; exact up to float64 rounding."""
        return ColumnGramState(
            shifted=left.shifted + right.shifted,
            cross=left.cross + right.cross,
            square=left.square + right.square,
            columns=left.columns + right.columns,
            bad=left.bad + right.bad,
            absent=left.absent | right.absent,
        )

    def finalize(self, state: ColumnGramState) -> Grams:
        """Inner products and distances.

        Raises
        ------
        EmptyInputError
            If there was no column.
        DataError
            If products are too large for the type of the data.
        """
        if int(state.columns) == 0:
            raise EmptyInputError("inner products of no columns; is every feature NaN?")
        xp, shifted = namespace(state.shifted), state.shifted
        gram = shifted + state.cross[:, None] + state.cross[None, :] + state.square
        if not bool(xp.all(xp.isfinite(gram))):
            raise DataError(
                "inner products of rows overflow; divide the data by their largest number first, "
                "or pass float64."
            )
        means = xp.mean(shifted, axis=0)
        own = xp.linalg.diagonal(shifted)
        squared = own[:, None] + own[None, :] - 2.0 * shifted
        return Grams(
            gram=gram,
            centred=shifted - means[:, None] - means[None, :] + xp.mean(means),
            squared_distances=xp.where(squared > 0.0, squared, xp.zeros_like(squared)),
        )

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """A float64 matrix and a mark for each column; a product and copies of one panel."""
        panel = self.width * min(n_rows, PANEL)
        wide = 8 if itemsize == 8 else 4
        return Footprint(
            state=8 * self.width**2 + 16 * self.width + 16 + self.n_columns,
            scratch=wide * (self.width**2 + 3 * panel) + 2 * panel,
            row_cost=self.width**2 // 2 + 4 * self.width,
        )


@dataclass(frozen=True, kw_only=True)
class ColumnCombination:
    """Sums of samples, ``X^T coefficients``, from columns: a row of it from each, in float64.

    Attributes
    ----------
    coefficients
        Shape ``(n_samples, k)``, float64.
    n_columns
        Number of columns of the whole collection.
    """

    coefficients: Array
    n_columns: int
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> Array:
        """Zeros, shape ``(n_columns, k)``, on the namespace and device of `like`."""
        return _zeros(like, (self.n_columns, self.coefficients.shape[1]))

    def update(self, state: Array, rows: Rows) -> Array:
        """State after some consecutive columns, too; adds into `state`."""
        require_width(rows, self.coefficients.shape[0])
        if rows.values.shape[0] == 0:
            return state
        xp, first = namespace(rows.values), int(rows.index[0])
        coefficients = xp.asarray(self.coefficients, device=device(rows.values))
        step = max(16, COPIED_ELEMENTS // rows.values.shape[1])
        for part in _runs(rows.values.shape[0], step):
            values = _copied(rows.values[part, :].T, xp.float64)
            state[first + part.start : first + part.stop, :] += values.T @ coefficients
        return state

    def merge(self, left: Array, right: Array) -> Array:
        """Sum."""
        return left + right

    def finalize(self, state: Array) -> Array:
        """The sums, shape ``(n_columns, k)``; NaN where a column is not finite."""
        return state

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """The sums, and copies of some columns."""
        del itemsize
        width, k = self.coefficients.shape
        copied = max(16, COPIED_ELEMENTS // width)
        return Footprint(
            state=8 * self.n_columns * k,
            scratch=16 * min(n_rows, copied) * (width + k),
            row_cost=width * (k + 4),
        )


@dataclass(frozen=True, kw_only=True)
class RowCombination:
    """Sums of samples, ``X^T coefficients``, from the samples themselves, in float64.

    Attributes
    ----------
    coefficients
        Shape ``(n_rows, k)``, float64: of each row of the collection, by its number.
    taken
        Shape ``(n_rows,)``, bool: rows that take part; others may hold anything.
    n_columns
        Width of the rows.
    """

    coefficients: Array
    taken: Array
    n_columns: int
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> Array:
        """Zeros, shape ``(n_columns, k)``, on the namespace and device of `like`."""
        return _zeros(like, (self.n_columns, self.coefficients.shape[1]))

    def update(self, state: Array, rows: Rows) -> Array:
        """State after `rows`, shape ``(n, n_columns)``, too; adds into `state`."""
        require_width(rows, self.n_columns)
        xp, on = namespace(rows.values), device(rows.values)
        taken = xp.take(xp.asarray(self.taken, device=on), rows.index)
        kept = xp.nonzero(taken)[0]
        index = xp.take(rows.index, kept)
        coefficients = xp.take(xp.asarray(self.coefficients, device=on), index, axis=0)
        whole = kept.shape[0] == rows.index.shape[0]
        step = max(16, COPIED_ELEMENTS // max(1, kept.shape[0]))
        for part in _runs(self.n_columns if kept.shape[0] else 0, step):
            values = rows.values[:, part]
            values = values if whole else xp.take(values, kept, axis=0)
            state[part, :] += _copied(values, xp.float64).T @ coefficients
        return state

    def merge(self, left: Array, right: Array) -> Array:
        """Sum."""
        return left + right

    def finalize(self, state: Array) -> Array:
        """The sums, shape ``(n_columns, k)``; NaN where a row taken is not finite."""
        return state

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """The sums, and copies of some columns of a block."""
        del itemsize
        k = self.coefficients.shape[1]
        copied = max(16 * max(1, n_rows), COPIED_ELEMENTS)
        return Footprint(
            state=8 * self.n_columns * k,
            scratch=24 * copied + 16 * k * (n_rows + copied // max(1, n_rows)),
            row_cost=self.n_columns * (k + 4),
        )


def _runs(size: int, step: int) -> Iterator[slice]:
    """Slices of `step`, the last shorter, that together are ``size`` long."""
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))


def _zeros(like: Array, shape: tuple[int, ...]) -> Array:
    xp = namespace(like)
    return xp.zeros(shape, dtype=xp.float64, device=device(like))


def _copied(values: Array, dtype: Any) -> Array:
    """A copy in C order: products of other layouts have other bits."""
    if isinstance(values, np.ndarray):
        return np.array(values, dtype=dtype, order="C")
    return namespace(values).astype(values, dtype)


def _product_dtype(xp: Any, dtype: Any) -> Any:
    """float32 for what it holds exactly, else float64."""
    if xp.isdtype(dtype, "real floating"):
        return xp.float32 if xp.finfo(dtype).bits <= 32 else xp.float64
    narrow = any(xp.isdtype(dtype, small) for small in (xp.bool, xp.int8, xp.uint8))
    return xp.float32 if narrow else xp.float64


def _mean(xp: Any, x: Array) -> Array:
    """About the mean of each column of `x`: its last digits do not matter."""
    n_samples = x.shape[0]
    share = xp.full((n_samples,), 1.0 / n_samples, dtype=x.dtype, device=device(x))
    return share @ x


def _shift(xp: Any, x: Array, dtype: Any, *, scaled: bool) -> Array:
    """What columns of `dtype` are shifted by: their mean, or whole numbers, where they stay whole.

    Those bring what has 8 bits to at most 128, and other columns about 0.
    """
    if scaled or xp.isdtype(dtype, "real floating"):
        return _mean(xp, x)
    if x.dtype == xp.float32:
        middle = 128.0 if xp.isdtype(dtype, xp.uint8) else 0.0
        return xp.full((x.shape[1],), middle, dtype=x.dtype, device=device(x))
    return xp.round(_mean(xp, x))


def _marked(
    xp: Any, state: ColumnGramState, x: Array, index: Array, counted: Array
) -> tuple[ColumnGramState, Array]:
    """State with columns of `x` that are not finite noted, and the positions of the others."""
    finite = xp.isfinite(x)
    gone = xp.all(xp.isnan(x), axis=0)
    first, absent = int(index[0]), state.absent
    absent[first : first + gone.shape[0]] |= gone
    lost = xp.astype(~(finite | gone[None, :]) & counted[None, :], xp.int64)
    bad = state.bad + xp.sum(lost, axis=1)
    kept = xp.nonzero(xp.all(finite, axis=0))[0]
    return state._replace(bad=bad, absent=absent), kept
