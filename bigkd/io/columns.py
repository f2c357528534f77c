"""Collections seen by columns: few long rows, read a run of features at a time."""

import bisect
import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from bigkd.backends import device, namespace, to_host
from bigkd.config import BLOCK_BYTES, HELD_BYTES
from bigkd.io.sources import (
    ArraySource,
    DaskSource,
    FileSource,
    Source,
    array_digest,
    digest,
    even_bounds,
    stored_rows,
)
from bigkd.io.status import file_status
from bigkd.io.zarr_rows import ZarrSource
from bigkd.protocols import Array

SLAB_BYTES = 4 * BLOCK_BYTES
"""Most raw bytes of a block of columns, where smaller ones would decode chunks more often."""

MOST_READS = 4
"""How often columns may be read from what is stored by rows before they are refused."""

PIECE_BYTES = 4096
"""Least bytes of one row that are read from a file at once."""

Kept = tuple[int, ...] | None
"""Positions of the rows that are looked at, in order; all of them by default."""


def columns_of(source: Source, *, kept: Kept = None) -> Source | None:
    """`source` by columns: a source of its features, as rows of width ``n_rows``.

    Parameters
    ----------
    source
        Few long rows. A feature is one element of them, in C order.
    kept
        Rows that are looked at; all by default.

    Returns
    -------
    Source or None
        Blocks of consecutive features, of about 32 MB. None where that would read what is stored
        more than `MOST_READS` times, or hold more of a Dask array than a task may: a large store
        or Dask array that is chunked by whole rows, many pictures, a large Parquet table. A
        `ColumnSource` tells how often it reads what is stored (`ColumnSource.n_reads`).
    """
    if isinstance(source, DaskSource):
        return _dask_columns(source, kept)
    if isinstance(source, FileSource):
        part = FilePart(source.path, source.offset, source.n_rows)
        return file_columns(source, (part,), kept=kept)
    if isinstance(source, ArraySource):
        cut = _cut(source.row_shape, (1,) * len(source.row_shape), _column_bytes(source, kept))
        return ArrayColumns(**_common(source, kept, cut), cut=cut, array=source.array)
    if isinstance(source, ZarrSource):
        chunks = source.array.chunks[1:]
        cut = _cut(source.row_shape, chunks, _column_bytes(source, kept))
        return ZarrColumns(**_common(source, kept, cut), cut=cut, rows=source).if_few_reads()
    size = source.n_rows * source.row_bytes
    step = -(-source.width // -(-size // SLAB_BYTES))
    bounds = even_bounds(source.width, step)
    return GatheredColumns(**_common(source, kept, None, bounds), rows=source).if_few_reads()


class Cut(NamedTuple):
    """How features are cut into blocks."""

    axis: int
    """Axes before this one are taken one index at a time, those after it whole."""

    step: int
    """Indices of that axis in a block."""

    n_reads: int
    """How many blocks a stored chunk is in, about."""


def _cut(row_shape: tuple[int, ...], chunks: tuple[int, ...], column_bytes: int) -> Cut:
    """The cut that reads chunks least often, along the first axis that does."""
    found, before = [], 1
    for axis, (size, stored) in enumerate(zip(row_shape, chunks, strict=True)):
        unit = math.prod(row_shape[axis + 1 :]) * column_bytes
        chunk = min(size, stored)
        most = max(1, (BLOCK_BYTES if chunk * unit <= BLOCK_BYTES else SLAB_BYTES) // unit)
        if unit <= SLAB_BYTES or axis == len(row_shape) - 1:
            parts = -(-chunk // most)
            step = chunk * (most // chunk) if parts == 1 else -(-chunk // parts)
            found.append(Cut(axis, step, before * parts))
        before *= chunk
    return min(found, key=lambda cut: cut.n_reads)


def _bounds(row_shape: tuple[int, ...], cut: Cut) -> tuple[int, ...]:
    """Boundaries of the blocks of `cut`, in features."""
    tail = math.prod(row_shape[cut.axis + 1 :])
    run = row_shape[cut.axis] * tail
    starts = range(0, math.prod(row_shape), run)
    inside = range(0, run, cut.step * tail)
    return (*(start + at for start in starts for at in inside), math.prod(row_shape))


def _column_bytes(source: Source, kept: Kept) -> int:
    return (source.n_rows if kept is None else len(kept)) * source.dtype.itemsize


def _common(
    source: Source, kept: Kept, cut: Cut | None, bounds: tuple[int, ...] = ()
) -> dict[str, Any]:
    """Fields that all sources of columns share."""
    return {
        "name": source.name,
        "row_shape": (source.n_rows if kept is None else len(kept),),
        "dtype": source.dtype,
        "bounds": bounds if cut is None else _bounds(source.row_shape, cut),
        "features": source.row_shape,
        "kept": kept,
    }


@dataclass(frozen=True, kw_only=True)
class ColumnSource(Source):
    """Features of few long rows, as rows of width ``n_samples``.

    Attributes
    ----------
    features
        Shape of one of the long rows.
    kept
        Positions of those that are looked at.
    """

    features: tuple[int, ...]
    kept: Kept = None

    @property
    def n_reads(self) -> int:
        """How often what is stored is read by one pass, about."""
        return 1

    def if_few_reads(self) -> "ColumnSource | None":
        """Itself, or None where what is stored would be read too often."""
        return self if self.n_reads <= MOST_READS else None

    @abstractmethod
    def slab(self, start: int, stop: int) -> Array:
        """Features ``start:stop`` of one block, shape ``(n_samples, stop - start)``."""

    def read_raw(self, start: int, stop: int) -> Array:
        """Features ``start:stop`` of any blocks they touch, shape ``(stop - start, n_samples)``."""
        parts = []
        while start < stop:
            block = bisect.bisect_right(self.bounds, start) - 1
            high = min(stop, self.bounds[block + 1])
            parts.append(self.slab(start, high))
            start = high
        whole = parts[0] if len(parts) == 1 else namespace(*parts).concat(parts, axis=1)
        return whole.T


class Box(NamedTuple):
    """Where a run of features lies in a row of several axes."""

    key: tuple[int | slice, ...]  # index of the leading axes
    first: int  # feature that it begins with, at or before the first of the run


def _box(features: tuple[int, ...], axis: int, start: int, stop: int) -> Box:
    tail = math.prod(features[axis + 1 :])
    low, high = start // tail, -(-stop // tail)
    leading, at = divmod(low, features[axis])
    prefix = np.unravel_index(leading, features[:axis]) if axis else ()
    return Box((*map(int, prefix), slice(at, at + high - low)), low * tail)


@dataclass(frozen=True, kw_only=True)
class ArrayColumns(ColumnSource):
    """Columns of an array in memory: views, where all its rows are looked at."""

    cut: Cut
    array: Array = field(repr=False)

    def slab(self, start: int, stop: int) -> Array:
        """A view, or a copy where rows are left out or the array is not in C order."""
        xp, box = namespace(self.array), _box(self.features, self.cut.axis, start, stop)
        part = self.array[(slice(None), *box.key, ...)]
        if self.kept is not None:
            part = xp.take(part, xp.asarray(self.kept, device=device(part)), axis=0)
        return xp.reshape(part, (self.width, -1))[:, start - box.first : stop - box.first]

    def like(self) -> Array:
        """A row of zeros where the array is."""
        xp = namespace(self.array)
        return xp.zeros((1, self.width), dtype=self.array.dtype, device=device(self.array))

    def content(self) -> str:
        """Digest of the content: one pass over memory."""
        return digest("columns", self.kept, array_digest(self.array))


class FilePart(NamedTuple):
    """Rows in C order in a file."""

    path: Path
    offset: int
    n_rows: int


@dataclass(frozen=True, kw_only=True)
class FileColumns(ColumnSource):
    """Columns of rows in files: a piece of each row is read, nothing is mapped.

    `made_from` names what scratch files were made from.
    """

    parts: tuple[FilePart, ...]
    made_from: str | None = None

    def slab(self, start: int, stop: int) -> Array:
        """Freshly read."""
        out = np.empty((self.width, stop - start), self.dtype)
        length = math.prod(self.features) * self.dtype.itemsize
        skip = start * self.dtype.itemsize
        wanted = self._wanted()
        for at, part in enumerate(self.parts):
            with part.path.open("rb", buffering=0) as file:
                for row, to in wanted[at]:
                    file.seek(part.offset + row * length + skip)
                    _fill(file, memoryview(out[to].view(np.uint8)))
        return out

    def _wanted(self) -> list[list[tuple[int, int]]]:
        """Of each part, its rows that are kept, and which sample each is."""
        ends = list(accumulate(part.n_rows for part in self.parts))
        wanted: list[list[tuple[int, int]]] = [[] for _ in self.parts]
        for to, row in enumerate(range(ends[-1]) if self.kept is None else self.kept):
            at = bisect.bisect_right(ends, row)
            wanted[at].append((row - ends[at] + self.parts[at].n_rows, to))
        return wanted

    def content(self) -> str:
        """Digest of the paths, sizes and times of change; or of what they were made from."""
        if self.made_from is not None:
            return digest("columns", self.kept, self.made_from)
        seen = [(at.path.resolve(), at.offset, file_status(at.path)) for at in self.parts]
        return digest("columns", self.kept, seen)


def _fill(file: Any, view: memoryview) -> None:
    """Read as many bytes as `view` holds."""
    done = 0
    while done < len(view):
        count = file.readinto(view[done:])
        if not count:
            raise EOFError(f"{file.name} ends {len(view) - done} bytes too early")
        done += count


def file_columns(
    source: Source, parts: tuple[FilePart, ...], *, kept: Kept = None, made_from: str | None = None
) -> FileColumns:
    """Columns of the rows of `source`, which lie in `parts`."""
    step = max(BLOCK_BYTES // _column_bytes(source, kept), PIECE_BYTES // source.dtype.itemsize, 1)
    common = _common(source, kept, None, even_bounds(source.width, step))
    return FileColumns(**common, parts=parts, made_from=made_from)


@dataclass(frozen=True, kw_only=True)
class ZarrColumns(ColumnSource):
    """Columns of a Zarr array, in blocks that follow its chunks along the features."""

    cut: Cut
    rows: ZarrSource

    @property
    def n_reads(self) -> int:
        """How many blocks a chunk is in."""
        return self.cut.n_reads

    def slab(self, start: int, stop: int) -> Array:
        """Some rows after the other, so that little is decoded at once."""
        box = _box(self.features, self.cut.axis, start, stop)
        stored = stored_rows(self.rows)
        stored = stored if self.kept is None else stored[list(self.kept)]
        out = np.empty((self.width, stop - start), self.dtype)
        group = stored // self._rows_at_once(box)
        cuts = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(stored)]
        for low, high in pairwise(cuts):
            first, last = int(stored[low]), int(stored[high - 1]) + 1
            part = self.rows.array[(slice(first, last), *box.key)].reshape((last - first, -1))
            part = part[:, start - box.first : stop - box.first]
            out[low:high] = part[stored[low:high] - first]
        return out

    def _rows_at_once(self, box: Box) -> int:
        """A multiple of the chunk's rows, which decodes about as much as a block holds."""
        chunks = self.rows.array.chunks
        decoded = self.dtype.itemsize
        for at, (size, chunk) in enumerate(zip(self.features, chunks[1:], strict=True)):
            key = box.key[at] if at < len(box.key) else slice(0, size)
            length = key.stop - key.start if isinstance(key, slice) else 1
            decoded *= -(-length // chunk) * chunk
        return int(chunks[0]) * max(1, BLOCK_BYTES // (int(chunks[0]) * decoded))

    def content(self) -> str:
        """What the store says of itself."""
        return digest("columns", self.kept, self.rows.content())


@dataclass(frozen=True, kw_only=True)
class GatheredColumns(ColumnSource):
    """Columns of rows that can be read only whole: each block reads all of them."""

    rows: Source

    @property
    def n_reads(self) -> int:
        """One for each block."""
        return self.n_blocks

    def slab(self, start: int, stop: int) -> Array:
        """Pieces of all rows, put together."""
        out, at = np.empty((self.width, stop - start), self.dtype), 0
        kept = np.arange(self.rows.n_rows) if self.kept is None else np.asarray(self.kept)
        for low, high in pairwise(self.rows.bounds):
            wanted = kept[(low <= kept) & (kept < high)] - low
            part = to_host(self.rows.take(low, high))[:, start:stop]
            out[at : at + len(wanted)] = part[wanted]
            at += len(wanted)
        return out

    def content(self) -> str:
        """That of the rows."""
        return digest("columns", self.kept, self.rows.content())


def _dask_columns(source: DaskSource, kept: Kept) -> DaskSource | None:
    """Blocks along the first axis of the features, where its own chunks are narrow enough."""
    unit = math.prod(source.row_shape[1:]) * _column_bytes(source, kept)
    array = _own_chunks(source, max(1, BLOCK_BYTES // unit))
    if max(array.chunks[1]) * unit > HELD_BYTES:
        return None
    if kept is not None:
        array = array[list(kept)]
    sizes = tuple(_regrouped(array.chunks[1], max(1, BLOCK_BYTES // unit)))
    whole = {axis: -1 for axis in range(array.ndim) if axis != 1}
    turned = array.rechunk({**whole, 1: sizes}).reshape((array.shape[0], source.width)).T
    turned = turned.astype(source.dtype)
    return DaskSource(
        name=source.name,
        row_shape=(int(array.shape[0]),),
        dtype=source.dtype,
        bounds=(0, *accumulate(turned.chunks[0])),
        array=turned,
        origin=source.origin,
    )


def _own_chunks(source: DaskSource, most: int) -> Any:
    """The rows of `source` as Dask array, chunked as they are stored where that is known.

    What is not chunked, in memory or in a file, can be read in pieces of `most` indices.
    """
    array = source.array if source.unjoined is None else source.unjoined
    if not isinstance(array, xr.DataArray):
        return array
    preferred = {} if array._in_memory else array.encoding.get("preferred_chunks", {})
    leading = array.dims[1]
    chunks = {dim: -1 for dim in array.dims} | {leading: most} | dict(preferred)
    own = {dim: size for dim, size in chunks.items() if dim in array.dims}
    return array.chunk(own, token=source.array.name).data


def _regrouped(sizes: tuple[int, ...], most: int) -> Iterator[int]:
    """Chunks of at most `most`: larger ones split evenly, smaller ones joined."""
    held = 0
    for size in sizes:
        if held + size > most and held:
            yield held
            held = 0
        if size > most:
            yield from np.diff(np.linspace(0, size, -(-size // most) + 1).astype(int)).tolist()
        else:
            held += size
    if held:
        yield held
