"""Summaries made of summaries: one read of the rows, many answers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bigkd.backends import device, namespace
from bigkd.config import MEGABYTE
from bigkd.protocols import Array, FeatureMap, Footprint, Rows, Summary

TILE_BYTES = 128 * MEGABYTE
MOST_TILE_ROWS = 16_384


def tile_rows(row_bytes: int) -> int:
    """Rows whose images, of `row_bytes` each, make one tile of about 128 MB."""
    return max(256, min(MOST_TILE_ROWS, TILE_BYTES // max(1, row_bytes)))


def tiles(rows: Rows, size: int) -> Iterator[Rows]:
    """`rows` in runs of at most `size`."""
    n_rows = rows.values.shape[0]
    for start in range(0, n_rows, size):
        part = slice(start, min(start + size, n_rows))
        weights = None if rows.weights is None else rows.weights[part]
        vectors = None if rows.vectors is None else rows.vectors[part, ...]
        yield Rows(rows.values[part, ...], rows.index[part], weights, vectors)


@dataclass(frozen=True, kw_only=True)
class Joined:
    """Several summaries of the same rows; the state is the tuple of their states."""

    summaries: tuple[Summary[Any], ...]

    @property
    def exact(self) -> bool:
        """Whether every part keeps the laws exactly."""
        return all(summary.exact for summary in self.summaries)

    def init(self, like: Array) -> tuple[Any, ...]:
        """States of no rows."""
        return tuple(summary.init(like) for summary in self.summaries)

    def update(self, state: tuple[Any, ...], rows: Rows) -> tuple[Any, ...]:
        """States after `rows`, too."""
        return tuple(
            summary.update(part, rows) for summary, part in zip(self.summaries, state, strict=True)
        )

    def merge(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        """States of both sets of rows."""
        parts = zip(self.summaries, left, right, strict=True)
        return tuple(summary.merge(one, other) for summary, one, other in parts)

    def finalize(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """What each part is for."""
        return tuple(
            summary.finalize(part) for summary, part in zip(self.summaries, state, strict=True)
        )

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """All states at once, but only one part's temporaries."""
        parts = [summary.footprint(n_rows, itemsize) for summary in self.summaries]
        return Footprint(
            state=sum(part.state for part in parts),
            scratch=max(part.scratch for part in parts),
            row_cost=sum(part.row_cost for part in parts),
        )


@dataclass(frozen=True, kw_only=True)
class Mapped:
    """A summary of the features of rows; the features exist for one tile of rows at a time."""

    features: FeatureMap
    summary: Summary[Any]

    @property
    def exact(self) -> bool:
        """Whether the summary of the features keeps the laws exactly."""
        return self.summary.exact

    def init(self, like: Array) -> Any:
        """State of no rows."""
        xp, on = namespace(like), device(like)
        row = xp.zeros((1, self.features.width), dtype=xp.float32, device=on)
        return self.summary.init(self.features(row))

    def update(self, state: Any, rows: Rows) -> Any:
        """State after the features of `rows`, too."""
        for tile in tiles(rows, tile_rows(self.features.n_features * 4)):
            # The features of a tile are bound to no name here, so that they are gone before the
            # next tile's are made.
            state = self.summary.update(state, tile._replace(values=self.features(tile.values)))
        return state

    def merge(self, left: Any, right: Any) -> Any:
        """State of both sets of rows."""
        return self.summary.merge(left, right)

    def finalize(self, state: Any) -> Any:
        """What the summary of the features is for."""
        return self.summary.finalize(state)

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """One tile of features, and what its map needs for a few hundred rows at a time."""
        itemsize = max(4, itemsize)
        n_tile = min(n_rows, tile_rows(self.features.n_features * 4))
        inner = self.summary.footprint(n_tile, itemsize)
        wide = self.features.n_features + self.features.width
        tile = (n_tile * self.features.n_features + 1024 * wide) * itemsize
        projection = self.features.n_features * self.features.width // 2
        return Footprint(
            state=inner.state,
            scratch=inner.scratch + tile,
            row_cost=inner.row_cost + projection,
        )
