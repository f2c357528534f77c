"""Pairs of blocks: square super-blocks, so that a block is read few times."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bigkd.config import HELD_BYTES, MAX_STRIPES, STRIPE_WORK
from bigkd.engine.inputs import read_rows
from bigkd.engine.stripes import Stripe
from bigkd.engine.tasks import Job, limit_blas, report
from bigkd.io import Source
from bigkd.protocols import Array


class Square(NamedTuple):
    """Every tile of one run of blocks with another, or with itself."""

    left: Stripe
    right: Stripe
    mirrored: bool  # the collection is paired with itself and the runs differ
    diagonal: bool  # the collection is paired with itself and the runs are the same

    def n_pairs(self, left: Source, right: Source) -> int:
        """Pairs of rows in the square, for progress."""
        rows = [
            source.bounds[run.last] - source.bounds[run.first]
            for source, run in ((left, self.left), (right, self.right))
        ]
        return rows[0] * rows[1]


def cut_pairs(left: Source, right: Source | None, *, row_cost: int) -> list[Square]:
    """Squares that together hold each pair of blocks once; of one collection, each unordered pair.

    A square's side is what one task may hold of each collection, or less where that would make a
    task too long; it depends on the data and the spec only.
    """
    if right is None:
        runs = _runs(left, row_cost)
        return [
            Square(one, other, mirrored=at > before, diagonal=at == before)
            for before, one in enumerate(runs)
            for at, other in enumerate(runs)
            if at >= before
        ]
    return [
        Square(one, other, mirrored=False, diagonal=False)
        for one in _runs(left, row_cost)
        for other in _runs(right, row_cost)
    ]


def _runs(source: Source, row_cost: int) -> list[Stripe]:
    rows = min(
        HELD_BYTES // 2 // max(1, source.row_bytes),
        int((STRIPE_WORK / max(1, row_cost)) ** 0.5),
    )
    count = min(-(-source.n_rows // max(1, rows)), int(MAX_STRIPES**0.5), source.n_blocks)
    size = -(-source.n_blocks // count)
    return [
        Stripe(first, min(first + size, source.n_blocks))
        for first in range(0, source.n_blocks, size)
    ]


def run_pairs(
    left: Job,
    right: Job,
    square: Square,
    left_raw: Sequence[Array] | None,
    right_raw: Sequence[Array] | None,
) -> Any:
    """State of every tile of one square; each block is read once."""
    if left.topic is not None:
        limit_blas()
    ones = list(read_rows(left.source, square.left.blocks, left_raw, left.nonfinite))
    others = ones
    if not square.diagonal:
        others = list(read_rows(right.source, square.right.blocks, right_raw, right.nonfinite))
    state = left.summary.init(ones[0].values)
    for at, one in enumerate(ones):
        for across in range(at if square.diagonal else 0, len(others)):
            same = square.diagonal and across == at
            state = left.summary.update(
                state,
                one,
                others[across],
                mirrored=square.mirrored or (square.diagonal and not same),
                diagonal=same,
            )
    report(left.topic, square.n_pairs(left.source, right.source))
    return state
