"""What stands in the way of a job, apart from its data: places, locks, history, cluster, disk."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bigkd.errors import BigkdError, InputError, LockedError, StoreError
from bigkd.io import stored_names
from bigkd.io.locks import holder_of
from bigkd.jobs.clusters import check_cluster
from bigkd.jobs.published import require_own_folder, require_same_job
from bigkd.jobs.report import require_drawing
from bigkd.jobs.run import refuse_existing, require_places_apart
from bigkd.jobs.schema import Job
from bigkd.jobs.workspace import checkpoint_of, lock_of


class Problem(NamedTuple):
    """Something that would end a run."""

    exit_code: int
    """That of the run."""

    message: str


class Problems(list[Problem]):
    """Everything that is wrong."""

    @contextmanager
    def noted(self, where: str = "") -> Iterator[None]:
        """Note what is raised inside, and where, in place of raising it."""
        try:
            yield
        except BigkdError as error:
            self.append(Problem(error.exit_code, f"{where}: {error}" if where else str(error)))


def require_ready(job: Job, problems: Problems) -> None:
    """Note everything that would keep `job` from being begun, or its results from being kept."""
    with problems.noted():
        require_places_apart(job)
    with problems.noted():
        refuse_existing(job)
    with problems.noted():
        require_own_folder(job)
    with problems.noted():
        check_cluster(job.place)
    if job.output.report is not None:
        with problems.noted():
            require_drawing()
    for name, entry in job.entries().items():
        if entry.sheet is not None:
            with problems.noted(name):
                entry.comparison.drawing(entry.images)
    for what, place in _written(job).items():
        with problems.noted():
            _require_writable(what, place)
    for locked in {job.output.store, job.run.checkpoint} - {None}:
        with problems.noted():
            _require_free(str(locked))
    if job.output.history is not None:
        with problems.noted():
            require_same_job(job, job.output.history)


def require_room(needed: Mapping[str, int], problems: Problems) -> None:
    """Note disks that have less room than the bytes `needed` at local paths."""
    sums: dict[int, tuple[Path, int]] = {}
    for place, n_bytes in needed.items():
        folder = _existing(place)
        device = os.stat(folder).st_dev
        sums[device] = (folder, sums.get(device, (folder, 0))[1] + n_bytes)
    for folder, n_bytes in sums.values():
        free = shutil.disk_usage(folder).free
        with problems.noted():
            if n_bytes > free:
                raise StoreError(
                    f"results, and what is kept for later runs, need {n_bytes / 1e9:.2f} GB, and "
                    f"the disk of {folder} has {free / 1e9:.2f} GB free. Make room, or name "
                    f"another place."
                )


def _written(job: Job) -> dict[str, str]:
    """Every place that is written to."""
    output = job.output
    sheets = {f"the sheet of {name}": entry.sheet for name, entry in job.entries().items()}
    found: dict[str, str | None] = {
        "output.store": output.store,
        "output.history": output.history,
        "output.report": output.report,
        "the folder of checkpoints": checkpoint_of(output.store, job.run.checkpoint),
        "run.progress_log": job.run.progress_log,
        **sheets,
    }
    return {what: place for what, place in found.items() if place is not None}


def _require_writable(what: str, place: str) -> None:
    if "://" in place:
        try:
            stored_names(place)
        except Exception as error:  # object stores raise what their clients do
            raise StoreError(
                f"{what}: {place} cannot be read ({type(error).__name__}: {error}). Are "
                f"credentials missing?"
            ) from error
        return
    folder = _existing(place)
    if not folder.is_dir() and folder != Path(place).absolute():
        raise InputError(f"{what}: {place} cannot be made, because {folder} is not a folder.")
    if not os.access(folder, os.W_OK):
        raise StoreError(f"{what}: {place} cannot be written; {folder} is not writable.")


def _existing(place: str) -> Path:
    """What is there of a local path."""
    path = Path(place).absolute()
    return next(part for part in (path, *path.parents) if part.exists())


def _require_free(place: str) -> None:
    path = lock_of(place)
    holder = holder_of(path)
    if holder is not None and not holder.is_gone():
        raise LockedError(
            f"{path} is held by process {holder.pid} on {holder.host}, which writes the same "
            f"output, or did so until a minute ago."
        )
