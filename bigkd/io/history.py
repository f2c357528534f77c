"""What every run of a job found, one row for each, in a Zarr store that any reader of Zarr opens.

An append first writes the chunks with the new row, which nobody sees while the metadata say that
there is one row less, and then replaces one file, the root's ``zarr.json``: before that the old
history is there, and after it the new one. The arrays' own ``zarr.json``, for readers that do
without the root's, follow; what an interrupted append left of them, the next one mends.

Order is the order of appends. Times may jump; nothing here looks at them.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from bigkd.errors import BigkdError, InputError, StoreError
from bigkd.io.history_layout import (
    CHUNK,
    DIGEST,
    EMPTY,
    ROOT,
    RUN,
    RUN_ID,
    Column,
    Layout,
    Values,
    chunk_keys,
    damaged,
    decode,
    digests,
    document,
    encode,
    fills,
    own_document,
    read_layout,
    tail_keys,
)
from bigkd.io.history_rows import Row
from bigkd.io.locks import Lock, lock
from bigkd.io.small_files import Files, files_at
from bigkd.io.urls import one_place, plain_location

_SHOWN = 5
_LOOKS = 100


def append_run(path: str | Path, run: xr.Dataset, *, run_id: str, wait: float = 120.0) -> bool:
    """Add one run to the history at `path`, or do nothing if it is there already.

    Interrupted at any moment, it leaves the runs that were there, and the next call goes through.
    Processes may append at the same time, on different machines, too.

    Parameters
    ----------
    path
        Folder, or URL of an object store; a new history is begun where there is nothing.
    run
        Numbers, text, times, and short rows of numbers. Numbers are kept in float64. Later runs may
        have other variables and longer rows: what a run has not is NaN, an empty text or no time.
    run_id
        Name of the run, which nothing else in the history has.
    wait
        Seconds to wait for other processes that append.

    Returns
    -------
    bool
        Whether it was added; False if there is a run of this name.

    Raises
    ------
    InputError
        If a variable cannot be kept; or it was of another kind in earlier runs.
    StoreError
        If the history is damaged, or something else is there. It is left as it is, and the run is
        put beside it, in a history of its own at ``<path>.<run_id>.zarr``. Also if nothing can be
        written: then the history is as it was, and the run can be appended later.
    LockedError
        If others are still appending after `wait` seconds.
    """
    target = one_place(plain_location(path, name="the history"))
    row = Row(run, run_id)
    try:
        return _append(target, row, wait)
    except _UnusableError as error:
        cause, beside = error.cause, f"{target}.{run_id}.zarr"
        try:
            is_added = _append(beside, row, wait)
        except (BigkdError, _UnusableError) as second:
            raise type(cause)(f"{cause} This run was put nowhere: {second}") from cause
        if not is_added:
            raise type(cause)(
                f"{cause} This run was put nowhere: {beside} has one of this name."
            ) from cause
        raise type(cause)(f"{cause} This run was put into {beside}.") from cause


def load_history(path: str | Path) -> xr.Dataset:
    """All runs of the history at `path`, in memory and checked, along the dimension ``run``.

    Raises
    ------
    StoreError
        If there is none, or anything in it is not as it was written; the message names the file, or
        the runs.
    """
    target = one_place(plain_location(path, name="the history"))
    files = files_at(target)
    layout = _read_layout(files, target)
    if layout is None:
        raise StoreError(f"{target} holds no history of bigkd: no run was kept there.")
    _require_own_documents(files, layout, target)
    shapes = {name: column.shape(layout.sizes) for name, column in layout.columns.items()}
    keys = [key for name, shape in shapes.items() for key in chunk_keys(name, shape)]
    values = decode(layout, _read_all(files, keys, target), target)
    _require_digests(layout, values, "", target)
    return _dataset(layout, values)


class _UnusableError(Exception):
    """The run cannot go into this history, which is as it was."""

    def __init__(self, cause: InputError | StoreError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _Found(NamedTuple):
    """What an append needs to know of the history."""

    layout: Layout
    run_ids: frozenset[str]
    mended: dict[str, bytes]
    """Metadata of arrays as they should lie in their own files, where they do not."""

    files: dict[str, bytes]
    """The chunks that hold the last rows, if these have room for one more."""

    tail: Values
    """The rows in those chunks."""


def _append(target: str, row: Row, wait: float) -> bool:
    try:
        with lock(f"{target}.lock", wait=wait) as held:
            files = files_at(target)
            if files.is_empty():
                files.write({ROOT: document(EMPTY)})
            found = _found(files, target)
            files.write(found.mended)
            if row.values[RUN_ID] in found.run_ids:
                return False
            _write(files, held, found, _grown(found.layout, row, target), row)
    except (BigkdError, _UnusableError):
        raise
    except Exception as error:  # object stores raise what their clients do
        raise StoreError(
            f"{target} cannot be written: {type(error).__name__}: {error}. The runs in it are as "
            f"they were. Make room, or make it writable, and run again."
        ) from error
    return True


def _found(files: Files, target: str) -> _Found:
    try:
        layout = _read_layout(files, target)
        if layout is None:
            raise StoreError(
                f"{target} exists and is not a history of bigkd; it is left alone. Name another."
            )
        own = {
            f"{name}/{ROOT}": own_document(v, layout.sizes) for name, v in layout.columns.items()
        }
        lying = files.read(own)
        mended = {key: content for key, content in own.items() if lying.get(key) != content}
        return _Found(layout, mended=mended, **_last_rows(files, layout, target))
    except StoreError as error:
        raise _UnusableError(error) from error


def _last_rows(files: Files, layout: Layout, target: str) -> dict[str, Any]:
    """Names of all runs, and the rows of the last chunks, checked."""
    n = layout.sizes[RUN]
    start = n - n % CHUNK
    if n == 0:
        return {"run_ids": frozenset(), "files": {}, "tail": {}}
    names = layout._replace(columns={name: layout.columns[name] for name in (RUN_ID, DIGEST)})
    named = decode(
        names,
        _read_all(files, [*chunk_keys(RUN_ID, (n,)), *chunk_keys(DIGEST, (n,))], target),
        target,
    )
    keys = [
        key
        for name, column in layout.columns.items()
        for key in tail_keys(name, column.shape(layout.sizes))
    ]
    chunks = _read_all(files, keys, target) if start < n else {}
    tail = decode(layout, chunks, target, start=start)
    before = str(named[DIGEST][start - 1]) if start else ""
    _require_digests(layout, tail, before, target)
    return {"run_ids": frozenset(named[RUN_ID]), "files": chunks, "tail": tail}


def _grown(old: Layout, row: Row, target: str) -> Layout:
    """The layout with one run more; of its digest nothing is known yet."""
    for name, column in row.columns.items():
        known = old.columns.get(name, column)
        if (known.kind, known.dim) != (column.kind, column.dim):
            error = InputError(
                f"{name} is {_described(column)}, and was {_described(known)} in earlier runs of "
                f"{target}. Give the comparison, or the history, another name."
            )
            raise _UnusableError(error)
    sizes = dict(old.sizes)
    for dim, size in row.sizes.items():
        sizes[dim] = max(size, sizes.get(dim, 1))
    sizes[RUN] += 1
    added = tuple(name for name in row.columns if name not in old.columns)
    return Layout({**row.columns, **old.columns}, sizes, "", old.sizes, added)


def _write(files: Files, held: Lock, found: _Found, new: Layout, row: Row) -> None:
    """Write the chunks with one row more, then the root, then the arrays' own metadata."""
    old = found.layout
    start = old.sizes[RUN] - old.sizes[RUN] % CHUNK
    values = {
        name: _with_row(column, new, found.tail.get(name), row.values.get(name))
        for name, column in new.columns.items()
    }
    last = {name: rows[-1:] for name, rows in values.items() if name != DIGEST}
    head = next(digests(last, new.columns, old.head))
    values[DIGEST][-1] = head
    new = new._replace(head=head)
    chunks = encode(new, values, start=start, old=old)
    held.require()
    files.write({key: chunk for key, chunk in chunks.items() if found.files.get(key) != chunk})
    held.require()
    files.write({ROOT: document(new)})
    files.write({f"{name}/{ROOT}": own_document(v, new.sizes) for name, v in new.columns.items()})


