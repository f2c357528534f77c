"""What passes read, and what they found kept by earlier ones, for whoever asks."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple


class Account(NamedTuple):
    """What a pass reads, and what it need not."""

    read: int
    """Rows that are read."""

    reused: int
    """Rows whose states are kept."""

    in_use: frozenset[str]
    """Stores of the checkpoint folder that an equal pass would look for."""


@dataclass(kw_only=True)
class Ledger:
    """What the passes of some calls did."""

    passes: list[Account] = field(default_factory=list)

    @property
    def rows_read(self) -> int:
        """Rows that were to be read; each counts in every pass."""
        return sum(one.read for one in self.passes)

    @property
    def rows_reused(self) -> int:
        """Rows whose states were there; each counts in every pass."""
        return sum(one.reused for one in self.passes)

    @property
    def in_use(self) -> set[str]:
        """Stores of the checkpoint folder that equal calls would look for."""
        return set().union(*(one.in_use for one in self.passes))


_ledger: ContextVar[Ledger | None] = ContextVar("bigkd_ledger", default=None)


@contextmanager
def open_ledger() -> Iterator[Ledger]:
    """A ledger of every pass that is begun inside, in this thread."""
    ledger = Ledger()
    before = _ledger.set(ledger)
    try:
        yield ledger
    finally:
        _ledger.reset(before)


def current_ledger() -> Ledger:
    """The ledger to write to; one that nobody reads where nobody asked."""
    return _ledger.get() or Ledger()
