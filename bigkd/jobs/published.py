"""What a run leaves for people: a row of the history, and the report."""

import logging
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from bigkd.engine.checkpoints import require_folder
from bigkd.errors import ClusterError, InputError, LockedError, exit_code_of
from bigkd.io import append_run, is_store, load_dataset, load_history, open_rows, open_tiled
from bigkd.io.small_files import files_at, read_record, write_record
from bigkd.io.urls import one_place
from bigkd.jobs.failures import told
from bigkd.jobs.history import run_dataset
from bigkd.jobs.records import RunRecord
from bigkd.jobs.report import pictures_of, write_report
from bigkd.jobs.schema import EntryPart, Job

logger = logging.getLogger(__name__)

_MARK = "run.json"
_CHANGES = ("time", "run_id", "seconds", "rows_read", "rows_reused")
"""Variables that differ between two runs that found the same."""


def begun(folder: str | None, store: str | None = None) -> str:
    """Name of the run that begins: that of an interrupted one, which it takes up, or a new one.

    Parameters
    ----------
    folder
        Where the job keeps its summaries; None if nowhere.
    store
        What the job writes.

    Raises
    ------
    StoreError
        If nothing can be written there.
    """
    if folder is None:
        return uuid.uuid4().hex
    require_folder(folder)
    run_id = interrupted(folder) or uuid.uuid4().hex
    _mark(folder, run_id, store, is_ended=False)
    return run_id


def interrupted(folder: str) -> str | None:
    """Name of the run that was interrupted and not taken up, if there is one."""
    mark = _marked(folder)
    is_open = mark.get("ended") is False
    return str(mark["run_id"]) if is_open and "run_id" in mark else None


def require_own_folder(job: Job) -> None:
    """Refuse a folder of checkpoints, named in the job, in which another job keeps summaries.

    The two would take up each other's runs and choices, and remove each other's summaries.

    Raises
    ------
    InputError
        If so.
    """
    folder = job.run.checkpoint
    if folder is None or not job.run.keep_checkpoints:
        return
    mark = _marked(folder)
    if "store" in mark and mark["store"] != _place(job.output.store):
        raise InputError(
            f"run.checkpoint ({folder}) holds the summaries of another job, which writes "
            f"{mark['store']}. Name another folder; or, if that job is no more, remove this one."
        )


def look_ahead(job: Job) -> None:
    """Warn, before the long work, of a history that the run cannot be added to."""
    if job.output.history is None:
        return
    try:
        require_same_job(job, job.output.history)
    except Exception as error:  # object stores raise what their clients do
        logger.warning("%s The comparisons are made all the same.", told(error))


def publish(job: Job, record: RunRecord) -> RunRecord:
    """Add the run to the history, once, and write the report anew.

    A run that takes up one which was interrupted after it was added is the same if it found the
    same; if the data changed meanwhile it is another one.

    Returns
    -------
    RunRecord
        The record under the name that it has in the history. Where the history or the report
        cannot be written, its `trouble` says why, and where the run was put, and its exit code is
        that of the trouble, unless a comparison failed.

    Raises
    ------
    LockedError
        If others are appending to the history all the time.
    """
    what = "history"
    try:
        if job.output.history is not None:
            record = _appended(job.output.history, record)
        what = "report"
        if job.output.report is not None:
            found = {one.name: one.result for one in record.comparisons if one.result is not None}
            report_of(job, job.output.report, found)
    except (ClusterError, LockedError):
        raise
    except Exception as error:  # the results are there, and the run is over
        code = record.exit_code if record.verdict == "failed" else exit_code_of(error)
        trouble = f"The {what} was not written: {told(error, logger)}"
        return record._replace(trouble=trouble, exit_code=code)
    return record


