"""How blocks reach tasks: read inside the task, or handed over by the graph for Dask arrays."""

from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from bigkd.backends import device, namespace, to_host
from bigkd.engine.alignment import aligned
from bigkd.errors import DataError, EmptyInputError
from bigkd.io import DaskSource, Source
from bigkd.protocols import Array, Rows

NonFinite = Literal["raise", "drop"]

Policy: TypeAlias = Literal["raise", "drop", "keep"]
"""What becomes of rows with values that are not finite; those kept are the summary's to treat."""


Raw: TypeAlias = tuple[Array | None, Array | None, Array | None]
"""Rows, weights and vectors of one block as the graph hands them over; None what tasks read."""


def without_graph(source: Source) -> Source:
    """What a task needs of `source`: a Dask array's blocks reach it through the graph."""
    along: dict[str, Any] = {
        name: without_graph(part)
        for name, part in (("weights", source.weights), ("vectors", source.vectors))
        if part is not None
    }
    if isinstance(source, DaskSource):
        along |= {"array": None, "unjoined": None}
    return replace(source, known=None, **along)


def raw_blocks(source: Source) -> list[Any] | None:
    """Delayed `Raw` of each block; None where tasks read everything themselves."""
    parts = [_delayed_blocks(part, source) for part in (source, *source.companions)]
    if not any(parts):
        return None
    empty = [None] * source.n_blocks
    return list(zip(*(part or empty for part in parts), strict=True))


def _delayed_blocks(part: Source | None, rows: Source) -> list[Any]:
    """Delayed pieces of `part` for each block of `rows`; empty where tasks read them."""
    if not isinstance(part, DaskSource):
        return []
    if part is rows:
        return list(part.array.to_delayed().ravel())
    blocks = []
    for block in range(rows.n_blocks):
        start, n_rows = _stored(rows, block)
        piece = part.array[start : start + n_rows]
        blocks.append(piece.rechunk(piece.shape).to_delayed().item())
    return blocks


def _stored(source: Source, block: int) -> tuple[int, int]:
    """First row of `block` in the collection as stored, and how many rows it has."""
    return source.first_index(block), source.bounds[block + 1] - source.bounds[block]


def read_rows(source: Source, block: int, raw: Raw | None, nonfinite: Policy) -> Rows:
    """The rows of `block`, checked; `raw` is what the graph handed over.

    Raises
    ------
    DataError
        If a row, weight or vector is not finite and the policy is ``"raise"``, or rows are missing.
    """
    first, n_rows = _stored(source, block)
    given, *along = (None, None, None) if raw is None else raw
    values = source.read(block) if given is None else given
    if values.shape[0] != n_rows or (given is not None and values.shape[1:] != source.row_shape):
        raise DataError(
            f"{source.name}: block {block} has shape {tuple(values.shape)} where "
            f"{(n_rows, *source.row_shape)} was promised. A file that shrank, or a Dask array "
            f"whose chunks or meta are not what its tasks return?"
        )
    if values.ndim != 2:
        values = namespace(values).reshape(values, (n_rows, source.width))
    values = aligned(values)
    xp, on = namespace(values), device(values)
    index = xp.arange(first, first + n_rows, dtype=xp.int64, device=on)
    weights, vectors = (
        _beside(part, piece, first, values)
        for part, piece in zip(source.companions, along, strict=True)
    )
    if weights is not None:
        weights = xp.reshape(weights, (n_rows,))
    return _checked(source, block, Rows(values, index, weights, vectors), nonfinite)


def _beside(part: Source | None, piece: Array | None, first: int, like: Array) -> Array | None:
    """What `part` holds for the rows from `first` on, where `like` is; shape ``(n, c)``."""
    if part is None:
        return None
    n_rows = like.shape[0]
    beside = part.take(first, first + n_rows) if piece is None else piece
    beside = aligned(namespace(beside).reshape(beside, (n_rows, part.width)))
    xp = namespace(like)
    if namespace(beside) is xp:
        return beside
    return xp.asarray(to_host(beside), device=device(like))


def collect_rows(source: Source, nonfinite: Policy) -> Rows:
    """All rows of `source` in memory, checked: for methods that need every pair."""
    parts = [read_rows(source, block, None, nonfinite) for block in range(source.n_blocks)]
    xp = namespace(parts[0].values)
    rows = Rows(
        *(
            None if pieces[0] is None else xp.concat(pieces, axis=0)
            for pieces in zip(*parts, strict=True)
        )
    )
    if rows.values.shape[0] == 0:
        raise EmptyInputError(
            f"{source.name}: none of its {source.n_rows} rows is finite; nothing is left."
        )
    return rows


def _checked(source: Source, block: int, rows: Rows, nonfinite: Policy) -> Rows:
    """`rows` without those that are not finite."""
    if nonfinite == "keep":
        return rows
    xp = namespace(rows.values)
    parts = [part for part in (rows.values, rows.weights, rows.vectors) if part is not None]
    if all(_is_finite(xp, part) for part in parts):
        return rows
    finite = xp.ones(rows.index.shape, dtype=xp.bool, device=device(rows.index))
    for part in parts:
        if xp.isdtype(part.dtype, "real floating"):
            finite &= xp.all(xp.isfinite(xp.reshape(part, (part.shape[0], -1))), axis=1)
    if nonfinite == "raise":
        bad = to_host(~finite).nonzero()[0]
        first = source.first_index(block)
        raise DataError(
            f"{source.name}: row {first + bad[0]} (row {bad[0]} of block {block}) is not finite, "
            f"the first of {len(bad)} in its block; expected finite numbers. Pass nonfinite='drop' "
            f"to leave such rows out and count them, or mend the data."
        )
    kept = xp.nonzero(finite)[0]
    return Rows(*(None if part is None else xp.take(part, kept, axis=0) for part in rows))


def _is_finite(xp: Any, part: Array) -> bool:
    if not xp.isdtype(part.dtype, "real floating"):
        return True
    # The sum is finite unless a value is not, or it overflows: then look closer.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(xp.isfinite(xp.sum(part, dtype=xp.float64))) or bool(xp.all(xp.isfinite(part)))
