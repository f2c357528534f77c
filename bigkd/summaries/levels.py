"""Merge-reduce: many rows become few, in a tree whose depth alone decides the error."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from bigkd.backends import device, namespace, rng, to_host
from bigkd.errors import EmptyInputError, InputError
from bigkd.linalg import Matrix, Places, of_mass
from bigkd.protocols import Array, Footprint, Rows
from bigkd.summaries.embeddings import mass_of
from bigkd.summaries.moments import require_width

FAN_IN = 4
"""Pools that are reduced to one; a full buffer of rows is worth as many."""

_STREAM = 0x706F6F6C  # keeps these numbers apart from other uses of the same seed


class Reduction(NamedTuple):
    """What is left of points."""

    places: Places
    """Positions of those that stay, each once."""

    weights: Matrix
    """Their weights."""

    error: float
    """How far it is from what there was: errors of one reduction after another add up at most."""


class Reducer(Protocol):
    """Few weighted points that stand for many."""

    def reduce(
        self, points: Matrix, weights: Matrix, size: int, generator: np.random.Generator
    ) -> Reduction:
        """At most `size` of the `points`, and weights with the same sum."""
        ...

    def choose(
        self, points: Matrix, weights: Matrix, size: int, generator: np.random.Generator
    ) -> Reduction:
        """As `reduce`, for the last time."""
        ...

    def row_cost(self, width: int, pool: int) -> int:
        """Multiply-adds of a row when ``FAN_IN * pool`` of them are reduced to `pool`."""
        ...

    def scratch(self, width: int, pool: int) -> int:
        """Bytes of temporaries of that."""
        ...


class Points(NamedTuple):
    """Weighted rows that stand for a collection."""

    values: Array
    """Shape ``(k, width)``, rows of the collection as they are."""

    index: Array
    """Shape ``(k,)``, int64: their row numbers, ascending."""

    weights: Array
    """Shape ``(k,)``, float64."""


class Thinned(NamedTuple):
    """Few rows, and how far they are from all."""

    points: Points
    """The rows."""

    error: float
    """Bound of their distance to all rows, in the reducer's own measure: the sum of all errors."""


class LevelsState(NamedTuple):
    """A buffer of rows, and up to three pools of each level; unused places have index -1."""

    buffer_values: Array  # (FAN_IN * pool, width), in the type of the rows
    buffer_index: Array  # (FAN_IN * pool,)
    buffer_weights: Array  # (FAN_IN * pool,), float64
    buffered: Array  # (), rows in the buffer
    pool_values: Array  # (n_levels, FAN_IN - 1, pool, width)
    pool_index: Array  # (n_levels, FAN_IN - 1, pool)
    pool_weights: Array  # (n_levels, FAN_IN - 1, pool), float64
    pools: Array  # (n_levels,), pools of each level
    mass: Array  # (), sum of the weights
    error: Array  # (), sum of the errors of all reductions


