"""Sums of a kernel over pairs of rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bigkd.backends import device, namespace
from bigkd.errors import EmptyInputError
from bigkd.kernels import Kernel
from bigkd.kernels.sums import TILE_ELEMENTS, pair_sum
from bigkd.protocols import Array, Footprint, Rows
from bigkd.summaries.embeddings import mass_of, strengths_of


class KernelSumState(NamedTuple):
    """What a tile of pairs leaves behind."""

    weight: Array  # (), sum of the products of weights: the number of pairs where there are none
    total: Array  # (), weighted sum of kernel values


@dataclass(frozen=True, kw_only=True)
class KernelSum:
    """Weighted sum of ``kernel(x_i, y_j)`` over all pairs, in float64; see `pair_sum`.

    Where rows carry vectors each value is multiplied by the inner product of the two vectors, too.
    With `wide` the kernel sees rows in float64, whatever they are.
    """

    kernel: Callable[[Array, Array], Array]
    wide: bool = False
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> KernelSumState:
        """State of no pairs, on the namespace and device of `like`."""
        xp, on = namespace(like), device(like)
        zero = xp.zeros((), dtype=xp.float64, device=on)
        return KernelSumState(weight=zero, total=zero)

    def update(
        self, state: KernelSumState, left: Rows, right: Rows, *, mirrored: bool, diagonal: bool
    ) -> KernelSumState:
        """State after the tile of `left` and `right`, too; twice if it stands for its mirror."""
        times = 2.0 if mirrored else 1.0
        one = _strengths(left)
        x, other = self._values(left), one
        y = x
        if not diagonal:
            y, other = self._values(right), _strengths(right)
        total = pair_sum(self.kernel, x, y, one, other)
        weight = _weight(left) * _weight(right)
        return KernelSumState(state.weight + times * weight, state.total + times * total)

    def _values(self, rows: Rows) -> Array:
        if not self.wide:
            return rows.values
        xp = namespace(rows.values)
        return xp.astype(rows.values, xp.float64, copy=False)

    def merge(self, left: KernelSumState, right: KernelSumState) -> KernelSumState:
        """State of both sets of pairs."""
        return KernelSumState(left.weight + right.weight, left.total + right.total)

    def finalize(self, state: KernelSumState) -> Array:
        """Weighted mean of the kernel, ``kappa / W_x W_y``.

        Raises
        ------
        EmptyInputError
            If the weights sum to zero.
        """
        if float(state.weight) == 0.0:
            raise EmptyInputError("kernel mean over pairs whose weights sum to zero.")
        return state.total / state.weight

    def footprint(self, n_left: int, n_right: int, itemsize: int) -> Footprint:
        """Some tiles of kernel values, or copies of a few rows; and the strengths of all rows."""
        del itemsize
        arrays = 12 if isinstance(self.kernel, Kernel) else 5  # Bessel functions need the most
        tile = 8 * min(n_left * n_right, TILE_ELEMENTS)
        return Footprint(state=16, scratch=arrays * tile + 64 * (n_left + n_right), row_cost=64)


def _strengths(rows: Rows) -> Array | None:
    """Weight times vector of each row; None where all are 1."""
    return rows.weights if rows.vectors is None else strengths_of(rows)


def _weight(rows: Rows) -> Array:
    """Sum of the weights."""
    xp = namespace(rows.values)
    return xp.sum(mass_of(rows))
