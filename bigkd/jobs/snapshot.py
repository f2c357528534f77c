"""What a run reads, as it was when the run began; rows that arrive meanwhile wait for the next."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from bigkd.engine.work import require_unchanged
from bigkd.errors import BigkdError
from bigkd.io import Source


class Snapshot:
    """Collections that were opened once, for all comparisons of a run.

    What is kept of their blocks is named as they were then.
    """

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._used: set[str] = set()

    def source(self, key: str, opened: Callable[[], Source]) -> Source:
        """The collection `key`, which `opened` opens if nobody did before."""
        if key not in self._sources:
            source = opened()
            if source.may_change:
                source = replace(source, known=tuple(source.block_identities()))
            self._sources[key] = source
        self._used.add(key)
        return self._sources[key]

    def forget_uses(self) -> None:
        """What was opened until now was not used yet."""
        self._used.clear()

    def require_unchanged(self) -> None:
        """Look whether all that was opened since the last look is as it was at the beginning.

        Raises
        ------
        DataError
            If blocks of it were changed. The last block may be: see `bigkd.engine.work`.
        """
        used, self._used = self._used, set()
        for key in sorted(used):
            source = self._sources[key]
            require_unchanged(source, source.known or ())


_CURRENT: ContextVar[Snapshot | None] = ContextVar("snapshot", default=None)


@contextmanager
def one_snapshot(looks: Iterable[Callable[[], Any]]) -> Iterator[Snapshot]:
    """Inside, every collection is opened once. `looks` open what is known to be needed.

    What cannot be opened is for those to complain of that need it.
    """
    found = Snapshot()
    token = _CURRENT.set(found)
    try:
        for look in looks:
            with suppress(BigkdError, OSError):
                look()
        found.forget_uses()
        yield found
    finally:
        _CURRENT.reset(token)


def taken(key: str, opened: Callable[[], Source]) -> Source:
    """What `opened` opens; inside of a run, as it was at the beginning."""
    current = _CURRENT.get()
    return opened() if current is None else current.source(key, opened)


def require_unchanged_since() -> None:
    """`Snapshot.require_unchanged` of the run that goes on, if there is one."""
    current = _CURRENT.get()
    if current is not None:
        current.require_unchanged()
