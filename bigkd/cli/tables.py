"""Results as tables: what a person reads."""

import json
import sys
from collections.abc import Mapping
from shutil import get_terminal_size
from typing import Any

import numpy as np
import xarray as xr
from rich import box
from rich.console import Console
from rich.table import Table

_PIPED_WIDTH = 200
_LEAST_WIDTH = 80
_ROWS_SHOWN = 5


def print_modes(result: xr.Dataset) -> None:
    """Print the modes of one comparison."""
    console = _console()
    attrs = result.attrs
    pair = " against ".join(
        f"{attrs.get(role, role)} ({attrs[f'n_rows_{role}']:,} rows)"
        for role in ("test", "reference")
    )
    console.print(f"Modes of {pair}", markup=False)
    console.print(f"{_kernel(attrs)}, rho {attrs['rho']:g}, method {attrs['method']}", markup=False)
    console.print(_modes_table(result, _plus_minus(console)))
    n_modes, n_significant = result.sizes["mode"], int(result["significant"].sum())
    console.print(
        f"{n_significant} of {n_modes} modes significant (*) at alpha {attrs['alpha']:g}; noise "
        f"reaches {float(result['noise_level']):.4f}. MMD^2 {float(result['mmd2']):.6f} "
        f"(unbiased {float(result['mmd2_unbiased']):.6f}).",
        markup=False,
    )


def print_comparison(result: xr.Dataset) -> None:
    """Print every pair of a comparison of many."""
    console = _console()
    table = _table("test", "reference")
    for title in ("significant", "first eigenvalue", "p", "MMD^2", "unbiased"):
        table.add_column(title, justify="right", no_wrap=True)
    between = _plus_minus(console)
    for test in result["test"].values.tolist():
        for reference in result["reference"].values.tolist():
            if test != reference:
                pair = result.sel(test=test, reference=reference)
                table.add_row(str(test), str(reference), *_pair_cells(pair, between))
    console.print(f"{_kernel(result.attrs)}, rho {result.attrs['rho']:g}", markup=False)
    console.print(table)


def print_summary(summary: xr.Dataset) -> None:
    """Print what a stored summary is of."""
    attrs = summary.attrs
    width = summary.sizes["column"]
    _console().print(
        f"Summary of {attrs['name']}: {attrs['n_rows']:,} rows of width {width} "
        f"({attrs['n_dropped']:,} dropped, {attrs['n_skipped']:,} skipped); {_kernel(attrs)}",
        markup=False,
    )


def _console() -> Console:
    """Stdout; wide enough not to cut columns where it is no terminal."""
    width = max(get_terminal_size().columns, _LEAST_WIDTH) if sys.stdout.isatty() else _PIPED_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, soft_wrap=True)


def _plus_minus(console: Console) -> str:
    return "±" if console.encoding.startswith("utf") else "+/-"


def _table(*text_columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for title in text_columns:
        table.add_column(title, no_wrap=True)
    return table


def _modes_table(result: xr.Dataset, between: str) -> Table:
    table = _table()
    for title in (
        "mode",
        f"eigenvalue {between} SE",
        "p",
        "",
        "in test",
        "in ref.",
    ):
        table.add_column(title, justify="right", no_wrap=True)
    with_rows = "top_index_test" in result
    if with_rows:
        table.add_column("top rows of test", overflow="fold")
    for at in range(result.sizes["mode"]):
        mode = result.isel(mode=at)
        cells = [
            str(at),
            _with_error(mode["eigenvalue"], mode["standard_error"], between),
            f"{float(mode['p_value']):.3f}",
            "*" if bool(mode["significant"]) else "",
            f"{float(mode['frequency_test']):.4f}",
            f"{float(mode['frequency_reference']):.4f}",
        ]
        if with_rows:
            cells.append(_first_rows(mode["top_index_test"].values))
        table.add_row(*cells)
    return table


def _pair_cells(pair: xr.Dataset, between: str) -> list[str]:
    first = pair.isel(mode=0)
    return [
        f"{int(pair['significant'].sum())} of {pair.sizes['mode']}",
        _with_error(first["eigenvalue"], first["standard_error"], between),
        f"{float(first['p_value']):.3f}",
        f"{float(pair['mmd2']):.6f}",
        f"{float(pair['mmd2_unbiased']):.6f}",
    ]


def _with_error(value: Any, error: Any, between: str) -> str:
    return f"{float(value):.4f} {between} {float(error):.4f}"


def _first_rows(index: np.ndarray[Any, Any]) -> str:
    there = [str(row) for row in index.tolist() if row >= 0]
    more = ", ..." if len(there) > _ROWS_SHOWN else ""
    return ", ".join(there[:_ROWS_SHOWN]) + more


def _kernel(attrs: Mapping[str, Any]) -> str:
    """``gaussian kernel (sigma 2.5), 500 frequencies``."""
    given = json.loads(attrs.get("kernel_parameters", "{}"))
    parameters = ", ".join(f"{name} {value:.4g}" for name, value in given.items())
    text = f"{attrs['kernel']} kernel" + (f" ({parameters})" if parameters else "")
    frequencies = attrs.get("n_frequencies")
    return text if frequencies is None else f"{text}, {frequencies:,} frequencies"
