"""What a pass costs on a cluster: seconds, bytes moved, tasks; from what one task costs."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bigkd.engine.stripes import cut_chapters, cut_segments

LINK_BYTES = 1e9
"""Bytes a second that a worker exchanges with another one: 10 Gbit/s, less what headers take."""

TASK_SECONDS = 1e-3
"""What the scheduler, and a worker's event loop, need for one task; see ``deploy/scale.md``."""

BUILD_SECONDS = 3e-4
"""What the client needs to build and send one task of a graph."""


@dataclass(frozen=True, kw_only=True)
class Workers:
    """What a pass runs on.

    Attributes
    ----------
    n_threads
        Tasks at once, on all workers together.
    apart
        Whether the threads belong to several processes, which send states to one another.
    link_bytes
        Bytes a second between two workers.
    """

    n_threads: int
    apart: bool = False
    link_bytes: float = LINK_BYTES


@dataclass(frozen=True, kw_only=True)
class TaskCosts:
    """What the tasks of one pass take, measured or assumed.

    Attributes
    ----------
    sizes
        Rows, or pairs of rows, of each reading task, in order.
    exact, chained
        Whether states are folded from left to right; whether the tasks of a segment follow one
        another, each from the state before it.
    seconds_each
        Of one row, or pair, read and summarised.
    state_bytes
        Of one state.
    merge_seconds, keep_seconds
        To join two states, and to write one to the checkpoint folder; 0 where none is kept.
    n_reused
        Rows, or pairs, of the first tasks whose states are kept from before.
    joined
        Whether there are states at all: not where tasks write what they make.
    """

    sizes: Sequence[int]
    exact: bool = True
    chained: bool = True
    seconds_each: float
    state_bytes: int = 0
    merge_seconds: float = 0.0
    keep_seconds: float = 0.0
    n_reused: int = 0
    joined: bool = True


class PassCost(NamedTuple):
    """What a pass costs."""

    seconds: float
    """From its first task to its answer."""

    work_seconds: float
    """Of all threads together."""

    chain_seconds: float
    """With more workers than there are tasks."""

    scheduler_seconds: float
    """What the client and the scheduler do; the scheduler meanwhile, as far as it keeps up."""

    bytes_moved: int
    """Between workers, and to the client."""

    bytes_kept: int
    """Written to the checkpoint folder; 0 where nothing is kept."""

    n_tasks: int
    """All of them: reading, joining, keeping."""


def pass_cost(costs: TaskCosts, workers: Workers) -> PassCost:
    """Play a pass: every thread takes the next segment, and states are joined as they are done.

    Joins are counted in the threads' work, but do not wait for a free thread. What is not counted:
    workers that are slower than others, reads that wait for one another, and faults.
    """
    sizes = _rest(costs)
    segments = [part for part in cut_segments(len(sizes)) if any(sizes[at] for at in part)]
    if not segments:
        return PassCost(0.0, 0.0, 0.0, 0.0, 0, 0, 0)
    chains = [[sizes[at] * costs.seconds_each for at in part if sizes[at]] for part in segments]
    n_reading = sum(map(len, chains))
    send = costs.state_bytes / workers.link_bytes if workers.apart else 0.0
    join = costs.merge_seconds + send
    n_kept = len(segments) if costs.keep_seconds else 0
    n_joins = _n_joins(costs, len(segments), n_reading)
    n_tasks = n_reading + n_joins + n_kept
    work = sum(map(sum, chains)) + n_joins * costs.merge_seconds + n_kept * costs.keep_seconds
    scheduling = n_tasks * TASK_SECONDS if workers.apart else 0.0
    building = n_tasks * BUILD_SECONDS
    last = _joined(_finished(costs, chains, workers.n_threads), costs, join)
    return PassCost(
        seconds=building + max(last, work / workers.n_threads, scheduling) + send,
        work_seconds=work,
        chain_seconds=_joined(_finished(costs, chains, n_reading), costs, join),
        scheduler_seconds=building + scheduling,
        bytes_moved=(n_joins + 1) * costs.state_bytes if workers.apart and costs.joined else 0,
        bytes_kept=n_kept * costs.state_bytes,
        n_tasks=n_tasks,
    )


def _rest(costs: TaskCosts) -> list[int]:
    """What is left to do of each task."""
    sizes, kept = [], costs.n_reused
    for size in costs.sizes:
        sizes.append(max(0, size - kept))
        kept = max(0, kept - size)
    return sizes


def _n_joins(costs: TaskCosts, n_segments: int, n_reading: int) -> int:
    """Joins of what is new, and with what is kept."""
    if not costs.joined:
        return 0
    return (n_segments if costs.chained else n_reading) - 1 + int(costs.n_reused > 0)


def _finished(costs: TaskCosts, chains: Sequence[Sequence[float]], n_threads: int) -> list[float]:
    """When each segment is done, where each free thread takes what comes next."""
    free = [0.0] * max(1, min(n_threads, sum(map(len, chains))))
    done = []
    for times in chains:
        ends = []
        for seconds in [sum(times)] if costs.chained and costs.joined else times:
            end = free[0] + seconds
            heapq.heapreplace(free, end)
            ends.append(end)
        joins = (len(times) - 1).bit_length() if costs.joined and not costs.chained else 0
        done.append(max(ends) + joins * costs.merge_seconds + costs.keep_seconds)
    return done


def _joined(finished: Sequence[float], costs: TaskCosts, join: float) -> float:
    """When the last of all joins is done."""
    if not costs.joined:
        return max(finished)
    if costs.exact:
        chapters = cut_chapters(len(finished))
        return _folded([_folded(finished[at.start : at.stop], join) for at in chapters], join)
    level = list(finished)
    while len(level) > 1:
        pairs = [
            max(one, other) + join for one, other in zip(level[::2], level[1::2], strict=False)
        ]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def _folded(ready: Sequence[float], join: float) -> float:
    end = ready[0]
    for other in ready[1:]:
        end = max(end, other) + join
    return end
