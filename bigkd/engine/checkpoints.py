"""Finished segments on disk: kept by workers, found again by the next call."""

import logging
import os
import uuid
from pathlib import Path
from typing import NamedTuple

from bigkd.backends import namespace
from bigkd.engine.tasks import Job, Reduced, Tally, Telling
from bigkd.errors import StoreError
from bigkd.io import load_dataset, load_state, save_state

logger = logging.getLogger(__name__)


class Checkpoint(NamedTuple):
    """Where the state of one segment is kept."""

    path: str
    token: str


def require_folder(folder: str) -> None:
    """Make the local `folder` and try to write there, before anything runs.

    Raises
    ------
    StoreError
        If that is not possible.
    """
    if "://" in folder:
        return
    probe = Path(folder) / f".{uuid.uuid4().hex[:8]}.probe"
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StoreError(
            f"the checkpoint folder {folder} cannot be written: {error}. Pass a folder that this "
            f"process and all workers can write to."
        ) from error


def is_finished(checkpoint: Checkpoint) -> bool:
    """Whether the segment's store is whole; a damaged one is computed again."""
    try:
        stored = load_dataset(checkpoint.path, kind="state")
        if stored.attrs.get("token") == checkpoint.token:
            return True
        problem = f"{checkpoint.path} belongs to another segment."
    except StoreError as error:
        if isinstance(error.__cause__, FileNotFoundError) and not os.path.lexists(checkpoint.path):
            return False
        problem = str(error)
    logger.warning("a checkpoint is damaged and is computed again: %s", problem)
    return False


def keep(reduced: Reduced, checkpoint: Checkpoint) -> Reduced:
    """Write a finished segment, and pass it on.

    Raises
    ------
    StoreError
        If the disk is full, or this worker may not write there.
    """
    try:
        save_state(checkpoint.path, reduced, token=checkpoint.token)
    except OSError as error:
        raise StoreError(
            f"the checkpoint {checkpoint.path} cannot be written: {error}. Make room or pass "
            f"another folder, which all workers can write to; finished segments are kept."
        ) from error
    return reduced


def restore(job: Job, checkpoint: Checkpoint, rows: int) -> Reduced:
    """Read a finished segment of `rows` rows."""
    like = job.source.like()
    xp = namespace(like)
    template = Reduced(job.summary.init(like), Tally(xp.asarray(0), xp.asarray(0)))
    reduced = load_state(checkpoint.path, template, token=checkpoint.token)
    telling = Telling(job.topic)
    telling.add(rows)
    telling.send()
    return reduced
