"""What passes read, and what they found kept by earlier ones, for whoever asks."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Ledger:
    """What the passes of some calls did.

    Attributes
    ----------
    rows_read, rows_reused
        Rows that were to be read, and rows whose states were there; each counts in every pass.
    in_use
        Stores of the checkpoint folder that an equal call would look for.
    """

    rows_read: int = 0
    rows_reused: int = 0
    in_use: set[str] = field(default_factory=set)

    def note(self, *, read: int, reused: int, in_use: set[str]) -> None:
        """Add a pass."""
        self.rows_read += read
        self.rows_reused += reused
        self.in_use |= in_use


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
