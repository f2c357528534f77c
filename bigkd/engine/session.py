"""One call of a public function: its scheduler, progress, checkpoints and memory."""

import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask.utils import parse_bytes

from bigkd import __version__
from bigkd.config import COMPUTED_BLOCKS, STALL_SECONDS
from bigkd.engine.checkpoints import DamagedStateError, Kept, require_folder
from bigkd.engine.graph import Graph, GraphBuilder
from bigkd.engine.inputs import Policy
from bigkd.engine.ledger import current_ledger
from bigkd.engine.memory import Plan, plan_pairs, plan_pass
from bigkd.engine.pairs import cut_pairs
from bigkd.engine.progress import Reporter, Reporting, Watch
from bigkd.engine.schedulers import Runner, Scheduler
from bigkd.engine.stripes import cut_stripes, some_of
from bigkd.engine.tasks import Job, Reduced
from bigkd.engine.tiles import Tiling, check_graph, fill_graph, pair_tiling, row_tiling
from bigkd.engine.tokens import spec_token
from bigkd.engine.work import ChangedDataError, PairsWork, RowsWork, Run, Work
from bigkd.errors import EmptyInputError, InputError
from bigkd.io import Source, TiledArray, remove_store
from bigkd.io.tiled import At, scratch_path, whole_path
from bigkd.protocols import PairMap, PairSummary, RowMap, Summary

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
        ``"raise"``, ``"drop"`` to leave out rows that are not finite, or ``"keep"`` for summaries
        that know what to do with them.
    memory_limit
        Bytes that one task may use, or text such as ``"2 GiB"``; what the workers have by default.
    stall_seconds
        How long a cluster may finish nothing before it is given up.
    """

    scheduler: Scheduler = None
    progress: Reporting = None
    checkpoint: str | Path | None = None
    nonfinite: Policy = "raise"
    memory_limit: int | str | None = None
    stall_seconds: float = STALL_SECONDS

    def __post_init__(self) -> None:
        if self.nonfinite not in ("raise", "drop", "keep"):
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
    """The engine's verbs, on one runner; made by `bigkd.engine.open_session`."""

    settings: Settings
    runner: Runner
    show: Reporter
    plans: list[Plan] = field(default_factory=list)

    def reduce(
        self,
        summary: Summary[Any],
        source: Source,
        *,
        label: str,
        first_row: int = 0,
        share: float = 1.0,
    ) -> Reduced:
        """State of `summary` after every row of `source`, numbered from `first_row`: one pass.

        With a `share` less than 1, after at least so many of its stripes, which are spread evenly;
        the tally counts their rows.

        Raises
        ------
        MemoryPlanError
            Before anything runs, if a task does not fit into a worker thread.
        DataError
            If a row is not finite and that is not allowed; or, where states are kept, rows were
            changed while they were read.
        EmptyInputError
            If every row of a collection was dropped.
        """
        cost = summary.footprint(source.largest_block, source.itemsize)
        stripes = some_of(cut_stripes(source, row_cost=cost.row_cost), share)
        policy = self.settings.nonfinite
        plan = plan_pass(
            label,
            source,
            stripes,
            cost,
            exact=summary.exact,
            nonfinite=policy,
            distributed=self.runner.distributed,
            kept=self.settings.checkpoint is not None,
        )
        self._admit(plan)

        def work(run: Run) -> RowsWork:
            return RowsWork(job=Job(summary, source, policy, first_row, run.topic), cuts=stripes)

        reduced = self._reduced(work, label=label)
        if share == 1.0:
            _require_rows(reduced, source)
        return reduced

    def reduce_pairs(
        self, summary: PairSummary[Any], left: Source, right: Source | None = None, *, label: str
    ) -> Reduced:
        """State of `summary` after every pair of rows of `left` and `right`, or of `left` twice.

        Each unordered pair of blocks of one collection is visited once. The tally counts the rows
        of both collections.

        Raises
        ------
        MemoryPlanError, DataError, EmptyInputError
            As `reduce`.
        """
        other = left if right is None else right
        cost = summary.footprint(left.largest_block, other.largest_block, 8)
        squares = cut_pairs(left, right, row_cost=cost.row_cost)
        self._admit(plan_pairs(label, left, other, squares, cost))
        policy = self.settings.nonfinite

        def work(run: Run) -> PairsWork:
            jobs = [Job(summary, source, policy, 0, run.topic) for source in (left, other)]
            return PairsWork(jobs=jobs, cuts=squares)

        reduced = self._reduced(work, label=label, unit="pairs")
        _require_rows(reduced, left if right is None else right)
        return reduced

    def compute(self, rows: da.Array, *, label: str) -> Any:
        """What `bigkd.engine.map_rows` made, in memory; some blocks at a time, so that it shows."""
        parts = []
        with Watch(self.show, label, rows.shape[0]) as watch:
            for first in range(0, rows.numblocks[0], COMPUTED_BLOCKS):
                some, run = (
                    rows.blocks[first : first + COMPUTED_BLOCKS],
                    Run(self.runner.distributed),
                )
                topic = run.topic or run.name
                parts.append(self.runner.compute(some, watch=watch, topic=topic, rows={}))
                watch.advance(some.shape[0])
        return np.concatenate(parts)

    def store_rows(self, function: RowMap, source: Source, path: str, *, label: str) -> TiledArray:
        """Write what `function` makes of each row of `source`, in order: one pass.

        Parameters
        ----------
        function
            What a row becomes.
        source
            The rows; all of them must exist.
        path
            Folder or URL of a store with the array ``rows``. `TiledArray.data_path` can be read at
            once, and `TiledArray.finish` makes a store of it that others can read. Tiles that an
            interrupted call of equal data and parameters left are checked, not made again.
        label
            What progress calls it.

        Raises
        ------
        MemoryPlanError, DataError
            As `reduce`.
        InputError
            If something else is at `path`, or rows would be left out.
        StoreError
            If nothing can be written there.
        """
        run = Run(self.runner.distributed)
        job = self._place_keeping(function, source, run)
        token = spec_token(__version__, source.identity(), function, job.nonfinite)
        tiling = row_tiling(function, source, whole_path(path), job=job, token=token, label=label)
        return self._fill(tiling, run)

    def store_pairs(
        self,
        function: PairMap,
        left: Source,
        right: Source,
        path: str,
        *,
        label: str,
        name: str,
        dims: tuple[str, str, str],
        made_from: tuple[str, ...] | None = None,
        overwrite: bool = False,
    ) -> TiledArray:
        """Write what `function` makes of every pair of a row of `left` and a row of `right`.

        As `store_rows`; the array is called `name` and has the dimensions `dims`, of values, rows
        of `left` and rows of `right`. `made_from` names what the rows are, where they are made anew
        by each call, and finite: chunks of a store that somebody deletes read as NaN. By default
        they are what their own identities say.
        """
        run = Run(self.runner.distributed)
        jobs = [self._place_keeping(function, source, run) for source in (left, right)]
        if made_from is not None:
            jobs = [job._replace(nonfinite="raise") for job in jobs]
        content = made_from or (left.identity(), right.identity())
        token = spec_token(__version__, *content, function, jobs[0].nonfinite)
        tiling = pair_tiling(
            function, (left, right), whole_path(path), jobs=jobs, token=token, label=label,
            name=name, dims=dims,
        )  # fmt: skip
        return self._fill(tiling, run, overwrite=overwrite)

    @contextmanager
    def scratch(self, *content: Any, beside: str | Path | None = None) -> Iterator[str]:
        """A folder for intermediate results that all workers reach; gone when the call ends well.

        Parameters
        ----------
        *content
            What they are made from: other content is kept elsewhere.
        beside
            A result larger than memory. In the checkpoint folder, or else beside the result,
            the folder stays after faults, and an equal call finds it again.

        Raises
        ------
        InputError
            If there is no place that workers of another machine reach.
        """
        kept, token = self.settings.checkpoint, spec_token(__version__, *content)
        if kept is None and beside is None:
            self._require_same_machine()
            with tempfile.TemporaryDirectory(prefix="bigkd-") as folder:
                yield folder
            return
        if kept is not None:
            require_folder(str(kept))
        place = whole_path(scratch_path(beside or "") if kept is None else kept)
        yield f"{place}/{token}"
        remove_store(place if kept is None else f"{place}/{token}")

    def _require_same_machine(self) -> None:
        if not self.runner.same_machine:
            raise InputError(
                "this needs a place for intermediate results that all workers of the cluster can "
                "reach; pass checkpoint=FOLDER."
            )

    def _place_keeping(self, function: Any, source: Source, run: Run) -> Job:
        policy = self.settings.nonfinite
        if policy == "drop":
            raise InputError(
                "nonfinite='drop' would leave rows out of a result with a place for each; mend "
                "the data, or leave such rows out before."
            )
        return Job(function, source, policy, 0, run.topic)

    def _fill(self, tiling: Tiling, run: Run, *, overwrite: bool = False) -> TiledArray:
        self._admit(tiling.plan)
        before = tiling.array.begin(overwrite=overwrite)
        with Watch(self.show, tiling.plan.label, tiling.total, tiling.unit) as watch:
            done = self._whole(tiling, before, watch)
            root, sizes = fill_graph(tiling, done, run)
            if sizes:
                self.runner.compute(root, watch=watch, topic=run.topic or run.name, rows=sizes)
        return tiling.array

    def _whole(self, tiling: Tiling, before: dict[At, bytes], watch: Watch) -> set[At]:
        """Those of the tiles finished before that are as they were written."""
        if not before:
            return set()
        run = Run(self.runner.distributed)
        root = check_graph(tiling, before, run)
        found = self.runner.compute(root, watch=watch, topic=run.topic or run.name, rows={})
        whole = {at for at, good in zip(before, found, strict=True) if good}
        if not self.runner.distributed:
            watch.advance(sum(map(tiling.size, whole)))
        if len(whole) < len(before):
            number, path = len(before) - len(whole), tiling.array.path
            logger.warning("%d tiles of %s are damaged and are made again", number, path)
        return whole

    def _compute(self, graph: Graph, run: Run, *, label: str, unit: str) -> Reduced:
        passes = current_ledger().passes
        passes.append(graph.account)
        with Watch(self.show, label, sum(graph.sizes.values()), unit) as watch:
            try:
                reduced: Reduced = self.runner.compute(
                    graph.root, watch=watch, topic=run.topic or run.name, rows=graph.sizes
                )
            except DamagedStateError:
                passes.pop()
                raise
        return reduced

    def _admit(self, plan: Plan) -> None:
        limit = self.settings.memory_limit
        available = self.runner.available() if limit is None else Settings.memory_bytes(limit)
        plan.validate(available)
        logger.debug("%s", plan)
        self.plans.append(plan)

    def _reduced(self, begin: Callable[[Run], Work], *, label: str, unit: str = "rows") -> Reduced:
        """What the work of a run comes to.

        Kept states are taken for whole if their roots are. If a task finds that one is not, every
        byte of all is checked, once, and the run is begun anew without the damaged ones.
        """
        thorough, written = False, dict[str, Sequence[str]]()
        while True:
            run = Run(self.runner.distributed)
            work = begin(run)
            graph = self._graph(work, run, thorough=thorough)
            written |= graph.written
            try:
                with self._watched(work, written):
                    return self._compute(graph, run, label=label, unit=unit)
            except DamagedStateError:
                if thorough:
                    raise
                thorough = True

    @contextmanager
    def _watched(self, work: Work, written: Mapping[str, Sequence[str]]) -> Iterator[None]:
        """Look afterwards whether states are of what they are named after, however it ended."""
        try:
            yield
        except BaseException:
            with suppress(Exception):  # what ended it is told
                self._look_again(work, written)
            raise
        self._look_again(work, written)

    def _look_again(self, work: Work, written: Mapping[str, Sequence[str]]) -> None:
        """Raise DataError if blocks were changed.

        States of them go: they may be of what came later, and be found if all is put back.
        """
        try:
            if self.settings.checkpoint is not None:
                work.require_unchanged()
        except ChangedDataError as error:
            for path, content in written.items():
                if work.is_of(content, error.names):
                    remove_store(path)
            raise

    def _graph(self, work: Work, run: Run, *, thorough: bool) -> Graph:
        folder = self.settings.checkpoint
        kept = None if folder is None else Kept(folder, work.token, thorough=thorough)
        return GraphBuilder(work, run, kept).build()


def _require_rows(reduced: Reduced, source: Source) -> None:
    if int(reduced.tally.rows) == 0:
        raise EmptyInputError(
            f"{source.name}: none of its {source.n_rows} rows is finite; nothing is left."
        )
