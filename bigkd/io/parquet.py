"""Rows of embeddings in Parquet files: row groups are blocks. The only user of pyarrow."""

import bisect
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from bigkd.errors import DataError, InputError
from bigkd.io.optional import require
from bigkd.io.sources import Source, digest


@dataclass(frozen=True, kw_only=True)
class ParquetSource(Source):
    """One column of equally long lists, or several numeric columns, of one or more files."""

    files: tuple[Path, ...]
    columns: tuple[str, ...]
    groups: tuple[tuple[int, int], ...]

    def read_raw(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        """Rows ``start:stop``; reads every row group that they touch."""
        first = bisect.bisect_right(self.bounds, start) - 1
        last = bisect.bisect_left(self.bounds, stop)
        parts = [self._group(group) for group in range(first, last)]
        rows = np.concatenate(parts) if len(parts) > 1 else parts[0]
        return rows[start - self.bounds[first] : stop - self.bounds[first]]

    def _group(self, block: int) -> np.ndarray[Any, Any]:
        file, group = self.groups[block]
        parquet = require("pyarrow.parquet", extra="parquet")
        with parquet.ParquetFile(self.files[file]) as opened:
            table = opened.read_row_group(group, columns=list(self.columns))
        n_rows = self.bounds[block + 1] - self.bounds[block]
        if len(self.columns) > 1:
            return np.column_stack([table[name].to_numpy() for name in self.columns])
        column = table[self.columns[0]].combine_chunks()
        flat = column.flatten() if column.null_count == 0 else None
        if flat is None or len(flat) != n_rows * self.width:
            raise DataError(
                f"{self.name}: column {self.columns[0]!r} of {self.files[file].name}, row group "
                f"{group}, has missing lists or lists whose length is not {self.width}; every row "
                f"needs one embedding of equal length."
            )
        return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(n_rows, self.width)

    def identity(self) -> str:
        """Digest of the paths, sizes and times of change."""
        status = [(file.resolve(), file.stat()) for file in self.files]
        seen = [(path, about.st_size, about.st_mtime_ns) for path, about in status]
        return digest("parquet", seen, self.columns)


def parquet_source(path: Path, *, name: str, columns: tuple[str, ...] | None) -> ParquetSource:
    """Rows of the Parquet file at `path`, or of all ``*.parquet`` files of a folder in name order.

    Raises
    ------
    InputError
        If it is not clear which column holds the embedding.
    MissingDependencyError
        If pyarrow is not installed.
    """
    parquet = require("pyarrow.parquet", extra="parquet")
    files = tuple(sorted(path.glob("*.parquet"))) if path.is_dir() else (path,)
    sizes: list[int] = []
    groups: list[tuple[int, int]] = []
    for number, file in enumerate(files):
        with parquet.ParquetFile(file) as opened:
            schema = opened.schema_arrow
            columns = columns or _embedding_columns(schema, path)
            for group in range(opened.num_row_groups):
                sizes.append(opened.metadata.row_group(group).num_rows)
                groups.append((number, group))
            if number == 0:
                width, dtype = _first_row(opened, columns, path)
    return ParquetSource(
        name=name,
        row_shape=(width,),
        dtype=dtype,
        bounds=(0, *accumulate(sizes)),
        files=files,
        columns=columns or (),
        groups=tuple(groups),
    )


def _embedding_columns(schema: Any, path: Path) -> tuple[str, ...]:
    """The one column of lists; else every numeric column."""
    types = require("pyarrow.types", extra="parquet")
    lists = [
        column.name
        for column in schema
        if types.is_list(column.type)
        or types.is_fixed_size_list(column.type)
        or types.is_large_list(column.type)
    ]
    numeric = [
        column.name
        for column in schema
        if types.is_floating(column.type) or types.is_integer(column.type)
    ]
    if len(lists) == 1:
        return (lists[0],)
    if lists or not numeric:
        raise InputError(
            f"{path} has {len(lists)} columns of lists ({', '.join(lists) or 'none'}) and "
            f"{len(numeric)} numeric ones; name the embedding as columns=('NAME',)."
        )
    return tuple(numeric)


def _first_row(opened: Any, columns: tuple[str, ...], path: Path) -> tuple[int, np.dtype[Any]]:
    """Width and element type, from the first row."""
    absent = [name for name in columns if name not in opened.schema_arrow.names]
    if absent:
        raise InputError(f"{path} has no column {absent[0]!r}; it has {opened.schema_arrow.names}.")
    batch = next(opened.iter_batches(batch_size=1, columns=list(columns)), None)
    if batch is None:
        return 1, np.dtype(np.float32)
    if len(columns) > 1:
        return len(columns), np.result_type(*[np.asarray(batch[name]).dtype for name in columns])
    flat = np.asarray(batch[columns[0]].flatten())
    return len(flat), flat.dtype
