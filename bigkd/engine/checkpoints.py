"""Finished segments on disk: kept by workers, found again by later calls.

A segment's state is named after what it is made from: the spec, and the identity of each of its
blocks. A later call with the same data finds all of them. Where a collection grew it finds those of
the rows that were there before; where a block changed, all but the segment of that block.
"""

import hashlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bigkd.backends import namespace
from bigkd.engine.tasks import Job, Reduced, Tally, Telling
from bigkd.errors import StoreError
from bigkd.io import load_dataset, load_state, save_state, stored_names
from bigkd.io.tiled import whole_path

logger = logging.getLogger(__name__)


class Checkpoint(NamedTuple):
    """Where the state of one segment is kept."""

    path: str
    token: str


class Found(NamedTuple):
    """What is kept of one segment."""

    checkpoint: Checkpoint
    n_parts: int
    """Blocks, or squares of pairs, from its first on that the state is of."""


class Kept:
    """The states of one spec in a folder of checkpoints."""

    def __init__(self, folder: str | Path, token: str) -> None:
        require_folder(str(folder))
        self._root, self._token = f"{whole_path(folder)}/{token}", token
        self._names = stored_names(self._root)

    def place(self, label: str, content: Sequence[str]) -> Checkpoint:
        """Where the state of `content` is kept, or will be."""
        return self._checkpoint(label, _keys(content)[-1])

    def find(self, label: str, content: Sequence[str], *, partly: bool) -> Found | None:
        """The state of `content`; or, if `partly`, of as much of its beginning as there is."""
        if not any(name.startswith(f"{label}-") for name in self._names):
            return None
        keys = _keys(content)
        for n_parts in range(len(keys), 0 if partly else len(keys) - 1, -1):
            checkpoint = self._checkpoint(label, keys[n_parts - 1])
            if os.path.basename(checkpoint.path) in self._names and is_finished(checkpoint):
                return Found(checkpoint, n_parts)
        return None

    def _checkpoint(self, label: str, key: str) -> Checkpoint:
        return Checkpoint(f"{self._root}/{label}-{key}.zarr", f"{self._token}/{label}/{key}")


def _keys(content: Sequence[str]) -> list[str]:
    """Name of the beginning of `content`, for each length of it."""
    hashed, keys = hashlib.sha256(), []
    for part in content:
        hashed.update(f"{part}\n".encode())
        keys.append(hashed.hexdigest()[:20])
    return keys


def require_folder(folder: str) -> None:
    """Make the local `folder` and try to write there, before anything runs.

    Raises
    ------
    StoreError
        If that is not possible.
    """
    if "://" in folder:
        return
    probe = Path(folder) / ".probe"  # one name: what a killed call leaves, the next one removes
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink(missing_ok=True)
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
