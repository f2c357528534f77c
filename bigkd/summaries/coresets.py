"""How many points become few, near in a kernel's space: what `MergeReduce` thins by."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from bigkd.kernels import Kernel, potential
from bigkd.linalg import (
    Matrix,
    Places,
    Selection,
    exchange,
    greedy_selection,
    halve,
    mass_weights,
    neighbours,
    nonnegative_weights,
)
from bigkd.summaries.levels import FAN_IN, Reduction

Selecting: TypeAlias = Literal["greedy", "halving"]
Reweighting: TypeAlias = Literal["nonnegative", "mass"]

_TRIES = 32
_TILE_ELEMENTS = 2**20
_ROUNDING = 1e-14


@dataclass(frozen=True, kw_only=True)
class KernelReducer:
    """Points whose weighted sum of features is near that of many.

    Attributes
    ----------
    kernel
        Positive definite for the width of the rows.
    selection
        ``"greedy"`` takes the point where most is missing and solves for all weights again;
        ``"halving"`` lets one of two neighbours stand for both, and exchanges points while that
        helps.
    reweight
        Weights that are not negative, or of any sign; their sum stays the same.
    """

    kernel: Kernel
    selection: Selecting = "greedy"
    reweight: Reweighting = "nonnegative"

    def reduce(
        self, points: Matrix, weights: Matrix, size: int, generator: np.random.Generator
    ) -> Reduction:
        """At most `size` points, weights with the same sum, and the kernel distance between."""
        if self.selection == "greedy":
            return self._greedy(points, weights, size, tries=0)
        kept = np.arange(weights.size)
        sums = weights
        while kept.size > size:
            places, sums = halve(self.kernel, points[kept], sums, generator)
            kept = kept[places]
        target, diagonal = self._target(points, weights), self.kernel.diagonal(points)
        kept, cost = exchange(self.kernel, points, target, diagonal, kept, sums, sweeps=1)
        return Reduction(kept, sums, distance_bound(float(weights @ target), cost))

    def choose(
        self, points: Matrix, weights: Matrix, size: int, generator: np.random.Generator
    ) -> Reduction:
        """The greedy choice, whatever the selection: its weights are the best there are."""
        del generator
        return self._greedy(points, weights, size, tries=min(_TRIES, max(2, 4096 // size)))

    def row_cost(self, width: int, pool: int) -> int:
        """Kernel values with all of a buffer, and the updates of a factorisation."""
        n_values = FAN_IN * pool
        if self.selection == "greedy":
            return (n_values + pool) * (width + 16) + pool**2
        return 3 * n_values * (width + 16)

    def scratch(self, width: int, pool: int) -> int:
        """The factorisation, or a few columns, and tiles of kernel values."""
        n_rows = FAN_IN * pool
        columns = pool if self.selection == "greedy" else 192
        return 8 * (n_rows * (columns + 64 + 2 * width) + 3 * pool**2 + 4 * _TILE_ELEMENTS)

    def _target(self, points: Matrix, weights: Matrix) -> Matrix:
        """Sum of the weighted kernel at every point."""
        return np.asarray(potential(self.kernel, points, points, weights))

    def _greedy(self, points: Matrix, weights: Matrix, size: int, *, tries: int) -> Reduction:
        """The greedy choice, and up to `tries` attempts to better it."""
        order = neighbours(points)
        points, weights = points[order], weights[order]
        target, diagonal = self._target(points, weights), self.kernel.diagonal(points)
        mass, square = float(weights.sum()), float(weights @ target)
        candidates = (self.kernel, points, target, diagonal, size)
        found = greedy_selection(*candidates)
        if found.picked.size == 0:  # a target of norm 0: the least point is nearest
            least = int(np.argmin(diagonal))
            error = mass * math.sqrt(diagonal[least]) + distance_bound(square, 0.0)
            return Reduction(order[[least]], np.asarray([mass]), error)
        best = self._solved(found, target, mass)
        if found.picked.size == size:
            best = self._improved(best, candidates, mass, tries)
        some = best.weights != 0.0
        error = distance_bound(square, best.cost)
        return Reduction(order[best.places[some]], best.weights[some], error)

    def _improved(
        self, best: "_Solution", candidates: "_Candidates", mass: float, tries: int
    ) -> "_Solution":
        """`best`, changed in one of two ways, in turn, until neither helps any more."""
        failed = 0
        for at in range(tries):
            start = best.kept(3 * best.places.size // 4) if at % 2 else best.moved(candidates)
            try:
                found = greedy_selection(*candidates, start=start)
            except np.linalg.LinAlgError:  # two of them are too near to one another
                found = None
            other = best if found is None else self._solved(found, candidates[2], mass)
            failed = 0 if other.cost < best.cost else failed + 1
            if failed == 2:
                break
            best = other if failed == 0 else best
        return best

    def _solved(self, found: Selection, target: Matrix, mass: float) -> "_Solution":
        own, gram = target[found.picked], found.factor @ found.factor.T
        if self.reweight == "mass":
            solved = mass_weights(found.factor, found.projection, mass)
        else:
            solved = nonnegative_weights(gram, own, mass)
        cost = float(solved @ (gram @ solved - 2.0 * own))
        return _Solution(found.picked, solved, found.factor, cost)


_Candidates: TypeAlias = tuple[Kernel, Matrix, Matrix, Matrix, int]
"""What `greedy_selection` is given: kernel, points, target, diagonal, size."""


class _Solution(NamedTuple):
    """Points, their weights, the factor of their Gram matrix, and what the distance is made of."""

    places: Places
    weights: Matrix
    factor: Matrix
    cost: float

    def kept(self, count: int) -> Places:
        """The `count` points without which the distance would grow most, in their order."""
        inverse = np.linalg.inv(self.factor)
        growth = self.weights**2 / np.einsum("ij,ij->j", inverse, inverse)
        return self.places[np.sort(np.argsort(-growth, kind="stable")[:count])]

    def moved(self, candidates: "_Candidates") -> Places:
        """The points of positive weight, exchanged for better ones of the same weights."""
        some = self.weights > 0.0
        own, weights = self.places[some], self.weights[some]
        return exchange(*candidates[:4], own, weights, sweeps=1)[0]


def distance_bound(square: float, cost: float) -> float:
    """Bound of a kernel distance whose square is ``square + cost``, two numbers that cancel."""
    return math.sqrt(max(square + cost, 0.0) + _ROUNDING * abs(square))
