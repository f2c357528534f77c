"""A pass cut into tasks: of stripes of rows, or of squares of pairs."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dask.delayed import delayed

from bigkd.engine.inputs import raw_blocks, without_graph
from bigkd.engine.pairs import Square, run_pairs
from bigkd.engine.stripes import Stripe
from bigkd.engine.tasks import Job, run_stripe


class Run:
    """Names of one computation, never used again."""

    def __init__(self, distributed: bool) -> None:
        self.name = uuid.uuid4().hex[:12]
        self.topic = f"bigkd-{self.name}" if distributed else None


@dataclass(frozen=True, kw_only=True)
class Work:
    """A pass, cut into tasks that each read some rows, or some pairs of them.

    Attributes
    ----------
    jobs, nodes
        What every task needs to know, as it is and as nodes of the graph.
    cuts
        What each task does.
    sizes
        Rows, or pairs of rows, of each task.
    start
        The delayed task of a number, after the one `before` it, under a key.
    chained
        Whether the tasks of a segment follow one another.
    """

    jobs: list[Job]
    nodes: list[Any]
    cuts: list[Any]
    sizes: list[int]
    start: Callable[[int, Any, str], Any]
    chained: bool

    @property
    def exact(self) -> bool:
        """Whether states are folded from left to right."""
        return bool(self.jobs[0].summary.exact)


def node_of(job: Job) -> Any:
    """What every task of a pass needs to know, as one node of the graph."""
    return delayed(job._replace(source=without_graph(job.source)), traverse=False)


def rows_work(job: Job, stripes: list[Stripe]) -> Work:
    """A pass over rows."""
    node, raw, bounds = node_of(job), raw_blocks(job.source), job.source.bounds

    def start(at: int, before: Any, key: str) -> Any:
        own = _of(stripes[at], raw)
        return delayed(run_stripe)(node, stripes[at], own, before, dask_key_name=key)

    return Work(
        jobs=[job],
        nodes=[node],
        cuts=list(stripes),
        sizes=[bounds[stripe.last] - bounds[stripe.first] for stripe in stripes],
        start=start,
        chained=job.summary.exact,
    )


def pairs_work(jobs: list[Job], squares: list[Square]) -> Work:
    """A pass over pairs of rows of two collections, or of one."""
    nodes, raws = [node_of(job) for job in jobs], [raw_blocks(job.source) for job in jobs]

    def start(at: int, before: Any, key: str) -> Any:
        square = squares[at]
        own = [_of(blocks, raw) for blocks, raw in zip(square[:2], raws, strict=True)]
        return delayed(run_pairs)(*nodes, square, *own, dask_key_name=key)

    return Work(
        jobs=jobs,
        nodes=nodes,
        cuts=list(squares),
        sizes=[square.n_pairs(*(job.source for job in jobs)) for square in squares],
        start=start,
        chained=False,
    )


def _of(run: Stripe, raw: list[Any] | None) -> list[Any] | None:
    """The delayed blocks of `run`, where blocks are delayed."""
    return None if raw is None else raw[run.first : run.last]
