"""A pass cut into tasks: of stripes of rows, or of squares of pairs."""

import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dask.delayed import delayed

from bigkd import __version__
from bigkd.engine.inputs import raw_blocks, without_graph
from bigkd.engine.pairs import Square, run_pairs
from bigkd.engine.stripes import Stripe
from bigkd.engine.tasks import Job, run_stripe
from bigkd.engine.tokens import spec_token
from bigkd.errors import DataError
from bigkd.io import Source

logger = logging.getLogger(__name__)


class Run:
    """Names of one computation, never used again."""

    def __init__(self, distributed: bool) -> None:
        self.name = uuid.uuid4().hex[:12]
        self.topic = f"bigkd-{self.name}" if distributed else None


def node_of(job: Job) -> Any:
    """What every task of a pass needs to know, as one node of the graph."""
    return delayed(job._replace(source=without_graph(job.source)), traverse=False)


class ChangedDataError(DataError):
    """Rows were changed while they were read."""

    names: frozenset[str] = frozenset()
    """Names of their blocks, as they were."""


class Work(ABC):
    """A pass, cut into tasks that each read some rows, or some pairs of them."""

    cuts: Sequence[Any]
    """What each task does."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether states are folded from left to right."""

    @property
    @abstractmethod
    def chained(self) -> bool:
        """Whether the tasks of a segment follow one another."""

    @property
    @abstractmethod
    def node(self) -> Any:
        """What merges need to know, as a node of the graph."""

    @property
    @abstractmethod
    def token(self) -> str:
        """Name of the spec: equal for equal summaries, policies and versions."""

    @abstractmethod
    def rows(self, share: float) -> int:
        """Rows that a `share` of the work reads, each once."""

    @abstractmethod
    def size(self, cut: Any) -> int:
        """Rows, or pairs of rows, of a task."""

    @abstractmethod
    def start(self, cut: Any, before: Any, key: str) -> Any:
        """The delayed task of a cut, after the one `before` it, under a key."""

    @abstractmethod
    def content(self, segment: range) -> list[str]:
        """Names of what the parts of a segment are made from."""

    @abstractmethod
    def cuts_of(self, segment: range, first: int, last: int) -> list[Any]:
        """Cuts of the parts ``first:last`` of a segment."""

    @abstractmethod
    def require_unchanged(self) -> None:
        """Raise ChangedDataError if what was read is not what its states are named after."""

    @abstractmethod
    def is_of(self, content: Sequence[str], names: Set[str]) -> bool:
        """Whether what has this content may be of a block that has one of these names."""

    @abstractmethod
    def n_parts(self, segment: range) -> int:
        """How many parts a segment has."""


@dataclass(frozen=True, kw_only=True)
class RowsWork(Work):
    """A pass over rows; the parts of segments are blocks."""

    job: Job
    cuts: Sequence[Stripe]

    @property
    def exact(self) -> bool:
        """As the summary is."""
        return bool(self.job.summary.exact)

    @property
    def chained(self) -> bool:
        """As the summary is: sums can be gone on from."""
        return self.exact

    @cached_property
    def node(self) -> Any:
        """What every task needs to know."""
        return node_of(self.job)

    @cached_property
    def token(self) -> str:
        """Name of the spec."""
        job = self.job
        return spec_token(__version__, job.summary, job.nonfinite, job.first_row)

    @cached_property
    def _raw(self) -> list[Any] | None:
        return raw_blocks(self.job.source)

    @cached_property
    def _identities(self) -> Sequence[str]:
        return _names(self.job.source)

    def require_unchanged(self) -> None:
        """Look at the blocks once more."""
        require_unchanged(self.job.source, self._identities)

    def is_of(self, content: Sequence[str], names: Set[str]) -> bool:
        """Whether the block is one of those."""
        return not names.isdisjoint(content)

    def rows(self, share: float) -> int:
        """Rows of the stripes."""
        return round(share * sum(map(self.size, self.cuts)))

    def size(self, cut: Stripe) -> int:
        """Rows of a stripe."""
        bounds = self.job.source.bounds
        return bounds[cut.last] - bounds[cut.first]

    def start(self, cut: Stripe, before: Any, key: str) -> Any:
        """A stripe, read into a copy of the state `before` it."""
        own = _of(cut, self._raw)
        return delayed(run_stripe)(self.node, cut, own, before, dask_key_name=key)

    def content(self, segment: range) -> list[str]:
        """Names of the blocks."""
        return [name for at in segment for name in self._identities[slice(*self.cuts[at])]]

    def n_parts(self, segment: range) -> int:
        """Its blocks."""
        return sum(len(self.cuts[at].blocks) for at in segment)

    def cuts_of(self, segment: range, first: int, last: int) -> list[Stripe]:
        """Stripes of the blocks ``first:last`` of the segment."""
        cut = []
        for stripe in (self.cuts[at] for at in segment):
            low, high = stripe.first + max(0, first), min(stripe.last, stripe.first + last)
            if low < high:
                cut.append(Stripe(low, high))
            first, last = first - len(stripe.blocks), last - len(stripe.blocks)
        return cut


