"""What runs on workers: module-level functions of plain arguments."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import threadpoolctl
from distributed import get_worker

from bigkd.backends import namespace
from bigkd.engine.inputs import NonFinite, read_rows
from bigkd.engine.stripes import Stripe
from bigkd.io import Source, load_state, save_state
from bigkd.protocols import Array


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
    nonfinite: NonFinite
    first_row: int  # row number of the first row, where rows were summarised before
    topic: str | None  # where a worker process reports its progress


class Checkpoint(NamedTuple):
    """Where the state of one segment is kept."""

    path: str
    token: str


@functools.cache
def limit_blas() -> None:
    """Run BLAS on one thread for the rest of this process: thread counts change sums."""
    threadpoolctl.threadpool_limits(limits=1)


def run_stripe(job: Job, stripe: Stripe, raw: Sequence[Array] | None = None) -> Reduced:
    """State of the blocks of one stripe, read one after the other."""
    if job.topic is not None:
        limit_blas()
    state: Any = None
    rows = dropped = 0
    parts = read_rows(job.source, stripe.blocks, raw, job.nonfinite)
    for number, part in zip(stripe.blocks, parts, strict=True):
        if state is None:
            state = job.summary.init(part.values)
        size = job.source.bounds[number + 1] - job.source.bounds[number]
        kept = int(part.values.shape[0])
        if kept:
            numbered = part._replace(index=part.index + job.first_row)
            state = job.summary.update(state, numbered)
        rows, dropped = rows + kept, dropped + size - kept
        report(job.topic, size)
    xp = namespace(part.values)
    return Reduced(state, Tally(xp.asarray(rows), xp.asarray(dropped)))


def merge(job: Job, left: Reduced, right: Reduced) -> Reduced:
    """State of both."""
    tally = Tally(*(a + b for a, b in zip(left.tally, right.tally, strict=True)))
    return Reduced(job.summary.merge(left.state, right.state), tally)


def merge_tree(parts: Sequence[Any], join: Callable[[Any, Any], Any]) -> Any:
    """Join neighbours, level by level: the shape depends on the number of parts only."""
    level = list(parts)
    while len(level) > 1:
        pairs = [join(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def keep(reduced: Reduced, checkpoint: Checkpoint) -> Reduced:
    """Write a finished segment, and pass it on."""
    save_state(checkpoint.path, reduced, token=checkpoint.token)
    return reduced


def restore(job: Job, checkpoint: Checkpoint, rows: int) -> Reduced:
    """Read a finished segment of `rows` rows."""
    like = job.source.like()
    xp = namespace(like)
    template = Reduced(job.summary.init(like), Tally(xp.asarray(0), xp.asarray(0)))
    reduced = load_state(checkpoint.path, template, token=checkpoint.token)
    report(job.topic, rows)
    return reduced


def report(topic: str | None, rows: int) -> None:
    """Tell the client that `rows` more rows are done."""
    if topic is not None:
        get_worker().log_event(topic, {"rows": rows})
