"""Second moments of rows weighted by a kernel between them."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from bigkd.backends import compute_dtype, device, namespace
from bigkd.kernels import Kernel, RadialKernel
from bigkd.protocols import Array, Footprint, Rows

_TILE_ROWS = 2048


class PairMomentState(NamedTuple):
    """Sums over pairs of rows."""

    count: Array  # (), rows seen, each once
    outer: Array  # (width, width), sum of x_i x_j^T H(x_i, x_j)


@dataclass(frozen=True, kw_only=True)
class PairMoment:
    r"""Sum :math:`\sum_{ij} x_i x_j^T H(x_i, x_j)` over all pairs of rows.

    Products are in the precision of the rows, each over one tile and so of bounded length, and are
    added to float64 totals. Cost: about ``2 * width`` multiply-adds a pair.
    """

    width: int
    kernel: Kernel
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> PairMomentState:
        """State of no pairs, on the namespace and device of `like`."""
        xp, on = namespace(like), device(like)
        return PairMomentState(
            count=xp.zeros((), dtype=xp.int64, device=on),
            outer=xp.zeros((self.width, self.width), dtype=xp.float64, device=on),
        )

    def update(
        self, state: PairMomentState, left: Rows, right: Rows, *, mirrored: bool, diagonal: bool
    ) -> PairMomentState:
        """State after every pair of `left` and `right`, too; adds into the memory of `state`."""
        xp = namespace(left.values)
        one, other = (
            xp.astype(rows.values, compute_dtype(xp, rows.values.dtype), copy=False)
            for rows in (left, right)
        )
        count, outer = state
        for start in range(0, one.shape[0], _TILE_ROWS):
            some = one[start : start + _TILE_ROWS, :]
            weighted = xp.zeros_like(some)
            for first in range(0, other.shape[0], _TILE_ROWS):
                across = other[first : first + _TILE_ROWS, :]
                weighted += without_subnormals(self.kernel, some, across) @ across
            product = some.T @ weighted
            outer += product
            if mirrored:
                outer += product.T
        return PairMomentState(count + (one.shape[0] if diagonal else 0), outer)

    def merge(self, left: PairMomentState, right: PairMomentState) -> PairMomentState:
        """State of both sets of pairs."""
        return PairMomentState(left.count + right.count, left.outer + right.outer)

    def finalize(self, state: PairMomentState) -> Array:
        """Mean over pairs, shape ``(width, width)``."""
        return state.outer / max(1, int(state.count)) ** 2

    def footprint(self, n_left: int, n_right: int, itemsize: int) -> Footprint:
        """A float64 matrix, one product, and a tile of kernel values with copies of its rows."""
        one, other = min(n_left, _TILE_ROWS), min(n_right, _TILE_ROWS)
        itemsize = 4 if itemsize <= 4 else 8
        tile = 4 * one * other + 3 * (one + other) * self.width + (n_left + n_right) * self.width
        return Footprint(
            state=8 * self.width**2 + 8,
            scratch=itemsize * (self.width**2 + tile),
            row_cost=2 * self.width + self.width**2 // max(1, min(n_right, 8 * _TILE_ROWS)),
        )


def without_subnormals(kernel: Kernel, x: Array, y: Array) -> Any:
    """Kernel values, with 0 for those so small that products with them are slow."""
    values = kernel(x, y)
    if not isinstance(kernel, RadialKernel):
        return values
    xp = namespace(values)
    least = float(xp.finfo(values.dtype).smallest_normal) * 1e6
    return xp.where(values < least, xp.zeros((), dtype=values.dtype), values)
