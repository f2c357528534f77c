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
    if count == source.n_blocks:  # blocks are long enough, each by itself, however unequal
        return [Stripe(at, at + 1) for at in range(count)]
    cuts = [_nearest(source.bounds, source.n_rows * at / count) for at in range(count + 1)]
    return [Stripe(first, last) for first, last in pairwise(cuts) if first < last]


def cut_segments(n_stripes: int) -> list[range]:
    """Runs of stripes that share a checkpoint, up to four times as many as each has stripes.

    Of exact summaries the stripes of a segment follow one another, so that there are at most as
    many tasks at once as segments. Of others segments are whole subtrees of the pairwise tree: that
    is why their length is a power of two.
    """
    size = 1
    while n_stripes > 4 * size**2:
        size *= 2
    return [range(start, min(start + size, n_stripes)) for start in range(0, n_stripes, size)]


def held_states(n_stripes: int, *, exact: bool) -> tuple[int, int]:
    """States that exist at once, during an update and a merge, where one thread does everything.

    Of an exact summary they are, however many stripes there are: the segments so far, the stripe
    before, and the task's own. A pairwise tree holds one for each of its levels.
    """
    if n_stripes == 1:
        return 1, 0
    if exact:
        return (2 if n_stripes == len(cut_segments(n_stripes)) else 3), 3
    return n_stripes.bit_length(), n_stripes.bit_length() + 1


def _nearest(bounds: tuple[int, ...], row: float) -> int:
    """Block whose first row is nearest to `row`."""
    after = bisect.bisect_left(bounds, row)
    if after > 0 and row - bounds[after - 1] <= bounds[after] - row:
        return after - 1
    return after
