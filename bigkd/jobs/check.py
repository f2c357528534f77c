"""A job looked at, and not run: what it would do, what that takes, and what stands in the way."""

import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import psutil
from dask.system import CPU_COUNT

from bigkd.engine import Rehearsal, RehearsalEnded, Rehearsed
from bigkd.engine.cost import PassCost, Workers, pass_cost
from bigkd.engine.schedulers import LocalRunner, usable_bytes
from bigkd.errors import BigkdError, MemoryPlanError
from bigkd.jobs.clusters import ClusterPart, memory_per_thread
from bigkd.jobs.clusters.here import AddressPart
from bigkd.jobs.pins import Pins
from bigkd.jobs.published import interrupted
from bigkd.jobs.readiness import Problem, Problems, require_ready, require_room
from bigkd.jobs.run import options_of
from bigkd.jobs.schema import EntryPart, Job
from bigkd.jobs.workspace import checkpoint_of

USAGE = 2
"""Exit code of a job that is wrong."""


class Where(NamedTuple):
    """What a job runs on."""

    kind: str
    n_processes: int
    n_threads: int
    """Of all processes together."""

    thread_bytes: int
    distributed: bool
    same_machine: bool


class PlannedPass(NamedTuple):
    """One pass."""

    label: str
    unit: str
    """``"rows"``, or ``"pairs"``: what its tasks count."""

    n_rows: int
    share_kept: float
    """Of its work, done by earlier runs that kept the states."""

    bytes_read: int
    """Of what is not kept."""

    n_tasks: int
    task_bytes: int
    """Most that one task holds."""

    state_bytes: int
    bytes_kept: int
    cost: PassCost | None
    """None where that is known when it runs only."""


class PlannedComparison(NamedTuple):
    """One comparison."""

    name: str
    kind: str
    passes: tuple[PlannedPass, ...]
    driver_seconds: float
    """What this process does between the passes."""

    result_bytes: int
    note: str
    """What is known when it runs only; empty where all is known."""

    @property
    def seconds(self) -> float:
        """Of all passes, and between them."""
        costs = [one.cost.seconds for one in self.passes if one.cost is not None]
        return self.driver_seconds + sum(costs)


class JobPlan(NamedTuple):
    """A job, looked at."""

    where: Where | None
    """None where the cluster cannot be used."""

    comparisons: tuple[PlannedComparison, ...]
    problems: tuple[Problem, ...]

    @property
    def passes(self) -> list[PlannedPass]:
        """Those of all comparisons."""
        return [one for comparison in self.comparisons for one in comparison.passes]

    @property
    def seconds(self) -> float:
        """Of all comparisons, one after the other."""
        return sum(comparison.seconds for comparison in self.comparisons)

    @property
    def exit_code(self) -> int:
        """0, or that of what is wrong: of the job itself if anything is, else of the first."""
        codes = [problem.exit_code for problem in self.problems]
        return USAGE if USAGE in codes else next(iter(codes), 0)


def check_job(job: Job) -> JobPlan:
    """Look at everything that could be wrong with a job, and plan it, without running it.

    Every comparison is rehearsed (`bigkd.engine.rehearsal`): it plans its passes with the data and
    parameters that it has, but works on the first rows of each pass only, in this process. Nothing
    is written but to a temporary folder.

    Parameters
    ----------
    job
        From `load_job`, or made by hand.

    Returns
    -------
    JobPlan
        Tasks, bytes and memory are those of the run, as far as these do not depend on what all rows
        hold. Seconds are predicted from the first rows, with the speed of this machine.
    """
    problems, where = Problems(), None
    require_ready(job, problems)
    with problems.noted():
        where = where_of(job)
    folder = checkpoint_of(job.output.store, job.run.checkpoint)
    folder = folder if job.run.keep_checkpoints else None
    kept = folder if job.keeps_summaries else None
    pins = Pins(kept, "" if kept is None else interrupted(kept) or "")
    planned = []
    if where is not None:
        for name, entry in job.entries().items():
            with problems.noted(name):
                planned.append(_planned(job, name, entry, where, pins, folder, problems))
    require_room(_needed(job, planned, folder), problems)
    return JobPlan(where, tuple(planned), tuple(dict.fromkeys(problems)))


