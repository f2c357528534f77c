"""Progress of long work: a bar in a terminal or notebook, JSON lines in a log file, or a call."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Event(NamedTuple):
    """Where one pass stands."""

    label: str
    done: int
    """Rows done, or pairs of rows."""

    total: int
    """Rows of the pass, or pairs of rows."""

    seconds: float
    """Since the pass began."""

    unit: str = "rows"
    """What is counted: ``"rows"``, or ``"pairs"``."""


Reporting: TypeAlias = bool | str | Path | Callable[[Event], None] | None
"""True for a bar, a path for a log of JSON lines, a function to be called; None for silence."""


_PART: ContextVar[str] = ContextVar("bigkd_part", default="")


@contextmanager
def part_of_a_job(name: str) -> Iterator[None]:
    """Let the labels of all passes inside begin with the name of the part that makes them."""
    before = _PART.set(f"{name}: " if name else "")
    try:
        yield
    finally:
        _PART.reset(before)


class Reporter(Protocol):
    """What shows an event."""

    def __call__(self, event: Event) -> None:
        """Show `event`."""
        ...

    def close(self) -> None:
        """Stop showing."""
        ...


class Bar:
    """A bar for each pass, by rich: in a notebook, or on stderr, for stdout may be piped."""

    def __init__(self) -> None:
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} {task.fields[unit]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._tasks: dict[str, TaskID] = {}
        self._bars.start()

    def __call__(self, event: Event) -> None:
        """Move the bar of the event's pass."""
        if event.label not in self._tasks:
            self._tasks[event.label] = self._bars.add_task(
                event.label, total=event.total, unit=event.unit
            )
        self._bars.update(self._tasks[event.label], completed=event.done)

    def close(self) -> None:
        """Leave the bars as they stand."""
        self._bars.stop()


class Log:
    """A line of JSON for each event, at most one a second, and one for the end of each pass.

    With the time of the event, in UTC.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._last = float("-inf")

    def __call__(self, event: Event) -> None:
        """Append a line."""
        now = time.monotonic()
        if event.done >= event.total or now - self._last >= 1.0:
            self._last = now
            when = datetime.now(UTC).isoformat(timespec="seconds")
            self._file.write(json.dumps({"time": when, **event._asdict()}) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Call:
    """A function of the user's."""

    def __init__(self, function: Callable[[Event], None]) -> None:
        self._function = function

    def __call__(self, event: Event) -> None:
        """Call it."""
        self._function(event)

    def close(self) -> None:
        """Nothing to close."""


def reporter(progress: Reporting) -> Reporter:
    """The reporter that `progress` asks for."""
    if callable(progress):
        return Call(progress)
    if isinstance(progress, str | Path):
        return Log(Path(progress))
    return Bar() if progress else Call(lambda _: None)


class Watch:
    """Counts the rows of one pass, or pairs, and knows when something last happened.

    Events may come from another thread, and late: after the pass they are not shown any more.
    """

    def __init__(self, show: Reporter, label: str, total: int, unit: str = "rows") -> None:
        self._show, self._total, self._unit = show, total, unit
        self._label = f"{_PART.get()}{label}"
        self._done = 0
        self._began = self._moved = time.monotonic()
        self._lock = threading.Lock()
        self._open = True
        self._failure: Exception | None = None

    def __enter__(self) -> Self:
        self.advance(0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None and self._done < self._total:
            self.advance(self._total - self._done)
        with self._lock:
            self._open = False

    def advance(self, rows: int) -> None:
        """Count `rows` more; a block that is read again after a fault counts once."""
        with self._lock:
            if not self._open:
                return
            self._moved = time.monotonic()
            self._done = min(self._total, self._done + rows)
            seconds = self._moved - self._began
            self._show(Event(self._label, self._done, self._total, seconds, self._unit))

    def on_event(self, event: Any) -> None:
        """Count what a worker process reported; `check` raises what the reporter raised."""
        try:
            self.advance(int(event[1]["rows"]))
        except Exception as error:  # the client's event loop would only log it
            self._failure = self._failure or error

    def check(self) -> None:
        """Raise what showing an event raised in another thread."""
        if self._failure is not None:
            raise self._failure

    @property
    def idle(self) -> float:
        """Seconds since something last happened."""
        return time.monotonic() - self._moved
