"""Few long rows: their inner products from one pass over columns, and sums of them from another.

Rows are frames of a film, faces, fields: up to some thousands of them, of up to ``10**7`` numbers.
"""

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bigkd.backends import to_host
from bigkd.engine import NonFinite, Session
from bigkd.errors import DataError, EmptyInputError, InputError, ShapeError, StoreError
from bigkd.io import Source
from bigkd.io.columns import ColumnSource, Kept, columns_of
from bigkd.io.row_files import RowFiles
from bigkd.io.sources import stored_rows
from bigkd.protocols import Array
from bigkd.summaries.gram import ColumnCombination, ColumnGram, ColumnGramState, RowCombination

logger = logging.getLogger(__name__)

Opened = Callable[[Kept], Source]


@dataclass(frozen=True, kw_only=True)
class LongRows:
    """What one pass over few long rows leaves behind; all of it in float64 on the host.

    Attributes
    ----------
    gram
        Inner products of the rows kept, ``sum_j s_j^2 x_aj x_bj``, shape ``(N, N)``.
    centred
        The same of the rows less their mean.
    squared_distances
        Of the rows, not negative; more accurate than from `gram`.
    samples
        Their numbers in the collection as stored, shape ``(N,)``.
    features
        Which features are kept, shape ``(n,)``, bool: those that are not NaN in every row.
    n_dropped
        Rows left out because they are not finite.
    source
        Where the rows are.
    positions
        Which of the rows of `source` are kept; None for all.
    """

    gram: Array = field(repr=False)
    centred: Array = field(repr=False)
    squared_distances: Array = field(repr=False)
    samples: Array = field(repr=False)
    features: Array = field(repr=False)
    n_dropped: int
    source: Source
    positions: Kept = field(default=None, repr=False)

    @property
    def n_features(self) -> int:
        """Number of features kept."""
        return int(np.sum(self.features))


def gram_of(
    session: Session, source: Source, *, scale: Array | None = None, nonfinite: NonFinite = "raise"
) -> LongRows:
    """Inner products of all rows of `source`, from one pass over its columns.

    Parameters
    ----------
    session
        Where it runs.
    source
        The rows. Stores and Dask arrays should be chunked along the features. What is stored by
        whole rows is read at most `bigkd.io.columns.MOST_READS` times, or else copied to scratch
        files first, which a message tells.
    scale
        What features are multiplied by, shape ``(n,)``: square roots of area weights.
    nonfinite
        Rows that are not finite where others are: an error, or left out, which takes another pass.

    Raises
    ------
    ShapeError
        If `scale` is not one number for each feature.
    DataError
        If a row is not finite and that is not allowed, or products overflow.
    EmptyInputError
        If no row or no feature is left.
    InputError, StoreError, MemoryPlanError
        If scratch files have no place, or a task does not fit.

    Notes
    -----
    ``N**2 / 2`` multiply-adds a feature. Holds some matrices of ``N**2`` numbers, a mark for each
    feature, and a block.
    """
    if scale is not None and tuple(scale.shape) != (source.width,):
        raise ShapeError(
            f"scale must be one number for each of the {source.width} features of {source.name}; "
            f"got shape {tuple(scale.shape)}."
        )
    session = _with(session, nonfinite="keep")  # the summary knows what is not finite, and where
    positions: Kept = None
    with _opened(session, source) as opened:
        gram, state = _summed(session, opened(None), scale)
        bad = to_host(state.bad)
        if np.any(bad):
            positions = _finite(source, bad, nonfinite)
            gram, state = _summed(session, opened(positions), scale)
    if int(state.columns) == 0:
        raise EmptyInputError(f"{source.name}: every one of its features is NaN in every row.")
    samples = stored_rows(source)
    grams = gram.finalize(state)
    return LongRows(
        gram=to_host(grams.gram),
        centred=to_host(grams.centred),
        squared_distances=to_host(grams.squared_distances),
        samples=samples if positions is None else samples[list(positions)],
        features=~to_host(state.absent),
        n_dropped=0 if positions is None else source.n_rows - len(positions),
        source=source,
        positions=positions,
    )


