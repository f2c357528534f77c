"""Where rows come from: every kind of collection as a run of row blocks.

A source knows the shape of its rows and where its blocks begin before anything is read. `read` is
called inside tasks, so a source is small, immutable and picklable, and opens its file itself.
"""

import bisect
import hashlib
import math
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bigkd.backends import compute_dtype, namespace, to_host
from bigkd.config import BLOCK_BYTES, BLOCK_ROWS
from bigkd.errors import BigkdError, DataError
from bigkd.io.status import file_status, folder_status, url_status
from bigkd.protocols import Array

MOST_BLOCKS = 10_000_000
"""Blocks of one collection: more of them are a mistake, or damaged metadata."""


def even_bounds(n_rows: int, block_rows: int) -> tuple[int, ...]:
    """Boundaries of blocks of `block_rows` rows; the last may be shorter.

    Raises
    ------
    DataError
        If there would be more than `MOST_BLOCKS`.
    """
    if n_rows > MOST_BLOCKS * max(1, block_rows):
        raise DataError(
            f"a collection says that it has {n_rows:,} rows, read {block_rows:,} at a time; "
            f"expected at most {MOST_BLOCKS:,} blocks. Is its metadata damaged? Otherwise pass "
            f"a larger block_rows."
        )
    return (*range(0, n_rows, max(1, block_rows)), n_rows)


