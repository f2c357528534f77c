"""Sums of rows times their features."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bigkd.backends import compute_dtype, device, namespace
from bigkd.protocols import Array, FeatureMap, Footprint, Rows
from bigkd.summaries.compose import tiles
from bigkd.summaries.moments import require_width

_TILE_ROWS = 2048


class CrossMomentState(NamedTuple):
    """Sums over rows."""

    count: Array  # (), rows seen
    weight: Array  # (), sum of weights: the count where rows carry none
    total: Array  # (width,), weighted sum of rows
    cross: Array  # (width, n_features), weighted sum of rows times their features


@dataclass(frozen=True, kw_only=True)
class CrossMoment:
    r"""Sum :math:`\sum_i \mu_i x_i \phi(x_i)^T` of weighted rows times their features.

    Products are in the precision of the rows, each over one tile and so of bounded length, and are
    added to float64 totals. Cost: ``width * n_features`` multiply-adds a row, and the features.

    Attributes
    ----------
    features
        The map phi.
    tile_rows
        Rows whose features exist at once.
    work_features
        Numbers a row that the map needs at once, its result apart; twice that by default.
    """

    features: FeatureMap
    tile_rows: int = _TILE_ROWS
    work_features: int | None = None
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> CrossMomentState:
        """State of no rows, on the namespace and device of `like`."""
        xp, on = namespace(like), device(like)
        shape = (self.features.width, self.features.n_features)
        return CrossMomentState(
            count=xp.zeros((), dtype=xp.int64, device=on),
            weight=xp.zeros((), dtype=xp.float64, device=on),
            total=xp.zeros(shape[:1], dtype=xp.float64, device=on),
            cross=xp.zeros(shape, dtype=xp.float64, device=on),
        )

    def update(self, state: CrossMomentState, rows: Rows) -> CrossMomentState:
        """State after `rows`, shape ``(n, width)``, too; adds into the memory of `state`."""
        require_width(rows, self.features.width)
        xp, on = namespace(rows.values), device(rows.values)
        count, weight, total, cross = state
        for tile in tiles(rows, self.tile_rows):
            values = xp.astype(tile.values, compute_dtype(xp, tile.values.dtype), copy=False)
            features, n_tile = self.features(values), values.shape[0]
            if tile.weights is None:
                own = xp.ones((n_tile,), dtype=values.dtype, device=on)
                weight = weight + float(n_tile)
            else:
                own = xp.astype(tile.weights, values.dtype)
                features = own[:, None] * features
                weight = weight + xp.sum(tile.weights, dtype=xp.float64)
            total += own @ values
            cross += values.T @ features
        return CrossMomentState(count + rows.values.shape[0], weight, total, cross)

    def merge(self, left: CrossMomentState, right: CrossMomentState) -> CrossMomentState:
        """State of both sets of rows; exact up to float64 rounding."""
        return CrossMomentState(*(one + other for one, other in zip(left, right, strict=True)))

    def finalize(self, state: CrossMomentState) -> CrossMomentState:
        """The sums as they are."""
        return state

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """The sums, one product of theirs, and the features of one tile of rows, with copies."""
        width, n_features = self.features.width, self.features.n_features
        n_tile, wide = min(n_rows, self.tile_rows), 4 if itemsize <= 4 else 8
        work = 2 * n_features if self.work_features is None else self.work_features
        cast = width if wide != itemsize else 0
        return Footprint(
            state=8 * (width * (n_features + 1) + 2),
            scratch=wide * (width * n_features + n_tile * (n_features + work + cast + 4)),
            row_cost=width * n_features,
        )
