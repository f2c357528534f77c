"""The rows with the largest scores, and the rows themselves."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bigkd.backends import device, namespace
from bigkd.protocols import Array, FeatureMap, Footprint, Rows
from bigkd.summaries.compose import tile_rows, tiles


class TopRowsState(NamedTuple):
    """The best rows so far, best first; places not yet filled have index -1."""

    score: Array  # (n_scores, n_top)
    index: Array  # (n_scores, n_top), row numbers
    values: Array  # (n_scores, n_top, width), the rows, as float64; of width 0 if not kept


@dataclass(frozen=True, kw_only=True)
class TopRows:
    """The `n_top` rows of largest score, for each of several scores.

    Of equal scores the smaller row number wins, so the answer does not depend on block order.
    Weights play no part. `work_features` is the width of what `scores` computes inside. The rows
    themselves are kept unless `keep_rows` is False.
    """

    scores: FeatureMap
    n_top: int
    work_features: int
    keep_rows: bool = True
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> TopRowsState:
        """State of no rows, on the namespace and device of `like`."""
        xp, on = namespace(like), device(like)
        shape = (self.scores.n_features, self.n_top)
        return TopRowsState(
            score=xp.full(shape, -xp.inf, dtype=xp.float64, device=on),
            index=xp.full(shape, -1, dtype=xp.int64, device=on),
            values=xp.zeros((*shape, self._width), dtype=xp.float64, device=on),
        )

    def update(self, state: TopRowsState, rows: Rows) -> TopRowsState:
        """State after `rows`, shape ``(n, width)``, too."""
        for tile in tiles(rows, tile_rows(self.work_features * 4)):
            state = self.merge(state, self._of(tile))
        return state

    def merge(self, left: TopRowsState, right: TopRowsState) -> TopRowsState:
        """State of both sets of rows."""
        xp = namespace(left.score)
        score = xp.concat([left.score, right.score], axis=1)
        index = xp.concat([left.index, right.index], axis=1)
        order = _best(score, index, self.n_top)
        picked = []
        for at in range(score.shape[0]):
            both = xp.concat([left.values[at, ...], right.values[at, ...]], axis=0)
            picked.append(xp.take(both, order[at, :], axis=0))
        return TopRowsState(
            xp.take_along_axis(score, order, axis=1),
            xp.take_along_axis(index, order, axis=1),
            xp.stack(picked, axis=0),
        )

    def finalize(self, state: TopRowsState) -> TopRowsState:
        """The state as it is."""
        return state

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """The best rows, one tile of features, and one tile of scores while it is sorted."""
        itemsize = max(4, itemsize)
        n_scores, width = self.scores.n_features, self._width
        n_tile = min(n_rows, tile_rows(self.work_features * 4))
        state = n_scores * self.n_top * 8 * (2 + width)
        wide = self.work_features + self.scores.width
        features = (n_tile * self.work_features + 1024 * wide) * itemsize
        return Footprint(
            state=state,
            scratch=3 * state + features + n_tile * n_scores * (40 + itemsize),
            row_cost=self.work_features * (self.scores.width // 2 + n_scores),
        )

    @property
    def _width(self) -> int:
        return self.scores.width if self.keep_rows else 0

    def _of(self, rows: Rows) -> TopRowsState:
        xp = namespace(rows.values)
        score = xp.astype(self.scores(rows.values), xp.float64).T
        index = xp.broadcast_to(rows.index[None, :], score.shape)
        order = _best(score, index, self.n_top)
        kept = rows.values[:, : self._width]
        values = [
            xp.astype(xp.take(kept, order[at, :], axis=0), xp.float64)
            for at in range(score.shape[0])
        ]
        return TopRowsState(
            xp.take_along_axis(score, order, axis=1),
            xp.take_along_axis(index, order, axis=1),
            xp.stack(values, axis=0),
        )


def _best(score: Array, index: Array, n_top: int) -> Array:
    """Positions along axis 1 of the `n_top` largest scores, largest first, ties by row number."""
    xp = namespace(score)
    taken = xp.where(index < 0, xp.iinfo(index.dtype).max, index)  # empty places come last
    by_index = xp.argsort(taken, axis=1, stable=True)
    by_score = xp.argsort(xp.take_along_axis(score, by_index, axis=1), axis=1, descending=True)
    return xp.take_along_axis(by_index, by_score[:, : min(n_top, score.shape[1])], axis=1)
