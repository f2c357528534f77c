"""Finished segments on disk: kept by workers, found again by later calls.

A segment's state is named after what it is made from: the spec, and the identity of each of its
blocks. A later call with the same data finds all of them. Where a collection grew it finds those of
the rows that were there before; where a block changed, all but the segment of that block.
"""

import hashlib
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bigkd.backends import namespace
from bigkd.engine.tasks import Job, Reduced, Tally, Telling
from bigkd.errors import StoreError
from bigkd.io import load_dataset, load_state, save_state, state_token, stored_names
from bigkd.io.tiled import whole_path

logger = logging.getLogger(__name__)


class Checkpoint(NamedTuple):
    """Where the state of one segment is kept."""

    path: str
    token: str


class Found(NamedTuple):
    """What is kept of a run of parts."""

    checkpoint: Checkpoint
    n_parts: int
    """Blocks, or squares of pairs, from its first on that the state is of."""


class DamagedStateError(StoreError):
    """A kept state whose root is as it was written, and something below it is not."""


class Kept:
    """The states of one spec in a folder of checkpoints.

    Parameters
    ----------
    thorough
        Whether every byte of a state is checked before it counts as found, not its root alone. The
        task that restores it checks every byte in any case.
    """

    def __init__(self, folder: str | Path, token: str, *, thorough: bool = False) -> None:
        require_folder(str(folder))
        self.root, self.token, self.thorough = f"{whole_path(folder)}/{token}", token, thorough
        self.names = stored_names(self.root)

    def shelf(self, label: str, content: Sequence[str]) -> "Shelf":
        """The states of parts; `content` tells what each is made from."""
        return Shelf(self, label, _keys(content))


class Shelf:
    """The states of a run of parts, and of as much of its beginning as there is."""

    def __init__(self, kept: Kept, label: str, keys: Sequence[str]) -> None:
        self._kept, self._label, self._keys = kept, label, keys

    @property
    def key(self) -> str:
        """What all parts together are known by."""
        return self._keys[-1]

    def place(self, n_parts: int) -> Checkpoint:
        """Where the state of the first `n_parts` is kept, or will be."""
        name = f"{self._label}-{self._keys[n_parts - 1]}"
        return Checkpoint(f"{self._kept.root}/{name}.zarr", f"{self._kept.token}/{name}")

    def find(self, lengths: Iterable[int]) -> Found | None:
        """The state of the first parts, as many as the first of `lengths` that there is one of."""
        for n_parts in lengths:
            checkpoint = self.place(n_parts)
            is_there = os.path.basename(checkpoint.path) in self._kept.names
            if is_there and is_finished(checkpoint, thorough=self._kept.thorough):
                return Found(checkpoint, n_parts)
        return None


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


def is_finished(checkpoint: Checkpoint, *, thorough: bool) -> bool:
    """Whether a state is there, and as it was written; a damaged one is computed again."""
    try:
        if thorough:
            load_dataset(checkpoint.path, kind="state")
        if state_token(checkpoint.path) == checkpoint.token:
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
    """Read a finished segment of `rows` rows.

    Raises
    ------
    DamagedStateError
        If it is not as it was written.
    """
    like = job.source.like()
    xp = namespace(like)
    template = Reduced(job.summary.init(like), Tally(xp.asarray(0), xp.asarray(0)))
    try:
        reduced = load_state(checkpoint.path, template, token=checkpoint.token)
    except StoreError as error:
        raise DamagedStateError(str(error)) from error
    telling = Telling(job.topic)
    telling.add(rows)
    telling.send()
    return reduced
