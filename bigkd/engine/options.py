"""The keywords that every public function with passes takes, written down once."""

import difflib
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from bigkd.engine.inputs import NonFinite
from bigkd.engine.progress import Reporting
from bigkd.engine.schedulers import Scheduler
from bigkd.engine.session import Settings
from bigkd.errors import InputError
from bigkd.io import Source, open_rows
from bigkd.io.zarr_rows import Missing


class ReadOptions(TypedDict, total=False):
    """How rows are read.

    Attributes
    ----------
    dim
        Dimension of xarray inputs that counts rows; the first by default.
    columns
        Columns of Parquet inputs; by default the one column of lists.
    block_rows
        Rows of one read where the store leaves it open; about 32 MB by default.
    missing
        Zarr chunks that do not exist: ``"raise"``, ``"skip"`` their rows (counted), or ``"fill"``.
    image_size
        Height and width that pictures in files are resampled to; by default all must be of one.
    nonfinite
        Rows with NaN or infinities: ``"raise"``, or ``"drop"`` them (counted).
    """

    dim: Hashable | None
    columns: tuple[str, ...] | None
    block_rows: int | None
    missing: Missing
    image_size: tuple[int, int] | None
    nonfinite: NonFinite


class Options(ReadOptions, total=False):
    """How rows are read, and how a pass over them runs; none of the latter changes an answer.

    Attributes
    ----------
    scheduler
        ``"sync"``, ``"threads"``, ``"local"``, an address, or a client; by default the current
        `distributed.Client` if there is one, else threads.
    progress
        True for a bar, a path for a log of JSON lines, or a function of `bigkd.engine.Event`.
    checkpoint
        Folder for finished segments, that all workers reach. The same call with the same data goes
        on from them, to the same bits.
    memory_limit
        Bytes that one task may use, or text such as ``"2 GiB"``; by default what a worker thread
        has.
    stall_seconds
        How long a cluster may finish nothing before ClusterError is raised.
    """

    scheduler: Scheduler
    progress: Reporting
    checkpoint: str | Path | None
    memory_limit: int | str | None
    stall_seconds: float


_READ = tuple(name for name in ReadOptions.__annotations__ if name != "nonfinite")
_RUN = tuple(name for name in Options.__annotations__ if name not in _READ)


def settings_of(options: Mapping[str, Any]) -> Settings:
    """The settings of a session that `options` ask for.

    Raises
    ------
    TypeError
        If there is no option of a name, as for any other unknown keyword.
    InputError
        If a value cannot be used.
    """
    for name in options:
        if name not in _READ and name not in _RUN:
            near = difflib.get_close_matches(name, [*_READ, *_RUN], n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"unexpected keyword argument {name!r}.{hint}")
    if options.get("nonfinite") == "keep":  # for those who know what to do with such rows
        raise InputError("nonfinite must be 'raise' or 'drop'; got 'keep'.")
    return Settings(**{name: options[name] for name in _RUN if name in options})


def open_source(
    rows: Any, options: Mapping[str, Any], *, name: str, weights: Any = None, vectors: Any = None
) -> Source:
    """`rows` opened as `options` say; see `bigkd.io.open_rows`."""
    reading = {key: options[key] for key in _READ if key in options}
    return open_rows(rows, name=name, weights=weights, vectors=vectors, **reading)
