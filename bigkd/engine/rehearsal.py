"""Passes planned and not run: what a call would do, known before the long work.

A call whose scheduler is a `Rehearsal` goes its own way, from pass to pass, with the collections
that it was given: every plan is the one that it would have. But a pass works on its first rows
only, here, which tells what a row costs; and the call goes on with what these left behind. So what
it decides by looking at all rows, it decides by looking at a few.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bigkd.engine.cost import TaskCosts, Workers
from bigkd.engine.memory import Plan
from bigkd.engine.progress import Watch
from bigkd.engine.timing import Timer
from bigkd.errors import BigkdError


class RehearsalEnded(Exception):
    """What comes next can only be known when the call is run."""


class Rehearsed(NamedTuple):
    """A pass that was planned."""

    plan: Plan
    unit: str
    """What its tasks count: ``"rows"``, or ``"pairs"``."""

    n_reused: int
    """Rows, or pairs, whose states are kept from before."""

    costs: TaskCosts | None
    """What its tasks take; None where that was not found out."""

    bytes_written: int = 0
    """To a store in tiles; states are not counted."""


@dataclass(kw_only=True)
class Rehearsal:
    """Stands for the place where a call would run; pass it as its scheduler.

    Attributes
    ----------
    workers
        What it would run on.
    thread_bytes
        What each of their threads has.
    distributed
        Whether they are processes of a cluster.
    same_machine
        Whether they are on this machine.
    passes
        What was planned, in order.
    task_seconds
        What this process spent on work that workers would do.
    reading_failed
        Whether the first rows of a collection could not be read.
    timer
        What works on these rows.
    """

    workers: Workers
    thread_bytes: int
    distributed: bool = False
    same_machine: bool = True
    passes: list[Rehearsed] = field(default_factory=list)
    task_seconds: float = 0.0
    reading_failed: bool = False
    timer: Timer = field(default_factory=Timer)

    def available(self) -> int:
        """Bytes that one task may use."""
        return self.thread_bytes

    def compute(self, root: Any, *, watch: Watch, topic: str, rows: dict[str, int]) -> Any:
        """Nothing is run."""
        raise AssertionError("a rehearsal computes no graph")

    @contextmanager
    def task(self, *, own_data: bool) -> Iterator[None]:
        """Time what workers would do; of `own_data` of the call a fault is a fault of a run."""
        began = time.perf_counter()
        try:
            yield
        except BigkdError:
            self.reading_failed = own_data
            raise
        finally:
            self.task_seconds += time.perf_counter() - began
