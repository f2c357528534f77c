"""A job carried out."""

import logging
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr

from bigkd import __version__
from bigkd.engine import NonFinite, Options, Reporting
from bigkd.engine.ledger import open_ledger
from bigkd.engine.progress import part_of_a_job
from bigkd.engine.schedulers import Scheduler
from bigkd.errors import ClusterError, InputError, LockedError, exit_code_of
from bigkd.jobs.clusters import opened_cluster
from bigkd.jobs.comparisons.base import Draw
from bigkd.jobs.failures import locate, told
from bigkd.jobs.kept import to_keep
from bigkd.jobs.pins import Pins
from bigkd.jobs.places import locations, require_apart, require_outside
from bigkd.jobs.published import begun, ended, look_ahead, publish, require_own_folder
from bigkd.jobs.records import ComparisonRecord, Judgement, RunRecord, Verdict
from bigkd.jobs.report import require_drawing
from bigkd.jobs.rows import collections_of
from bigkd.jobs.schema import EntryPart, Job, RunPart
from bigkd.jobs.snapshot import one_snapshot
from bigkd.jobs.workspace import Workspace, checkpoint_of, require_replaceable, workspace

logger = logging.getLogger(__name__)

THRESHOLD = 3
"""Exit code of a run whose results are beyond a threshold."""


def run_job(job: Job, *, resume: bool | None = None, progress: Reporting = None) -> RunRecord:
    """Carry out a job: make its results, judge them, add to the history, write the report.

    Each result's store appears whole or not at all. While the job runs it holds ``<store>.lock``
    and keeps finished work in ``<store>.checkpoint``; of a result in tiles, in a folder beside the
    store. These go when it succeeds, but for the summaries that a job with comparisons keeps for
    its next run.

    Parameters
    ----------
    job
        From `load_job`, or made by hand.
    resume
        Go on from what an interrupted run of the same job has finished, to the same bits, and from
        summaries that were kept; with False both are removed first, and what rules chose is
        chosen again. By default it goes on where there is a place to keep them.
    progress
        As for `bigkd.finc.modes`; by default the job's own `progress_log`.

    Returns
    -------
    RunRecord
        Every comparison with its result and verdict, and the exit code of the command line. Where a
        job has several comparisons, one that fails does not keep the others from being made. Nor
        does a history or a report that cannot be written: its `trouble` says so.

    Raises
    ------
    LockedError
        If another run writes the same output.
    ClusterError
        If the cluster fails; run it again to go on.
    BigkdError
        As the function that makes the only result. What can be checked before rows are read is.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> rows = np.random.default_rng(0).normal(size=(200, 3))
    >>> with TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/tonight.npy", rows + 1.0)
    ...     np.save(f"{folder}/reference.npy", rows)
    ...     collections = {"x": f"{folder}/tonight.npy", "y": f"{folder}/reference.npy"}
    ...     kernel = {"name": "gaussian", "sigma": 1.0}
    ...     asked = {"distance": {**collections, "kernel": kernel}, "fail_if": {"above": 0.1}}
    ...     record = run_job(Job.model_validate(asked))
    >>> record.verdict, record.exit_code
    ('exceeded', 3)
    >>> bool(record.only.result["distance"] > 0.1)
    True
    """
    require_places_apart(job)
    require_own_folder(job)
    if job.output.report is not None:
        require_drawing()
    if not job.comparisons:  # that of one of several is told with the others
        _drawing(*job.entries().values())
    began, zero = np.datetime64(time.time_ns(), "ns"), time.monotonic()
    with _workspace(job, resume=resume) as place:
        refuse_existing(job)
        look_ahead(job)
        folder = place.checkpoint if job.keeps_summaries else None
        run_id = begun(folder, job.output.store)
        pins = Pins(folder, run_id, anew=resume is False)
        with opened_cluster(job.place) as cluster:
            scheduler = cluster or job.run.scheduler
            shown = job.run.progress_log if progress is None else progress
            compare = _Comparing(job, place, pins, scheduler, shown)
            with one_snapshot(part.look for part in collections_of(job)):
                made = [compare(name, entry) for name, entry in job.entries().items()]
        record = RunRecord(
            run_id=run_id,
            time=began,
            seconds=time.monotonic() - zero,
            version=__version__,
            job=job.model_dump_json(exclude_unset=True),
            exit_code=_exit_code(made, compare.errors),
            comparisons=tuple(made),
            n_resumed=place.n_found,
        )
        record = publish(job, record)
        if folder is not None:
            place.afterwards.append(partial(ended, folder, record.run_id, job.output.store))
        if compare.errors and not job.comparisons:
            place.end()
            raise _noting(compare.errors[0], record.trouble)
        compare.keep(folder)
    return record


