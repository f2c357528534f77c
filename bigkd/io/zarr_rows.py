"""Rows of a Zarr array: blocks follow its chunks or shards, and gaps are noticed."""

import bisect
import itertools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore, MemoryStore

from bigkd.config import BLOCK_BYTES
from bigkd.errors import DataError, InputError, MissingDependencyError, ShapeError, StoreError
from bigkd.io.sources import Source, digest, even_bounds, rows_per_block
from bigkd.io.status import folder_status, object_status
from bigkd.io.urls import plain_location
from bigkd.protocols import Array

Missing = Literal["raise", "skip", "fill"]

DIGESTS = "tile_sha256"
"""SHA-256 of every tile of a finished store of tiles: not rows of anybody's."""

MOST_CHUNKS = 4_000_000
"""Chunks, or shards, of one array: what is looked for one by one."""


@dataclass(frozen=True, kw_only=True)
class ZarrSource(Source):
    """Rows of a Zarr array, read inside the task that needs them.

    `starts` holds the store's row number of the first row of each block, where rows whose chunks
    do not exist are left out; None where every row is there.
    """

    array: Any = field(repr=False)
    starts: tuple[int, ...] | None = None

    def read_raw(self, start: int, stop: int) -> Array:
        """Rows ``start:stop`` of the rows that exist, of any blocks they touch."""
        if self.starts is None:
            return self.array[start:stop]
        parts = []
        while start < stop:
            block = bisect.bisect_right(self.bounds, start) - 1
            low, high = start - self.bounds[block], min(stop, self.bounds[block + 1])
            origin = self.starts[block] + low
            parts.append(self.array[origin : origin + high - start])
            start = high
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def first_index(self, block: int) -> int:
        """Row number in the store of the first row of `block`."""
        return self.bounds[block] if self.starts is None else self.starts[block]

    def content(self) -> str:
        """Digest of the metadata and of what the store says of each chunk.

        That is the size and time of change on a local disk, the object's tag on an object store,
        and the content itself where a store tells neither.
        """
        return digest("zarr", *self._where(), self.starts, self._seen())

    def contents(self, ranges: Sequence[tuple[int, int]]) -> list[str]:
        """Digests of what the store says of the chunks that the rows are in.

        The length of the array is left out, and so are its attributes: both change when rows are
        added.
        """
        array, seen = self.array, dict(self._seen())
        metadata = {
            key: text for key, text in array.metadata.to_dict().items() if key not in _GROWS
        }
        chunk, *others = array.shards or array.chunks
        across = [
            range(-(-size // step)) for size, step in zip(array.shape[1:], others, strict=True)
        ]
        about, names = digest(*self._where(), metadata), []
        for start, stop in ranges:
            first = self._stored(start)
            last = self._stored(stop - 1)
            grid = itertools.product(range(first // chunk, last // chunk + 1), *across)
            read = [seen.get(array.metadata.encode_chunk_key(at)) for at in grid]
            names.append(digest("zarr", about, first, last, read))
        return names

    def _stored(self, row: int) -> int:
        """Number in the store of a row that exists."""
        block = bisect.bisect_right(self.bounds, row) - 1
        return self.first_index(block) + row - self.bounds[block]

    def _where(self) -> tuple[Any, str]:
        """The store, the same however its place is spelled, and the array in it."""
        store = self.array.store
        if isinstance(store, LocalStore):
            store = Path(store.root).resolve()
        return "memory" if isinstance(store, MemoryStore) else store, self.array.path

    def has_grown(self) -> bool:
        """Whether the array is longer than when it was opened."""
        now: Any = zarr.open_array(self.array.store, path=self.array.path, mode="r")
        return bool(now.shape[0] > self.array.shape[0])

    def _seen(self) -> list[tuple[str, Any]]:
        """What the store says of each file or object of the array, by its key below it."""
        store, path = self.array.store, self.array.path
        if isinstance(store, LocalStore):
            found = folder_status(Path(store.root) / path)
            return [(name.replace(os.sep, "/"), about) for name, *about in found]
        told = sync(_told(store, path)) if isinstance(store, FsspecStore) else None
        return sync(_content(store, path)) if told is None else told


_GROWS = ("shape", "attributes", "consolidated_metadata")


async def _told(store: FsspecStore, path: str) -> list[tuple[str, str]] | None:
    """What an object store says of every object below `path`; None if that tells no change."""
    root = f"{store.path}/{path}".rstrip("/")
    return object_status(await store.fs._find(root, detail=True), root)


async def _content(store: Any, path: str) -> list[tuple[str, str]]:
    """Key below `path` and digest of the content of every object there, in order."""
    prefix, found = f"{path}/" if path else "", []
    async for key in store.list_prefix(prefix):
        value = await store.get(key, prototype=default_buffer_prototype())
        found.append((key.removeprefix(prefix), digest(value.to_bytes())))
    return sorted(found)


def zarr_source(
    array: Any, *, name: str, block_rows: int | None = None, missing: Missing = "raise"
) -> ZarrSource:
    """Rows of `array` along its first axis.

    Raises
    ------
    ShapeError
        If `array` has no dimension that could count rows.
    DataError
        If a chunk does not exist and `missing` is ``"raise"``. In a sharded array that is a shard:
        a shard is written whole, so a chunk left out of it is one of fill values.
    """
    if array.ndim < 1:
        raise ShapeError(f"{name}: the Zarr array {array.name!r} is a single number, not rows.")
    refuse_code(array, name=name)
    stored = array.shards or array.chunks
    _refuse_absurd(array, stored, name)
    row_bytes = math.prod(array.shape[1:]) * array.dtype.itemsize
    fits = stored[0] * row_bytes <= BLOCK_BYTES
    step = block_rows or rows_per_block(row_bytes, multiple=stored[0] if fits else array.chunks[0])
    if missing != "fill":
        gaps = _gaps(array, stored)
        if gaps and missing == "raise":
            raise DataError(
                f"{name}: {len(gaps)} of {_count(array, stored)} "
                f"{'shards' if array.shards else 'chunks'} of the Zarr array {array.name!r} do not "
                f"exist; the first is {gaps[0]}, which begins at row {gaps[0][0] * stored[0]}. "
                f"Pass missing='skip' to leave out their rows (counted), or missing='fill' if "
                f"absent chunks mean the fill value {array.fill_value!r}."
            )
        if gaps:
            return _without(array, name, stored[0], step, {gap[0] for gap in gaps})
    return ZarrSource(
        name=name,
        row_shape=tuple(array.shape[1:]),
        dtype=np.dtype(array.dtype),
        bounds=even_bounds(array.shape[0], step),
        array=array,
    )


def refuse_code(array: Any, *, name: str) -> None:
    """Raise StoreError if reading `array` would run what its author wrote."""
    about = array.metadata
    codecs = (*(getattr(about, "filters", None) or ()), getattr(about, "compressor", None))
    if any(getattr(codec, "codec_id", "") == "pickle" for codec in codecs):
        raise StoreError(
            f"{name}: the Zarr array {array.name!r} holds pickled Python objects, which could run "
            f"any code when they are read. Write it again, as numbers."
        )


def _refuse_absurd(array: Any, stored: tuple[int, ...], name: str) -> None:
    count = _count(array, stored)
    if count > MOST_CHUNKS:
        raise DataError(
            f"{name}: the Zarr array {array.name!r} says that it has shape {array.shape} in "
            f"{count:,} chunks; expected at most {MOST_CHUNKS:,}. Is its metadata damaged? "
            f"Otherwise write it in larger chunks or shards."
        )


def _gaps(array: Any, stored: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Grid positions of the stored chunks (shards) that do not exist, in order."""
    prefix = f"{array.path}/" if array.path else ""

    keys = _keys(array.store, array.path, prefix)
    grid = [range(-(-size // step)) for size, step in zip(array.shape, stored, strict=True)]
    return [
        at
        for at in itertools.product(*grid)
        if prefix + array.metadata.encode_chunk_key(at) not in keys
    ]


def _keys(store: Any, path: str, prefix: str) -> set[str]:
    """Keys of the objects below `path`; a file of no bytes, as a broken copy leaves, is none."""
    if isinstance(store, LocalStore):
        found = folder_status(Path(store.root) / path)
        return {prefix + Path(name).as_posix() for name, size, _ in found if size}

    async def listed() -> set[str]:
        return {key async for key in store.list_prefix(prefix)}

    return sync(listed())


def _count(array: Any, stored: tuple[int, ...]) -> int:
    steps = zip(array.shape, stored, strict=True)
    return math.prod(max(1, -(-size // step)) for size, step in steps)


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


def open_node(path: str) -> Any:
    """The array or group at `path`, as it is now.

    What a group's consolidated metadata say of its arrays may be old: rows that are added change an
    array's own. Where a store cannot list its keys they are all that there is.
    """
    how: dict[str, Any] = (
        {"storage_options": {"use_listings_cache": False}} if "://" in path else {}
    )
    node = zarr.open(path, mode="r", **how)
    if isinstance(node, zarr.Array):
        return node
    group = zarr.open_group(path, mode="r", use_consolidated=False, **how)
    return group if any(True for _ in group) else node


def open_zarr(path: str, *, name: str) -> Any:
    """Array at `path`, or the one array with rows in the group at `path`.

    Raises
    ------
    InputError
        If the group holds none or several arrays with two or more dimensions.
    StoreError
        If there is no Zarr array or group, or its metadata cannot be read.
    MissingDependencyError
        If `path` is a URL whose file system is not installed.
    """
    plain_location(path, name=name)
    try:
        node = open_node(path)
        arrays = {} if isinstance(node, zarr.Array) else dict(node.arrays())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreError(
            f"{name}: {path} is not a collection of rows; expected a Zarr array or group, a .npy "
            f"file, Parquet, or pictures."
        ) from error
    except ImportError as error:
        raise MissingDependencyError(
            f"{name}: reading {path} needs a package that is not installed ({error}); "
            f"pip install 'bigkd[s3]' for s3:// URLs."
        ) from error
    except Exception as error:  # damaged metadata, a server that refuses
        raise StoreError(
            f"{name}: {path} cannot be opened as Zarr ({type(error).__name__}: {error}). Is it "
            f"damaged, or are credentials missing?"
        ) from error
    if isinstance(node, zarr.Array):
        return node
    found = {key: array for key, array in arrays.items() if array.ndim >= 2 and key != DIGESTS}
    if len(found) != 1:
        raise InputError(
            f"{name}: {path} is a Zarr group with {len(found)} arrays of two or more dimensions "
            f"({', '.join(sorted(found)) or 'none'}); name one, as {path}/NAME."
        )
    return next(iter(found.values()))