def _with_row(column: Column, new: Layout, tail: Any, value: Any) -> np.ndarray[Any, Any]:
    """The rows of `tail` and one more, with `value` in it if there is one."""
    n = new.sizes[RUN] - 1
    n -= n - n % CHUNK
    rows = fills(column, n + 1, new.sizes)
    if tail is not None:
        rows[:n][..., : tail.shape[-1] if column.dim else None] = tail
    if value is not None and column.dim is None:
        rows[n] = value
    elif value is not None:
        rows[n, : value.size] = value
    return rows


def _read_layout(files: Files, target: str) -> Layout | None:
    """What the root says; None if there is no root."""
    root = _read(files, [ROOT], target).get(ROOT)
    return None if root is None else read_layout(root, target)


def _read(files: Files, keys: list[str], target: str) -> dict[str, bytes]:
    try:
        return files.read(keys)
    except Exception as error:  # object stores raise what their clients do
        raise StoreError(f"{target} cannot be read: {type(error).__name__}: {error}.") from error


def _read_all(files: Files, keys: list[str], target: str) -> dict[str, bytes]:
    found = _read(files, keys, target)
    missing = [key for key in keys if key not in found]
    if missing:
        raise damaged(target, f"{_listed(missing)} is missing")
    return found


def _require_own_documents(files: Files, layout: Layout, target: str) -> None:
    """Raise StoreError unless arrays' own metadata are those of now, or before the last run.

    While others append they belong to a later root, so that this is looked for, too. Where it
    changes every time, nothing is said: no value is read by these metadata.
    """
    for _ in range(_LOOKS):
        wrong = _wrong_own_documents(files, layout, target)
        if not wrong:
            return
        now = _read_layout(files, target) or EMPTY
        if now.head == layout.head:
            raise damaged(target, f"{_listed(wrong)} is not as it was written")
        layout = now


