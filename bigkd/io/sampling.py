"""A seeded sample of rows, from which parameters are chosen before the first pass."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from bigkd.backends import rng, to_host
from bigkd.errors import EmptyInputError
from bigkd.io.sources import Source
from bigkd.protocols import Rows

_STREAM = 0x73616D70  # keeps these numbers apart from other uses of a seed
_PIECES = 16


def sample_rows(source: Source, n_rows: int, *, seed: int) -> np.ndarray[Any, Any]:
    """About `n_rows` random rows, as float64 on the host; all of them if there are fewer.

    Every row has the same chance. Small blocks are joined with their neighbours to pieces that hold
    enough rows. Of up to 16 pieces all are read, and the rows are a simple random sample. Of more,
    one is drawn from each 16th of them, so that little is read and sorted collections are still
    covered. Rows that are not finite are left out.

    Raises
    ------
    EmptyInputError
        If no sampled row is finite.
    """
    return to_host(sample(source, n_rows, seed=seed).values)


def sample(source: Source, n_rows: int, *, seed: int, finite: bool = True) -> Rows:
    """As `sample_rows`, with row numbers, and weights and vectors where there are any; float64.

    Rows that are not `finite` are kept if that is False.
    """
    generator = rng(seed, _STREAM)
    parts = []
    for start, stop, places in _chosen(source, n_rows, generator):
        chosen = np.sort(places)
        values = to_host(source.take(start, stop))[chosen].astype(np.float64)
        index = _stored(source, start + chosen)
        parts.append(Rows(values, index, *(_along(part, index) for part in source.companions)))
    whole = [None if part[0] is None else np.concatenate(part) for part in zip(*parts, strict=True)]
    whole[2] = None if whole[2] is None else whole[2][:, 0]
    if not finite:
        return Rows(*whole)
    kept = np.logical_and.reduce(
        [np.isfinite(part.reshape(len(part), -1)).all(axis=1) for part in whole if part is not None]
    )
    if not kept.any():
        raise EmptyInputError(
            f"{source.name}: none of {len(kept)} sampled rows is finite; expected numbers."
        )
    return Rows(*(None if part is None else part[kept] for part in whole))


def _stored(source: Source, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Numbers of `rows` in the collection as stored."""
    blocks = np.searchsorted(source.bounds, rows, side="right") - 1
    firsts = np.asarray([source.first_index(int(block)) for block in blocks], dtype=np.int64)
    stored: np.ndarray[Any, Any] = firsts + rows - np.asarray(source.bounds)[blocks]
    return stored


def _along(part: Source | None, index: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """What `part` holds for the rows `index` as stored, which are in order."""
    if part is None:
        return None
    first = int(index[0])
    read = to_host(part.take(first, int(index[-1]) + 1))
    along: np.ndarray[Any, Any] = read[index - first].astype(np.float64)
    return along


def _chosen(
    source: Source, n_rows: int, generator: np.random.Generator
) -> Iterator[tuple[int, int, np.ndarray[Any, Any]]]:
    """Runs of rows to read, in order, and the places of the sampled rows in each."""
    n_rows = min(n_rows, source.n_rows)
    bounds = _pieces(source.bounds, least=-(-2 * n_rows // _PIECES))
    if bounds.size - 1 <= _PIECES:
        rows = np.sort(generator.choice(source.n_rows, n_rows, replace=False))
        parts = np.split(rows, np.searchsorted(rows, bounds[1:-1]))
        for start, stop, places in zip(bounds[:-1], bounds[1:], parts, strict=True):
            if places.size:
                yield int(start), int(stop), places - start
        return
    # A common random offset, so that shares that are no whole numbers are right on average.
    shares = np.floor(n_rows * bounds / source.n_rows + generator.random()).astype(int)
    ends = np.linspace(0, bounds.size - 1, _PIECES + 1).round().astype(int)
    for first, last in pairwise(ends):
        sizes = np.diff(bounds[first : last + 1])
        piece = first + generator.choice(last - first, p=sizes / sizes.sum())
        start, stop = int(bounds[piece]), int(bounds[piece + 1])
        share = min(shares[last] - shares[first], stop - start)
        if share:
            yield start, stop, generator.choice(stop - start, share, replace=False)


def _pieces(bounds: tuple[int, ...], *, least: int) -> np.ndarray[Any, Any]:
    """Those of `bounds` that are at least `least` rows apart."""
    kept = [0]
    for bound in bounds[1:]:
        if bound - kept[-1] >= least:
            kept.append(bound)
    if kept[-1] < bounds[-1]:
        kept = [*kept[: max(1, len(kept) - 1)], bounds[-1]]
    return np.asarray(kept)
