"""A random sample of rows, drawn by hashes of their numbers: one pass, whatever the blocks."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bigkd.backends import device, namespace
from bigkd.protocols import Array, Footprint, Rows
from bigkd.summaries.grouped import mix
from bigkd.summaries.levels import Points, weighted_points
from bigkd.summaries.moments import require_width

_TILE_ROWS = 65_536
_GOLDEN = 0x9E3779B97F4A7C15


class ReservoirState(NamedTuple):
    """The rows with the least keys, least first; places not yet filled have index -1."""

    key: Array  # (size,), float64: exponential of the rate of the row's weight
    index: Array  # (size,), row numbers
    weights: Array  # (size,), float64
    values: Array  # (size, width), the rows, in their own type
    count: Array  # (), rows of positive weight
    mass: Array  # (), sum of the weights


@dataclass(frozen=True, kw_only=True)
class Reservoir:
    """The `size` rows that come first, of a race in which row i's time is exponential of rate w_i.

    They are those that one draws first, one after the other without replacement, each with
    probability proportional to its weight [1]_; in that order. Times are hashes of (seed, row
    number), so the sample depends on neither blocks nor merges. Rows of no weight never arrive.

    References
    ----------
    .. [1] P. Efraimidis, P. Spirakis, "Weighted random sampling with a reservoir", Inf. Process.
       Lett. 97, 2006.
    """

    width: int
    size: int
    seed: int = 0
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> ReservoirState:
        """State of no rows, on the namespace and device of `like`."""
        xp, on = namespace(like), device(like)
        zero = xp.zeros((), dtype=xp.float64, device=on)
        return ReservoirState(
            key=xp.full((self.size,), xp.inf, dtype=xp.float64, device=on),
            index=xp.full((self.size,), -1, dtype=xp.int64, device=on),
            weights=xp.zeros((self.size,), dtype=xp.float64, device=on),
            values=xp.zeros((self.size, self.width), dtype=like.dtype, device=on),
            count=xp.zeros((), dtype=xp.int64, device=on),
            mass=zero,
        )

    def update(self, state: ReservoirState, rows: Rows) -> ReservoirState:
        """State after `rows`, too.

        Raises
        ------
        InputError
            If a weight is negative, or rows have vectors.
        """
        require_width(rows, self.width)
        points = weighted_points(rows)
        xp = namespace(points.weights)
        n_rows = points.index.shape[0]
        for start in range(0, n_rows, _TILE_ROWS):
            part = slice(start, min(start + _TILE_ROWS, n_rows))
            key = exponentials(points.index[part], seed=self.seed) / points.weights[part]
            near = xp.nonzero(key <= state.key[-1])[0]
            if near.shape[0]:
                some = (
                    xp.take(key, near),
                    *(
                        xp.take(whole[part, ...], near, axis=0)
                        for whole in (points.index, points.weights, points.values)
                    ),
                )
                state = self._with(state, some)
        return state._replace(count=state.count + n_rows, mass=state.mass + xp.sum(points.weights))

    def merge(self, left: ReservoirState, right: ReservoirState) -> ReservoirState:
        """State of both sets of rows."""
        return self._with(left, right[:4])._replace(
            count=left.count + right.count, mass=left.mass + right.mass
        )

    def finalize(self, state: ReservoirState) -> Points:
        """The rows, with their own weights, in the order in which they are drawn."""
        used = slice(0, min(self.size, int(state.count)))
        return Points(state.values[used, ...], state.index[used], state.weights[used])

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """The sample twice, while it is sorted, and keys of a tile of rows."""
        state = self.size * (24 + self.width * itemsize) + 16
        tile = min(n_rows, _TILE_ROWS)
        return Footprint(
            state=state,
            scratch=3 * state + tile * (64 + self.width * itemsize) + n_rows * 32,
            row_cost=64,
        )

    def _with(self, state: ReservoirState, more: tuple[Array, ...]) -> ReservoirState:
        """The least keys of both; of equal keys the smaller row number comes first."""
        xp = namespace(state.key)
        both = [xp.concat([one, other]) for one, other in zip(state[:4], more, strict=True)]
        taken = xp.where(both[1] < 0, xp.iinfo(xp.int64).max, both[1])
        by_index = xp.argsort(taken, stable=True)
        by_key = xp.argsort(xp.take(both[0], by_index), stable=True)
        order = xp.take(by_index, by_key)[: self.size]
        key, index, weights, values = (xp.take(part, order, axis=0) for part in both)
        return state._replace(key=key, index=index, weights=weights, values=values)


def exponentials(index: Array, *, seed: int) -> Array:
    """Exponential variable of mean 1 for each row number, the same wherever it is asked for.

    SplitMix64 of the row number, on a stream that `seed` begins.
    """
    xp, on = namespace(index), device(index)
    start = mix(xp.full((1,), (seed + 1) * _GOLDEN % 2**64, dtype=xp.uint64, device=on))
    word = mix((xp.astype(index, xp.uint64) + 1) * _GOLDEN + start)
    uniform = (xp.astype(word >> 11, xp.float64) + 0.5) * 2.0**-53
    return -xp.log(uniform)
