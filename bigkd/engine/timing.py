"""What the tasks of a pass take, from the first rows of it, worked on in this process."""

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import threadpoolctl
from dask.base import compute

from bigkd.backends import namespace
from bigkd.engine.inputs import raw_blocks, read_rows
from bigkd.engine.pairs import Square
from bigkd.engine.tasks import Job, Reduced, Tally, prepared
from bigkd.engine.tiles import Tiling
from bigkd.io import Source
from bigkd.protocols import Footprint, Rows

TIMED_WORK = 40_000_000_000
"""Multiply-adds that are timed at most: about a second."""

READ_ROWS = 2_048
"""Rows of a collection that are read, in whole blocks, if there is not too much to do with them."""

FEWEST_ROWS = 16
"""Rows that are worked on, however much one costs."""


class Timed(NamedTuple):
    """What a few rows left behind, and what they took."""

    reduced: Reduced
    read_seconds: float
    """Of one row."""

    work_seconds: float
    """Of one row, or of one pair."""


class Seen(NamedTuple):
    """The first rows of a collection."""

    source: Source
    blocks: list[Rows]
    n_read: int
    """Rows of these blocks; more than they hold where some were dropped."""

    seconds: float
    """To read one row."""

    @property
    def n_rows(self) -> int:
        """Rows that are there."""
        return sum(_size(block) for block in self.blocks)


