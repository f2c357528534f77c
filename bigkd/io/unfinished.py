"""What interrupted runs left of arrays in tiles: beside their final places, on local disks."""

import glob
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from bigkd.io.manifests import MANIFEST, UNFINISHED
from bigkd.io.tiled import DONE, partial_path
from bigkd.io.zarr_rows import DIGESTS


def unfinished_in(folder: str | Path) -> Iterator[Path]:
    """What was begun of arrays that are to be in `folder`, a folder each."""
    return (path for path in sorted(Path(folder).glob(".*.partial")) if _is_ours(path))


def unfinished(path: str | Path) -> Iterator[Path]:
    """What was begun of the array that is to be at `path`: one folder, or none."""
    work = Path(partial_path(path))
    return iter([work] if _is_ours(work) else [])


def leftovers(path: str | Path) -> Iterator[Path]:
    """What killed calls of `bigkd.io.save_dataset` left of the store that is to be at `path`."""
    final = Path(path)
    hidden = f".{glob.escape(final.name)}.{'[0-9a-f]' * 8}.partial"
    return (work for work in sorted(final.parent.glob(hidden)) if not work.is_symlink())


def n_finished_tiles(work: Path) -> int:
    """Tiles that are finished in what `unfinished` finds; 0 where it cannot be read."""
    try:
        group: Any = zarr.open_group(str(work), mode="r", use_consolidated=False)
        names = [name for name in (DIGESTS, DONE) if name in group]
        done = [np.asarray(group[name][...]).any(axis=-1) for name in names]
    except Exception:  # damaged metadata, half a deletion
        return 0
    return max((int(np.count_nonzero(one)) for one in done), default=0)


def remove_unfinished(work: Path) -> None:
    """Delete what `unfinished` finds."""
    shutil.rmtree(work, ignore_errors=True)


def _is_ours(work: Path) -> bool:
    try:
        text = (work / "zarr.json").read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False  # or renamed by its writer while we look
    return any(f'"{key}"'.encode() in text for key in (MANIFEST, UNFINISHED))
