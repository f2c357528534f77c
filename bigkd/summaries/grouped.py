"""Second moments of random groups of rows: what sampling noise is estimated from."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bigkd.backends import device, namespace
from bigkd.protocols import Array, Footprint, Rows
from bigkd.summaries.moments import copied_rows, float_rows, product_itemsize, require_width


def group_of(index: Array, n_groups: int, *, seed: int) -> Array:
    """Group of each row, in ``0..n_groups - 1``: a hash of its row number and the seed.

    The same row falls into the same group however the rows are cut into blocks, and rows that
    stand next to each other fall into groups that have nothing to do with each other, so that
    sorted collections give honest noise (the mixing is SplitMix64's finaliser).
    """
    xp = namespace(index)
    with_seed = xp.astype(index, xp.uint64) + (
        (seed * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) % 2**64
    )
    mixed = mix(mix(with_seed))
    return xp.astype(mixed % n_groups, xp.int64)


def mix(x: Array) -> Array:
    """SplitMix64's finaliser of uint64 words."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return x ^ (x >> 31)


class GroupedMomentState(NamedTuple):
    """Sums of outer products, by group."""

    weight: Array  # (n_groups,), sum of weights
    outer: Array  # (n_groups, width, width), weighted sums of outer products


@dataclass(frozen=True, kw_only=True)
class GroupedSecondMoment:
    """Uncentred covariance of each of `n_groups` random groups of rows.

    Cost: ``width**2 / 2`` multiply-adds a row, and `n_groups` matrices of memory.
    """

    width: int
    n_groups: int
    seed: int
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> GroupedMomentState:
        """State of no rows, on the namespace and device of `like`."""
        xp, on = namespace(like), device(like)
        shape = (self.n_groups, self.width, self.width)
        return GroupedMomentState(
            weight=xp.zeros((self.n_groups,), dtype=xp.float64, device=on),
            outer=xp.zeros(shape, dtype=xp.float64, device=on),
        )

    def update(self, state: GroupedMomentState, rows: Rows) -> GroupedMomentState:
        """State after `rows`, shape ``(n, width)``, too; adds into the memory of `state`."""
        require_width(rows, self.width)
        xp = namespace(rows.values)
        group = group_of(rows.index, self.n_groups, seed=self.seed)
        order = xp.argsort(group, stable=True)
        numbers = xp.arange(self.n_groups, device=device(group))
        ends = xp.searchsorted(xp.take(group, order), numbers, side="right")
        step, start = copied_rows(self.width), 0
        for at in range(self.n_groups):
            stop = int(ends[at])
            for first in range(start, stop, step):
                self._add(state, at, rows, order[first : min(first + step, stop)])
            start = stop
        return state

    def _add(self, state: GroupedMomentState, group: int, rows: Rows, members: Array) -> None:
        """Add the rows at the positions `members` to one group."""
        xp = namespace(rows.values)
        values = float_rows(Rows(xp.take(rows.values, members, axis=0), members))
        scaled, weight = values, float(members.shape[0])
        if rows.weights is not None:
            weights = xp.take(rows.weights, members)
            scaled = values * xp.astype(weights, values.dtype)[:, None]
            weight = xp.sum(weights, dtype=xp.float64)
        state.weight[group] += weight
        state.outer[group, ...] += scaled.T @ values

    def merge(self, left: GroupedMomentState, right: GroupedMomentState) -> GroupedMomentState:
        """State of both sets of rows; exact up to float64 rounding."""
        return GroupedMomentState(left.weight + right.weight, left.outer + right.outer)

    def finalize(self, state: GroupedMomentState) -> GroupedMomentState:
        """Weights and sums as they are: groups may be empty."""
        return state

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """Every group's matrix, one product, copies of some rows, and the order of all."""
        copied = 3 * self.width * min(n_rows, copied_rows(self.width))
        return Footprint(
            state=8 * self.n_groups * (self.width**2 + 1),
            scratch=40 * n_rows + product_itemsize(itemsize) * (self.width**2 + copied),
            row_cost=self.width**2 // 2,
        )
