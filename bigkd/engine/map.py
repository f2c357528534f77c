"""Map: an array with a row for each row of a collection, computed block by block, lazily."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed

from bigkd.backends import namespace
from bigkd.engine.alignment import aligned
from bigkd.engine.inputs import Policy, Raw, raw_blocks, read_rows, without_graph
from bigkd.io import Source
from bigkd.protocols import Array


def map_rows(
    function: Callable[[Array], Array],
    source: Source,
    *,
    width: int,
    dtype: np.dtype[Any],
    nonfinite: Policy = "raise",
) -> da.Array:
    """Dask array of shape ``(n_rows, width)``: ``function(rows)`` of each block; nothing is run.

    Under ``nonfinite="drop"`` rows that are not finite give NaN, so that row numbers stay.
    """
    lean = delayed(without_graph(source), traverse=False)
    shared = delayed(function, traverse=False)
    apply = delayed(_apply)
    raw = raw_blocks(source) or [None] * source.n_blocks
    blocks = [
        da.from_delayed(
            apply(shared, lean, at, raw[at], nonfinite, (stop - start, width), dtype),
            shape=(stop - start, width),
            dtype=dtype,
        )
        for at, (start, stop) in enumerate(pairwise(source.bounds))
    ]
    joined: da.Array = da.concatenate(blocks, axis=0)
    return joined


def _apply(
    function: Callable[[Array], Array],
    source: Source,
    block: int,
    raw: Raw | None,
    nonfinite: Policy,
    shape: tuple[int, int],
    dtype: np.dtype[Any],
) -> Array:
    rows = read_rows(source, block, raw, nonfinite)
    xp = namespace(rows.values)
    out = xp.full(shape, xp.nan, dtype=xp.float64)
    if rows.values.shape[0]:
        out[rows.index - source.first_index(block), :] = xp.astype(
            aligned(function)(rows.values), xp.float64
        )
    converted: Array = out.astype(dtype)
    return converted
