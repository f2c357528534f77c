"""Subspaces, as a person reads them."""

import math
from collections.abc import Mapping
from typing import Any

import xarray as xr

from bigkd.cli.printing import kernel_text, new_table, plus_minus, print_table, stdout_console

_ROWS_SHOWN = 10
_SIZES = {
    "n_landmarks": "landmarks",
    "n_frequencies": "frequencies",
    "n_monomials": "monomials",
    "n_directions": "directions of PCA",
}


def print_subspace(result: xr.Dataset) -> None:
    """Print the components of a subspace, and how near it is to its rows."""
    console, attrs = stdout_console(), result.attrs
    left_out = attrs["n_features_left_out"]
    without = f" ({left_out:,} left out)" if left_out else ""
    console.print(
        f"Subspace of {_rows(attrs)} of {attrs['n_features']:,} features{without} of "
        f"{attrs.get('data', 'data')}\n{_choices(attrs)}, method {_method(attrs)}",
        markup=False,
    )
    table = new_table((), ("component", "eigenvalue", "share", "together"))
    shares = result["explained_share"]
    for at, label in enumerate(result["k"].values.tolist()):
        table.add_row(
            str(label),
            f"{float(result['eigenvalue'][at]):.6g}",
            f"{float(shares[at]):.2%}",
            f"{float(shares[: at + 1].sum(skipna=False)):.2%}",
        )
    print_table(console, table)
    if "mmd2" in result:
        one = {str(name): float(part) for name, part in result.items() if not part.dims}
        between = plus_minus(console)
        error = one["mmd2_standard_error"]
        with_error = f" {between} {error:.1g}" if error else ""
        console.print(
            f"MMD^2 of rows and projections {one['mmd2']:.6g}{with_error}; of PCA's "
            f"{one['mmd2_pca']:.6g}\nof the nearest distribution in {attrs['k']} dimensions "
            f"{_bounds(one['mmd2_lower'], one['mmd2_upper'])}",
            markup=False,
        )
    console.print(
        f"sine of the angle to the exact subspace about {float(result['subspace_error']):.1g}",
        markup=False,
    )


def print_scores(result: xr.Dataset) -> None:
    """Print the coordinates of the first rows."""
    console, scores = stdout_console(), result["score"]
    dim = next(dim for dim in scores.dims if dim != "k")
    n = scores.sizes[dim]
    console.print(
        f"Scores of {n:,} rows of {result.attrs['data']} on the components of "
        f"{result.attrs['fit']}",
        markup=False,
    )
    table = new_table((str(dim),), tuple(f"k={label}" for label in scores["k"].values.tolist()))
    few = scores.isel({dim: slice(_ROWS_SHOWN)})
    for label, row in zip(few[dim].values.astype(str).tolist(), few.values, strict=True):
        table.add_row(label, *(f"{value:.6g}" for value in row))
    print_table(console, table)
    if n > _ROWS_SHOWN:
        console.print(f"and those of {n - _ROWS_SHOWN:,} others", markup=False)


def print_projection(result: xr.Dataset) -> None:
    """Print how far rows are from their projections."""
    console, attrs = stdout_console(), result.attrs
    one = {str(name): float(part) for name, part in result.items()}
    drawn = f" ({attrs['n_points']:,} drawn)" if attrs["method"] == "sample" else ""
    console.print(
        f"Rows of {attrs['data']} and their projections on the components of {attrs['fit']}\n"
        f"MMD^2     {one['mmd2']:.6g} {plus_minus(console)} {one['mmd2_standard_error']:.1g}\n"
        f"MMD       {one['mmd']:.6g}\n"
        f"trace     {one['trace']:.6g}\n"
        f"left out  {one['left_out']:.6g}\n"
        f"method    {attrs['method']}{drawn}",
        markup=False,
    )


def print_background(result: xr.Dataset) -> None:
    """Print what a background was made from, and its levels."""
    attrs, picture = result.attrs, result["background"]
    grid = ", ".join(f"{dim} {n}" for dim, n in picture.sizes.items())
    stdout_console().print(
        f"Background of {attrs['n_frames']:,} frames of {attrs['frames']}: {attrs['statistic']} "
        f"over time of {attrs['k']} components\n{_choices(attrs)}, white {attrs['white']:g}, "
        f"method {_method(attrs)}\ngrid {grid}; levels from {float(picture.min()):.4g} to "
        f"{float(picture.max()):.4g}, median {float(picture.median()):.4g}",
        markup=False,
    )


def _rows(attrs: Mapping[str, Any]) -> str:
    lost = {"dropped": attrs["n_dropped"], "skipped": attrs["n_skipped"]}
    notes = [f"{n:,} {what}" for what, n in lost.items() if n]
    return f"{attrs['n_rows']:,} rows" + (f" ({', '.join(notes)})" if notes else "")


def _choices(attrs: Mapping[str, Any]) -> str:
    of_kernel = {key: attrs[key] for key in ("kernel", "kernel_parameters") if key in attrs}
    scale = f" (a {attrs['a']:g})" if "a" in attrs else ""
    centred = "centred" if attrs["center"] else "not centred"
    return f"{kernel_text(of_kernel)}{scale}, {centred}, weights {attrs['weights']}"


def _method(attrs: Mapping[str, Any]) -> str:
    sizes = [f"{attrs[key]:,} {what}" for key, what in _SIZES.items() if key in attrs]
    return str(attrs["method"]) + (f" ({', '.join(sizes)})" if sizes else "")


def _bounds(lower: float, upper: float) -> str:
    return f"at least {lower:.6g}" + (f", at most {upper:.6g}" if not math.isnan(upper) else "")
