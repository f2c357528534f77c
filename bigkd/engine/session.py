"""One call of a public function: its scheduler, progress, checkpoints and memory."""

import functools
import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dask.delayed import delayed
from dask.utils import parse_bytes

from bigkd import __version__
from bigkd.config import STALL_SECONDS
from bigkd.engine.checkpoints import Checkpoint, is_finished, keep, require_folder, restore
from bigkd.engine.inputs import NonFinite, raw_blocks, without_graph
from bigkd.engine.memory import Plan, plan_pairs, plan_pass
from bigkd.engine.pairs import cut_pairs, run_pairs
from bigkd.engine.progress import Reporter, Reporting, Watch, reporter
from bigkd.engine.schedulers import Runner, Scheduler, open_runner
from bigkd.engine.stripes import Stripe, cut_segments, cut_stripes
from bigkd.engine.tasks import Job, Reduced, merge, merge_all, run_stripe
from bigkd.engine.tokens import spec_token
from bigkd.errors import EmptyInputError, InputError
from bigkd.io import Source
from bigkd.protocols import PairSummary, Summary

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to run, as the user said it.

    Attributes
    ----------
    scheduler
        See `bigkd.engine.schedulers.open_runner`.
    progress
        True for a bar, a path for a log of JSON lines, a function of an `Event`.
    checkpoint
        Folder that every worker can write to. Finished segments are kept there, and a call with
        equal data and parameters goes on from them.
    nonfinite
        ``"raise"``, or ``"drop"`` to leave out rows that are not finite.
    memory_limit
        Bytes that one task may use, or text such as ``"2 GiB"``; what the workers have by default.
    stall_seconds
        How long a cluster may finish nothing before it is given up.
    """

    scheduler: Scheduler = None
    progress: Reporting = None
    checkpoint: str | Path | None = None
    nonfinite: NonFinite = "raise"
    memory_limit: int | str | None = None
    stall_seconds: float = STALL_SECONDS

    def __post_init__(self) -> None:
        if self.nonfinite not in ("raise", "drop"):
            raise InputError(f"nonfinite must be 'raise' or 'drop'; got {self.nonfinite!r}.")
        if not self.stall_seconds > 0:
            raise InputError(f"stall_seconds must be positive; got {self.stall_seconds!r}.")
        if self.memory_limit is not None:
            self.memory_bytes(self.memory_limit)

    @staticmethod
    def memory_bytes(limit: int | str) -> int:
        """Bytes that `limit` stands for.

        Raises
        ------
        InputError
            If it stands for none.
        """
        try:
            count = int(parse_bytes(limit))
        except ValueError as error:
            raise InputError(
                f"memory_limit must be bytes, as a number or text such as '2 GiB'; got {limit!r}."
            ) from error
        if count <= 0:
            raise InputError(f"memory_limit must be positive; got {limit!r}.")
        return count


@dataclass(kw_only=True)
class Session:
    """The engine's three verbs, on one runner; made by `open_session`."""

    settings: Settings
    runner: Runner
    show: Reporter
    plans: list[Plan] = field(default_factory=list)

    def reduce(
        self, summary: Summary[Any], source: Source, *, label: str, first_row: int = 0
    ) -> Reduced:
        """State of `summary` after every row of `source`, numbered from `first_row`: one pass.

        Raises
        ------
        MemoryPlanError
            Before anything runs, if a task does not fit into a worker thread.
        DataError
            If a row is not finite and that is not allowed.
        EmptyInputError
            If every row was dropped.
        """
        cost = summary.footprint(source.largest_block, source.itemsize)
        stripes = cut_stripes(source, row_cost=cost.row_cost)
        policy = self.settings.nonfinite
        plan = plan_pass(
            label,
            source,
            stripes,
            cost,
            exact=summary.exact,
            nonfinite=policy,
            distributed=self.runner.distributed,
        )
        self._admit(plan)
        run = uuid.uuid4().hex[:12]
        topic = f"bigkd-{run}" if self.runner.distributed else None
        job = Job(summary, source, policy, first_row, topic)
        root, rows = self._graph(job, stripes, run)
        with Watch(self.show, label, source.n_rows) as watch:
            reduced: Reduced = self.runner.compute(root, watch=watch, topic=topic or run, rows=rows)
        _require_rows(reduced, source)
        return reduced

    def reduce_pairs(
        self, summary: PairSummary[Any], left: Source, right: Source | None = None, *, label: str
    ) -> Reduced:
        """State of `summary` after every pair of rows of `left` and `right`, or of `left` twice.

        Each unordered pair of blocks of one collection is visited once. The tally counts the rows
        of both collections. There are no checkpoints.

        Raises
        ------
        MemoryPlanError, DataError, EmptyInputError
            As `reduce`.
        """
        other = left if right is None else right
        cost = summary.footprint(left.largest_block, other.largest_block, 8)
        squares = cut_pairs(left, right, row_cost=cost.row_cost)
        self._admit(plan_pairs(label, left, other, squares, cost))
        run = uuid.uuid4().hex[:12]
        topic = f"bigkd-{run}" if self.runner.distributed else None
        policy = self.settings.nonfinite
        jobs = [
            delayed(Job(summary, without_graph(source), policy, 0, topic), traverse=False)
            for source in (left, other)
        ]
        raws = [raw_blocks(left), raw_blocks(other)]
        rows: dict[str, int] = {}
        parts = []
        for at, square in enumerate(squares):
            key = f"pairs-{run}-{at}"
            rows[key] = square.n_pairs(left, other)
            raw = [_of(run, blocks) for run, blocks in zip(square[:2], raws, strict=True)]
            parts.append(delayed(run_pairs)(*jobs, square, *raw, dask_key_name=key))
        root = merge_all(parts, functools.partial(delayed(merge), jobs[0]), exact=summary.exact)
        with Watch(self.show, label, sum(rows.values())) as watch:
            reduced: Reduced = self.runner.compute(root, watch=watch, topic=topic or run, rows=rows)
        _require_rows(reduced, left if right is None else right)
        return reduced

    def _admit(self, plan: Plan) -> None:
        limit = self.settings.memory_limit
        available = self.runner.available() if limit is None else Settings.memory_bytes(limit)
        plan.validate(available)
        logger.debug("%s", plan)
        self.plans.append(plan)

    def _graph(self, job: Job, stripes: list[Stripe], run: str) -> tuple[Any, dict[str, int]]:
        """The delayed root of a pass, and how many rows each of its reading tasks stands for."""
        token = self._token(job, stripes)
        source, bounds, exact = job.source, job.source.bounds, job.summary.exact
        if self.settings.checkpoint is not None:
            require_folder(str(self.settings.checkpoint))
        raw = raw_blocks(source)
        node = delayed(job._replace(source=without_graph(source)), traverse=False)
        join = functools.partial(delayed(merge), node)
        rows: dict[str, int] = {}
        segments = []
        for number, segment in enumerate(cut_segments(len(stripes))):
            own = [stripes[at] for at in segment]
            checkpoint = self._checkpoint(token, number)
            size = bounds[own[-1].last] - bounds[own[0].first]
            if checkpoint is not None and is_finished(checkpoint):
                key = f"restore-{run}-{number}"
                rows[key] = size
                segments.append(delayed(restore)(node, checkpoint, size, dask_key_name=key))
                continue
            parts: list[Any] = []
            for stripe in own:
                # Dask holds back tasks without inputs until a worker is free, by the name of their
                # group; those that go on from another are their workers' first choice.
                before = parts.pop() if exact and parts else None
                key = f"{'first' if before is None else 'next'}-{run}-{stripe.first}"
                rows[key] = bounds[stripe.last] - bounds[stripe.first]
                own_raw = _of(stripe, raw)
                parts.append(delayed(run_stripe)(node, stripe, own_raw, before, dask_key_name=key))
            root = merge_all(parts, join, exact=exact)
            segments.append(root if checkpoint is None else delayed(keep)(root, checkpoint))
        return merge_all(segments, join, exact=exact), rows

    def _token(self, job: Job, stripes: list[Stripe]) -> str:
        """Name of the pass's answer: equal for equal data, spec, policy, cuts and version."""
        if self.settings.checkpoint is None:
            return ""
        return spec_token(
            __version__,
            job.source.identity(),
            job.summary,
            job.nonfinite,
            job.first_row,
            tuple(stripes),
        )

    def _checkpoint(self, token: str, number: int) -> Checkpoint | None:
        if self.settings.checkpoint is None:
            return None
        root = str(self.settings.checkpoint).rstrip("/")
        return Checkpoint(f"{root}/{token}/{number:05d}.zarr", f"{token}/{number}")


def _of(run: Stripe, raw: list[Any] | None) -> list[Any] | None:
    """The delayed blocks of `run`, where blocks are delayed."""
    return None if raw is None else raw[run.first : run.last]


def _require_rows(reduced: Reduced, source: Source) -> None:
    if int(reduced.tally.rows) == 0:
        raise EmptyInputError(
            f"{source.name}: none of its {source.n_rows} rows is finite; nothing is left."
        )


@contextmanager
def open_session(settings: Settings) -> Iterator[Session]:
    """A session on the runner that `settings` ask for."""
    with open_runner(settings.scheduler, stall_seconds=settings.stall_seconds) as runner:
        show = reporter(settings.progress)
        try:
            yield Session(settings=settings, runner=runner, show=show)
        finally:
            show.close()
