"""Rows drawn at random, longer ones sooner, and distances measured with them."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bigkd.backends import namespace, to_host
from bigkd.kernels import Kernel
from bigkd.linalg import Matrix
from bigkd.mmdpca.many import Many
from bigkd.mmdpca.measures import PairMeasure, PointMeasure
from bigkd.mmdpca.setting import MOST_WORK
from bigkd.mmdpca.values import squared_lengths
from bigkd.protocols import Array, Footprint, Rows
from bigkd.summaries import Reservoir, ReservoirState

_STREAM = 0x6D6D64  # added to the seed: points are no choice of the landmarks'


class Points(NamedTuple):
    """Rows drawn, and how probable that was."""

    values: Matrix
    """Shape ``(m, n)``."""

    index: Array
    """Their numbers, shape ``(m,)``."""

    chance: Matrix
    """Shape ``(m,)``, in (0, 1]; given when the first row that was not drawn came."""


@dataclass(frozen=True, kw_only=True)
class Draw:
    """A reservoir whose rows weigh 1 and their squared length over `scale`.

    A few rows may hold most of a sum over pairs that grows with lengths; they are drawn surely.
    """

    reservoir: Reservoir
    scale: float
    exact: ClassVar[bool] = True

    @classmethod
    def of(cls, width: int, n_points: int, seed: int, some: Matrix) -> "Draw":
        """Draws `n_points` rows, and one more; `some` rows tell what lengths are common."""
        reservoir = Reservoir(width=width, size=n_points + 1, seed=seed + _STREAM)
        return cls(reservoir=reservoir, scale=float((some**2).sum(axis=1).mean()) or 1.0)

    def init(self, like: Array) -> ReservoirState:
        """State of no rows."""
        return self.reservoir.init(like)

    def update(self, state: ReservoirState, rows: Rows) -> ReservoirState:
        """State after `rows`, too."""
        xp = namespace(rows.values)
        lengths = xp.astype(squared_lengths(rows.values), xp.float64)
        return self.reservoir.update(state, rows._replace(weights=1.0 + lengths / self.scale))

    def merge(self, left: ReservoirState, right: ReservoirState) -> ReservoirState:
        """State of both sets of rows."""
        return self.reservoir.merge(left, right)

    def finalize(self, state: ReservoirState) -> Points:
        """The rows drawn."""
        found = self.reservoir.finalize(state)
        values, index, weights = (to_host(part) for part in found)
        if int(state.count) < self.reservoir.size:
            return Points(values, index, np.ones(index.size))
        late = float(state.key[-1])
        chance = -np.expm1(-weights[:-1] * late)
        return Points(values[:-1], index[:-1], chance)

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """That of the reservoir, and squares of the rows."""
        own = self.reservoir.footprint(n_rows, itemsize)
        squares = n_rows * (itemsize * self.reservoir.width + 16)
        return Footprint(
            state=own.state,
            scratch=own.scratch + squares,
            row_cost=own.row_cost + self.reservoir.width,
        )


def draw_points(many: Many, n_points: int, seed: int) -> Points:
    """Prepared rows drawn at random: one pass."""
    width = many.preparation.n_features
    draw = Draw.of(width, n_points, seed, many.rows(n_points, seed))
    return draw.finalize(many.reduce(draw, "sample"))


def point_measure(kernel: Kernel, vectors: tuple[Matrix, ...], points: Points) -> PointMeasure:
    """What measures distances with points."""
    return PointMeasure(
        kernel=kernel,
        vectors=vectors,
        points=points.values,
        index=points.index,
        chance=points.chance,
    )


def measured(
    many: Many, kernel: Kernel, vectors: tuple[Matrix, ...], points: Points | None
) -> tuple[Matrix, Matrix]:
    """Means over all pairs and their standard errors, in float64; with `points` where given."""
    wide = many.widened()
    if points is None:
        pairs = PairMeasure(kernel=kernel, vectors=vectors)
        means = to_host(pairs.finalize(wide.reduce_pairs(pairs, "distance to projections")))
        return means, np.zeros_like(means)
    summary = point_measure(kernel, vectors, points)
    found = summary.finalize(wide.reduce(summary, "distance to projections"))
    return to_host(found[0]), to_host(found[1])


def few_enough(n_rows: int, width: int) -> bool:
    """Whether all pairs are few enough to be measured."""
    return 2.0 * width * n_rows**2 <= MOST_WORK
