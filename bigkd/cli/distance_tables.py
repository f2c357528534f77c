"""Distances and tests, as a person reads them."""

import math

import xarray as xr

from bigkd.cli.printing import (
    kernel_text,
    new_table,
    plus_minus,
    print_table,
    promise_text,
    rows_text,
    stdout_console,
)


def print_distance(result: xr.Dataset) -> None:
    """Print a distance, what is promised of it, and the test if there was one."""
    console, attrs = stdout_console(), result.attrs
    value = {str(name): float(variable) for name, variable in result.data_vars.items()}
    error = value["standard_error"]
    with_error = "" if math.isnan(error) else f", standard error {error:.2g}"
    shares = "weights divided by their sum" if attrs["normalize"] else "weights as given"
    lines = [
        f"Distance of {rows_text(attrs, 'x')} from {rows_text(attrs, 'y')}",
        f"{kernel_text(attrs)}, {shares}",
        f"distance          {value['distance']:.6g}, between {value['distance_lower']:.6g} and "
        f"{value['distance_upper']:.6g}",
        f"distance squared  {value['distance_squared']:.6g} {plus_minus(console)} "
        f"{value['promise']:.2g} ({promise_text(attrs)}{with_error})",
        f"kappa             xx {value['kappa_xx']:.6g}, yy {value['kappa_yy']:.6g}, xy "
        f"{value['kappa_xy']:.6g}",
        f"method            {attrs['method']} ({attrs['method_reason']})",
    ]
    if value["negative"]:
        lines.append(_why_negative(result))
    if "p_value" in result:
        lines.append(
            f"test              {_verdict(result, attrs['test_alpha'])} ({attrs['test_method']}, "
            f"{attrs['test_n_permutations']:,} permutations)"
        )
    console.print("\n".join(lines), markup=False)


def print_test(result: xr.Dataset) -> None:
    """Print a two-sample test."""
    console, attrs = stdout_console(), result.attrs
    spread = (
        f"{float(result['null_mean']):.4g} {plus_minus(console)} {float(result['null_std']):.2g}"
    )
    console.print(
        f"Do {rows_text(attrs, 'x')} and {rows_text(attrs, 'y')} come from one source?\n"
        f"{kernel_text(attrs)}, method {attrs['method']}\n"
        f"{_verdict(result, attrs['alpha'])}. MMD^2 {float(result['statistic']):.4g}; {spread} in "
        f"{attrs['n_permutations']:,} permutations",
        markup=False,
    )


def print_distances(result: xr.Dataset) -> None:
    """Print the distance of every pair."""
    console, attrs = stdout_console(), result.attrs
    names = result["x"].values.tolist()
    table = new_table(("x", "y"), ("distance", "squared", "promise"))
    for at, x in enumerate(names):
        for y in names[at + 1 :]:
            pair = result.sel(x=x, y=y)
            table.add_row(
                str(x),
                str(y),
                f"{float(pair['distance']):.6g}",
                f"{float(pair['distance_squared']):.6g}",
                f"{float(pair['promise']):.2g}",
            )
    rows = ", ".join(f"{n:,}" for n in result["n_rows"].values.tolist())
    console.print(
        f"Distances of {len(names)} collections ({rows} rows)\n"
        f"{kernel_text(attrs)}, method {attrs['method']}; promises of the squares: "
        f"{promise_text(attrs)}",
        markup=False,
    )
    print_table(console, table)


def _verdict(result: xr.Dataset, alpha: float) -> str:
    said = "rejected" if bool(result["rejected"]) else "not rejected"
    return f"p = {float(result['p_value']):.3g}: one source is {said} at alpha {alpha:g}"


def _why_negative(result: xr.Dataset) -> str:
    if result.attrs["positive_definite"]:
        return "The squared distance is negative by rounding; the distance is given as 0."
    return (
        "The squared distance is negative, since the kernel is not positive definite here; the "
        "distance is given as 0."
    )
