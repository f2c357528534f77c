"""Sums of a kernel over pairs of rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bigkd.backends import device, namespace
from bigkd.errors import EmptyInputError
from bigkd.protocols import Array, Footprint, Rows


class KernelSumState(NamedTuple):
    """What a tile of pairs leaves behind."""

    weight: Array  # (), sum of the products of weights: the number of pairs where there are none
    total: Array  # (), weighted sum of kernel values


@dataclass(frozen=True, kw_only=True)
class KernelSum:
    """Weighted sum of ``kernel(x_i, y_j)`` over all pairs, in float64."""

    kernel: Callable[[Array, Array], Array]
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
        del diagonal
        xp = namespace(left.values)
        values = self.kernel(left.values, right.values)
        if not xp.isdtype(values.dtype, "real floating"):
            values = xp.astype(values, xp.float64)
        times = 2.0 if mirrored else 1.0
        one, other = _weights(left), _weights(right)
        if right.weights is not None:
            values = values * xp.astype(other, values.dtype)[None, :]
        by_row = xp.sum(values, axis=1, dtype=xp.float64)
        total = xp.sum(one * by_row)
        return KernelSumState(
            state.weight + times * xp.sum(one) * xp.sum(other), state.total + times * total
        )

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
        """Two tiles of kernel values."""
        return Footprint(state=16, scratch=2 * n_left * n_right * max(4, itemsize), row_cost=64)


def _weights(rows: Rows) -> Array:
    xp = namespace(rows.values)
    if rows.weights is None:
        on = device(rows.values)
        return xp.ones((rows.values.shape[0],), dtype=xp.float64, device=on)
    return xp.astype(rows.weights, xp.float64)
