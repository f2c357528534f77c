"""The graph of a pass: its segments, those that are kept, and how they are joined."""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from dask.delayed import delayed

from bigkd.engine.checkpoints import Checkpoint, Found, Kept, Shelf, keep, restore
from bigkd.engine.ledger import Account
from bigkd.engine.stripes import cut_chapters, cut_segments
from bigkd.engine.tasks import merge
from bigkd.engine.work import Run, Work

_FEWEST_JOINED = 4
"""Segments whose sum is worth a state of its own: the next call reads it in their place."""

_LOOKS_AT_ONCE = 16
"""At kept states; each takes a round trip or two to an object store."""


class Graph(NamedTuple):
    """A pass, ready to be computed."""

    root: Any
    """Delayed."""

    sizes: dict[str, int]
    """Rows, or pairs, that tasks stand for, by their keys."""

    account: Account

    written: Mapping[str, Sequence[str]]
    """Stores of states that it writes, and names of what each is made from."""


class GraphBuilder:
    """Builds the graph of one pass.

    Tasks that read are called ``first-`` where nothing is before them, for Dask holds back tasks
    without inputs until a worker is free, by the name of their group; ``next-`` those that go on
    from another, which are their workers' first choice.
    """

    def __init__(self, work: Work, run: Run, kept: Kept | None) -> None:
        self._work, self._run = work, run
        self._sizes: dict[str, int] = {}
        self._in_use: set[str] = set()
        self._written: dict[str, Sequence[str]] = {}
        self._reused = 0
        self._join = functools.partial(delayed(merge), work.node)
        self._segments = cut_segments(len(work.cuts))
        self._shelves: list[Shelf] = []
        self._sums: Shelf | None = None
        if kept is not None:
            self._shelves = [
                kept.shelf(f"{number:05d}", work.content(segment))
                for number, segment in enumerate(self._segments)
            ]
            self._sums = kept.shelf("sum-of", [shelf.key for shelf in self._shelves])

    def build(self) -> Graph:
        """The whole pass."""
        if self._work.exact:
            root = self._folded()
        else:
            sizes = [len(segment) for segment in self._segments]
            root = join_tree(self._states(range(len(sizes))), sizes, self._join)
        return Graph(root, self._sizes, self._account(), self._written)

    def _folded(self) -> Any:
        """The segments of each chapter from left to right, and then the chapters.

        The sum of all chapters but the last, which may grow, is kept as well.
        """
        chapters = cut_chapters(len(self._segments))
        begun, total = self._earlier_sum(chapters)
        states = iter(self._states(range(chapters[begun].start, chapters[-1].stop)))
        for chapter in chapters[begun:]:
            if chapter == chapters[-1] and begun < len(chapters) - 1:
                total = self._keep_sum(total, chapter.start)
            whole = functools.reduce(self._join, itertools.islice(states, len(chapter)))
            total = whole if total is None else self._join(total, whole)
        return total

    def _earlier_sum(self, chapters: Sequence[range]) -> tuple[int, Any]:
        """How many chapters an earlier call has the sum of, and that sum."""
        begun = {chapter.start: number for number, chapter in enumerate(chapters) if number}
        found = None if self._sums is None else self._sums.find(reversed(begun))
        if found is None:
            return 0, None
        self._in_use.add(found.checkpoint.path)
        stop = self._segments[found.n_parts - 1].stop
        rows = sum(map(self._work.size, self._work.cuts[:stop]))
        total = self._restored(found.checkpoint, rows, f"sum-{found.n_parts}")
        return begun[found.n_parts], total

    def _keep_sum(self, total: Any, n_segments: int) -> Any:
        if self._sums is None or n_segments < _FEWEST_JOINED:
            return total
        place = self._sums.place(n_segments)
        self._in_use.add(place.path)
        parts = range(self._segments[n_segments - 1].stop)
        return self._keeping(total, place, self._work.content(parts))

    def _states(self, numbers: range) -> list[Any]:
        """States of segments, in order; what earlier calls kept of them is looked up at once."""
        if not self._shelves:
            return [self._made(number, None, 0, self._n_parts(number)) for number in numbers]
        with ThreadPoolExecutor(_LOOKS_AT_ONCE) as pool:
            return list(map(self._segment, numbers, pool.map(self._look, numbers)))

    def _look(self, number: int) -> Found | None:
        n_parts = self._n_parts(number)
        return self._shelves[number].find(
            range(n_parts, 0, -1) if self._work.chained else [n_parts]
        )

    def _segment(self, number: int, found: Found | None) -> Any:
        """State of a segment: kept by an earlier call, or gone on from what is."""
        done, state = 0, None
        if found is not None:
            done = found.n_parts
            state = self._restored(found.checkpoint, self._size(number, 0, done), str(number))
        for stop in self._stops(number):
            if done < stop:
                place = self._shelves[number].place(stop)
                content = self._work.content(self._segments[number])[:stop]
                state = self._keeping(self._made(number, state, done, stop), place, content)
                done = stop
        return state

    def _stops(self, number: int) -> list[int]:
        """After how many parts a state is kept.

        The last block of all may not be full yet, and be another one when rows are added: the state
        before it is kept, too.
        """
        n_parts = self._n_parts(number)
        is_last = number == len(self._segments) - 1
        return [n_parts - 1, n_parts] if is_last and self._work.chained else [n_parts]

    def _n_parts(self, number: int) -> int:
        return self._work.n_parts(self._segments[number])

    def _made(self, number: int, before: Any, first: int, last: int) -> Any:
        """State of the parts ``first:last`` of a segment, after the state `before` them, if any."""
        parts = [] if before is None else [before]
        for at, cut in enumerate(self._work.cuts_of(self._segments[number], first, last)):
            before = parts.pop() if self._work.chained and parts else None
            key = f"{'first' if before is None else 'next'}-{self._run.name}-{number}-{first}-{at}"
            self._sizes[key] = self._work.size(cut)
            parts.append(self._work.start(cut, before, key))
        if self._work.exact:
            return functools.reduce(self._join, parts)
        return join_tree(parts, [1] * len(parts), self._join)

    def _size(self, number: int, first: int, last: int) -> int:
        return sum(map(self._work.size, self._work.cuts_of(self._segments[number], first, last)))

    def _restored(self, checkpoint: Checkpoint, rows: int, label: str) -> Any:
        key = f"restore-{self._run.name}-{label}"
        self._sizes[key] = rows
        self._reused += rows
        return delayed(restore)(self._work.node, checkpoint, rows, dask_key_name=key)

    def _keeping(self, state: Any, place: Checkpoint, content: Sequence[str]) -> Any:
        self._written[place.path] = content
        return delayed(keep)(state, place)

    def _account(self) -> Account:
        """What is read; states below a sum count as used, for a block of theirs may change."""
        for number, shelf in enumerate(self._shelves):
            self._in_use.update(shelf.place(stop).path for stop in self._stops(number) if stop)
        whole = self._work.rows(1.0)
        read = self._work.rows(1.0 - self._reused / sum(map(self._work.size, self._work.cuts)))
        return Account(read, whole - read, frozenset(self._in_use))


def join_tree(parts: Sequence[Any], sizes: Sequence[int], join: Callable[[Any, Any], Any]) -> Any:
    """Join neighbours in a pairwise tree of as many leaves as all `sizes` together.

    Each part is a subtree of `sizes` leaves already. The tree splits where a power of two of leaves
    is on its left, so that its shape depends on the number of leaves only.
    """
    if len(parts) == 1:
        return parts[0]
    half = 1 << (sum(sizes) - 1).bit_length() - 1
    count, leaves = 0, 0
    while leaves < half:
        leaves += sizes[count]
        count += 1
    left = join_tree(parts[:count], sizes[:count], join)
    return join(left, join_tree(parts[count:], sizes[count:], join))
