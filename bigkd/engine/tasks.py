"""What runs on workers: module-level functions of plain arguments."""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import threadpoolctl
from distributed import get_worker

from bigkd.backends import namespace
from bigkd.engine.alignment import aligned
from bigkd.engine.inputs import Policy, Raw, read_rows
from bigkd.engine.stripes import Stripe
from bigkd.io import Source
from bigkd.protocols import Array

REPORT_SECONDS = 0.1
"""After which a task reports what it has done; then it waits twice as long every time."""

LONGEST_REPORT_SECONDS = 1.0
"""And at last this long: a report costs the scheduler of all workers about 0.1 ms."""


class Tally(NamedTuple):
    """How many rows went into a state."""

    rows: Array  # (), rows summarised
    dropped: Array  # (), rows left out because they were not finite


class Reduced(NamedTuple):
    """What a pass leaves behind."""

    state: Any
    tally: Tally


class Job(NamedTuple):
    """What every task of one pass needs to know."""

    summary: Any  # a Summary, or a PairSummary
    source: Source
    nonfinite: Policy
    first_row: int  # row number of the first row, where rows were summarised before
    topic: str | None  # where a worker process reports its progress


_limited = threading.local()


def limit_blas() -> None:
    """Run BLAS on one thread for the rest of this thread's life: thread counts change sums.

    Worker processes only: most BLAS libraries are limited for the whole process by it.
    """
    if not getattr(_limited, "yes", False):
        threadpoolctl.threadpool_limits(limits=1)
        _limited.yes = True


def prepared(job: Job) -> Job:
    """`job` as a task may use it, in a process where the same products give the same bits."""
    if job.topic is not None:
        limit_blas()
    return job._replace(summary=aligned(job.summary))


def run_stripe(
    job: Job, stripe: Stripe, raw: Sequence[Raw] | None = None, before: Reduced | None = None
) -> Reduced:
    """State of the blocks of one stripe, read one after the other; of those `before` it, too."""
    job = prepared(job)
    telling = Telling(job.topic)
    # A copy: the scheduler keeps `before` as it is, for a second attempt.
    state: Any = None if before is None else copied(before.state)
    kept = total = 0
    xp: Any = None
    for at, block in enumerate(stripe.blocks):
        given = None if raw is None else raw[at]
        rows = read_rows(job.source, block, given, job.nonfinite)
        xp = namespace(rows.values)
        if state is None:
            state = job.summary.init(rows.values)
        size, n_rows = job.source.bounds[block + 1] - job.source.bounds[block], rows.index.shape[0]
        if n_rows:
            rows = rows._replace(index=rows.index + job.first_row)
            state = job.summary.update(state, rows)
        del rows, given  # gone before the next block is read
        kept, total = kept + int(n_rows), total + size
        telling.add(size)
    telling.send()
    tally = Tally(xp.asarray(kept), xp.asarray(total - kept))
    return Reduced(state, tally if before is None else add_tallies(before.tally, tally))


def copied(state: Any) -> Any:
    """`state` in memory of its own."""
    if isinstance(state, tuple):
        parts = [copied(part) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return namespace(state).asarray(state, copy=True)


def add_tallies(left: Tally, right: Tally) -> Tally:
    """Rows of both."""
    return Tally(left.rows + right.rows, left.dropped + right.dropped)


def merge(job: Job, left: Reduced, right: Reduced) -> Reduced:
    """State of both."""
    job = prepared(job)
    if not job.summary.exact:  # exact summaries add, which no alignment changes
        left, right = aligned(left), aligned(right)
    tally = add_tallies(left.tally, right.tally)
    return Reduced(job.summary.merge(left.state, right.state), tally)


class Telling:
    """Tells the client how many rows are done: soon, and then less and less often."""

    def __init__(self, topic: str | None) -> None:
        self._topic, self._pause = topic, REPORT_SECONDS
        self._rows, self._last = 0, time.monotonic()

    def add(self, rows: int) -> None:
        """`rows` more rows are done."""
        self._rows += rows
        if time.monotonic() - self._last >= self._pause:
            self._pause = min(2 * self._pause, LONGEST_REPORT_SECONDS)
            self.send()

    def send(self) -> None:
        """Tell what was not told yet; a result is worth more than a report that cannot be sent."""
        self._last = time.monotonic()
        if self._topic is not None and self._rows:
            with suppress(OSError, RuntimeError, ValueError):
                get_worker().log_event(self._topic, {"rows": self._rows})
        self._rows = 0
