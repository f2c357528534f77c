"""Sums of rows and of their outer products, in float64."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bigkd.backends import device, namespace
from bigkd.errors import EmptyInputError, ShapeError
from bigkd.protocols import Array, Footprint, Rows
from bigkd.summaries.compose import MOST_TILE_ROWS, tiles


def require_width(rows: Rows, width: int) -> None:
    """Raise ShapeError unless `rows` are two-dimensional and `width` wide."""
    if rows.values.ndim != 2 or rows.values.shape[1] != width:
        raise ShapeError(f"expected rows of width {width}; got {tuple(rows.values.shape)}.")


def float_rows(rows: Rows) -> Array:
    """Values as float32 or float64; integers become float64, so that sums of them are exact."""
    xp = namespace(rows.values)
    if not xp.isdtype(rows.values.dtype, "real floating"):
        return xp.astype(rows.values, xp.float64)
    if xp.finfo(rows.values.dtype).bits < 32:  # products of float16 overflow
        return xp.astype(rows.values, xp.float32)
    return rows.values


def is_copied(rows: Rows) -> bool:
    """Whether an update makes copies of `rows`, to cast or to weigh them."""
    xp = namespace(rows.values)
    wide = any(xp.isdtype(rows.values.dtype, dtype) for dtype in (xp.float32, xp.float64))
    return rows.weights is not None or not wide


def product_itemsize(itemsize: int) -> int:
    """Bytes of an element of products of rows: narrow integers become float64."""
    return itemsize if itemsize == 4 else 8


def copied_rows(width: int) -> int:
    """Rows to copy at once, so that two copies are no larger than one product of theirs."""
    return max(512, width // 2)


class MeanState(NamedTuple):
    """Sums over rows; every field is an array, so it persists as it is."""

    count: Array  # (), rows seen
    weight: Array  # (), sum of weights: the count where rows carry none
    total: Array  # (width,), weighted sum of rows


@dataclass(frozen=True, kw_only=True)
class Mean:
    """Weighted mean of rows: of features, the mean embedding."""

    width: int
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> MeanState:
        """State of no rows, on the namespace and device of `like`."""
        xp, on = namespace(like), device(like)
        return MeanState(
            count=xp.zeros((), dtype=xp.int64, device=on),
            weight=xp.zeros((), dtype=xp.float64, device=on),
            total=xp.zeros((self.width,), dtype=xp.float64, device=on),
        )

    def update(self, state: MeanState, rows: Rows) -> MeanState:
        """State after `rows`, shape ``(n, width)``, too."""
        require_width(rows, self.width)
        xp = namespace(rows.values)
        n_rows = rows.values.shape[0]
        count, weight, total = state
        for tile in tiles(rows, self._copied_rows() if is_copied(rows) else max(1, n_rows)):
            if tile.weights is None:
                total = total + xp.sum(float_rows(tile), axis=0, dtype=xp.float64)
                weight = weight + float(tile.values.shape[0])
            else:
                weights = xp.astype(tile.weights, xp.float64)
                total = total + weights @ xp.astype(tile.values, xp.float64)
                weight = weight + xp.sum(weights)
        return MeanState(count + n_rows, weight, total)

    def merge(self, left: MeanState, right: MeanState) -> MeanState:
        """State of both sets of rows; exact up to float64 rounding."""
        return MeanState(*(one + other for one, other in zip(left, right, strict=True)))

    def finalize(self, state: MeanState) -> Array:
        """Mean row, shape ``(width,)``.

        Raises
        ------
        EmptyInputError
            If the weights sum to zero.
        """
        if float(state.weight) == 0.0:
            raise EmptyInputError("mean of rows whose weights sum to zero; was every row dropped?")
        return state.total / state.weight

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """A few rows."""
        del itemsize
        copied = 8 * self.width * min(n_rows, self._copied_rows())
        return Footprint(
            state=8 * (self.width + 2), scratch=24 * self.width + copied, row_cost=self.width
        )

    def _copied_rows(self) -> int:
        return max(16, 65_536 // max(1, self.width))


class SecondMomentState(NamedTuple):
    """Sums of outer products."""

    weight: Array  # (), sum of weights: the number of rows where they carry none
    outer: Array  # (width, width), weighted sum of outer products


@dataclass(frozen=True, kw_only=True)
class SecondMoment:
    """Uncentred covariance of rows.

    Symmetric products in the precision of the rows, each over one tile and so of bounded length,
    are added to a float64 total. Cost: ``width**2 / 2`` multiply-adds a row.
    """

    width: int
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> SecondMomentState:
        """State of no rows, on the namespace and device of `like`."""
        xp, on = namespace(like), device(like)
        return SecondMomentState(
            weight=xp.zeros((), dtype=xp.float64, device=on),
            outer=xp.zeros((self.width, self.width), dtype=xp.float64, device=on),
        )

    def update(self, state: SecondMomentState, rows: Rows) -> SecondMomentState:
        """State after `rows`, shape ``(n, width)``, too; adds into the memory of `state`."""
        require_width(rows, self.width)
        xp = namespace(rows.values)
        weight, outer = state
        for tile in tiles(rows, copied_rows(self.width) if is_copied(rows) else MOST_TILE_ROWS):
            values = float_rows(tile)
            if tile.weights is None:
                outer += values.T @ values
                weight = weight + float(values.shape[0])
            else:
                own = xp.astype(tile.weights, values.dtype)
                outer += (values * own[:, None]).T @ values
                weight = weight + xp.sum(tile.weights, dtype=xp.float64)
        return SecondMomentState(weight, outer)

    def merge(self, left: SecondMomentState, right: SecondMomentState) -> SecondMomentState:
        """State of both sets of rows; exact up to float64 rounding."""
        return SecondMomentState(left.weight + right.weight, left.outer + right.outer)

    def finalize(self, state: SecondMomentState) -> Array:
        """Mean outer product, shape ``(width, width)``.

        Raises
        ------
        EmptyInputError
            If the weights sum to zero.
        """
        if float(state.weight) == 0.0:
            raise EmptyInputError("second moment of rows whose weights sum to zero.")
        return state.outer / state.weight

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """A float64 matrix, one product in the precision of the rows, and copies of some rows."""
        copied = 2 * self.width * min(n_rows, copied_rows(self.width))
        return Footprint(
            state=8 * self.width**2 + 8,
            scratch=product_itemsize(itemsize) * (self.width**2 + copied),
            row_cost=self.width**2 // 2,
        )