@dataclass(frozen=True, kw_only=True)
class MergeReduce:
    """A weighted subset of the rows, at most `size` of them, that stands for all.

    Rows wait in a buffer; a full one is reduced to a pool of `pool` points, four pools of a level
    to one of the next. So every row goes through as many reductions as the collection has levels,
    however its blocks were cut and its states merged, and the state does not grow with the number
    of rows. Rows of no weight are left out.

    Attributes
    ----------
    width
        Width of the rows.
    size
        Points in the end.
    pool
        Points of a pool, at least `size`.
    n_levels
        Levels of pools, see `levels_for`. More rows than they are for still fit.
    reducer
        How many become few.
    seed
        Of the reducer's random choices, together with the rows that are reduced.
    """

    width: int
    size: int
    pool: int
    n_levels: int
    reducer: Reducer
    seed: int = 0
    exact: ClassVar[bool] = False

    @property
    def capacity(self) -> int:
        """Rows of a full buffer."""
        return FAN_IN * self.pool

    def init(self, like: Array) -> LevelsState:
        """State of no rows, on the namespace and device of `like`."""
        xp, on = namespace(like), device(like)
        places = (self.n_levels, FAN_IN - 1, self.pool)
        zero = xp.zeros((), dtype=xp.float64, device=on)
        return LevelsState(
            buffer_values=xp.zeros((self.capacity, self.width), dtype=like.dtype, device=on),
            buffer_index=xp.full((self.capacity,), -1, dtype=xp.int64, device=on),
            buffer_weights=xp.zeros((self.capacity,), dtype=xp.float64, device=on),
            buffered=xp.zeros((), dtype=xp.int64, device=on),
            pool_values=xp.zeros((*places, self.width), dtype=like.dtype, device=on),
            pool_index=xp.full(places, -1, dtype=xp.int64, device=on),
            pool_weights=xp.zeros(places, dtype=xp.float64, device=on),
            pools=xp.zeros((self.n_levels,), dtype=xp.int64, device=on),
            mass=zero,
            error=zero,
        )

    def update(self, state: LevelsState, rows: Rows) -> LevelsState:
        """State after `rows`, too; works in the memory of `state`.

        Raises
        ------
        InputError
            If a weight is negative, or rows have vectors.
        """
        require_width(rows, self.width)
        points = weighted_points(rows)
        xp = namespace(points.weights)
        state = state._replace(mass=state.mass + xp.sum(points.weights))
        start, n_rows = 0, points.index.shape[0]
        while start < n_rows:
            filled = int(state.buffered)
            stop = min(n_rows, start + self.capacity - filled)
            own, free = slice(start, stop), slice(filled, filled + stop - start)
            state.buffer_values[free, ...] = points.values[own, ...]
            state.buffer_index[free] = points.index[own]
            state.buffer_weights[free] = points.weights[own]
            state = state._replace(buffered=state.buffered + (stop - start))
            if int(state.buffered) == self.capacity:
                full = Points(state.buffer_values, state.buffer_index, state.buffer_weights)
                state, pool = self._reduced(state, full, 0)
                state = state._replace(buffered=state.buffered * 0)
                state.buffer_index[...] = -1
                state = self._add(state, pool, 0)
            start = stop
        return state

    def merge(self, left: LevelsState, right: LevelsState) -> LevelsState:
        """State of both sets of rows."""
        xp = namespace(left.mass)
        state = LevelsState(*(xp.asarray(part, copy=True) for part in left))
        state = state._replace(mass=left.mass + right.mass, error=left.error + right.error)
        for level in range(self.n_levels - 1, -1, -1):
            for pool in _pools(right, level):
                state = self._add(state, pool, level)
        waiting = slice(0, int(right.buffered))
        rows = Rows(
            right.buffer_values[waiting, ...],
            right.buffer_index[waiting],
            right.buffer_weights[waiting],
        )
        return self.update(state, rows)._replace(mass=state.mass)

    def finalize(self, state: LevelsState) -> Thinned:
        """At most `size` rows with weights; all of them, where there are no more.

        Raises
        ------
        EmptyInputError
            If the weights sum to zero.
        """
        found = self.gathered(state)
        if found.index.shape[0] <= self.size:
            return Thinned(found, float(state.error))
        xp, on = namespace(state.mass), device(state.mass)
        points, weights = _on_host(found)
        generator = rng(self.seed, _STREAM, self.n_levels, 0)
        chosen = self.reducer.choose(points, weights, self.size, generator)
        order = np.argsort(chosen.places)
        taken = xp.asarray(chosen.places[order], device=on)
        kept = Points(
            xp.take(found.values, taken, axis=0),
            xp.take(found.index, taken, axis=0),
            xp.asarray(of_mass(chosen.weights[order], float(state.mass)), device=on),
        )
        return Thinned(kept, float(state.error) + chosen.error)

    def gathered(self, state: LevelsState) -> Points:
        """Everything that is kept, in the order of row numbers: pools, and rows that wait.

        Raises
        ------
        EmptyInputError
            If the weights sum to zero.
        """
        if not float(state.mass) > 0.0:
            raise EmptyInputError("a coreset of rows whose weights sum to zero; is one positive?")
        xp, waiting = namespace(state.mass), slice(0, int(state.buffered))
        parts = [pool for level in range(self.n_levels) for pool in _pools(state, level)]
        parts.append(Points(*(part[waiting, ...] for part in state[:3])))
        found = Points(*(xp.concat(list(same), axis=0) for same in zip(*parts, strict=True)))
        by_row = xp.argsort(found.index)
        return Points(*(xp.take(part, by_row, axis=0) for part in found))

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """The state, and one reduction at a time, in float64 on the host."""
        places = self.capacity + self.n_levels * (FAN_IN - 1) * self.pool
        copies = 2 * self.capacity * (self.width * (8 + itemsize) + 32)
        return Footprint(
            state=places * (self.width * itemsize + 16) + 8 * (self.n_levels + 3),
            scratch=copies + n_rows * 32 + self.reducer.scratch(self.width, self.pool),
            row_cost=self.reducer.row_cost(self.width, self.pool),
        )

    def _add(self, state: LevelsState, pool: Points, level: int) -> LevelsState:
        """State with one more pool at `level`, or, where that has three, at a higher one."""
        n_pools = int(state.pools[level])
        while n_pools == FAN_IN - 1:
            xp = namespace(state.mass)
            all_of_them = [*_pools(state, level), pool]
            joined = (xp.concat(list(same), axis=0) for same in zip(*all_of_them, strict=True))
            state, pool = self._reduced(state, Points(*joined), level + 1)
            state.pools[level] = 0
            level = min(level + 1, self.n_levels - 1)
            n_pools = int(state.pools[level])
        count = pool.index.shape[0]
        state.pool_values[level, n_pools, :count, :] = pool.values
        state.pool_index[level, n_pools, :count] = pool.index
        state.pool_index[level, n_pools, count:] = -1
        state.pool_weights[level, n_pools, :count] = pool.weights
        state.pools[level] = n_pools + 1
        return state

    def _reduced(
        self, state: LevelsState, points: Points, level: int
    ) -> tuple[LevelsState, Points]:
        """One pool of `points`, and the state that knows of it."""
        if points.index.shape[0] <= self.pool:
            return state, points
        xp, on = namespace(points.weights), device(points.weights)
        values, weights = _on_host(points)
        generator = rng(self.seed, _STREAM, level, int(xp.min(points.index)))
        left = self.reducer.reduce(values, weights, self.pool, generator)
        taken = xp.asarray(left.places, device=on)
        pool = Points(
            xp.take(points.values, taken, axis=0),
            xp.take(points.index, taken, axis=0),
            xp.asarray(left.weights, device=on),
        )
        return state._replace(error=state.error + left.error), pool


