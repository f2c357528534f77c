"""Pairs of blocks: square super-blocks, so that a block is read few times."""

from collections.abc import Sequence
from typing import NamedTuple

from bigkd.backends import namespace
from bigkd.config import HELD_BYTES, MAX_STRIPES, STRIPE_WORK
from bigkd.engine.inputs import Raw, read_rows
from bigkd.engine.stripes import Stripe
from bigkd.engine.tasks import Job, Reduced, Tally, Telling, prepared
from bigkd.io import Source
from bigkd.protocols import Rows


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
    left_raw: Sequence[Raw] | None,
    right_raw: Sequence[Raw] | None,
) -> Reduced:
    """State of every tile of one square; each block is read once."""
    left, right = prepared(left), prepared(right)
    ones = _read(left, square.left, left_raw)
    others = ones if square.diagonal else _read(right, square.right, right_raw)
    state = left.summary.init(ones[0].values)
    for at, one in enumerate(ones):
        for across in range(at if square.diagonal else 0, len(others)):
            other = others[across]
            if not one.index.shape[0] or not other.index.shape[0]:
                continue
            same = square.diagonal and across == at
            state = left.summary.update(
                state,
                one,
                other,
                mirrored=square.mirrored or (square.diagonal and not same),
                diagonal=same,
            )
    telling = Telling(left.topic)
    telling.add(square.n_pairs(left.source, right.source))
    telling.send()
    return Reduced(state, _tally(left, right, square, ones, others))


def _read(job: Job, run: Stripe, raw: Sequence[Raw] | None) -> list[Rows]:
    given = [None] * len(run.blocks) if raw is None else raw
    return [
        read_rows(job.source, block, values, job.nonfinite)
        for block, values in zip(run.blocks, given, strict=True)
    ]


def _tally(left: Job, right: Job, square: Square, ones: list[Rows], others: list[Rows]) -> Tally:
    """Rows of the runs that no other square counts: each run is in many squares."""
    xp = namespace(ones[0].values)
    counted = []
    itself = square.diagonal or square.mirrored
    if square.diagonal or (not itself and square.right.first == 0):
        counted.append((left.source, square.left, ones))
    if not itself and square.left.first == 0:
        counted.append((right.source, square.right, others))
    kept = sum(int(rows.index.shape[0]) for _, _, run in counted for rows in run)
    total = sum(source.bounds[run.last] - source.bounds[run.first] for source, run, _ in counted)
    return Tally(xp.asarray(kept), xp.asarray(total - kept))
