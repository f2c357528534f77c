"""Rows of a Zarr array: blocks follow its chunks or shards, and gaps are noticed."""

import itertools
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import zarr
from zarr.core.sync import sync
from zarr.storage import LocalStore

from bigkd.errors import DataError, InputError, ShapeError
from bigkd.io.sources import Source, digest, rows_per_block
from bigkd.protocols import Array

Missing = Literal["raise", "skip", "fill"]


@dataclass(frozen=True, kw_only=True)
class ZarrSource(Source):
    """Rows of a Zarr array, read inside the task that needs them.

    `starts` holds the store's row number of the first row of each block, where rows whose chunks
    do not exist are left out; None where every row is there.
    """

    array: Any = field(repr=False)
    starts: tuple[int, ...] | None = None

    def read_raw(self, start: int, stop: int) -> Array:
        """Rows ``start:stop`` of the rows that exist."""
        if self.starts is None:
            return self.array[start:stop]
        block = self.bounds.index(start)
        origin = self.starts[block]
        return self.array[origin : origin + (stop - start)]

    def take(self, start: int, stop: int) -> Array:
        """Rows ``start:stop``; where chunks were skipped, of any blocks these rows touch."""
        if self.starts is None:
            return super().take(start, stop)
        parts = []
        for block in range(self.n_blocks):
            low, high = self.bounds[block], self.bounds[block + 1]
            if low < stop and start < high:
                rows = self.read_raw(low, high)[max(start - low, 0) : stop - low]
                parts.append(np.reshape(rows, (rows.shape[0], self.width)))
        return np.concatenate(parts)

    def first_index(self, block: int) -> int:
        """Row number in the store of the first row of `block`."""
        return self.bounds[block] if self.starts is None else self.starts[block]

    def identity(self) -> str:
        """Digest of the metadata and, on a local disk, of every chunk file's size and time."""
        parts: list[object] = ["zarr", self.array.store, self.array.path, self.array.metadata]
        store = self.array.store
        if isinstance(store, LocalStore):
            root = Path(store.root) / self.array.path
            for folder, _, files in sorted(os.walk(root)):
                for file in sorted(files):
                    status = os.stat(os.path.join(folder, file))
                    parts.append((folder, file, status.st_size, status.st_mtime_ns))
        return digest(*parts)


def zarr_source(
    array: Any, *, name: str, block_rows: int | None = None, missing: Missing = "raise"
) -> ZarrSource:
    """Rows of `array` along its first axis.

    Raises
    ------
    ShapeError
        If `array` has fewer than two dimensions.
    DataError
        If a chunk does not exist and `missing` is ``"raise"``.
    """
    if missing not in ("raise", "skip", "fill"):
        raise InputError(f"missing must be 'raise', 'skip' or 'fill'; got {missing!r}.")
    if array.ndim < 2:
        raise ShapeError(
            f"{name}: the Zarr array {array.name!r} has shape {array.shape}; rows need at least "
            f"two dimensions, (row, feature). Reshape it to ({array.size}, 1) if it is a column."
        )
    stored = array.shards or array.chunks
    row_bytes = int(np.prod(array.shape[1:], dtype=np.int64)) * array.dtype.itemsize
    step = block_rows or rows_per_block(row_bytes, multiple=stored[0])
    if missing != "fill":
        gaps = _gaps(array, stored)
        if gaps and missing == "raise":
            raise DataError(
                f"{name}: {len(gaps)} chunks of the Zarr array {array.name!r} do not exist; the "
                f"first is chunk {gaps[0]}, which begins at row {gaps[0][0] * stored[0]}. Pass "
                f"missing='skip' to leave out their rows (counted), or missing='fill' if absent "
                f"chunks mean the fill value {array.fill_value!r}."
            )
        if gaps:
            return _without(array, name, stored[0], step, {gap[0] for gap in gaps})
    return ZarrSource(
        name=name,
        row_shape=tuple(array.shape[1:]),
        dtype=np.dtype(array.dtype),
        bounds=(*range(0, array.shape[0], step), array.shape[0]),
        array=array,
    )


def _gaps(array: Any, stored: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Grid positions of the stored chunks (shards) that do not exist, in order."""
    if array.nchunks_initialized == array.nchunks:
        return []
    grid = [range(-(-size // step)) for size, step in zip(array.shape, stored, strict=True)]
    prefix = f"{array.path}/" if array.path else ""

    async def absent() -> list[tuple[int, ...]]:
        return [
            at
            for at in itertools.product(*grid)
            if not await array.store.exists(prefix + array.metadata.encode_chunk_key(at))
        ]

    return sync(absent())


def _without(array: Any, name: str, chunk: int, step: int, absent: set[int]) -> ZarrSource:
    """Blocks of the rows whose chunks all exist; never across a gap."""
    n_rows = array.shape[0]
    bounds, starts = [0], []
    for low in range(0, n_rows, step):
        high = min(low + step, n_rows)
        for kept, run in itertools.groupby(
            range(low // chunk, -(-high // chunk)), key=lambda at: at not in absent
        ):
            at = list(run)
            if kept:
                start, stop = max(at[0] * chunk, low), min((at[-1] + 1) * chunk, high)
                starts.append(start)
                bounds.append(bounds[-1] + stop - start)
    return ZarrSource(
        name=name,
        row_shape=tuple(array.shape[1:]),
        dtype=np.dtype(array.dtype),
        bounds=tuple(bounds),
        array=array,
        starts=tuple(starts),
        skipped=n_rows - bounds[-1],
    )


def open_zarr(path: str) -> Any:
    """Array at `path`, or the one array with rows in the group at `path`.

    Raises
    ------
    InputError
        If the group holds none or several arrays with two or more dimensions.
    """
    node = zarr.open(path, mode="r")
    if isinstance(node, zarr.Array):
        return node
    found = {name: array for name, array in node.arrays() if array.ndim >= 2}
    if len(found) != 1:
        raise InputError(
            f"{path} is a Zarr group with {len(found)} arrays of two or more dimensions "
            f"({', '.join(sorted(found)) or 'none'}); name one, as {path}/NAME."
        )
    return next(iter(found.values()))