def levels_for(n_rows: int, pool: int) -> int:
    """Levels of pools that `n_rows` rows can fill."""
    levels, rows = 1, FAN_IN * pool
    while rows * FAN_IN <= n_rows:
        levels, rows = levels + 1, rows * FAN_IN
    return levels


def _pools(state: LevelsState, level: int) -> list[Points]:
    """The pools of one level, without unused places."""
    xp, found = namespace(state.mass), []
    for at in range(int(state.pools[level])):
        index = state.pool_index[level, at, :]
        used = slice(0, int(xp.sum(xp.astype(index >= 0, xp.int64))))
        values, weights = state.pool_values[level, at, used, :], state.pool_weights[level, at, used]
        found.append(Points(values, index[used], weights))
    return found


def weighted_points(rows: Rows) -> Points:
    """Rows with the weight of each, without those of no weight."""
    xp = namespace(rows.values)
    if rows.vectors is not None:
        raise InputError("a coreset is of rows with weights; rows with vectors have none yet.")
    if rows.weights is None:
        return Points(rows.values, rows.index, mass_of(rows))
    weights = xp.astype(rows.weights, xp.float64)
    if not bool(xp.all(weights >= 0)):
        at = int(xp.argmin(weights))
        raise InputError(
            f"weights must not be negative, they are shares of a whole; row {int(rows.index[at])} "
            f"has {float(weights[at])!r}. Make coresets of the positive and of the negative part."
        )
    (some,) = xp.nonzero(weights > 0)
    points = Points(rows.values, rows.index, weights)
    if some.shape[0] == weights.shape[0]:
        return points
    return Points(*(xp.take(part, some, axis=0) for part in points))


def _on_host(points: Points) -> tuple[Matrix, Matrix]:
    """Points as a reducer takes them."""
    return to_host(points.values).astype(np.float64), to_host(points.weights).astype(np.float64)
