"""Second moments of rows weighted by a kernel between them."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bigkd.backends import compute_dtype, device, namespace
from bigkd.kernels import Kernel, RadialKernel
from bigkd.kernels._rows import tiles, without_subnormals
from bigkd.protocols import Array, Footprint, Rows
from bigkd.summaries.embeddings import mass_of

_TILE_ROWS = 2048


class PairMomentState(NamedTuple):
    """Sums over pairs of rows."""

    count: Array  # (), rows seen, each once
    weight: Array  # (), sum of their weights: the count where rows carry none
    outer: Array  # (width, width), weighted sum of x_i x_j^T H(x_i, x_j)


@dataclass(frozen=True, kw_only=True)
class PairMoment:
    r"""Sum :math:`\sum_{ij} \mu_i \mu_j x_i x_j^T H(x_i, x_j)` over all pairs of weighted rows.

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
            weight=xp.zeros((), dtype=xp.float64, device=on),
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
        count, weight, outer = state
        weighted_one, weighted_other = _weighted(one, left), _weighted(other, right)
        for part in tiles(one.shape[0], _TILE_ROWS):
            sums = xp.zeros_like(one[part, :])
            for across in tiles(other.shape[0], _TILE_ROWS):
                values = self.kernel(one[part, :], other[across, :])
                if isinstance(self.kernel, RadialKernel):
                    values = without_subnormals(values)
                sums += values @ weighted_other[across, :]
            product = weighted_one[part, :].T @ sums
            outer += product
            if mirrored:
                outer += product.T
        if diagonal:
            count = count + one.shape[0]
            weight = weight + xp.sum(mass_of(left))
        return PairMomentState(count, weight, outer)

    def merge(self, left: PairMomentState, right: PairMomentState) -> PairMomentState:
        """State of both sets of pairs."""
        return PairMomentState(*(one + other for one, other in zip(left, right, strict=True)))

    def finalize(self, state: PairMomentState) -> Array:
        """Mean over pairs, shape ``(width, width)``."""
        return state.outer / float(state.weight) ** 2

    def footprint(self, n_left: int, n_right: int, itemsize: int) -> Footprint:
        """A float64 matrix, one product, and a tile of kernel values with copies of its rows."""
        one, other = min(n_left, _TILE_ROWS), min(n_right, _TILE_ROWS)
        itemsize = 4 if itemsize <= 4 else 8
        rows = 3 * (one + other) + 2 * (n_left + n_right)
        return Footprint(
            state=8 * self.width**2 + 16,
            scratch=itemsize * (self.width**2 + 4 * one * other + rows * self.width),
            row_cost=2 * self.width + self.width**2 // max(1, min(n_right, 8 * _TILE_ROWS)),
        )


def _weighted(values: Array, rows: Rows) -> Array:
    if rows.weights is None:
        return values
    return values * namespace(values).astype(rows.weights, values.dtype)[:, None]
