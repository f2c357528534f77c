"""Modes and summaries as tables: what a person reads."""

from typing import Any

import numpy as np
import xarray as xr
from rich.table import Table

from bigkd.cli.printing import (
    kernel_text,
    new_table,
    plus_minus,
    print_table,
    rows_text,
    stdout_console,
)

_ROWS_SHOWN = 5


def print_modes(result: xr.Dataset) -> None:
    """Print the modes of one comparison."""
    console = stdout_console()
    attrs = result.attrs
    pair = " against ".join(rows_text(attrs, role) for role in ("test", "reference"))
    console.print(f"Modes of {pair}", markup=False)
    console.print(
        f"{kernel_text(attrs)}, rho {attrs['rho']:g}, method {attrs['method']}", markup=False
    )
    console.print(_modes_table(result, plus_minus(console)))
    n_modes, n_significant = result.sizes["mode"], int(result["significant"].sum())
    console.print(
        f"{n_significant} of {n_modes} modes significant (*) at alpha {attrs['alpha']:g}; noise "
        f"reaches {float(result['noise_level']):.4f}. MMD^2 {float(result['mmd2']):.6f} "
        f"(unbiased {float(result['mmd2_unbiased']):.6f}).",
        markup=False,
    )


def print_comparison(result: xr.Dataset) -> None:
    """Print every pair of a comparison of many."""
    console = stdout_console()
    table = new_table(
        ("test", "reference"), ("significant", "first eigenvalue", "p", "MMD^2", "unbiased")
    )
    between = plus_minus(console)
    for test in result["test"].values.tolist():
        for reference in result["reference"].values.tolist():
            if test != reference:
                pair = result.sel(test=test, reference=reference)
                table.add_row(str(test), str(reference), *_pair_cells(pair, between))
    console.print(f"{kernel_text(result.attrs)}, rho {result.attrs['rho']:g}", markup=False)
    print_table(console, table)


def print_summary(summary: xr.Dataset) -> None:
    """Print what a stored summary is of."""
    attrs = summary.attrs
    width = summary.sizes["column"]
    stdout_console().print(
        f"Summary of {attrs['name']}: {attrs['n_rows']:,} rows of width {width} "
        f"({attrs['n_dropped']:,} dropped, {attrs['n_skipped']:,} skipped); {kernel_text(attrs)}",
        markup=False,
    )


def _modes_table(result: xr.Dataset, between: str) -> Table:
    table = new_table((), ("mode", f"eigenvalue {between} SE", "p", "", "in test", "in ref."))
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