def _wrong_own_documents(files: Files, layout: Layout, target: str) -> list[str]:
    lying = _read(files, [f"{name}/{ROOT}" for name in layout.columns], target)
    wrong = []
    for name, column in layout.columns.items():
        before = None if name in layout.added else own_document(column, layout.before)
        if lying.get(f"{name}/{ROOT}") not in (own_document(column, layout.sizes), before):
            wrong.append(f"{name}/{ROOT}")
    return wrong


def _require_digests(layout: Layout, values: Values, before: str, target: str) -> None:
    if not layout.columns:
        return
    stored = [str(digest) for digest in values[DIGEST]]
    expected = digests(values, layout.columns, before)
    first = layout.sizes[RUN] - len(stored)
    wrong = [
        f"{first + at} ({values[RUN_ID][at]})"
        for at, digest in enumerate(expected)
        if digest != stored[at]
    ]
    if wrong:
        raise damaged(target, f"runs {_listed(wrong)} do not match their digests")
    if (stored[-1] if stored else before) != layout.head:
        raise damaged(target, f"its last row is not the one that {ROOT} names")


def _dataset(layout: Layout, values: Values) -> xr.Dataset:
    variables = {}
    for name, column in layout.columns.items():
        found: Any = values[name]
        if column.kind == "text":
            found = np.array(found.tolist(), dtype=np.str_)
        elif column.kind == "time":
            found = found.view("datetime64[ns]")
        variables[name] = ((RUN,) if column.dim is None else (RUN, column.dim), found, column.attrs)
    return xr.Dataset(variables).drop_vars(DIGEST, errors="ignore")


def _described(column: Column) -> str:
    return column.kind if column.dim is None else f"{column.kind}s along {column.dim}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
