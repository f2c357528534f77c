"""Beside an output while it is made: its lock, and the folder of finished segments."""

import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from bigkd.errors import ClusterError, InputError
from bigkd.io import is_store, remove_store, stored_names
from bigkd.io.locks import lock
from bigkd.io.tiled import scratch_path, whole_path
from bigkd.io.unfinished import (
    leftovers,
    n_finished_tiles,
    remove_unfinished,
    unfinished,
    unfinished_in,
)
from bigkd.io.urls import one_place

_TOKEN = re.compile(r"[0-9a-f]{32}")


class Workspace(NamedTuple):
    """Where one run keeps what it has finished."""

    checkpoint: str | None
    """Folder for `bigkd.finc`'s checkpoints; None to keep nothing."""

    n_found: int
    """Finished segments and tiles that were there when it began."""

    kept: set[str]
    """Stores in that folder to keep when the run has succeeded; none by default."""

    afterwards: list[Callable[[], None]]
    """What is done when all else is, and nobody else may write yet."""

    def end(self) -> None:
        """Do it."""
        for action in self.afterwards:
            action()

    def keep_all(self) -> None:
        """Keep whatever is there."""
        if self.checkpoint is not None:
            root = whole_path(self.checkpoint)
            for token in _tokens(self.checkpoint):
                at = f"{root}/{token}"
                self.kept.update(f"{at}/{name}" for name in stored_names(at))


@contextmanager
def workspace(
    out: str | None,
    *,
    stores: Collection[str] = (),
    checkpoint: str | None = None,
    keep_checkpoints: bool = True,
    resume: bool = False,
) -> Iterator[Workspace]:
    """Hold the locks of a run that writes `out`, and look after its checkpoints.

    Parameters
    ----------
    out
        The store to be written, or the folder of several, or None. It is locked by ``<out>.lock``.
    stores
        The stores to be written, where `out` is their folder; else `out` itself.
    checkpoint
        Folder of checkpoints, for this run alone; ``<out>.checkpoint`` by default. What nobody
        wants to keep in it goes away when the run succeeds, and stays when it does not.
    keep_checkpoints
        False to keep nothing.
    resume
        Go on from the checkpoints that are there, and from the tiles of a result that is written
        tile by tile; otherwise they are removed first.

    Raises
    ------
    InputError
        If there is nowhere to resume from.
    LockedError
        If another run holds a lock.
    """
    folder = checkpoint_of(out, checkpoint) if keep_checkpoints else None
    if resume and folder is None:
        raise InputError(
            "there is nothing to resume from: name the store with --out or the folder of "
            "checkpoints with --checkpoint."
        )
    outs = tuple(stores) or (() if out is None else (out,))
    with ExitStack() as stack:
        for path in sorted({lock_of(path) for path in (out, checkpoint) if path is not None}):
            stack.enter_context(lock(path))
        if not resume:
            _clear_all(folder, outs)
        place = Workspace(folder, _n_finished(folder, outs), set(), [])
        try:
            yield place
        except (KeyboardInterrupt, ClusterError) as error:
            error.add_note(_what_is_kept(folder, outs))
            raise
        finally:
            if folder is None:
                _clear_all(None, outs)
        _clear_all(folder, outs, keep=place.kept)
        place.end()


def require_replaceable(out: str, *, overwrite: bool) -> None:
    """Raise InputError unless a result may be written to `out`: to nothing, or over another one."""
    if not _is_local(out) or not Path(out).exists():
        return
    if not overwrite:
        raise InputError(
            f"{out} exists already; pass --overwrite, or overwrite: true in a job file, to replace "
            f"it."
        )
    if not is_store(out):
        raise InputError(
            f"{out} exists and is not a store of bigkd; it is left alone. Move it, or name another "
            f"output."
        )


def n_segments(folder: str) -> int:
    """How many finished segments and tiles are in a folder of checkpoints."""
    names = [name for token in _tokens(folder) for name in stored_names(f"{folder}/{token}")]
    segments = sum(1 for name in names if re.fullmatch(r"[0-9].*\.zarr", name))
    if not _is_local(folder):
        return segments
    places = [Path(folder) / token for token in _tokens(folder)]
    return segments + sum(
        n_finished_tiles(work) for place in places for work in unfinished_in(place)
    )


def clear(folder: str, *, keep: Collection[str] = ()) -> None:
    """Remove the checkpoints in `folder` but for those to `keep`, and `folder` itself if empty.

    A link to a folder, which somebody made, stays.
    """
    root = whole_path(folder)
    kept = {path.removeprefix(f"{root}/") for path in keep}
    for token in _tokens(folder):
        names = {path.partition("/")[2] for path in kept if path.startswith(f"{token}/")}
        if not names:
            remove_store(f"{root}/{token}")
            continue
        for name in stored_names(f"{root}/{token}") - names:
            remove_store(f"{root}/{token}/{name}")
    path = Path(folder)
    is_own = _is_local(folder) and path.is_dir() and not path.is_symlink()
    if is_own and not any(path.iterdir()):
        path.rmdir()


def lock_of(path: str) -> str:
    """The file, or object, that locks an output, however its place is spelled."""
    return f"{one_place(path)}.lock"


def checkpoint_of(out: str | None, checkpoint: str | None) -> str | None:
    """Folder of the checkpoints of a job."""
    if checkpoint is not None or out is None:
        return checkpoint
    return f"{out.rstrip('/')}.checkpoint"


def _tiles(outs: Collection[str]) -> list[Path]:
    """What was begun of results that are written tile by tile."""
    return [work for out in outs if _is_local(out) for work in unfinished(out.rstrip("/"))]


def _n_finished(folder: str | None, outs: Collection[str]) -> int:
    kept = 0 if folder is None else n_segments(folder)
    return kept + sum(map(n_finished_tiles, _tiles(outs)))


def _clear_all(folder: str | None, outs: Collection[str], *, keep: Collection[str] = ()) -> None:
    if folder is not None:
        clear(folder, keep=keep)
    for work in _tiles(outs):
        remove_unfinished(work)
    for out in filter(_is_local, outs):
        clear(scratch_path(out))
        for work in leftovers(out):
            remove_unfinished(work)


def _tokens(folder: str) -> list[str]:
    """Names of the folders of checkpoints in `folder`; links are nobody's."""
    return [
        name
        for name in sorted(stored_names(folder))
        if _TOKEN.fullmatch(name) and not (_is_local(folder) and os.path.islink(f"{folder}/{name}"))
    ]


def _is_local(path: str) -> bool:
    return "://" not in path


def _what_is_kept(folder: str | None, outs: Collection[str]) -> str:
    if folder is None:
        return "Nothing was kept: with --out, or --checkpoint, the next run could be resumed."
    kept = _n_finished(folder, outs)
    segments = "1 finished segment is" if kept == 1 else f"{kept} finished segments are"
    where = f"{folder} and beside {', '.join(outs)}" if _tiles(outs) else folder
    return (
        f"{segments} kept in {where}. Run the same command to go on from there: `bigkd run` as it "
        f"is, others with --resume."
    )
