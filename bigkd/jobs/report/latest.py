"""The latest result of a comparison, as tables."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from bigkd.io.images import Picture, data_url
from bigkd.jobs.report.text import number

_MOST_ROWS = 12
_MOST_COLUMNS = 8
_SURE = {
    "rounding": "It always holds: only rounding separates the number from the exact one.",
    "deterministic": "It always holds.",
}
_DOUBTS = (
    "distance_lower", "distance_upper", "promise", "relative_promise", "standard_error",
    "mmd2_standard_error", "mmd2_lower", "mmd2_upper", "subspace_error", "noise_level",
    "density_error", "rank_error", "rounding", "lower", "upper", "lost_reference",
    "lost_searched", "null_quantile",
)  # fmt: skip
_ROLES = (("test", "reference"), ("x", "y"), ("f", "g"), ("query", "collection"), ("data",))
_MODE_NUMBERS = ("eigenvalue", "standard_error", "p_value", "frequency_test", "frequency_reference")


class Table(NamedTuple):
    """Cells of text below titles."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: str = ""
    """What is left out."""


class Shot(NamedTuple):
    """One picture, and the row that it is of."""

    url: str
    row: str


class Mode(NamedTuple):
    """One mode, with what is to be seen of it."""

    number: int
    significant: bool
    eigenvalue: str
    standard_error: str
    p_value: str
    frequency_test: str
    frequency_reference: str
    shots: tuple[Shot, ...]
    rows: tuple[str, ...]


def collections(attrs: Mapping[str, Any]) -> list[str]:
    """What was compared, by name."""
    for roles in _ROLES:
        if all(isinstance(attrs.get(role), str) for role in roles):
            return [attrs[role] for role in roles]
    return []


def modes(result: xr.Dataset, pictures: Sequence[Sequence[Picture]]) -> list[Mode]:
    """Every mode, with pictures of its top rows as far as there are any."""
    index = result["top_index_test"].values if "top_index_test" in result else None
    found = []
    for at in range(result.sizes["mode"]):
        one = result.isel(mode=at)
        rows = [] if index is None else [f"{row}" for row in index[at].tolist() if row >= 0]
        line = pictures[at] if at < len(pictures) else ()
        shots = tuple(Shot(data_url(shot), row) for shot, row in zip(line, rows, strict=False))
        numbers = {name: number(float(one[name])) for name in _MODE_NUMBERS}
        significant = bool(one["significant"])
        found.append(Mode(at, significant, **numbers, shots=shots, rows=tuple(rows)))
    return found


def components(result: xr.Dataset, pictures: Sequence[Sequence[Picture]]) -> list[Shot]:
    """Pictures of a result that has no rows behind them."""
    named = [f"component {label}" for label in _labels(result, "k")] if "k" in result.dims else []
    return [
        Shot(data_url(line[0]), label)
        for label, line in zip(named or ["background"], pictures, strict=False)
        if line
    ]


def tables(result: xr.Dataset) -> list[Table]:
    """Scalars; what belongs to each of a few; and corners of what belongs to pairs."""
    return [table for make in (_scalars, _lists, _grids) for table in make(result)]


def promises(result: xr.Dataset) -> list[tuple[str, str, str]]:
    """What is known of the errors: name, number, meaning."""
    found = []
    for name in (name for name in _DOUBTS if name in result):
        variable = result[name]
        text = number(variable.values.item()) if variable.size == 1 else _range(variable.values)
        found.append((name, text, str(variable.attrs.get("long_name", ""))))
    return found


def sureness(attrs: Mapping[str, Any]) -> str:
    """What kind of promise the bounds are; empty if none is made."""
    kind = attrs.get("promise_kind")
    if kind == "probabilistic":
        return (
            f"Each bound may be broken, with a probability of at most "
            f"{number(attrs.get('delta'))}, over the random choices made here."
        )
    return _SURE.get(str(kind), "")


def choices(attrs: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every attribute, as text."""
    return [(str(name), _plain(value)) for name, value in sorted(attrs.items())]


def _plain(value: Any) -> str:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else number(value)


def _range(values: Any) -> str:
    known = values[np.isfinite(values)]
    if known.size == 0:
        return number(float("nan"))
    return f"{number(float(known.min()))} to {number(float(known.max()))}"


def _scalars(result: xr.Dataset) -> list[Table]:
    rows = [
        (str(name), number(one.values.item()), str(one.attrs.get("long_name", "")))
        for name, one in result.data_vars.items()
        if not one.dims
    ]
    return [Table("Numbers", ("", "value", "meaning"), tuple(rows))] if rows else []


def _lists(result: xr.Dataset) -> list[Table]:
    """A table for each dimension, of all that has no other."""
    of: dict[str, list[str]] = {}
    for name, one in result.data_vars.items():
        if len(one.dims) == 1:
            of.setdefault(str(one.dims[0]), []).append(str(name))
    return [_list(result[names], dim) for dim, names in of.items() if dim != "feature"]


def _list(values: xr.Dataset, dim: str) -> Table:
    n = values.sizes[dim]
    order = np.arange(n)
    if "weight" in values:
        order = np.argsort(-values["weight"].values, kind="stable")
    labels = _labels(values, dim)
    rows = [
        (labels[at], *(number(one.values[at]) for one in values.data_vars.values()))
        for at in order[:_MOST_ROWS].tolist()
    ]
    more = f"and {n - _MOST_ROWS:,} more" if n > _MOST_ROWS else ""
    return Table(f"Each {dim}", (dim, *map(str, values.data_vars)), tuple(rows), more)


def _grids(result: xr.Dataset) -> list[Table]:
    found = []
    for name in ("distance", "dissimilarity", "index"):
        if name in result and result[name].ndim in (2, 3):
            one = result[name]
            found.append(_grid(one[0] if one.ndim == 3 else one, name, one.shape))
    return found


def _grid(values: xr.DataArray, name: str, shape: tuple[int, ...]) -> Table:
    down, across = (str(dim) for dim in values.dims)
    few = values[:_MOST_ROWS, :_MOST_COLUMNS].load()
    rows = [
        (label, *(number(value) for value in row))
        for label, row in zip(_labels(few, down), few.values.tolist(), strict=True)
    ]
    whole = " x ".join(f"{n:,}" for n in shape)
    more = f"the corner of {whole}" if few.shape != shape else ""
    caption = f"{name}: {down} down, {across} across"
    return Table(caption, ("", *_labels(few, across)), tuple(rows), more)


def _labels(values: xr.Dataset | xr.DataArray, dim: str) -> list[str]:
    if dim not in values.coords:
        return [str(at) for at in range(values.sizes[dim])]
    return [str(label) for label in values[dim].values.astype(object).tolist()]