def rows_per_block(row_bytes: int, *, multiple: int = 1) -> int:
    """Rows of one read, at most `BLOCK_BYTES` and `BLOCK_ROWS`; a multiple of the store's chunk."""
    aim = min(BLOCK_ROWS, BLOCK_BYTES // max(1, row_bytes))
    return max(1, aim // multiple) * multiple


def digest(*parts: object) -> str:
    """Short name of `parts`, equal on every machine."""
    hashed = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes | memoryview) else str(part).encode()
        hashed.update(content)
        hashed.update(b"\0")
    return hashed.hexdigest()[:32]


@dataclass(frozen=True, kw_only=True)
class Source(ABC):
    """A collection of rows, cut into blocks.

    Attributes
    ----------
    name
        What error messages and progress call it.
    row_shape
        Shape of one row before it is flattened: ``(768,)``, or ``(28, 28, 3)`` for images.
    dtype
        Element type as stored.
    bounds
        Boundaries of the blocks, ``n_blocks + 1`` increasing row numbers from 0 to `n_rows`.
    skipped
        Rows that are not in any block because their chunk does not exist.
    weights, vectors
        What belongs to each row as stored, present or skipped: a number, and a direction.
    known
        `block_identities` as they were at some moment, for whoever is to go by that; None to look.
    """

    may_change: ClassVar[bool] = True
    """Whether somebody else may change what is stored while it is read."""

    name: str
    row_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    bounds: tuple[int, ...]
    skipped: int = 0
    weights: "Source | None" = None
    vectors: "Source | None" = None
    known: tuple[str, ...] | None = field(default=None, repr=False, compare=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.bounds[-1]

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.bounds) - 1

    @property
    def width(self) -> int:
        """Number of elements of one row."""
        return math.prod(self.row_shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element while it is computed with: wide integers become float64."""
        wide = compute_dtype(np, self.dtype) == np.float64
        return 8 if wide else self.dtype.itemsize

    @property
    def row_bytes(self) -> int:
        """Bytes of one row as stored."""
        return self.width * self.dtype.itemsize

    @property
    def companions(self) -> "tuple[Source | None, Source | None]":
        """What is read along with the rows: weights, vectors."""
        return self.weights, self.vectors

    @property
    def row_bytes_along(self) -> int:
        """Bytes of what is read along with one row."""
        return sum(part.row_bytes for part in self.companions if part is not None)

    @property
    def largest_block(self) -> int:
        """Rows of the largest block."""
        return max(stop - start for start, stop in pairwise(self.bounds))

    @abstractmethod
    def read_raw(self, start: int, stop: int) -> Array:
        """Rows ``start:stop`` as stored, shape ``(stop - start, *row_shape)``."""

    @abstractmethod
    def content(self) -> str:
        """Name of what is stored, that changes when it does."""

    def identity(self) -> str:
        """Name of the blocks and what is in them, that changes when they do; keys checkpoints."""
        shape = (self.row_shape, self.dtype.str, self.skipped)
        along = [part and part.content() for part in self.companions]
        if along == [None, None]:
            return digest(type(self).__name__, shape, self.bounds, self.content())
        return digest(type(self).__name__, shape, self.bounds, self.content(), *along)

    def contents(self, ranges: Sequence[tuple[int, int]]) -> list[str]:
        """Name of what is stored in each run of rows ``start:stop``, that changes when it does.

        Here that of the whole collection, which changes with any part of it. A source that knows
        more says so, and then rows that are added leave the names of the others as they are.
        """
        whole = self.content()
        return [digest(whole, start, stop) for start, stop in ranges]

    def block_identities(self) -> list[str]:
        """Name of each block and what is in it now, that changes when it does; keys summaries."""
        kind = (type(self).__name__, self.row_shape, self.dtype.str)
        firsts = [self.first_index(block) for block in range(self.n_blocks)]
        stored = [
            (first, first + stop - start)
            for first, (start, stop) in zip(firsts, pairwise(self.bounds), strict=True)
        ]
        parts = [self.contents(list(pairwise(self.bounds)))]
        for part in self.companions:
            parts.append([""] * self.n_blocks if part is None else part.contents(stored))
        return [digest(*kind, *about) for about in zip(stored, *parts, strict=True)]

    def has_grown(self) -> bool:
        """Whether rows were added since it was opened, as far as the store can tell."""
        return False

    def like(self) -> Array:
        """A row of zeros, on the namespace and device where `read` puts rows."""
        return np.zeros((1, self.width), dtype=self.dtype)

    def first_index(self, block: int) -> int:
        """Row number, in the collection as stored, of the first row of `block`."""
        return self.bounds[block]

    def read(self, block: int) -> Array:
        """Rows of one block, shape ``(n, width)``."""
        return self.take(self.bounds[block], self.bounds[block + 1])

    def take(self, start: int, stop: int) -> Array:
        """Rows ``start:stop``, shape ``(stop - start, width)``, in the machine's byte order.

        Raises
        ------
        DataError
            If they cannot be read, or not all of them.
        """
        try:
            rows = self.read_raw(start, stop)
        except (BigkdError, MemoryError):
            raise
        except Exception as error:  # every codec and file system has its own types
            raise self._unreadable(start, stop, error) from error
        if isinstance(rows, np.ndarray):
            rows = rows.astype(rows.dtype.newbyteorder("="), copy=False)
        if rows.ndim == 2:
            return rows
        return namespace(rows).reshape(rows, (stop - start, self.width))

    def _unreadable(self, start: int, stop: int, error: Exception) -> DataError:
        block = bisect.bisect_right(self.bounds, start) - 1
        first = self.first_index(block) + start - self.bounds[block]
        return DataError(
            f"{self.name}: rows {first} to {first + stop - start - 1} cannot be read "
            f"({type(error).__name__}: {error}). Is the store damaged, or was it changed or moved "
            f"after it was opened? Copy it again from its origin, and look at this place."
        )


def array_digest(array: Array) -> str:
    """Digest of shape, type and content: one pass over memory."""
    content = np.ascontiguousarray(to_host(array))
    return digest("array", content.shape, content.dtype.str, content.data)


def stored_rows(source: Source) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Number in the collection as stored of each row of `source`."""
    firsts = [source.first_index(block) for block in range(source.n_blocks)]
    before = np.asarray(firsts) - source.bounds[:-1]
    rows = np.arange(source.n_rows, dtype=np.int64) + np.repeat(before, np.diff(source.bounds))
    return np.asarray(rows, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class ArraySource(Source):
    """Rows of an array in memory: NumPy, CuPy, or another array API namespace."""

    may_change: ClassVar[bool] = False
    array: Array = field(repr=False)

    def read_raw(self, start: int, stop: int) -> Array:
        """Rows ``start:stop``, a view."""
        return self.array[start:stop, ...]

    def like(self) -> Array:
        """The first row."""
        return self.take(0, 1)

    def content(self) -> str:
        """Digest of the content: one pass over memory."""
        return array_digest(self.array)

    def contents(self, ranges: Sequence[tuple[int, int]]) -> list[str]:
        """Digests of the rows themselves."""
        return [array_digest(self.array[start:stop, ...]) for start, stop in ranges]


@dataclass(frozen=True, kw_only=True)
class FileSource(Source):
    """Rows of a C-ordered array in a file: ``.npy``, or what a `numpy.memmap` maps.

    Blocks are read, not mapped: mapped pages count as resident memory of the process.
    """

    path: Path
    offset: int

    def read_raw(self, start: int, stop: int) -> Array:
        """Rows ``start:stop``, freshly read."""
        with self.path.open("rb") as file:
            file.seek(self.offset + start * self.row_bytes)
            flat = np.fromfile(file, dtype=self.dtype, count=(stop - start) * self.width)
        if flat.size < (stop - start) * self.width:
            raise EOFError(f"{self.path} ends at row {start + flat.size // self.width}")
        return flat.reshape((stop - start, *self.row_shape))

    def content(self) -> str:
        """Digest of the path, size and time of change."""
        return digest("file", self.path.resolve(), file_status(self.path), self.offset)


@dataclass(frozen=True, kw_only=True)
class DaskSource(Source):
    """Rows of a Dask array; its blocks are tasks of the graph, so nothing is read here."""

    may_change: ClassVar[bool] = False
    array: Any = field(repr=False)
    origin: Path | str | None = None
    """Folder, file or URL that the array reads, where it is known."""

    unjoined: Any = field(default=None, repr=False)
    """The same rows as they came: in chunks that may cut features as well, or an unchunked
    `xarray.DataArray`."""

    def read_raw(self, start: int, stop: int) -> Array:
        """Compute rows ``start:stop``: for samples only, the engine uses the graph."""
        return self.array[start:stop].compute(scheduler="threads")

    def content(self) -> str:
        """Dask's own name of the array, a digest of how it is made.

        Dask does not look into files, so what `origin` holds is looked at as well. Where it is not
        known, as for `dask.array.from_zarr` or one variable of a Dataset opened from a store, the
        identity stays when chunks are rewritten: open the path instead.
        """
        return digest("dask", self.array.name, self._seen())

    def _seen(self) -> object:
        if isinstance(self.origin, str):  # what nobody tells of is never the same again
            return url_status(self.origin) or uuid.uuid4()
        return [] if self.origin is None else folder_status(self.origin)