def where_of(job: Job) -> Where:
    """What `job` would run on; a cluster that is there is asked, none is started.

    Raises
    ------
    ClusterError
        If nothing answers at its address.
    """
    place, scheduler = job.place, job.run.scheduler
    if place is None and scheduler is not None and "://" in scheduler:
        place = AddressPart(kind="address", address=scheduler)
    if isinstance(place, AddressPart):
        return _asked(place)
    if place is None and scheduler == "local":
        share = usable_bytes(_memory_here() // CPU_COUNT, threads=1)
        return Where("local", CPU_COUNT, CPU_COUNT, share, distributed=True, same_machine=True)
    if place is None:
        n_threads = 1 if scheduler == "sync" else CPU_COUNT
        free = LocalRunner(n_threads).available()
        kind = scheduler or "threads"
        return Where(kind, 1, n_threads, free, distributed=False, same_machine=True)
    n_processes, threads = _size(place)
    here = place.kind in ("local", "cuda")
    share = memory_per_thread(place) or usable_bytes(_memory_here() // n_processes, threads=threads)
    return Where(
        place.kind, n_processes, n_processes * threads, share, distributed=True, same_machine=here
    )


def _memory_here() -> int:
    return int(psutil.virtual_memory().total)


def _size(place: ClusterPart) -> tuple[int, int]:
    """Worker processes at most, and threads of each."""
    if place.kind == "slurm":
        n_jobs = place.n_jobs or (1 if place.adaptive is None else place.adaptive.maximum)
        processes = place.processes or place.cores
        return n_jobs * processes, place.cores // processes
    if place.kind == "kubernetes":
        most = place.n_workers or (1 if place.adaptive is None else place.adaptive.maximum)
        return most, place.cores
    if place.kind == "cuda":
        return place.n_workers or len(place.devices or [0]), place.threads_per_worker
    assert place.kind == "local"
    n_workers = place.n_workers or max(1, CPU_COUNT // place.threads_per_worker)
    return n_workers, place.threads_per_worker


def _asked(place: AddressPart) -> Where:
    with place.started() as client:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
    shares = [
        usable_bytes(worker["memory_limit"], threads=worker["nthreads"])
        for worker in workers
        if worker["memory_limit"]
    ]
    return Where(
        kind="address",
        n_processes=len(workers),
        n_threads=max(1, sum(worker["nthreads"] for worker in workers)),
        thread_bytes=min(shares, default=_memory_here()),
        distributed=True,
        same_machine=False,
    )


def _planned(
    job: Job,
    name: str,
    entry: EntryPart,
    where: Where,
    pins: Pins,
    folder: str | None,
    problems: Problems,
) -> PlannedComparison:
    part = pins.applied(name, entry.comparison)
    workers = Workers(n_threads=where.n_threads, apart=where.n_processes > 1)
    stage = Rehearsal(
        workers=workers,
        thread_bytes=where.thread_bytes,
        distributed=where.distributed,
        same_machine=where.same_machine,
    )
    how = options_of(job.run, folder, None, nonfinite=part.policy, scheduler=stage)
    began, note, n_bytes = time.monotonic(), "", 0
    with tempfile.TemporaryDirectory(prefix="bigkd-") as scratch, _quietly():
        try:
            n_bytes = part.carry_out_to(f"{scratch}/result.zarr", how).nbytes
        except Exception as error:  # of what a few rows are not enough for: of any type
            note = _why(error, stage)
            if not note:
                if not isinstance(error, BigkdError):
                    raise
                problems.append(Problem(error.exit_code, f"{name}: {error}"))
                note = "not planned to its end, for there is a problem"
    passes = tuple(_pass(one, workers) for one in stage.passes)
    written = max((one.bytes_written for one in stage.passes), default=0)
    driver = max(0.0, time.monotonic() - began - stage.task_seconds)
    return PlannedComparison(name, part.kind, passes, driver, max(n_bytes, written), note)


def _why(error: Exception, stage: Rehearsal) -> str:
    """Why the plan ends here, where that is because of the rehearsal; else nothing."""
    if isinstance(error, RehearsalEnded):
        return str(error)
    if isinstance(error, MemoryPlanError) or stage.reading_failed or not stage.passes:
        return ""
    return (
        f"what follows is planned when it runs; the first rows are not enough for it "
        f"({type(error).__name__}: {error})"
    )


def _pass(found: Rehearsed, workers: Workers) -> PlannedPass:
    plan, costs = found.plan, found.costs
    total = plan.n_rows if costs is None else max(1, sum(costs.sizes))
    kept = found.n_reused / total
    cost = None if costs is None else pass_cost(replace(costs, n_reused=found.n_reused), workers)
    return PlannedPass(
        label=plan.label,
        unit=found.unit,
        n_rows=plan.n_rows,
        share_kept=kept,
        bytes_read=round(plan.bytes_read * (1.0 - kept)),
        n_tasks=plan.n_tasks,
        task_bytes=plan.task_bytes,
        state_bytes=0 if costs is None else costs.state_bytes,
        bytes_kept=0 if cost is None else cost.bytes_kept,
        cost=cost,
    )


def _needed(job: Job, planned: list[PlannedComparison], folder: str | None) -> dict[str, int]:
    """Bytes that are written to local places."""
    needed: dict[str, int] = {}
    for one in planned:
        store = job.store_of(one.name)
        for place, n_bytes in (
            (store, one.result_bytes),
            (folder, sum(own.bytes_kept for own in one.passes)),
        ):
            if place is not None and "://" not in place:
                needed[place] = needed.get(place, 0) + n_bytes
    return needed


@contextmanager
def _quietly() -> Iterator[None]:
    """Without warnings about numbers that a few rows make."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
