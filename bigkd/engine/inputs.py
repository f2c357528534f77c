"""How blocks reach tasks: read inside the task, or handed over by the graph for Dask arrays."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from bigkd.backends import device, namespace, to_host
from bigkd.engine.alignment import aligned
from bigkd.errors import DataError, EmptyInputError
from bigkd.io import DaskSource, Source
from bigkd.protocols import Array, Rows

NonFinite = Literal["raise", "drop"]


def without_graph(source: Source) -> Source:
    """What a task needs of `source`: a Dask array's blocks reach it through the graph."""
    return replace(source, array=None) if isinstance(source, DaskSource) else source


def raw_blocks(source: Source) -> list[Any] | None:
    """Delayed blocks of a Dask array; None where tasks read them themselves."""
    if not isinstance(source, DaskSource):
        return None
    return list(source.array.to_delayed().ravel())


def read_rows(source: Source, block: int, raw: Array | None, nonfinite: NonFinite) -> Rows:
    """The rows of `block`, checked; `raw` is what the graph handed over.

    Raises
    ------
    DataError
        If a row is not finite and the policy is ``"raise"``, or rows are missing.
    """
    n_rows = source.bounds[block + 1] - source.bounds[block]
    values = source.read(block) if raw is None else raw
    if values.shape[0] != n_rows or (raw is not None and values.shape[1:] != source.row_shape):
        raise DataError(
            f"{source.name}: block {block} has shape {tuple(values.shape)} where "
            f"{(n_rows, *source.row_shape)} was promised. A file that shrank, or a Dask array "
            f"whose chunks or meta are not what its tasks return?"
        )
    if values.ndim != 2:
        values = values.reshape((n_rows, source.width))
    return _checked(source, block, aligned(values), nonfinite)


def collect_rows(source: Source, nonfinite: NonFinite) -> Rows:
    """All rows of `source` in memory, checked: for methods that need every pair."""
    parts = [read_rows(source, block, None, nonfinite) for block in range(source.n_blocks)]
    xp = namespace(parts[0].values)
    rows = Rows(
        xp.concat([part.values for part in parts], axis=0),
        xp.concat([part.index for part in parts], axis=0),
    )
    if rows.values.shape[0] == 0:
        raise EmptyInputError(
            f"{source.name}: none of its {source.n_rows} rows is finite; nothing is left."
        )
    return rows


def _checked(source: Source, block: int, values: Array, nonfinite: NonFinite) -> Rows:
    """Rows of a block without those that are not finite."""
    xp, on = namespace(values), device(values)
    first = source.first_index(block)
    index = xp.arange(first, first + values.shape[0], dtype=xp.int64, device=on)
    if not xp.isdtype(values.dtype, "real floating"):
        return Rows(values, index)
    # The sum is finite unless a value is not, or it overflows: then look closer.
    with np.errstate(over="ignore", invalid="ignore"):
        if bool(xp.isfinite(xp.sum(values, dtype=xp.float64))):
            return Rows(values, index)
    finite = xp.all(xp.isfinite(values), axis=1)
    if bool(xp.all(finite)):
        return Rows(values, index)
    if nonfinite == "raise":
        bad = to_host(~finite).nonzero()[0]
        raise DataError(
            f"{source.name}: row {first + bad[0]} (row {bad[0]} of block {block}) is not finite, "
            f"the first of {len(bad)} in its block; expected finite numbers. Pass nonfinite='drop' "
            f"to leave such rows out and count them, or mend the data."
        )
    return Rows(values[finite, :], index[finite])
