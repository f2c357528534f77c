"""Points at the quantiles of numbers: what `MergeReduce` thins rows of width 1 by."""

from dataclasses import dataclass

import numpy as np

from bigkd.linalg import Matrix
from bigkd.summaries.levels import Reduction


@dataclass(frozen=True)
class QuantileReducer:
    """Rows of width 1 become those at the quantiles ``(t + 1/2)/size``, of equal weight each.

    The weight of numbers up to x changes by at most half of the weight of one point, whatever x. A
    row of great weight may stand at several quantiles.
    """

    def reduce(
        self, points: Matrix, weights: Matrix, size: int, generator: np.random.Generator
    ) -> Reduction:
        """Positions of at most `size` points, weights with the same sum, and the change above."""
        del generator
        order = np.argsort(points[:, 0], kind="stable")
        upto = np.cumsum(weights[order])
        quantiles = (np.arange(size) + 0.5) * (upto[-1] / size)
        at = np.minimum(np.searchsorted(upto, quantiles), weights.size - 1)
        places, counts = np.unique(order[at], return_counts=True)
        own = float(weights.sum()) / size
        return Reduction(places, counts.astype(np.float64) * own, own / 2)

    def choose(
        self, points: Matrix, weights: Matrix, size: int, generator: np.random.Generator
    ) -> Reduction:
        """The same, for the last time."""
        return self.reduce(points, weights, size, generator)

    def row_cost(self, width: int, pool: int) -> int:
        """A few comparisons of sorting."""
        del width, pool
        return 128

    def scratch(self, width: int, pool: int) -> int:
        """Sorted copies of a buffer."""
        del width
        return 256 * pool
