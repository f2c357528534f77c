"""A seeded sample of rows, from which parameters are chosen before the first pass."""

from typing import Any

import numpy as np

from bigkd.backends import rng, to_host
from bigkd.errors import EmptyInputError
from bigkd.io.sources import Source

_STREAM = 0x73616D70  # keeps these numbers apart from other uses of a seed
_MOST_BLOCKS = 16


def sample_rows(source: Source, n_rows: int, *, seed: int) -> np.ndarray[Any, Any]:
    """About `n_rows` random rows, as float64 on the host; all of them if there are fewer.

    Rows come in equal numbers from up to 16 blocks that are themselves drawn at random, one from
    each 16th of the collection, so that little is read and sorted collections are still covered.
    Rows that are not finite are left out.

    Raises
    ------
    EmptyInputError
        If no sampled row is finite.
    """
    generator = rng(seed, _STREAM)
    strata = np.array_split(np.arange(source.n_blocks), min(_MOST_BLOCKS, source.n_blocks))
    blocks = [int(generator.choice(stratum)) for stratum in strata]
    share = -(-n_rows // len(blocks))
    parts = []
    for block in blocks:
        rows = to_host(source.read(block))
        if rows.shape[0] > share:
            rows = rows[np.sort(generator.choice(rows.shape[0], share, replace=False))]
        parts.append(rows.astype(np.float64))
    sampled = np.concatenate(parts)
    finite = sampled[np.isfinite(sampled).all(axis=1)]
    if finite.shape[0] == 0:
        raise EmptyInputError(
            f"{source.name}: none of {sampled.shape[0]} sampled rows is finite; expected numbers."
        )
    return finite[:n_rows]
