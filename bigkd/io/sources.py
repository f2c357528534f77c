"""Where rows come from: every kind of collection as a run of row blocks.

A source knows the shape of its rows and where its blocks begin before anything is read. `read` is
called inside tasks, so a source is small, immutable and picklable, and opens its file itself.
"""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bigkd.backends import to_host
from bigkd.config import BLOCK_BYTES, BLOCK_ROWS
from bigkd.protocols import Array


def even_bounds(n_rows: int, block_rows: int) -> tuple[int, ...]:
    """Boundaries of blocks of `block_rows` rows; the last may be shorter."""
    return (*range(0, n_rows, max(1, block_rows)), n_rows)


def rows_per_block(row_bytes: int, *, multiple: int = 1) -> int:
    """Rows of one read, at most `BLOCK_BYTES` and `BLOCK_ROWS`; a multiple of the store's chunk."""
    aim = min(BLOCK_ROWS, BLOCK_BYTES // max(1, row_bytes))
    return max(1, aim // multiple) * multiple


def digest(*parts: object) -> str:
    """Short name of `parts`, equal on every machine."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(part if isinstance(part, bytes) else str(part).encode())
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
    """

    name: str
    row_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    bounds: tuple[int, ...]
    skipped: int = 0

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
        return int(np.prod(self.row_shape, dtype=np.int64))

    @property
    def row_bytes(self) -> int:
        """Bytes of one row as stored."""
        return self.width * self.dtype.itemsize

    @property
    def largest_block(self) -> int:
        """Rows of the largest block."""
        return max(stop - start for start, stop in pairwise(self.bounds))

    @abstractmethod
    def read_raw(self, start: int, stop: int) -> Array:
        """Rows ``start:stop`` as stored, shape ``(stop - start, *row_shape)``."""

    @abstractmethod
    def identity(self) -> str:
        """Name of the content, that changes when the content does; keys checkpoints."""

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
        """Rows ``start:stop``, shape ``(stop - start, width)``."""
        rows = self.read_raw(start, stop)
        return rows if rows.ndim == 2 else rows.reshape((stop - start, self.width))


@dataclass(frozen=True, kw_only=True)
class ArraySource(Source):
    """Rows of an array in memory: NumPy, CuPy, or another array API namespace."""

    array: Array = field(repr=False)

    def read_raw(self, start: int, stop: int) -> Array:
        """Rows ``start:stop``, a view."""
        return self.array[start:stop, ...]

    def like(self) -> Array:
        """The first row."""
        return self.take(0, 1)

    def identity(self) -> str:
        """Digest of the content: one pass over memory."""
        content = np.ascontiguousarray(to_host(self.array))
        return digest("array", content.shape, content.dtype.str, content.data)


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
        return flat.reshape((stop - start, *self.row_shape))

    def identity(self) -> str:
        """Digest of the path, size and time of change."""
        status = self.path.stat()
        return digest("file", self.path.resolve(), status.st_size, status.st_mtime_ns, self.offset)


@dataclass(frozen=True, kw_only=True)
class DaskSource(Source):
    """Rows of a Dask array; its blocks are tasks of the graph, so nothing is read here."""

    array: Any = field(repr=False)

    def read_raw(self, start: int, stop: int) -> Array:
        """Compute rows ``start:stop``: for samples only, the engine uses the graph."""
        return self.array[start:stop].compute(scheduler="threads")

    def identity(self) -> str:
        """Dask's own name of the array, a digest of how it is made."""
        return digest("dask", self.array.name, self.array.chunks)
