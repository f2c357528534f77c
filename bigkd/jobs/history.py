"""A run as a row of the history: scalars and short rows of numbers, under the comparison's name."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from bigkd.io.history_layout import is_safe
from bigkd.jobs.records import ComparisonRecord, RunRecord

_LONGEST = 64
"""Numbers of one variable that a history keeps."""


def run_dataset(record: RunRecord) -> xr.Dataset:
    """What the history keeps of a run, for `bigkd.io.append_run`.

    Returns
    -------
    xarray.Dataset
        ``time`` (UTC), ``run_id``, ``seconds``, ``version``, ``exit_code``, ``verdict`` and ``job``
        (JSON); and of a comparison called ``drift`` ``drift.kind``, ``drift.verdict``,
        ``drift.message``, ``drift.parameters`` (JSON of the attributes of its result),
        ``drift.rows_read``, ``drift.rows_reused``, ``drift.seconds``, ``drift.limit.<variable>`` of
        each threshold that is a number, ``drift.judged.<variable>`` of the number held against it,
        and ``drift.<variable>`` of each number of its result and of each variable of up to 64
        numbers along one dimension, then ``drift.<dimension>``. All numbers are float64, counts and
        truth values, too. A variable of the result that has the name of something else here is left
        out.
    """
    row: dict[str, Any] = {
        "time": record.time.astype("datetime64[ns]"),
        "run_id": record.run_id,
        "seconds": float(record.seconds),
        "version": record.version,
        "exit_code": float(record.exit_code),
        "verdict": record.verdict,
        "job": record.job,
    }
    for comparison in record.comparisons:
        own = _own(comparison)
        row |= {f"{comparison.name}.{key}": value for key, value in own.items()}
        if comparison.result is not None:
            row |= dict(_results(comparison.name, comparison.result, own))
    return xr.Dataset(
        {
            name: value if isinstance(value, xr.Variable) else ((), value)
            for name, value in row.items()
        }
    )


def _own(comparison: ComparisonRecord) -> dict[str, Any]:
    attrs = {} if comparison.result is None else comparison.result.attrs
    numbers = [
        (judged.variable, judged.limit, judged.value)
        for judged in comparison.judgements
        if judged.limit is not None
    ]
    return {
        "kind": comparison.kind,
        "verdict": comparison.verdict,
        "message": comparison.message,
        "parameters": json.dumps(plain(attrs), sort_keys=True, ensure_ascii=False),
        "rows_read": float(comparison.rows_read),
        "rows_reused": float(comparison.rows_reused),
        "seconds": float(comparison.seconds),
        **{f"limit.{variable}": float(limit) for variable, limit, _ in numbers},
        **{f"judged.{variable}": float(value) for variable, _, value in numbers},
    }


def _results(
    name: str, result: xr.Dataset, own: Mapping[str, Any]
) -> Iterator[tuple[str, xr.Variable]]:
    """Numbers and short rows of numbers of a result whose names are free and fit for a store."""
    taken = {*own, *map(str, result.data_vars)}
    for key, variable in result.data_vars.items():
        dims = [str(dim) for dim in variable.dims]
        if key in own or taken & set(dims) or not all(map(is_safe, [str(key), *dims])):
            continue
        if variable.dtype.kind in "biuf" and variable.ndim <= 1 and variable.size <= _LONGEST:
            values = np.asarray(variable.values, dtype=np.float64)
            named = [f"{name}.{dim}" for dim in dims]
            yield f"{name}.{key}", xr.Variable(named, values, variable.attrs)


def plain(value: Any) -> Any:
    """`value` as JSON takes it; what is not finite is null."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)
