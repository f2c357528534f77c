"""Coresets, as a person reads them."""

import numpy as np
import xarray as xr

from bigkd.cli.printing import kernel_text, new_table, print_table, promise_text, stdout_console

_POINTS_SHOWN = 10


def print_coreset(result: xr.Dataset) -> None:
    """Print how well a coreset stands for its collection, and its heaviest rows."""
    console, attrs = stdout_console(), result.attrs
    n_dropped = attrs["n_dropped"]
    dropped = f" ({n_dropped:,} dropped)" if n_dropped else ""
    console.print(
        f"{attrs['n_points']:,} rows for the {attrs['n_rows']:,} of {attrs.get('data', 'data')}"
        f"{dropped}\n{_how(result)}\n{_how_near(result)}",
        markup=False,
    )
    table = new_table((), ("row", "weight", "share"))
    weight = result["weight"].values
    for at in np.argsort(-weight, kind="stable")[:_POINTS_SHOWN].tolist():
        share = weight[at] / float(result["total_weight"])
        table.add_row(str(int(result["index"][at])), f"{weight[at]:.6g}", f"{share:.2%}")
    print_table(console, table)
    if attrs["n_points"] > _POINTS_SHOWN:
        console.print(f"and {attrs['n_points'] - _POINTS_SHOWN:,} lighter ones", markup=False)


def _how(result: xr.Dataset) -> str:
    attrs = result.attrs
    if "selection" in attrs:
        return f"{kernel_text(attrs)}, {attrs['selection']} selection, {attrs['reweight']} weights"
    again = "with" if attrs["replacement"] else "without"
    return f"random rows, {again} replacement"


def _how_near(result: xr.Dataset) -> str:
    attrs = result.attrs
    if "distance_to_full" not in result:
        return (
            f"distance to all rows at most {float(result['distance_upper']):.4g} for any one "
            f"kernel with K(x, x) <= 1, broken with probability {attrs['delta']:g}"
        )
    if attrs["measure"] == "none":
        return "distance to all rows not measured"
    return (
        f"distance to all rows {float(result['distance_to_full']):.4g}, at most "
        f"{float(result['distance_upper']):.4g} ({promise_text(attrs)}; measured: "
        f"{attrs['measure']})"
    )
