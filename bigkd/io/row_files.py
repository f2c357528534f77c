"""Rows copied to files of their own, so that they can be read by columns."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from bigkd.backends import to_host
from bigkd.io.columns import FileColumns, FilePart, Kept, file_columns
from bigkd.io.sources import Source
from bigkd.protocols import Array, Footprint, Rows


@dataclass(frozen=True, kw_only=True)
class RowFiles:
    """A summary that writes each block of rows to a file of its own in `folder`.

    The rows of a collection that cannot be read by columns, in its own type, for `file_columns`.
    A file is written whole or not at all, so a task may run twice.
    """

    folder: str
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> Array:
        """No rows written."""
        del like
        return np.zeros((), np.int64)

    def update(self, state: Array, rows: Rows) -> Array:
        """Rows written so far, these too."""
        values = np.ascontiguousarray(to_host(rows.values))
        path = self._path(int(rows.index[0]))
        writing = path.with_suffix(f".{os.getpid()}")
        values.tofile(writing)
        writing.replace(path)
        return state + values.shape[0]

    def merge(self, left: Array, right: Array) -> Array:
        """Rows written by both."""
        return left + right

    def finalize(self, state: Array) -> int:
        """Rows written."""
        return int(state)

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """Nothing is kept."""
        del n_rows, itemsize
        return Footprint(state=8, scratch=0, row_cost=1)

    def columns(self, source: Source, *, kept: Kept = None) -> FileColumns:
        """The columns of what was written of `source`, all of it."""
        parts = tuple(
            FilePart(
                self._path(source.first_index(block)),
                0,
                source.bounds[block + 1] - source.bounds[block],
            )
            for block in range(source.n_blocks)
        )
        return file_columns(source, parts, kept=kept, made_from=source.content())

    def _path(self, first: int) -> Path:
        return Path(self.folder) / f"{first:012d}.rows"