@dataclass(frozen=True, kw_only=True)
class PairsWork(Work):
    """A pass over pairs of rows of two collections, or of one; the parts of segments are cuts."""

    jobs: Sequence[Job]
    cuts: Sequence[Square]

    @property
    def chained(self) -> bool:
        """No: a square begins anew."""
        return False

    @property
    def exact(self) -> bool:
        """As the summary is."""
        return bool(self.jobs[0].summary.exact)

    @property
    def node(self) -> Any:
        """What merges need to know."""
        return self._nodes[0]

    @cached_property
    def _nodes(self) -> list[Any]:
        return [node_of(job) for job in self.jobs]

    @cached_property
    def token(self) -> str:
        """Name of the whole: each square sees rows of everywhere."""
        known = [(job.source.identity(), job.summary, job.nonfinite) for job in self.jobs]
        return spec_token(__version__, *known, tuple(self.cuts), self._identities)

    @cached_property
    def _identities(self) -> list[Sequence[str]]:
        """Of the blocks of collections that may change while they are read."""
        return [_names(source) if source.may_change else [] for source in self._sources]

    @cached_property
    def _sources(self) -> list[Source]:
        """Both collections, or the one."""
        sources = [job.source for job in self.jobs]
        return sources[:1] if sources[0] is sources[-1] else sources

    def require_unchanged(self) -> None:
        """Look at the blocks of both collections once more."""
        for source, known in zip(self._sources, self._identities, strict=True):
            require_unchanged(source, known)

    @cached_property
    def _raws(self) -> list[list[Any] | None]:
        return [raw_blocks(job.source) for job in self.jobs]

    def is_of(self, content: Sequence[str], names: Set[str]) -> bool:
        """Yes: a square, whichever it is, may touch all."""
        del content, names
        return True

    def rows(self, share: float) -> int:
        """Rows of both sides; a square, whichever it is, may touch all."""
        return sum(source.n_rows for source in self._sources) if share else 0

    def size(self, cut: Square) -> int:
        """Pairs of a square."""
        return cut.n_pairs(*(job.source for job in self.jobs))

    def start(self, cut: Square, before: Any, key: str) -> Any:
        """A square; nothing is before it."""
        del before
        own = [_of(blocks, raw) for blocks, raw in zip(cut[:2], self._raws, strict=True)]
        return delayed(run_pairs)(*self._nodes, cut, *own, dask_key_name=key)

    def content(self, segment: range) -> list[str]:
        """Numbers of the squares, which the token tells all of."""
        return [str(at) for at in segment]

    def n_parts(self, segment: range) -> int:
        """Its squares."""
        return len(segment)

    def cuts_of(self, segment: range, first: int, last: int) -> list[Square]:
        """The squares ``first:last`` of the segment."""
        return [self.cuts[at] for at in segment[first:last]]


def require_unchanged(source: Source, known: Sequence[str]) -> None:
    """Look whether the blocks of `source` still have the identities that were `known`.

    The last block of a store that has grown may have been written to; the next pass reads it again.

    Raises
    ------
    ChangedDataError
        If another block was changed, or the last one without growth.
    """
    if not source.may_change:
        return
    now = source.block_identities()
    changed = [at for at, before in enumerate(known) if before != now[at]]
    if changed and not (changed == [source.n_blocks - 1] and source.has_grown()):
        first = source.first_index(changed[0])
        error = ChangedDataError(
            f"{source.name}: {len(changed)} of its {source.n_blocks} blocks were changed while "
            f"they were read, the first from row {first} on. Run it again; to be sure, when "
            f"nobody writes there."
        )
        error.names = frozenset(known[at] for at in changed)
        raise error
    if changed:
        logger.warning(
            "%s: its last rows were written to while they were read; the next run reads them "
            "again", source.name,
        )  # fmt: skip


def _names(source: Source) -> Sequence[str]:
    """Names of the blocks of `source`, which states of them get."""
    return source.block_identities() if source.known is None else source.known


def _of(run: Stripe, raw: list[Any] | None) -> list[Any] | None:
    """The delayed blocks of `run`, where blocks are delayed."""
    return None if raw is None else raw[run.first : run.last]