def combined(session: Session, rows: LongRows, coefficients: Array) -> Array:
    """Sums of rows, ``X^T coefficients``, from one more pass.

    Parameters
    ----------
    session
        Where it runs.
    rows
        What `gram_of` gave.
    coefficients
        Shape ``(N, k)``, of the rows kept.

    Returns
    -------
    Array
        Shape ``(n, k)``, float64, products and sums in float64; NaN for features that are not kept.

    Raises
    ------
    ShapeError
        If `coefficients` are not one row for each row kept.
    MemoryPlanError
        If a task does not fit: each holds some arrays of the size of the result.
    """
    n_kept, source = len(rows.samples), rows.source
    coefficients = np.asarray(to_host(coefficients), dtype=np.float64)
    if coefficients.ndim != 2 or coefficients.shape[0] != n_kept:
        raise ShapeError(
            f"coefficients must have one row for each of the {n_kept} rows kept; got shape "
            f"{coefficients.shape}."
        )
    session = _with(session, nonfinite="keep")
    columns = columns_of(source, kept=rows.positions)
    summary: ColumnCombination | RowCombination
    if columns is not None and _reads(columns) == 1:
        summary = ColumnCombination(coefficients=coefficients, n_columns=source.width)
        reduced = session.reduce(summary, columns, label="components")
    else:
        n_stored = source.n_rows + source.skipped
        spread, taken = np.zeros((n_stored, coefficients.shape[1])), np.zeros(n_stored, dtype=bool)
        spread[rows.samples], taken[rows.samples] = coefficients, True
        summary = RowCombination(coefficients=spread, taken=taken, n_columns=source.width)
        reduced = session.reduce(summary, source, label="components")
    found = to_host(reduced.state)
    return found if rows.features.all() else np.where(rows.features[:, None], found, np.nan)


def _with(session: Session, **changes: Any) -> Session:
    """`session` with other settings: on the same runner, in the same list of plans."""
    return replace(session, settings=replace(session.settings, **changes))


def _summed(
    session: Session, columns: Source, scale: Array | None
) -> tuple[ColumnGram, ColumnGramState]:
    gram = ColumnGram(width=columns.width, n_columns=columns.n_rows, scale=scale)
    return gram, session.reduce(gram, columns, label="inner products").state


def _reads(columns: Source) -> int:
    return columns.n_reads if isinstance(columns, ColumnSource) else 1


def _finite(source: Source, bad: Any, nonfinite: Literal["raise", "drop"]) -> tuple[int, ...]:
    """Positions of the rows that are finite."""
    found = np.flatnonzero(bad)
    if nonfinite == "raise":
        first = found[0]
        raise DataError(
            f"{source.name}: row {stored_rows(source)[first]} is not finite in {bad[first]} "
            f"features, the first of {len(found)} such rows; expected finite numbers, or features "
            f"that are NaN in every row, which are left out. Pass nonfinite='drop' to leave such "
            f"rows out and count them, or mend the data."
        )
    if len(found) == source.n_rows:
        raise EmptyInputError(
            f"{source.name}: none of its {source.n_rows} rows is finite; nothing is left. Features "
            f"that are NaN in every row are left out; these are NaN in some."
        )
    return tuple(np.flatnonzero(bad == 0).tolist())


@contextmanager
def _opened(session: Session, source: Source) -> Iterator[Opened]:
    """What gives the columns of some rows of `source`, as long as the context lasts."""
    columns = columns_of(source)
    if columns is not None:
        if _reads(columns) > 1:
            logger.info(
                "%s is stored by rows: its features are read in blocks, and all of it %d times; %s",
                source.name, _reads(columns), _advice(source),
            )  # fmt: skip
        yield lambda kept: _require(columns_of(source, kept=kept))
        return
    size = source.n_rows * source.row_bytes
    logger.warning(
        "%s is stored by rows, and is copied once to scratch files of %.2f GB that can be read by "
        "features; %s", source.name, size / 1e9, _advice(source),
    )  # fmt: skip
    with session.scratch("columns", source.identity()) as folder:
        files = RowFiles(folder=_place(source, folder, size))
        _with(session, checkpoint=None).reduce(files, source, label="copy by features")
        yield lambda kept: files.columns(source, kept=kept)


def _advice(source: Source) -> str:
    step = min(source.width, max(1, 2**22 // (source.n_rows * source.dtype.itemsize)))
    return (
        f"chunk it along its features to avoid that, such as all {source.n_rows} rows by {step} "
        f"features"
    )


def _place(source: Source, folder: str, size: int) -> str:
    """`folder`, made, where files of `size` bytes in all can be."""
    if "://" in folder:
        raise InputError(
            f"{source.name} is stored by rows, and needs scratch files on a file system; the "
            f"checkpoint folder is a URL. Chunk {source.name} along its features, or pass "
            f"checkpoint= a folder that all workers reach."
        )
    Path(folder).mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < size:
        raise StoreError(
            f"{source.name} is stored by rows, and needs {size / 1e9:.2f} GB of scratch files; "
            f"{folder} has {free / 1e9:.2f} GB. {_advice(source).capitalize()}, or pass "
            f"checkpoint= a folder with more room."
        )
    return folder


def _require(columns: Source | None) -> Source:
    if columns is None:
        raise AssertionError("fewer rows can be read by columns wherever all of them can")
    return columns
