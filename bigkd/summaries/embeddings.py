"""Mean embeddings: sums of the features of weighted rows."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bigkd.backends import device, namespace
from bigkd.protocols import Array, FeatureMap, Footprint, Rows
from bigkd.summaries.compose import tiles
from bigkd.summaries.grouped import group_of

_TILE_ELEMENTS = 2**22


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
    Features are computed in the precision of the rows, for a tile of about 4 million elements at a
    time, and summed over the tile by a matrix product with strengths in that precision, unless rows
    carry none: the sums of tiles are added in float64.
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
            features, strengths = self.features(tile.values), strengths_of(tile)
            weights = strengths[:, 0] if tile.vectors is None else mass_of(tile)
            if self._grouped:
                self._add_groups(state, tile.index, (weights, strengths, features))
            else:
                self._add(state, 0, weights, strengths, features)
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
                weights, strengths, features = (xp.take(part, members, axis=0) for part in parts)
                self._add(state, at, weights, strengths, features)

    def _add(
        self,
        state: MeanEmbeddingState,
        group: int,
        weights: Array,
        strengths: Array,
        features: Array,
    ) -> None:
        xp = namespace(features)
        state.weight[group] += xp.sum(weights, dtype=xp.float64)
        product = xp.astype(strengths, features.dtype).T @ features
        state.total[group, ...] += product

    def merge(self, left: MeanEmbeddingState, right: MeanEmbeddingState) -> MeanEmbeddingState:
        """State of both sets of rows; exact up to float64 rounding."""
        return MeanEmbeddingState(left.weight + right.weight, left.total + right.total)

    def finalize(self, state: MeanEmbeddingState) -> MeanEmbeddingState:
        """The sums as they are."""
        return state

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """The sums, and a tile of features."""
        itemsize = max(4, itemsize)
        n_tile = min(n_rows, self._tile_rows())
        n_features, width = self.features.n_features, self.features.width
        wide = 2 * n_features if self._grouped else n_features
        tile = (n_tile * (wide + 4 * self.n_vectors) + 1024 * (n_features + width)) * itemsize
        return Footprint(
            state=8 * self.n_groups * (self.n_vectors * n_features + 1),
            scratch=tile + 24 * self.n_vectors * n_features,
            row_cost=n_features * width // 2 + n_features * (12 + self.n_vectors),
        )

    def _tile_rows(self) -> int:
        return max(256, min(16_384, _TILE_ELEMENTS // max(1, self.features.n_features)))
