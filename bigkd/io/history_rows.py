"""One run as a history keeps it: numbers, text and times, checked."""

import re
from typing import Any

import numpy as np
import xarray as xr

from bigkd.errors import InputError
from bigkd.io.history_layout import DIGEST, RUN, RUN_ID, Column, Kind, is_safe

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_LONGEST = 4096
_KINDS: dict[str, Kind] = {
    **dict.fromkeys("biuf", "number"), **dict.fromkeys("OUT", "text"), "M": "time"
}  # fmt: skip
_TIMES = {"days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"}


class Row:
    """One run, as it will be kept."""

    def __init__(self, run: xr.Dataset, run_id: str) -> None:
        if not _RUN_ID.fullmatch(run_id):
            raise InputError(
                f"run_id={run_id!r}: expected up to 128 letters, digits, '_', '-' and '.', the "
                f"first a letter or a digit."
            )
        named = run.assign({RUN_ID: ((), run_id)}).reset_coords()
        self.columns = {str(name): _column(str(name), v) for name, v in named.data_vars.items()}
        self.values = {
            name: _value(named[name].values, column.kind) for name, column in self.columns.items()
        }
        self.sizes = {
            column.dim: self.values[name].size
            for name, column in self.columns.items()
            if column.dim is not None
        }
        self.columns[DIGEST] = Column("text", None, {"long_name": "digest of this row and before"})
        for dim in self.sizes:
            if dim in self.columns:
                raise InputError(f"{dim!r} is a variable and a dimension; a history takes one.")


def _column(name: str, variable: xr.DataArray) -> Column:
    if not is_safe(name) or name in (RUN, DIGEST):
        raise InputError(
            f"{name!r} cannot be a variable of a history; expected letters, digits, '_' and '-', "
            f"with single dots between them, and neither {RUN!r} nor {DIGEST!r}."
        )
    kind = _KINDS.get(variable.dtype.kind)
    dims = [str(dim) for dim in variable.dims]
    if kind is None or len(dims) > 1 or (dims and kind != "number") or variable.size > _LONGEST:
        raise InputError(
            f"{name} is {variable.dtype}{variable.shape}; expected one number, text or time, or up "
            f"to {_LONGEST} numbers."
        )
    if dims and (not is_safe(dims[0]) or dims[0] in (RUN, name)):
        raise InputError(f"the dimension {dims[0]!r} of {name} cannot be that of a history.")
    return Column(kind, dims[0] if dims else None, _attrs(variable))


def _attrs(variable: xr.DataArray) -> dict[str, str]:
    """Meaning and units; but for those that readers would take for a date or a duration."""
    kept = {key: variable.attrs[key] for key in ("long_name", "units") if key in variable.attrs}
    units = str(kept.get("units", ""))
    if variable.dtype.kind == "M" or units in _TIMES or " since " in units:
        kept.pop("units", None)
    return {key: str(text) for key, text in kept.items()}


def _value(values: Any, kind: Kind) -> Any:
    if kind == "number":
        numbers = np.asarray(values, dtype=np.float64)
        return np.where(np.isnan(numbers), np.nan, numbers)
    if kind == "time":
        return values.astype("datetime64[ns]").astype(np.int64)
    text = values.item()
    if not isinstance(text, str):
        raise InputError(f"a history keeps numbers, text and times; got {type(text).__name__}.")
    return text.encode("utf-8", "replace").decode()
