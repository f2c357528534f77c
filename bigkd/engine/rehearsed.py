"""Sessions that plan, and work on the first rows of a pass only."""

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import psutil
import zarr

from bigkd.backends import is_array, to_host
from bigkd.engine.cost import TaskCosts
from bigkd.engine.graph import Graph
from bigkd.engine.ledger import Account
from bigkd.engine.memory import Plan
from bigkd.engine.rehearsal import Rehearsal, RehearsalEnded, Rehearsed
from bigkd.engine.session import Session
from bigkd.engine.tasks import Reduced
from bigkd.engine.tiles import Tiling
from bigkd.engine.timing import Timed, n_pairs_of
from bigkd.engine.work import PairsWork, RowsWork, Run, Work
from bigkd.io import TiledArray, save_state


@dataclass(kw_only=True)
class RehearsedSession(Session):
    """The engine's verbs, which plan."""

    stage: Rehearsal
    """The runner, as what it is."""

    folder: str
    """What is written goes here, and goes away."""

    work: Work | None = None
    scratched: bool = False

    @contextmanager
    def scratch(self, *content: Any, beside: str | Path | None = None) -> Iterator[str]:
        """A folder that only this rehearsal sees."""
        del content
        if self.settings.checkpoint is None and beside is None:
            self._require_same_machine()
        self.scratched = True
        yield f"{self.folder}/scratch"

    def compute(self, rows: da.Array, *, label: str) -> Any:
        """The first block of `rows`, over and over: an array of their shape."""
        with self.stage.task(own_data=not self.scratched):
            first, began = rows.blocks[0], time.perf_counter()
            found = to_host(first.compute(scheduler="threads"))
            each = (time.perf_counter() - began) / max(1, first.shape[0])
        plan = Plan(
            label=label,
            n_rows=rows.shape[0],
            n_blocks=rows.numblocks[0],
            n_tasks=rows.numblocks[0],
            bytes_read=0,
            task_bytes=0,
        )
        costs = TaskCosts(sizes=rows.chunks[0], seconds_each=each, joined=False)
        self.stage.passes.append(Rehearsed(plan, "rows", 0, costs))
        return np.resize(found, rows.shape)

    def _admit(self, plan: Plan) -> None:
        self.stage.passes.append(Rehearsed(plan, "rows", 0, None))
        super()._admit(plan)
        here = int(psutil.virtual_memory().available)
        if plan.task_bytes > here:
            raise RehearsalEnded(
                f"{plan.label}: a task needs {plan.task_bytes / 1e9:.2f} GB, and this machine has "
                f"{here / 1e9:.2f} GB free; what follows is planned when it runs"
            )

    def _graph(self, work: Work, run: Run, *, thorough: bool) -> Graph:
        self.work = work
        folder, n_reused = self.settings.checkpoint, 0
        if folder is not None and ("://" in str(folder) or Path(folder).exists()):
            n_reused = super()._graph(work, run, thorough=thorough).account.reused
        self._note(n_reused=n_reused)
        return Graph(None, {}, Account(0, n_reused, frozenset()), {})

    def _compute(self, graph: Graph, run: Run, *, label: str, unit: str) -> Reduced:
        del graph, run, label
        work = self.work
        with self.stage.task(own_data=not self.scratched):
            if isinstance(work, RowsWork):
                summary, (timed, costs) = work.job.summary, self._rows(work)
            else:
                assert isinstance(work, PairsWork)
                summary, (timed, costs) = work.jobs[0].summary, self._pairs(work)
            joining, keeping, n_bytes = self._states(summary, timed.reduced, len(work.cuts))
        costs = replace(
            costs,
            exact=work.exact,
            chained=work.chained,
            state_bytes=n_bytes,
            merge_seconds=joining,
            keep_seconds=keeping,
        )
        self._note(unit=unit, costs=costs)
        return timed.reduced

    def _look_again(self, work: Work, written: Mapping[str, Sequence[str]]) -> None:
        """Nothing was kept."""

    def _rows(self, work: RowsWork) -> tuple[Timed, TaskCosts]:
        source = work.job.source
        cost = work.job.summary.footprint(source.largest_block, source.itemsize)
        timed = self.stage.timer.rows(work.job, cost)
        each = timed.read_seconds + timed.work_seconds
        return timed, TaskCosts(sizes=[*map(work.size, work.cuts)], seconds_each=each)

    def _pairs(self, work: PairsWork) -> tuple[Timed, TaskCosts]:
        left, right = (job.source for job in work.jobs)
        cost = work.jobs[0].summary.footprint(left.largest_block, right.largest_block, 8)
        timed = self.stage.timer.pairs(work.jobs, cost)
        sizes = [n_pairs_of(square, work.jobs) for square in work.cuts]
        n_read = sum(
            source.bounds[run.last] - source.bounds[run.first]
            for square in work.cuts
            for source, run in ((left, square.left), (right, square.right))
        )
        each = timed.work_seconds + timed.read_seconds * n_read / sum(sizes)
        return timed, TaskCosts(sizes=sizes, seconds_each=each)

    def _states(self, summary: Any, reduced: Reduced, n_cuts: int) -> tuple[float, float, int]:
        """Seconds to join two states and to keep one, and its bytes."""
        joining = keeping = 0.0
        if n_cuts > 1:
            began = time.perf_counter()
            summary.merge(reduced.state, reduced.state)
            joining = time.perf_counter() - began
        if self.settings.checkpoint is not None:
            began = time.perf_counter()
            save_state(f"{self.folder}/state.zarr", reduced, token="rehearsal")
            keeping = time.perf_counter() - began
        return joining, keeping, _n_bytes(reduced)

    def _note(self, **changes: Any) -> None:
        """What was found out of the pass that was planned last."""
        passes = self.stage.passes
        passes[-1] = passes[-1]._replace(**changes)

    def _fill(self, tiling: Tiling, run: Run, *, overwrite: bool = False) -> TiledArray:
        del run, overwrite
        self._admit(tiling.plan)
        array = replace(tiling.array, path=f"{self.folder}/{len(self.plans)}.zarr")
        with self.stage.task(own_data=not self.scratched or tiling.unit == "rows"):
            made, each = self.stage.timer.tile(tiling)
            self.scratched = True
            if tiling.unit == "rows":
                _write_first(array, made)
        sizes = [tiling.size(at) for at in tiling.positions()]
        costs = TaskCosts(sizes=sizes, seconds_each=each, joined=False)
        written = 8 * math.prod(array.shape)
        self._note(unit=tiling.unit, costs=costs, bytes_written=written)
        if tiling.unit == "pairs":
            raise RehearsalEnded("the answer is in tiles that were not made")
        return array


def _write_first(array: TiledArray, made: Any) -> None:
    """An array of the true shape, in which each chunk is the first one: the file is only linked."""
    array.begin()
    stored: Any = zarr.open_array(array.data_path, mode="r+")
    stored[: made.shape[0]] = to_host(made)
    folder, zeros = Path(array.data_path), (0,) * (len(array.shape) - 1)
    first, *others = (
        folder / stored.metadata.encode_chunk_key((at, *zeros))
        for at in range(math.ceil(array.shape[0] / array.chunk[0]))
    )
    for other in others:
        other.parent.mkdir(parents=True, exist_ok=True)
        os.link(first, other)


def _n_bytes(state: Any) -> int:
    if is_array(state):
        return int(to_host(state).nbytes)
    return sum(map(_n_bytes, state)) if isinstance(state, tuple) else 0
