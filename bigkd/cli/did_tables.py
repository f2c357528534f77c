"""Dissimilarities up to deformation, as a person reads them."""

from collections.abc import Mapping
from typing import Any

import xarray as xr

from bigkd.cli.printing import kernel_text, new_table, print_table, stdout_console

_MOST_SHOWN = 8


def print_dissimilarity(result: xr.Dataset) -> None:
    """Print the dissimilarity of one pair for each lambda, and every choice."""
    console, attrs = stdout_console(), result.attrs
    console.print(
        f"Dissimilarity of {attrs.get('g', 'g')} from smooth deformations of "
        f"{attrs.get('f', 'f')}\n{_choices(attrs)}",
        markup=False,
    )
    bounds = [name for name in ("lower", "upper") if name in result]
    table = new_table((), ("lam", "dissimilarity", "rounding", *bounds))
    for at, lam in enumerate(result["lam"].values):
        one = {str(name): part.values for name, part in result.isel(lam=at).data_vars.items()}
        cells = [f"{lam:g}", f"{one['dissimilarity']:.6g}", f"{one['rounding']:.1g}"]
        table.add_row(*cells, *(f"{one[name]:.6g}" for name in bounds))
    print_table(console, table)
    console.print(_of_both("norms of the maps", result, "norm"), markup=False)
    if bounds:
        console.print(_of_both("lost to the landmarks, at most", result, "lost"), markup=False)


def print_dissimilarities(result: xr.Dataset) -> None:
    """Print the dissimilarities of all pairs, of many the first."""
    console = stdout_console()
    n_references, n_searched = result.sizes["reference"], result.sizes["searched"]
    console.print(
        f"Dissimilarities of {n_searched:,} data from smooth deformations of {n_references:,} "
        f"references\n{_choices(result.attrs)}",
        markup=False,
    )
    shown = {dim: slice(_MOST_SHOWN) for dim in ("reference", "searched")}
    few = result["dissimilarity"].isel(shown).load()
    for at, lam in enumerate(result["lam"].values):
        values = few.isel(lam=at)
        console.print(f"\nlam {lam:g}: references down, searched across", markup=False)
        table = new_table(("",), tuple(_labels(values, "searched")))
        for name, row in zip(_labels(values, "reference"), values.values, strict=True):
            table.add_row(name, *(f"{value:.4g}" for value in row))
        print_table(console, table)
    if max(n_references, n_searched) > _MOST_SHOWN:
        console.print(f"and the others of {n_references:,} x {n_searched:,}", markup=False)


def print_nearest(result: xr.Dataset) -> None:
    """Print what is nearest to each query."""
    console, attrs = stdout_console(), result.attrs
    dropped = f" ({attrs['n_dropped']:,} dropped)" if attrs["n_dropped"] else ""
    console.print(
        f"Nearest to smooth deformations of {attrs.get('query', 'query')} among "
        f"{attrs['n_data']:,} data of {attrs.get('collection', 'collection')}{dropped}\n"
        f"{_choices(attrs)}, lam {attrs['lam']:g}",
        markup=False,
    )
    named = "name" in result.coords
    table = new_table(("query",), ("rank", "row", "dissimilarity"))
    if named:
        table.add_column("name", overflow="fold")
    for at, query in enumerate(_labels(result, "query")):
        one = result.isel(query=at)
        for rank, (row, value) in enumerate(
            zip(one["index"].values.tolist(), one["dissimilarity"].values.tolist(), strict=True)
        ):
            if row < 0:
                continue
            cells = [query, str(rank), str(row), f"{value:.6g}"]
            table.add_row(*cells, *([str(one["name"].values[rank])] if named else []))
    print_table(console, table)


def _of_both(what: str, result: xr.Dataset, name: str) -> str:
    reference, searched = (float(result[f"{name}_{side}"]) for side in ("reference", "searched"))
    return f"{what}: {reference:.6g} (reference), {searched:.6g} (searched)"


def _labels(result: xr.Dataset | xr.DataArray, dim: str) -> list[str]:
    return [str(label) for label in result[dim].values.tolist()]


def _choices(attrs: Mapping[str, Any]) -> str:
    """How data are represented, in three lines."""
    kernels = [
        f"{side}: {_kernel(attrs[f'{side}_kernel'])}, {attrs[f'{side}_landmarks']}" for side in "xy"
    ]
    jitter = max(attrs["x_jitter"], attrs["y_jitter"])
    added = f", jitter {jitter:.2g}" if jitter else ""
    relative = ", lam relative to the squared norm" if attrs["lam_relative"] else ""
    return (
        f"grid {attrs['grid']}; {'; '.join(kernels)}{added}\n"
        f"mask {attrs['mask']}, weights {attrs['weights']}, normalize {attrs['normalize']}, "
        f"{attrs['dtype']}, scale {attrs['scale']}{relative}"
    )


def _kernel(text: str) -> str:
    name, _, parameters = text.partition(" ")
    return kernel_text({"kernel": name, "kernel_parameters": parameters})
