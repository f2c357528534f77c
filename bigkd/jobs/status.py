"""How a job stands, without running it."""

import math
import time
from typing import NamedTuple

import numpy as np
import psutil

from bigkd.errors import InputError
from bigkd.io import load_history
from bigkd.io.locks import Holder, holder_of
from bigkd.io.small_files import files_at
from bigkd.io.unfinished import n_finished_tiles, unfinished
from bigkd.jobs.published import interrupted
from bigkd.jobs.report import Account, Run, read_history
from bigkd.jobs.schema import Job
from bigkd.jobs.workspace import checkpoint_of, lock_of, n_segments


class Status(NamedTuple):
    """How a job stands."""

    holder: Holder | None
    """The process that runs it."""

    since: float
    """When that process began, seconds since 1970; NaN where this machine cannot tell."""

    n_finished: int
    """Finished segments and tiles that the next run finds."""

    is_interrupted: bool
    """Whether a run was interrupted, which the next one takes up."""

    last: Run | None
    """The last run of the history."""

    age: float
    """Seconds since that run ended, by the clock of this machine; NaN without one."""


def status_of(job: Job) -> Status:
    """How `job` stands: nothing is locked, changed or computed.

    Raises
    ------
    StoreError
        If its history is damaged.
    """
    store, checkpoint = job.output.store, job.run.checkpoint
    holders = [holder_of(lock_of(path)) for path in (store, checkpoint) if path is not None]
    holder = next((one for one in holders if one is not None and not one.is_gone()), None)
    folder = checkpoint_of(store, checkpoint)
    n_finished = _n_finished(job, folder)
    is_open = n_finished > 0
    if job.keeps_summaries and folder is not None:
        is_open = interrupted(folder) is not None
    last = _last(job)
    age = math.nan
    if last is not None and not np.isnat(last.time):
        age = time.time() - last.time.astype("int64") / 1e9 - np.nan_to_num(last.seconds)
    return Status(holder, _since(holder), n_finished, is_open and holder is None, last, float(age))


def account_of(job: Job) -> Account:
    """The history of a job.

    Raises
    ------
    InputError
        If it keeps none.
    StoreError
        If there is none yet, or it is damaged.
    """
    if job.output.history is None:
        raise InputError("the job keeps no history; name one as output.history.")
    return read_history(load_history(job.output.history), tuple(job.entries()))


def _since(holder: Holder | None) -> float:
    if holder is None or not holder.is_here:
        return math.nan
    return psutil.boot_time() + holder.began


def _n_finished(job: Job, folder: str | None) -> int:
    stores = [store for name in job.entries() if (store := job.store_of(name)) is not None]
    tiles = [work for out in stores if "://" not in out for work in unfinished(out.rstrip("/"))]
    return sum(map(n_finished_tiles, tiles)) + (0 if folder is None else n_segments(folder))


def _last(job: Job) -> Run | None:
    history = job.output.history
    if history is None or files_at(history).is_empty():
        return None
    runs = account_of(job).runs
    return runs[-1] if runs else None
