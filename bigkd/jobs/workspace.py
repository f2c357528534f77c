"""Beside an output while it is made: its lock, and the folder of finished segments."""

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from bigkd.errors import ClusterError, InputError
from bigkd.io import is_store
from bigkd.io.tiled import scratch_path
from bigkd.io.unfinished import n_finished_tiles, remove_unfinished, unfinished, unfinished_in
from bigkd.jobs.locks import lock

_TOKEN = re.compile(r"[0-9a-f]{32}")


class Workspace(NamedTuple):
    """Where one run keeps what it has finished."""

    checkpoint: str | None
    """Folder for `bigkd.finc`'s checkpoints; None to keep nothing."""

    n_found: int
    """Finished segments and tiles that were there when it began."""


@contextmanager
def workspace(
    out: str | None,
    *,
    checkpoint: str | None = None,
    keep_checkpoints: bool = True,
    resume: bool = False,
) -> Iterator[Workspace]:
    """Hold the locks of a run that writes `out`, and look after its checkpoints.

    Parameters
    ----------
    out
        The store to be written, or None. A local one is locked by ``<out>.lock``; for a URL nothing
        is locked.
    checkpoint
        Folder of checkpoints, for this run alone; ``<out>.checkpoint`` by default, and none beside
        a URL. It goes away when the run succeeds, and stays when it does not. What is under a URL
        is used, but never removed.
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
    folder = _folder(out, checkpoint) if keep_checkpoints else None
    if resume and folder is None:
        raise InputError(
            "there is nothing to resume from: name the store with --out or the folder of "
            "checkpoints with --checkpoint."
        )
    with ExitStack() as stack:
        for path in sorted({_lock_file(path) for path in (out, checkpoint) if _is_local(path)}):
            stack.enter_context(lock(path))
        if not resume:
            _clear_all(folder, out)
        try:
            yield Workspace(folder, _n_finished(folder, out))
        except (KeyboardInterrupt, ClusterError) as error:
            error.add_note(_what_is_kept(folder, out))
            raise
        finally:
            if folder is None:
                _clear_all(None, out)
        _clear_all(folder, out)


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
    tokens = _tokens(folder)
    segments = sum(1 for token in tokens for _ in token.glob("[0-9]*.zarr"))
    return segments + sum(
        n_finished_tiles(work) for token in tokens for work in unfinished_in(token)
    )


def clear(folder: str) -> None:
    """Remove the checkpoints in `folder`, and `folder` itself if nothing else is in it."""
    for token in _tokens(folder):
        shutil.rmtree(token, ignore_errors=True)
    path = Path(folder)
    if path.is_dir() and not any(path.iterdir()):
        path.rmdir()


def _tiles(out: str | None) -> list[Path]:
    """What was begun of a result that is written tile by tile."""
    return [] if out is None or not _is_local(out) else [*unfinished(out.rstrip("/"))]


def _n_finished(folder: str | None, out: str | None) -> int:
    kept = 0 if folder is None else n_segments(folder)
    return kept + sum(map(n_finished_tiles, _tiles(out)))


def _clear_all(folder: str | None, out: str | None) -> None:
    if folder is not None:
        clear(folder)
    for work in _tiles(out):
        remove_unfinished(work)
    if out is not None and _is_local(out):
        clear(scratch_path(out))


def _tokens(folder: str) -> list[Path]:
    path = Path(folder)
    if not path.is_dir():
        return []
    return [inner for inner in sorted(path.iterdir()) if _TOKEN.fullmatch(inner.name)]


def _folder(out: str | None, checkpoint: str | None) -> str | None:
    if checkpoint is not None:
        return checkpoint
    return f"{out.rstrip('/')}.checkpoint" if out is not None and _is_local(out) else None


def _is_local(path: str | None) -> bool:
    return path is not None and "://" not in path


def _lock_file(path: str | None) -> Path:
    return Path(f"{str(path).rstrip('/')}.lock")


def _what_is_kept(folder: str | None, out: str | None) -> str:
    if folder is None:
        return "Nothing was kept: with --out, or --checkpoint, the next run could be resumed."
    kept = _n_finished(folder, out)
    segments = "1 finished segment is" if kept == 1 else f"{kept} finished segments are"
    where = f"{folder} and beside {out}" if _tiles(out) else folder
    return f"{segments} kept in {where}. Run the same command with --resume to go on from there."
