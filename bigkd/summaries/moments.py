"""Sums of rows and of their outer products, in float64."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bigkd.backends import device, namespace
from bigkd.errors import EmptyInputError, ShapeError
from bigkd.protocols import Array, Footprint, Rows


def require_width(rows: Rows, width: int) -> None:
    """Raise ShapeError unless `rows` are two-dimensional and `width` wide."""
    if rows.values.ndim != 2 or rows.values.shape[1] != width:
        raise ShapeError(f"expected rows of width {width}; got {tuple(rows.values.shape)}.")


def float_rows(rows: Rows) -> Array:
    """Values as floating point; integers become float64, so that sums of them are exact."""
    xp = namespace(rows.values)
    if xp.isdtype(rows.values.dtype, "real floating"):
        return rows.values
    return xp.astype(rows.values, xp.float64)


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
        values = float_rows(rows)
        if rows.weights is None:
            added = xp.sum(values, axis=0, dtype=xp.float64)
            weight = state.weight + float(values.shape[0])
        else:
            weights = xp.astype(rows.weights, xp.float64)
            added = weights @ xp.astype(values, xp.float64)
            weight = state.weight + xp.sum(weights)
        return MeanState(state.count + values.shape[0], weight, state.total + added)

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
        """One row."""
        del n_rows, itemsize
        return Footprint(state=8 * (self.width + 2), scratch=16 * self.width, row_cost=self.width)


class SecondMomentState(NamedTuple):
    """Sums of outer products."""

    weight: Array  # (), sum of weights: the number of rows where they carry none
    outer: Array  # (width, width), weighted sum of outer products


@dataclass(frozen=True, kw_only=True)
class SecondMoment:
    """Uncentred covariance of rows.

    Each update is one symmetric product in the precision of the rows, over one tile and so of
    bounded length, added to a float64 total. Cost: ``width**2 / 2`` multiply-adds a row.
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
        values = float_rows(rows)
        outer = state.outer
        if rows.weights is None:
            outer += values.T @ values
            return SecondMomentState(state.weight + float(values.shape[0]), outer)
        weights = xp.astype(rows.weights, values.dtype)
        outer += (values * weights[:, None]).T @ values
        return SecondMomentState(state.weight + xp.sum(weights, dtype=xp.float64), outer)

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
        """A float64 matrix, and one product in the precision of the rows."""
        del n_rows
        return Footprint(
            state=8 * self.width**2 + 8,
            scratch=itemsize * self.width**2,
            row_cost=self.width**2 // 2,
        )
