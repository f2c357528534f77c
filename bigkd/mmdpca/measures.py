r"""How far rows are from their projections: means over pairs, of all rows or of some.

With z = V^T x, and :math:`r = x - Vz` of which only the length is needed:
:math:`x \cdot Py = z_x \cdot z_y` and :math:`|x - Py|^2 = |z_x - z_y|^2 + |r_x|^2`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bigkd.backends import device, namespace
from bigkd.kernels import Kernel, squared_distances
from bigkd.kernels._rows import tiles
from bigkd.linalg import Matrix
from bigkd.mmdpca.values import squared_lengths, values
from bigkd.protocols import Array, Footprint, Rows

TRACE, MMD2, TAIL, DAMPED = range(4)
"""What is averaged over pairs: K; the terms of the squared MMD; r_x . r_y H; the last times
z_x . z_y."""

N_TERMS = 4

_TILE_ROWS = 512


class Projected(NamedTuple):
    """Rows and what a projection keeps of them."""

    z: Array
    """Shape ``(n, k)``."""

    rest: Array
    """Squared length of what is left, shape ``(n,)``, not negative."""


def projected(lengths: Array, z: Array) -> Projected:
    """Of rows with squared `lengths` and coordinates `z`."""
    return Projected(z, namespace(z).clip(lengths - squared_lengths(z), min=0.0))


def pair_terms(
    kernel: Kernel, dot: Array, squared: Array, one: Projected, other: Projected
) -> Array:
    """The four terms of every pair, shape ``(4, n, m)``."""
    xp = namespace(dot)
    along = one.z @ other.z.T
    near = squared_distances(one.z, other.z)
    own = values(kernel, dot, squared)
    both = along * values(kernel, along, near)
    left = along * values(kernel, along, near + one.rest[:, None])
    right = along * values(kernel, along, near + other.rest[None, :])
    full, tail = dot * own, (dot - along) * own
    return xp.stack([full, full - left - right + both, tail, along * tail])


def own_terms(kernel: Kernel, lengths: Array, one: Projected) -> Array:
    """The four terms of every row with itself, shape ``(4, n)``."""
    xp = namespace(lengths)
    along, zero = squared_lengths(one.z), xp.zeros_like(lengths)
    own = values(kernel, lengths, zero)
    full, tail = lengths * own, (lengths - along) * own
    across = along * values(kernel, along, one.rest)
    both = along * values(kernel, along, zero)
    return xp.stack([full, full - 2.0 * across + both, tail, along * tail])


class PointSums(NamedTuple):
    """Sums over rows."""

    count: Array  # (), rows seen
    own: Array  # (n_projections, 4), of rows with themselves
    others: Array  # (n_projections, 4, m), of rows with each point that is another row


@dataclass(frozen=True, kw_only=True, eq=False)
class PointMeasure:
    """The terms of all rows with some of them, for one or more projections.

    Attributes
    ----------
    kernel
        The H.
    vectors
        Orthonormal columns of each projection, shape ``(n, k)``.
    points, index
        The rows chosen at random, shape ``(m, n)``, and their numbers.
    chance
        Probability with which each was chosen, shape ``(m,)``.
    """

    kernel: Kernel
    vectors: tuple[Matrix, ...]
    points: Matrix
    index: np.ndarray[Any, Any]
    chance: Matrix
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> PointSums:
        """State of no rows."""
        xp, on = namespace(like), device(like)
        shape = (len(self.vectors), N_TERMS)
        return PointSums(
            count=xp.zeros((), dtype=xp.int64, device=on),
            own=xp.zeros(shape, dtype=xp.float64, device=on),
            others=xp.zeros((*shape, self.index.size), dtype=xp.float64, device=on),
        )

    def update(self, state: PointSums, rows: Rows) -> PointSums:
        """State after `rows`, too; adds into the memory of `state`."""
        xp, on = namespace(rows.values), device(rows.values)
        count, own, others = state
        points = xp.asarray(self.points, dtype=rows.values.dtype, device=on)
        index = xp.asarray(self.index, device=on)
        bases = [xp.asarray(part, dtype=points.dtype, device=on) for part in self.vectors]
        squares = _wide(squared_lengths(points))
        ends = [projected(squares, _wide(points @ basis)) for basis in bases]
        for part in tiles(rows.values.shape[0], _TILE_ROWS):
            x = rows.values[part, :]
            lengths, dot = _wide(squared_lengths(x)), _wide(x @ points.T)
            squared = lengths[:, None] + squares[None, :] - 2.0 * dot
            counted = xp.astype(rows.index[part][:, None] != index[None, :], xp.float64)
            for at, basis in enumerate(bases):
                left = projected(lengths, _wide(x @ basis))
                terms = pair_terms(self.kernel, dot, squared, left, ends[at])
                own[at, :] += xp.sum(own_terms(self.kernel, lengths, left), axis=1)
                others[at, ...] += xp.sum(terms * counted, axis=1)
        return PointSums(count + rows.values.shape[0], own, others)

    def merge(self, left: PointSums, right: PointSums) -> PointSums:
        """State of both sets of rows."""
        return PointSums(*(one + other for one, other in zip(left, right, strict=True)))

    def finalize(self, state: PointSums) -> tuple[Array, Array]:
        """Means over all pairs, as estimated, and standard errors: shapes ``(n_projections, 4)``.

        Rows with themselves are known; each point gives a mean over all other rows, and stands for
        as many rows as it was improbable (Hájek's estimator).
        """
        xp, on = namespace(state.own), device(state.own)
        n = int(state.count)
        if n < 2:
            return state.own / n**2, xp.zeros_like(state.own)
        shares = xp.asarray(1.0 / self.chance, device=on)
        unsure = xp.asarray((1.0 - self.chance) / self.chance**2, device=on)
        means, total = state.others / (n - 1), xp.sum(shares)
        centre = xp.sum(means * shares, axis=-1) / total
        spread = xp.sum((means - centre[..., None]) ** 2 * unsure, axis=-1)
        error = xp.sqrt(spread) / total
        share = (n - 1) / n
        return state.own / n**2 + share * centre, share * error

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """The points, and some matrices of a tile of rows by the points."""
        width, k = self.vectors[0].shape
        m, n_tile, itemsize = self.index.size, min(n_rows, _TILE_ROWS), 4 if itemsize <= 4 else 8
        n_sums = len(self.vectors) * N_TERMS
        return Footprint(
            state=8 * (n_sums * (m + 1) + 1),
            scratch=itemsize * (m + len(self.vectors) * k) * width + 8 * n_tile * (20 * m + 8 * k),
            row_cost=m * (width + 60 * len(self.vectors)),
        )


class PairSums(NamedTuple):
    """Sums over pairs."""

    count: Array  # (), rows seen, each once
    total: Array  # (n_projections, 4)


@dataclass(frozen=True, kw_only=True, eq=False)
class PairMeasure:
    """The terms of all pairs of rows, for one or more projections."""

    kernel: Kernel
    vectors: tuple[Matrix, ...]
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> PairSums:
        """State of no pairs."""
        xp, on = namespace(like), device(like)
        return PairSums(
            count=xp.zeros((), dtype=xp.int64, device=on),
            total=xp.zeros((len(self.vectors), N_TERMS), dtype=xp.float64, device=on),
        )

    def update(
        self, state: PairSums, left: Rows, right: Rows, *, mirrored: bool, diagonal: bool
    ) -> PairSums:
        """State after every pair of `left` and `right`, too; adds into the memory of `state`."""
        xp, on = namespace(left.values), device(left.values)
        count, total = state
        for at, basis in enumerate(self.vectors):
            vectors = xp.asarray(basis, dtype=left.values.dtype, device=on)
            for part in tiles(left.values.shape[0], _TILE_ROWS):
                x = left.values[part, :]
                for across in tiles(right.values.shape[0], _TILE_ROWS):
                    y = right.values[across, :]
                    terms = xp.sum(self._terms(x, y, vectors), axis=(1, 2))
                    total[at, :] += 2.0 * terms if mirrored else terms
        return PairSums(count + (left.values.shape[0] if diagonal else 0), total)

    def _terms(self, x: Array, y: Array, vectors: Array) -> Array:
        one, other = (
            projected(_wide(squared_lengths(part)), _wide(part @ vectors)) for part in (x, y)
        )
        return pair_terms(self.kernel, _wide(x @ y.T), _wide(squared_distances(x, y)), one, other)

    def merge(self, left: PairSums, right: PairSums) -> PairSums:
        """State of both sets of pairs."""
        return PairSums(left.count + right.count, left.total + right.total)

    def finalize(self, state: PairSums) -> Array:
        """Means over all pairs, shape ``(n_projections, 4)``."""
        return state.total / int(state.count) ** 2

    def footprint(self, n_left: int, n_right: int, itemsize: int) -> Footprint:
        """Some matrices of a tile of pairs."""
        width, k = self.vectors[0].shape
        n_tile = max(min(n_left, _TILE_ROWS), min(n_right, _TILE_ROWS))
        return Footprint(
            state=8 * (len(self.vectors) * N_TERMS + 1),
            scratch=8 * (24 * n_tile**2 + 6 * n_tile * (width + k)) + 8 * width * k,
            row_cost=len(self.vectors) * (2 * width + 60),
        )


def gram_measure(kernel: Kernel, gram: Matrix, squared: Matrix, scores: Matrix) -> Matrix:
    """Means over all pairs of rows whose inner products and distances are known, shape ``(4,)``."""
    n = gram.shape[0]
    whole = projected(np.diagonal(gram), scores)
    total = np.zeros(N_TERMS)
    for rows in tiles(n, _TILE_ROWS):
        part = Projected(whole.z[rows], whole.rest[rows])
        total += pair_terms(kernel, gram[rows], squared[rows], part, whole).sum(axis=(1, 2))
    return np.asarray(total / n**2)


def _wide(x: Array) -> Array:
    xp = namespace(x)
    return xp.astype(x, xp.float64, copy=False)