def report_of(job: Job, path: str | Path, results: Mapping[str, xr.Dataset] | None = None) -> Path:
    """Write the report of a job from its history.

    Parameters
    ----------
    job
        With a history.
    path
        File to write.
    results
        The latest results by name; by default those in the job's stores.

    Raises
    ------
    InputError
        If the job keeps no history.
    StoreError
        If the history, or a result, is damaged.
    """
    if job.output.history is None:
        raise InputError("the job keeps no history to report on; name one as output.history.")
    entries = job.entries()
    latest = dict(_stored(job) if results is None else results)
    return write_report(
        path,
        title=Path(job.output.store or path).stem,
        history=load_history(job.output.history),
        results=latest,
        kinds={name: entry.comparison.kind for name, entry in entries.items()},
        pictures={
            name: pictures_of(entry.comparison.kind, latest[name], _images(entry))
            for name, entry in entries.items()
            if name in latest and entry.sheet is not None
        },
    )


def _stored(job: Job) -> dict[str, xr.Dataset]:
    found = {}
    for name, entry in job.entries().items():
        store, made = job.store_of(name), entry.comparison
        if store is not None and is_store(store):
            load = open_tiled if made.is_tiled else load_dataset
            found[name] = load(store, kind=made.kind)
    return found


def _images(entry: EntryPart) -> Any:
    """Pictures of the rows whose modes are found; None for anything else."""
    if entry.modes is None:
        return None
    return (
        entry.modes.test.open("images")
        if entry.images is None
        else open_rows(entry.images, name="images", image_size=entry.modes.test.size)
    )


def _appended(history: str, record: RunRecord) -> RunRecord:
    row = run_dataset(record)
    if append_run(history, row, run_id=record.run_id):
        return record
    known = load_history(history)
    at = [str(name) for name in known["run_id"].values].index(record.run_id)
    if _is_same(known.isel(run=at), row):
        return record
    other = record._replace(run_id=uuid.uuid4().hex)
    append_run(history, run_dataset(other), run_id=other.run_id)
    return other


def _is_same(known: xr.Dataset, row: xr.Dataset) -> bool:
    """Whether two runs found the same."""
    names = [name for name in row if str(name).rpartition(".")[2] not in _CHANGES]
    return all(name in known and _equal(known[name].values, row[name].values) for name in names)


def _equal(known: Any, found: Any) -> bool:
    """Whether values are equal; a history fills short rows up."""
    if found.ndim == 1:
        known = known[: len(found)]
    return np.array_equal(known, found, equal_nan=found.dtype.kind == "f")


def ended(folder: str, run_id: str, store: str | None = None) -> None:
    """Note in the folder of a job's summaries that a run is over: the next one is another."""
    _mark(folder, run_id, store, is_ended=True)


def _mark(folder: str, run_id: str, store: str | None, *, is_ended: bool) -> None:
    about = {"run_id": run_id, "store": _place(store), "ended": is_ended}
    write_record(files_at(folder), _MARK, about)


def _marked(folder: str) -> dict[str, Any]:
    """What the last run noted; empty where none did, or it is damaged."""
    return read_record(files_at(folder), _MARK) or {}


def _place(store: str | None) -> str | None:
    return None if store is None else one_place(store)


def require_same_job(job: Job, history: str) -> None:
    """Refuse a history that cannot be read, or has other comparisons under the same names.

    Raises
    ------
    StoreError
        If it is damaged, or something else is there.
    InputError
        If a comparison was of another kind.
    """
    if files_at(history).is_empty():
        return
    kept = load_history(history)
    kinds = {name: entry.comparison.kind for name, entry in job.entries().items()}
    changed = [
        f"{name} was {known} and is {kind}"
        for name, kind in kinds.items()
        if (known := _last(kept.get(f"{name}.kind"))) not in ("", kind)
    ]
    if changed:
        raise InputError(
            f"{history} has other comparisons under the same names: {'; '.join(changed)}. Give "
            f"them other names, or name another history."
        )


def _last(column: xr.DataArray | None) -> str:
    """The last text of a column that is not empty."""
    values = [] if column is None else column.values.tolist()
    return next((str(value) for value in reversed(values) if value), "")
