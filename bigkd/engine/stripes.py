"""How a pass is cut: pure arithmetic that sees the data and the spec, never the cluster.

All cuts are made from the left and see only what lies before them, so that those of a collection
stay where they were when it grows: the states of its segments can be used again.
"""

import bisect
import math
from collections.abc import Sequence
from typing import NamedTuple

from bigkd.config import HELD_BYTES, MAX_STRIPES, STRIPE_BYTES, STRIPE_WORK
from bigkd.io import DaskSource, Source

LONGEST_SEGMENT = 8
"""Stripes of the segments of long passes; segments are what workers do side by side."""

SINGLE_SEGMENTS = 64
"""Segments that are chapters by themselves."""

CHAPTER_SEGMENTS = 32
"""Segments of each chapter after these."""


class Stripe(NamedTuple):
    """A run of consecutive blocks that one task reads one after the other."""

    first: int
    last: int  # one past the last block

    @property
    def blocks(self) -> range:
        """The blocks of the stripe."""
        return range(self.first, self.last)


def cut_stripes(source: Source, *, row_cost: int) -> list[Stripe]:
    """Stripes of at most about `STRIPE_WORK` each, in order, together every block once.

    Each run of `MAX_STRIPES` has stripes twice as long as those before, so that graphs stay small.
    """
    rows = STRIPE_WORK // max(1, row_cost + source.row_bytes)
    most_bytes = HELD_BYTES if isinstance(source, DaskSource) else STRIPE_BYTES
    rows = max(1, min(rows, most_bytes // max(1, source.row_bytes)))
    stripes: list[Stripe] = []
    first = 0
    while first < source.n_blocks:
        end = source.bounds[first] + (rows << len(stripes) // MAX_STRIPES)
        last = max(first + 1, bisect.bisect_right(source.bounds, end) - 1)
        stripes.append(Stripe(first, last))
        first = last
    return stripes


def some_of(stripes: Sequence[Stripe], share: float) -> list[Stripe]:
    """At least a `share` of `stripes`, spread evenly, the first always; all for 1.

    Which they are depends on their numbers only: of a collection that grew the same ones, and more.
    """
    return [
        stripe
        for number, stripe in enumerate(stripes)
        if math.ceil((number + 1) * share) > math.ceil(number * share)
    ]


def cut_segments(n_stripes: int) -> list[range]:
    """Runs of stripes that share a checkpoint: of 1, then 2, 4 and at last 8 stripes.

    Of exact summaries the stripes of a segment follow one another, so that there are at most as
    many tasks at once as segments. Of others segments are whole subtrees of the pairwise tree: that
    is why they begin at multiples of their length, which is a power of two.
    """
    segments, start = [], 0
    while start < n_stripes:
        size = min(LONGEST_SEGMENT, 1 << (max(start, 1).bit_length() - 1) // 2)
        segments.append(range(start, min(start + size, n_stripes)))
        start += size
    return segments


def cut_chapters(n_segments: int) -> list[range]:
    """Runs of segments that are folded by themselves, so that the last fold is short.

    The states of thousands of segments, added one after the other, would take longer than a large
    cluster needs to make them.
    """
    starts = [*range(SINGLE_SEGMENTS), *range(SINGLE_SEGMENTS, n_segments, CHAPTER_SEGMENTS)]
    ends = [*starts[1:], max(n_segments, SINGLE_SEGMENTS)]
    return [
        range(start, min(end, n_segments))
        for start, end in zip(starts, ends, strict=True)
        if start < n_segments
    ]


def held_states(n_stripes: int, *, exact: bool, kept: bool = False) -> tuple[int, int]:
    """States that exist at once, during an update and a merge, where one thread does everything.

    Of an exact summary they are, however many stripes there are: the chapters so far, the chapter,
    the stripe before, and the task's own. Where states are `kept`, the stripe before may be one of
    an earlier call. A pairwise tree holds one for each of its levels.
    """
    if n_stripes == 1:
        return (2 if kept and exact else 1), 0
    if not exact:
        return n_stripes.bit_length(), n_stripes.bit_length() + 1
    n_segments = len(cut_segments(n_stripes))
    more = int(n_segments > SINGLE_SEGMENTS + 1)
    chained = kept or n_stripes > n_segments
    return 2 + int(chained) + more, 3 + more
