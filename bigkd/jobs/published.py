"""What a run leaves for people: a row of the history, and the report."""

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from bigkd.errors import InputError
from bigkd.io import append_run, is_store, load_dataset, load_history, open_rows, open_tiled
from bigkd.io.small_files import files_at
from bigkd.jobs.history import run_dataset
from bigkd.jobs.records import RunRecord
from bigkd.jobs.report import pictures_of, write_report
from bigkd.jobs.schema import EntryPart, Job

_MARK = "run.json"
_CHANGES = ("time", "run_id", "seconds", "rows_read", "rows_reused")
"""Variables that differ between two runs that found the same."""


def begun(folder: str | None) -> str:
    """Name of the run that begins: that of an interrupted one, which it takes up, or a new one.

    Parameters
    ----------
    folder
        Where the job keeps its summaries; None if nowhere.
    """
    if folder is None:
        return uuid.uuid4().hex
    run_id = interrupted(folder) or uuid.uuid4().hex
    _mark_begun(folder, run_id)
    return run_id


def interrupted(folder: str) -> str | None:
    """Name of the run that was interrupted and not taken up, if there is one."""
    try:
        mark = json.loads(files_at(folder).read([_MARK])[_MARK])
    except (KeyError, ValueError):
        return None
    is_open = isinstance(mark, dict) and mark.get("ended") is False
    return str(mark["run_id"]) if is_open and "run_id" in mark else None


def publish(job: Job, record: RunRecord) -> RunRecord:
    """Add the run to the history, once, and write the report anew.

    A run that takes up one which was interrupted after it was added is the same if it found the
    same; if the data changed meanwhile it is another one.

    Returns
    -------
    RunRecord
        The record under the name that it has in the history.

    Raises
    ------
    StoreError
        If the history is damaged or cannot be written; the message says where the run was put.
    """
    if job.output.history is not None:
        record = _appended(job.output.history, record)
    if job.output.report is not None:
        found = {one.name: one.result for one in record.comparisons if one.result is not None}
        report_of(job, job.output.report, found)
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


def _mark_begun(folder: str, run_id: str) -> None:
    _mark(folder, {"run_id": run_id, "ended": False})


def ended(folder: str, run_id: str) -> None:
    """Note in the folder of a job's summaries that a run is over: the next one is another."""
    _mark(folder, {"run_id": run_id, "ended": True})


def _mark(folder: str, about: Mapping[str, Any]) -> None:
    files_at(folder).write({_MARK: json.dumps(about).encode()})
