"""Results as JSON: what a program reads."""

import json
from collections.abc import Mapping
from typing import Any

import click
import xarray as xr

from bigkd.jobs.history import plain

_LARGE = ("feature", "fourier")
_MOST_NUMBERS = 1_000_000


def modes_record(result: xr.Dataset) -> dict[str, Any]:
    """Numbers of a comparison and of each mode; the vectors stay in the store."""
    small = {
        str(name): variable
        for name, variable in result.data_vars.items()
        if not set(_LARGE) & set(variable.dims)
    }
    scalars = {name: v.values for name, v in small.items() if not v.dims}
    modes = [
        {"mode": at, **{name: v.values[at] for name, v in small.items() if v.dims}}
        for at in range(result.sizes["mode"])
    ]
    return {
        "modes": modes,
        "n_significant": int(result["significant"].sum()),
        **scalars,
        "attrs": dict(result.attrs),
    }


def comparison_record(result: xr.Dataset) -> dict[str, Any]:
    """Every pair that is not a set with itself."""
    pairs = []
    for test in result["test"].values.tolist():
        for reference in result["reference"].values.tolist():
            if test == reference:
                continue
            pair = result.sel(test=test, reference=reference)
            pairs.append({"test": test, "reference": reference, **_values(pair)})
    return {"pairs": pairs, "attrs": dict(result.attrs)}


def scalars_record(result: xr.Dataset) -> dict[str, Any]:
    """Every number of a distance, a test or a dissimilarity."""
    return {**_labels(result), **_values(result), "attrs": dict(result.attrs)}


def distances_record(result: xr.Dataset) -> dict[str, Any]:
    """Every pair of collections, once."""
    names = result["x"].values.tolist()
    pairs = [
        {"x": x, "y": y, **_values(result.sel(x=x, y=y).drop_vars("n_rows"))}
        for at, x in enumerate(names)
        for y in names[at + 1 :]
    ]
    n_rows = dict(zip(names, result["n_rows"].values, strict=True))
    return {"pairs": pairs, "n_rows": n_rows, "attrs": dict(result.attrs)}


def dissimilarities_record(result: xr.Dataset) -> dict[str, Any]:
    """Every dissimilarity, over lam, reference and searched, where they are few; else null."""
    return _array_record(result, "dissimilarity")


def nearest_record(result: xr.Dataset) -> dict[str, Any]:
    """What is nearest to each query, with names where there are some."""
    return {**_labels(result), **_values(result), "attrs": dict(result.attrs)}


def coreset_record(result: xr.Dataset) -> dict[str, Any]:
    """Numbers and weights of the rows chosen; the rows themselves stay in the store."""
    rest = result.drop_vars("rows")
    scalars = [name for name, variable in rest.data_vars.items() if not variable.dims]
    points = rest.drop_vars(scalars)
    return {
        "points": [_values(points.isel(point=at)) for at in range(points.sizes["point"])],
        **_values(rest[scalars]),
        "attrs": dict(result.attrs),
    }


def subspace_record(result: xr.Dataset) -> dict[str, Any]:
    """Numbers of a subspace and of each component; the components stay in the store."""
    own = [name for name, variable in result.data_vars.items() if variable.dims == ("k",)]
    scalars = [name for name, variable in result.data_vars.items() if not variable.dims]
    return {
        "components": [
            {"k": label, **_values(result[own].isel(k=at))}
            for at, label in enumerate(result["k"].values)
        ],
        **_values(result[scalars]),
        "attrs": dict(result.attrs),
    }


def scores_record(result: xr.Dataset) -> dict[str, Any]:
    """Every score, where they are few; else null."""
    return _array_record(result, "score")


def background_record(result: xr.Dataset) -> dict[str, Any]:
    """The background, where it is small; else null."""
    return _array_record(result, "background")


def summary_record(summary: xr.Dataset) -> dict[str, Any]:
    """What a summary says of itself."""
    return {"attrs": dict(summary.attrs)}


def print_json(record: Mapping[str, Any]) -> None:
    """Print `record` as one object of standard JSON: what is not finite is null."""
    click.echo(json.dumps(plain(record), allow_nan=False, ensure_ascii=False))


def _array_record(result: xr.Dataset, name: str) -> dict[str, Any]:
    values = result[name]
    return {
        name: values.values if values.size <= _MOST_NUMBERS else None,
        "shape": dict(values.sizes),
        **_labels(result),
        "attrs": dict(result.attrs),
    }


def _values(result: xr.Dataset) -> dict[str, Any]:
    return {str(name): variable.values for name, variable in result.data_vars.items()}


def _labels(result: xr.Dataset) -> dict[str, Any]:
    """Coordinates; times as text."""
    return {
        str(name): label.values.astype(str) if label.dtype.kind in "mM" else label.values
        for name, label in result.coords.items()
    }
