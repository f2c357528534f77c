"""Mean embeddings: sums of the features of weighted rows."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bigkd.backends import device, namespace
from bigkd.kernels import FourierFeatures
from bigkd.protocols import Array, FeatureMap, Footprint, Rows
from bigkd.summaries.compose import tiles
from bigkd.summaries.grouped import group_of

_TILE_ELEMENTS = 2**22
_TILE_ROWS = 16_384


def mass_of(rows: Rows) -> Array:
    """Weights of rows, shape ``(n,)``, float64; ones where they carry none."""
    xp, on = namespace(rows.values), device(rows.values)
    if rows.weights is None:
        return xp.ones((rows.values.shape[0],), dtype=xp.float64, device=on)
    return xp.astype(rows.weights, xp.float64)


def strengths_of(rows: Rows) -> Array:
    """Weight times vector of each row, shape ``(n, c)``, float64; ones where there is neither."""
    xp = namespace(rows.values)
    mass = mass_of(rows)[:, None]
    return mass if rows.vectors is None else mass * xp.astype(rows.vectors, xp.float64)


class MeanEmbeddingState(NamedTuple):
    """Sums of features, of each group of rows and each component of their strengths."""

    weight: Array  # (n_groups,), sum of weights: the number of rows where they carry none
    total: Array  # (n_groups, n_vectors, n_features), sum of strengths times features


@dataclass(frozen=True, kw_only=True)
class MeanEmbedding:
    r"""Sums :math:`\sum_i \mu_i U_i \otimes \phi(x_i)` over rows, or over random groups of them.

    Attributes
    ----------
    features
        The map phi.
    n_vectors
        Components c of the vectors U; 1 where rows carry none.
    n_groups
        Groups of rows that are summed apart.
    n_dealt
        Groups that rows are dealt to by a hash of their number and `seed`, see `group_of`; those
        beyond the first `n_groups` are left out. As many as `n_groups` unless given.
    seed
        Of the groups.

    Notes
    -----
    Features and strengths are in the precision of the rows, the sums of tiles are added in float64.
    Fourier features are summed as they are made, see `FourierFeatures.weighted_sum`.
    """

    features: FeatureMap
    n_vectors: int = 1
    n_groups: int = 1
    n_dealt: int | None = None
    seed: int = 0
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> MeanEmbeddingState:
        """State of no rows, on the namespace and device of `like`."""
        xp, on = namespace(like), device(like)
        shape = (self.n_groups, self.n_vectors, self.features.n_features)
        return MeanEmbeddingState(
            weight=xp.zeros((self.n_groups,), dtype=xp.float64, device=on),
            total=xp.zeros(shape, dtype=xp.float64, device=on),
        )

    def update(self, state: MeanEmbeddingState, rows: Rows) -> MeanEmbeddingState:
        """State after `rows`, too; adds into the memory of `state`."""
        for tile in tiles(rows, self._tile_rows()):
            parts = mass_of(tile), strengths_of(tile), tile.values
            if self._grouped:
                self._add_groups(state, tile.index, parts)
            else:
                self._add(state, 0, *parts)
        return state

    @property
    def _grouped(self) -> bool:
        return (self.n_dealt or self.n_groups) > 1

    def _add_groups(
        self, state: MeanEmbeddingState, index: Array, parts: tuple[Array, Array, Array]
    ) -> None:
        """Add rows, group by group."""
        xp = namespace(index)
        group = group_of(index, self.n_dealt or self.n_groups, seed=self.seed)
        order = xp.argsort(group, stable=True)
        numbers = xp.arange(self.n_groups, device=device(group))
        ends = xp.searchsorted(xp.take(group, order), numbers, side="right")
        start = 0
        for at in range(self.n_groups):
            members, start = order[start : int(ends[at])], int(ends[at])
            if members.shape[0]:
                mass, strengths, values = (xp.take(part, members, axis=0) for part in parts)
                self._add(state, at, mass, strengths, values)

    def _add(
        self, state: MeanEmbeddingState, group: int, mass: Array, strengths: Array, values: Array
    ) -> None:
        state.weight[group] += namespace(mass).sum(mass)
        # Brought near 1, so that they fit into the precision of the rows; exactly, by powers of 2.
        xp = namespace(strengths)
        near = math.ldexp(1.0, math.frexp(float(xp.max(xp.abs(strengths))))[1] - 1)
        state.total[group, ...] += self._sum(values, strengths / near) * near

    def _sum(self, values: Array, strengths: Array) -> Array:
        """Sum of the features of rows times their strengths, shape ``(n_vectors, n_features)``."""
        if isinstance(self.features, FourierFeatures):
            return self.features.weighted_sum(values, strengths)
        xp, total, n_rows = namespace(values), 0.0, values.shape[0]
        for start in range(0, n_rows, self._feature_rows()):
            rows = slice(start, min(start + self._feature_rows(), n_rows))
            features = self.features(values[rows, :])
            total = total + xp.astype(strengths[rows, :], features.dtype).T @ features
        return total

    def merge(self, left: MeanEmbeddingState, right: MeanEmbeddingState) -> MeanEmbeddingState:
        """State of both sets of rows; exact up to float64 rounding."""
        return MeanEmbeddingState(left.weight + right.weight, left.total + right.total)

    def finalize(self, state: MeanEmbeddingState) -> MeanEmbeddingState:
        """The sums as they are."""
        return state

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """The sums, a tile of features or angles, and copies of rows that are dealt to groups."""
        itemsize, n_tile = max(4, itemsize), min(n_rows, self._tile_rows())
        n_features, width = self.features.n_features, self.features.width
        at_once = 2 * n_tile // self.n_groups if self._grouped else n_tile
        if isinstance(self.features, FourierFeatures):
            made = self.features.sum_elements(at_once) + n_features * width
        else:
            made = min(at_once, self._feature_rows()) * n_features
        copied = width * n_tile  # whole numbers, while their mean is taken
        if self._grouped:
            copied = 2 * (width + self.n_vectors + 4) * n_tile // self.n_groups
        sums = 8 * n_features * (2 * self.n_vectors + 1)
        return Footprint(
            state=8 * self.n_groups * (self.n_vectors * n_features + 1),
            scratch=(made + copied) * itemsize + (16 + 16 * self.n_vectors) * n_tile + sums,
            row_cost=n_features * width // 2 + n_features * (12 + self.n_vectors),
        )

    def _tile_rows(self) -> int:
        return max(512, min(_TILE_ROWS, _TILE_ELEMENTS // (2 * self.features.width)))

    def _feature_rows(self) -> int:
        return max(64, _TILE_ELEMENTS // max(1, self.features.n_features))
