"""The graph of a pass: its segments, those that are kept, and how they are joined."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dask.delayed import delayed

from bigkd.engine.checkpoints import Checkpoint, Kept, keep, restore
from bigkd.engine.ledger import current_ledger
from bigkd.engine.stripes import cut_chapters, cut_segments
from bigkd.engine.tasks import merge
from bigkd.engine.work import Run, Work

_FEWEST_JOINED = 4
"""Segments whose sum is worth a state of its own: the next call reads it in their place."""


class Graph(NamedTuple):
    """A pass, ready to be computed."""

    root: Any
    """Delayed."""

    sizes: dict[str, int]
    """Rows, or pairs, that tasks stand for, by their keys."""


class GraphBuilder:
    """Builds the graph of one pass.

    Tasks that read are called ``first-`` where nothing is before them, for Dask holds back tasks
    without inputs until a worker is free, by the name of their group; ``next-`` those that go on
    from another, which are their workers' first choice.
    """

    def __init__(self, work: Work, run: Run, folder: str | Path | None) -> None:
        self._work, self._run = work, run
        self._kept = None if folder is None else Kept(folder, work.token)
        self._sizes: dict[str, int] = {}
        self._in_use: set[str] = set()
        self._reused = 0
        self._join = functools.partial(delayed(merge), work.node)
        self._segments = cut_segments(len(work.cuts))

    def build(self) -> Graph:
        """The whole pass; what it reads and finds is noted in the ledger."""
        if self._work.exact:
            root = self._folded()
        else:
            sizes = [len(segment) for segment in self._segments]
            nodes = [self._segment(number) for number in range(len(sizes))]
            root = join_tree(nodes, sizes, self._join)
        self._note()
        return Graph(root, self._sizes)

    def _folded(self) -> Any:
        """The segments of each chapter from left to right, and then the chapters.

        The sum of all chapters but the last, which may grow, is kept as well.
        """
        chapters = cut_chapters(len(self._segments))
        begun, total = self._earlier_sum(chapters)
        for chapter in chapters[begun:]:
            if chapter == chapters[-1] and begun < len(chapters) - 1:
                total = self._keep_sum(total, chapter.start)
            whole = functools.reduce(self._join, map(self._segment, chapter))
            total = whole if total is None else self._join(total, whole)
        return total

    def _earlier_sum(self, chapters: Sequence[range]) -> tuple[int, Any]:
        """How many chapters an earlier call has the sum of, and that sum."""
        if self._kept is None:
            return 0, None
        for n_chapters in range(len(chapters) - 1, 0, -1):
            n_segments = chapters[n_chapters].start
            found = self._kept.find(_sum_label(n_segments), self._content(n_segments), partly=False)
            if found is not None:
                self._in_use.add(found.checkpoint.path)
                stop = self._segments[n_segments - 1].stop
                rows = sum(map(self._work.size, self._work.cuts[:stop]))
                return n_chapters, self._restored(found.checkpoint, rows, f"sum-{n_segments}")
        return 0, None

    def _keep_sum(self, total: Any, n_segments: int) -> Any:
        if self._kept is None or n_segments < _FEWEST_JOINED:
            return total
        place = self._kept.place(_sum_label(n_segments), self._content(n_segments))
        self._in_use.add(place.path)
        return delayed(keep)(total, place)

    def _content(self, n_segments: int) -> list[str]:
        return self._work.content(range(self._segments[n_segments - 1].stop))

    def _segment(self, number: int) -> Any:
        """State of a segment: kept by an earlier call, or gone on from what is."""
        content = self._work.content(self._segments[number])
        if self._kept is None:
            return self._made(number, None, 0, len(content))
        found = self._kept.find(_label(number), content, partly=self._work.chained)
        done, state = 0, None
        if found is not None:
            done = found.n_parts
            state = self._restored(found.checkpoint, self._size(number, 0, done), str(number))
        for stop in self._stops(number, len(content)):
            if done < stop:
                place = self._kept.place(_label(number), content[:stop])
                state = delayed(keep)(self._made(number, state, done, stop), place)
                done = stop
        return state

    def _stops(self, number: int, n_parts: int) -> list[int]:
        """After how many parts a state is kept.

        The last block of all may not be full yet, and be another one when rows are added: the state
        before it is kept, too.
        """
        is_last = number == len(self._segments) - 1
        return [n_parts - 1, n_parts] if is_last and self._work.chained else [n_parts]

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

    def _note(self) -> None:
        """Tell the ledger; states below a sum count as used, for a block of theirs may change."""
        if self._kept is not None:
            for number, segment in enumerate(self._segments):
                content = self._work.content(segment)
                for stop in filter(None, self._stops(number, len(content))):
                    self._in_use.add(self._kept.place(_label(number), content[:stop]).path)
        whole = self._work.rows(1.0)
        read = self._work.rows(1.0 - self._reused / sum(map(self._work.size, self._work.cuts)))
        current_ledger().note(read=read, reused=whole - read, in_use=self._in_use)


def _label(number: int) -> str:
    return f"{number:05d}"


def _sum_label(n_segments: int) -> str:
    return f"sum-of-{n_segments:05d}"


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
