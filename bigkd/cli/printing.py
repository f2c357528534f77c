"""What all tables are made of."""

import json
import sys
from collections.abc import Mapping
from shutil import get_terminal_size
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

_PIPED_WIDTH = 200
_LEAST_WIDTH = 80
_LEAST_TEXT = 15
_ANY_WIDTH = 10_000


def stdout_console() -> Console:
    """Stdout; wide enough not to cut columns where it is no terminal."""
    width = max(get_terminal_size().columns, _LEAST_WIDTH) if sys.stdout.isatty() else _PIPED_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, soft_wrap=True)


def print_table(console: Console, table: Table) -> None:
    """Print a table; where the terminal is too narrow its lines go on in the next one.

    Texts that may be wrapped are, first; nothing is cut off.
    """
    width, console.width = console.width, _ANY_WIDTH
    for column in table.columns:
        if column.no_wrap:
            cells = (column.header, *column.cells)
            column.min_width = max(console.measure(cell).maximum for cell in cells)
    console.width = max(width, console.measure(table).minimum)
    console.print(table)


def plus_minus(console: Console) -> str:
    """The sign, or what stands for it where it cannot be printed."""
    return "±" if console.encoding.startswith("utf") else "+/-"


def new_table(
    text: tuple[str, ...] = (), numbers: tuple[str, ...] = (), wrapped: tuple[str, ...] = ()
) -> Table:
    """Table with columns of text, some of them `wrapped` where space is short, and of numbers."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for title in text:
        table.add_column(
            title, no_wrap=title not in wrapped, min_width=_LEAST_TEXT if title in wrapped else None
        )
    for title in numbers:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def kernel_text(attrs: Mapping[str, Any]) -> str:
    """``gaussian kernel (sigma 2.5), 500 frequencies``."""
    given = json.loads(attrs.get("kernel_parameters", "{}"))
    parameters = ", ".join(f"{name} {_short(value)}" for name, value in given.items())
    text = f"{attrs['kernel']} kernel" + (f" ({parameters})" if parameters else "")
    frequencies = attrs.get("n_frequencies")
    return text if frequencies is None else f"{text}, {frequencies:,} frequencies"


def rows_text(attrs: Mapping[str, Any], role: str) -> str:
    """``new.npy (160 rows, 2 dropped)``."""
    n_dropped = attrs.get(f"n_dropped_{role}", 0)
    dropped = f", {n_dropped:,} dropped" if n_dropped else ""
    return f"{attrs.get(role, role)} ({attrs[f'n_rows_{role}']:,} rows{dropped})"


def promise_text(attrs: Mapping[str, Any]) -> str:
    """What kind of promise a bound is."""
    if attrs["promise_kind"] == "probabilistic":
        return f"broken with probability {attrs['delta']:g}"
    return str(attrs["promise_kind"])


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else json.dumps(value)