class Timer:
    """Works on the first rows of collections, which it reads once.

    Where a pass needs more rows than were read, it gets the same ones again under other numbers, so
    that all of them lie where those of the pass before did.
    """

    def __init__(self) -> None:
        self._seen: dict[int, Seen] = {}

    def rows(self, job: Job, cost: Footprint) -> Timed:
        """Summarise the first rows of a pass, whose updates cost `cost`.

        At least as many as a state may hold, so that what is kept of them has its true size. What
        is done at first use only is done with the first few, which are not timed.

        Raises
        ------
        DataError
            If they cannot be read.
        """
        job, source = prepared(job._replace(topic=None)), job.source
        most = max(FEWEST_ROWS, TIMED_WORK // max(1, cost.row_cost))
        seen = self._first(job, min(most, READ_ROWS))
        enough = max(seen.n_rows, cost.state // max(1, source.row_bytes))
        state = job.summary.init(seen.blocks[0].values)
        times: list[tuple[float, int]] = []
        with one_thread():
            for rows in _runs(seen, min(most, enough, source.n_rows)):
                began = time.perf_counter()
                numbered = rows._replace(index=rows.index + job.first_row)
                state = job.summary.update(state, numbered)
                times.append((time.perf_counter() - began, _size(rows)))
        counted = times[1:] or times or [(0.0, 1)]
        each = sum(spent for spent, _ in counted) / sum(size for _, size in counted)
        return Timed(Reduced(state, _tally(seen)), seen.seconds, each)

    def pairs(self, jobs: Sequence[Job], cost: Footprint) -> Timed:
        """Summarise the pairs of some rows; of one collection, of two blocks where there are some.

        Raises
        ------
        DataError
            If they cannot be read.
        """
        left, right = (prepared(job._replace(topic=None)) for job in jobs)
        most = max(FEWEST_ROWS, math.isqrt(TIMED_WORK // max(1, cost.row_cost)))
        seen = [self._first(job, min(most, READ_ROWS)) for job in (left, right)]
        one, other = (_cut(each.blocks[0], 0, most) for each in seen)
        few, others = _cut(one, 0, _size(one) // 4 + 1), _cut(other, 0, _size(other) // 4 + 1)
        itself = left.source is right.source
        last = {"mirrored": False, "diagonal": itself}
        if itself and len(seen[0].blocks) > 1:
            other, last = _cut(seen[0].blocks[1], 0, most), {"mirrored": True, "diagonal": False}
        state, began = left.summary.init(one.values), time.perf_counter()
        with one_thread():
            if _size(few) and _size(others):  # what is done at first use is not timed
                state = left.summary.update(state, few, others, mirrored=False, diagonal=itself)
            began = time.perf_counter()
            if _size(one) and _size(other):
                state = left.summary.update(state, one, other, **last)
            spent = time.perf_counter() - began
        n_pairs = max(1, _size(one) * _size(other))
        tally = _tally(seen[0]) if itself else _both(_tally(seen[0]), _tally(seen[1]))
        reading = max(each.seconds for each in seen)
        return Timed(Reduced(state, tally), reading, spent / n_pairs)

    def tile(self, tiling: Tiling) -> tuple[Any, float]:
        """A part of the first tile, and the seconds of each of its rows or pairs.

        Raises
        ------
        DataError
            If what it is made from cannot be read.
        """
        jobs = [prepared(job._replace(topic=None)) for job in tiling.jobs]
        seen = [self._first(job, 1) for job in jobs]
        most = tiling.step or None
        parts = [_cut(each.blocks[0], 0, most) for each in seen]
        with one_thread():
            jobs[0].summary(*(_cut(part, 0, 1) for part in parts))  # first use is not timed
            began = time.perf_counter()
            made = jobs[0].summary(*parts)
            spent = time.perf_counter() - began
        spent += sum(each.seconds * _size(part) for each, part in zip(seen, parts, strict=True))
        return made, spent / math.prod(map(_size, parts))

    def _first(self, job: Job, most: int) -> Seen:
        """The first blocks of a collection: at least one, and until they hold `most` rows."""
        known = self._seen.get(id(job.source))
        if known is not None:
            return known
        source, blocks, n_read, seconds = job.source, [], 0, math.inf
        for block in range(source.n_blocks):
            n_rows = source.bounds[block + 1] - source.bounds[block]
            began = time.perf_counter()
            blocks.append(_read(job, block))
            seconds = min(seconds, (time.perf_counter() - began) / n_rows)
            n_read += n_rows
            if n_read >= most:
                break
        return self._seen.setdefault(id(source), Seen(source, blocks, n_read, seconds))


def n_pairs_of(square: Square, jobs: Sequence[Job]) -> int:
    """Pairs that a square computes: of a collection with itself each unordered pair of blocks."""
    left, right = (job.source for job in jobs)
    if not square.diagonal:
        return square.n_pairs(left, right)
    sizes = [left.bounds[block + 1] - left.bounds[block] for block in square.left.blocks]
    return (sum(sizes) ** 2 + sum(size**2 for size in sizes)) // 2


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS as tasks use it."""
    with threadpoolctl.threadpool_limits(limits=1):
        yield


def _read(job: Job, block: int) -> Rows:
    raws = raw_blocks(job.source)
    raw = None if raws is None else compute(raws[block], scheduler="threads")[0]
    return read_rows(job.source, block, raw, job.nonfinite)


def _runs(seen: Seen, n_rows: int) -> Iterator[Rows]:
    """The blocks that were read, again and again, until there are `n_rows`; a few rows first."""
    first, *others = seen.blocks
    few, done = min(_size(first), n_rows) // 4, 0
    fresh = [_cut(first, 0, few), _cut(first, few, None), *others]
    for at, block in enumerate(itertools.chain(fresh, itertools.cycle(seen.blocks))):
        if done >= n_rows or not seen.n_rows:
            return
        rows = _cut(block, 0, n_rows - done)
        if _size(rows):
            again = at >= len(fresh)
            yield rows._replace(index=rows.index - rows.index[0] + done) if again else rows
            done += _size(rows)


def _cut(rows: Rows, start: int, stop: int | None) -> Rows:
    return Rows(*(None if part is None else part[start:stop, ...] for part in rows))


def _size(rows: Rows) -> int:
    return int(rows.index.shape[0])


def _tally(seen: Seen) -> Tally:
    """Rows kept and dropped, if it goes on as it began."""
    xp, n_rows = namespace(seen.blocks[0].values), seen.source.n_rows
    kept = min(n_rows, math.ceil(n_rows * seen.n_rows / seen.n_read))
    return Tally(xp.asarray(kept), xp.asarray(n_rows - kept))


def _both(one: Tally, other: Tally) -> Tally:
    return Tally(one.rows + other.rows, one.dropped + other.dropped)
