"""How a pass is cut: pure arithmetic that sees the data and the spec, never the cluster."""

import bisect
from itertools import pairwise
from typing import NamedTuple

from bigkd.config import HELD_BYTES, MAX_STRIPES, STRIPE_BYTES, STRIPE_WORK
from bigkd.io import DaskSource, Source


class Stripe(NamedTuple):
    """A run of consecutive blocks that one task reads one after the other."""

    first: int
    last: int  # one past the last block

    @property
    def blocks(self) -> range:
        """The blocks of the stripe."""
        return range(self.first, self.last)


def cut_stripes(source: Source, *, row_cost: int) -> list[Stripe]:
    """Stripes of about `STRIPE_WORK` each, in order, together every block once."""
    rows = STRIPE_WORK // max(1, row_cost + source.row_bytes)
    most_bytes = HELD_BYTES if isinstance(source, DaskSource) else STRIPE_BYTES
    rows = max(1, min(rows, most_bytes // max(1, source.row_bytes)))
    count = min(source.n_blocks, MAX_STRIPES, -(-source.n_rows // rows))
    cuts = [_nearest(source.bounds, source.n_rows * at / count) for at in range(count + 1)]
    return [Stripe(first, last) for first, last in pairwise(cuts) if first < last]


def cut_segments(n_stripes: int) -> list[range]:
    """Runs of stripes that share a checkpoint, up to four times as many as each has stripes.

    Their length is a power of two, so that they are whole subtrees of a pairwise tree, too.
    """
    size = 1
    while n_stripes > 4 * size**2:
        size *= 2
    return [range(start, min(start + size, n_stripes)) for start in range(0, n_stripes, size)]


def waiting_states(n_stripes: int, *, exact: bool) -> int:
    """Finished states that wait for their neighbour, at most, where one thread does all stripes."""
    if not exact:
        return n_stripes.bit_length() - 1
    n_segments = len(cut_segments(n_stripes))
    return min(n_stripes - 1, 1 if n_segments in (1, n_stripes) else 2)


def _nearest(bounds: tuple[int, ...], row: float) -> int:
    """Block whose first row is nearest to `row`."""
    after = bisect.bisect_left(bounds, row)
    if after > 0 and row - bounds[after - 1] <= bounds[after] - row:
        return after - 1
    return after