class _Comparing:
    """Carries out the comparisons of one run."""

    def __init__(
        self, job: Job, place: Workspace, pins: Pins, scheduler: Scheduler, progress: Reporting
    ) -> None:
        self._job, self._place, self._pins = job, place, pins
        self._scheduler, self._progress = scheduler, progress
        self.errors: list[Exception] = []
        self._used: dict[str, set[str]] = {}
        self._failed: set[str] = set()

    def __call__(self, name: str, entry: EntryPart) -> ComparisonRecord:
        """One of them; what is wrong with it is noted, and does not stop the others."""
        zero, store, sheet = time.monotonic(), self._job.store_of(name), None
        result: xr.Dataset | None = None
        judgements: tuple[Judgement, ...] = ()
        message = ""
        with open_ledger() as ledger, part_of_a_job(name if self._job.comparisons else ""):
            try:
                draw = _drawing(entry)
                result = self._made(name, entry, store)
                if draw is not None:
                    sheet = _drawn(draw, result, str(entry.sheet))
                judgements = entry.fail_if.judgements(result)
            except (ClusterError, LockedError):
                raise
            except Exception as error:  # one odd data set leaves the others
                locate(error, entry.comparison)
                self.errors.append(error)
                self._failed.add(name)
                result, message = None, told(error, logger)
        self._used[name] = ledger.in_use
        return ComparisonRecord(
            name=name,
            kind=entry.comparison.kind,
            verdict=_verdict(result, judgements),
            message=message,
            result=result,
            judgements=judgements,
            store=store,
            sheet=sheet,
            rows_read=ledger.rows_read,
            rows_reused=ledger.rows_reused,
            seconds=time.monotonic() - zero,
        )

    def keep(self, folder: str | None) -> None:
        """Keep what the next run may use in `folder`; where there is none, after failures only."""
        kept = None
        if folder is not None:
            kept = to_keep(folder, self._used, self._failed)
        elif not self._failed:
            return
        if kept is None:
            self._place.keep_all()
        else:
            self._place.kept.update(kept)

    def _made(self, name: str, entry: EntryPart, store: str | None) -> xr.Dataset:
        asked = entry.comparison
        part = self._pins.applied(name, asked)
        how = options_of(
            self._job.run,
            self._place.checkpoint,
            self._progress,
            nonfinite=part.policy,
            scheduler=self._scheduler,
        )
        result = part.carry_out(how) if store is None else part.carry_out_to(store, how)
        self._pins.note(name, asked, result.attrs)
        return result


def options_of(
    run: RunPart,
    checkpoint: str | None,
    progress: Reporting,
    *,
    nonfinite: NonFinite,
    scheduler: Scheduler = None,
) -> Options:
    """How passes run, as keywords of the functions that make them."""
    return Options(
        nonfinite=nonfinite,
        scheduler=scheduler or run.scheduler,
        progress=progress,
        checkpoint=checkpoint,
        memory_limit=run.memory_limit,
        stall_seconds=run.stall_seconds,
    )


def _workspace(job: Job, *, resume: bool | None) -> AbstractContextManager[Workspace]:
    stores = [store for name in job.entries() if (store := job.store_of(name)) is not None]
    if resume is None:
        has_place = checkpoint_of(job.output.store, job.run.checkpoint) is not None
        resume = has_place and job.run.keep_checkpoints
    return workspace(
        job.output.store,
        stores=stores,
        checkpoint=job.run.checkpoint,
        keep_checkpoints=job.run.keep_checkpoints,
        resume=resume,
    )


def _drawing(entry: EntryPart) -> Draw | None:
    return None if entry.sheet is None else entry.comparison.drawing(entry.images)


def _drawn(draw: Draw, result: xr.Dataset, path: str) -> Path:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return draw(result, path)


def _verdict(result: xr.Dataset | None, judgements: Sequence[Judgement]) -> Verdict:
    if result is None:
        return "failed"
    return "exceeded" if any(judged.exceeded for judged in judgements) else "fine"


def _noting(error: Exception, trouble: str) -> Exception:
    if trouble:
        error.add_note(trouble)
    return error


def _exit_code(made: Sequence[ComparisonRecord], errors: Sequence[Exception]) -> int:
    """That of the first failure, else that of a threshold that was exceeded."""
    if errors:
        return exit_code_of(errors[0])
    return THRESHOLD if any(one.verdict == "exceeded" for one in made) else 0


def require_places_apart(job: Job) -> None:
    """Refuse to write over what is read, before the long work."""
    read: dict[str, str] = {}
    output = {f"output.{name}": path for name, path in locations(job.output)}
    written = {name: path for name, path in output.items() if name != "output.images"}
    for name, entry in job.entries().items():
        read |= dict(locations(entry.comparison, name))
        if entry.images is not None:
            read[f"{name}.images"] = entry.images
        if job.comparisons and entry.sheet is not None:
            written[f"{name}.sheet"] = entry.sheet
        if job.comparisons and (store := job.store_of(name)) is not None:
            written[f"{name}'s store"] = store
    written |= {f"run.{name}": path for name, path in locations(job.run)}
    require_apart(read, written)
    stores = [store for name in job.entries() if (store := job.store_of(name)) is not None]
    require_outside(stores, written)


def refuse_existing(job: Job) -> None:
    """Refuse to write over what must not be, before the long work."""
    overwrite = job.output.overwrite
    for name, entry in job.entries().items():
        store = job.store_of(name)
        if store is not None:
            require_replaceable(store, overwrite=overwrite)
        if entry.sheet is None:
            continue
        sheet = Path(entry.sheet)
        if sheet.exists() and not (overwrite and sheet.is_file()):
            raise InputError(
                f"{sheet} exists already; pass --overwrite, or overwrite: true in a job file, to "
                f"replace a file."
            )
