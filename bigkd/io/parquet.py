"""Rows of embeddings in Parquet files: row groups are blocks. The only user of pyarrow."""

import bisect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from bigkd.errors import DataError, InputError, StoreError
from bigkd.io.optional import require
from bigkd.io.sources import Source, digest
from bigkd.io.status import file_status


@dataclass(frozen=True, kw_only=True)
class ParquetSource(Source):
    """One column of equally long lists, or several numeric columns, of one or more files."""

    files: tuple[Path, ...]
    columns: tuple[str, ...]
    groups: tuple[tuple[int, int], ...]
    starts: tuple[int, ...]
    """First row of each row group, and one past the last row; blocks may be cut otherwise."""

    def read_raw(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        """Rows ``start:stop``; reads every row group that they touch."""
        first = bisect.bisect_right(self.starts, start) - 1
        last = bisect.bisect_left(self.starts, stop)
        parts = [self._group(group) for group in range(first, last)]
        rows = np.concatenate(parts) if len(parts) > 1 else parts[0]
        return rows[start - self.starts[first] : stop - self.starts[first]]

    def _group(self, block: int) -> np.ndarray[Any, Any]:
        file, group = self.groups[block]
        parquet = require("pyarrow.parquet", extra="parquet")
        with parquet.ParquetFile(self.files[file]) as opened:
            table = opened.read_row_group(group, columns=list(self.columns))
        place = f"{self.name}: {self.files[file].name}, row group {group}"
        if len(self.columns) > 1:
            parts = [self._numbers(table[name], name, place) for name in self.columns]
            return np.column_stack(parts)
        (name,) = self.columns
        column = table[name].combine_chunks()
        if not _is_list(column.type):
            return self._numbers(column, name, place)[:, None]
        lengths = require("pyarrow.compute", extra="parquet").list_value_length(column)
        if column.null_count or np.any(lengths.to_numpy(zero_copy_only=False) != self.width):
            raise DataError(
                f"{place}: column {name!r} has missing lists or lists whose length is not "
                f"{self.width}; every row needs one embedding of equal length."
            )
        return self._numbers(column.flatten(), name, place).reshape(-1, self.width)

    def _numbers(self, column: Any, name: str, place: str) -> np.ndarray[Any, Any]:
        """Elements of `column`; missing ones are NaN, where the type has it."""
        if column.null_count and self.dtype.kind != "f":
            raise DataError(
                f"{place}: column {name!r} has {column.null_count} missing elements, and "
                f"{self.dtype} has no NaN to stand for them; fill them, or cast to a floating type."
            )
        if hasattr(column, "combine_chunks"):
            column = column.combine_chunks()
        values = np.asarray(column.to_numpy(zero_copy_only=False))
        return values.astype(self.dtype, copy=False)

    def content(self) -> str:
        """Digest of the paths, sizes and times of change."""
        return digest("parquet", self._seen(), self.columns)

    def contents(self, ranges: Sequence[tuple[int, int]]) -> list[str]:
        """Digests of the files, and row groups in them, that the rows are in."""
        seen, names = self._seen(), []
        for start, stop in ranges:
            first = bisect.bisect_right(self.starts, start) - 1
            groups = self.groups[first : bisect.bisect_left(self.starts, stop)]
            read = [(*seen[file], group) for file, group in groups]
            names.append(digest("parquet", read, start - self.starts[first], self.columns))
        return names

    def _seen(self) -> list[tuple[Path, int, int]]:
        return [(file.resolve(), *file_status(file)) for file in self.files]


def parquet_source(path: Path, *, name: str, columns: tuple[str, ...] | None) -> ParquetSource:
    """Rows of the Parquet file at `path`, or of all ``*.parquet`` files of a folder in name order.

    Raises
    ------
    InputError
        If it is not clear which column holds the embedding, or a file does not have it.
    StoreError
        If a file is not Parquet.
    MissingDependencyError
        If pyarrow is not installed.
    """
    files = tuple(sorted(path.glob("*.parquet"))) if path.is_dir() else (path,)
    sizes: list[int] = []
    groups: list[tuple[int, int]] = []
    types: list[np.dtype[Any]] = []
    width = 0
    for number, file in enumerate(files):
        with _opened(file, name) as opened:
            schema = opened.schema_arrow
            columns = columns or _embedding_columns(schema, file, name)
            _require_columns(schema, columns, file, name)
            types += [_element_type(schema.field(column).type) for column in columns]
            width = width or _width(opened, columns)
            for group in range(opened.num_row_groups):
                if opened.metadata.row_group(group).num_rows:
                    sizes.append(opened.metadata.row_group(group).num_rows)
                    groups.append((number, group))
    starts = (0, *accumulate(sizes))
    return ParquetSource(
        name=name,
        row_shape=(width,),
        dtype=np.result_type(*types) if all(t.kind in "fiub" for t in types) else types[0],
        bounds=starts,
        starts=starts,
        files=files,
        columns=columns or (),
        groups=tuple(groups),
    )


@contextmanager
def _opened(file: Path, name: str) -> Iterator[Any]:
    """The open file."""
    parquet = require("pyarrow.parquet", extra="parquet")
    try:
        opened = parquet.ParquetFile(file)
    except Exception as error:  # pyarrow's own, OSError where it is cut short
        raise StoreError(f"{name}: {file} cannot be read as Parquet: {error}") from error
    with opened:
        yield opened


def _is_list(kind: Any) -> bool:
    types = require("pyarrow.types", extra="parquet")
    return bool(types.is_list(kind) or types.is_fixed_size_list(kind) or types.is_large_list(kind))


def _element_type(kind: Any) -> np.dtype[Any]:
    element = kind.value_type if _is_list(kind) else kind
    found: np.dtype[Any] = np.dtype(element.to_pandas_dtype())
    return found


def _require_columns(schema: Any, columns: tuple[str, ...], file: Path, name: str) -> None:
    for column in columns:
        if column not in schema.names:
            raise InputError(f"{name}: {file} has no column {column!r}; it has {schema.names}.")
        if len(columns) > 1 and _is_list(schema.field(column).type):
            raise InputError(
                f"{name}: column {column!r} of {file} holds lists, which cannot be combined with "
                f"other columns; pass columns=({column!r},) alone."
            )


def _embedding_columns(schema: Any, file: Path, name: str) -> tuple[str, ...]:
    """The one column of lists; else every numeric column."""
    types = require("pyarrow.types", extra="parquet")
    lists = [column.name for column in schema if _is_list(column.type)]
    numeric = [
        column.name
        for column in schema
        if types.is_floating(column.type) or types.is_integer(column.type)
    ]
    if len(lists) == 1:
        return (lists[0],)
    if lists or not numeric:
        raise InputError(
            f"{name}: {file} has {len(lists)} columns of lists ({', '.join(lists) or 'none'}) and "
            f"{len(numeric)} numeric ones; name the embedding as columns=('NAME',)."
        )
    return tuple(numeric)


def _width(opened: Any, columns: tuple[str, ...]) -> int:
    """Elements of a row: of the first list that is not missing; 0 if this file does not tell."""
    kind = opened.schema_arrow.field(columns[0]).type
    if not _is_list(kind):
        return len(columns)
    for batch in opened.iter_batches(batch_size=64, columns=list(columns)):
        known = batch[columns[0]].drop_null()
        if len(known):
            return len(known[0])
    return 0
