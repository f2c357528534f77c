"""Numbers and what data say, as text that cannot do harm."""

import math
import re
from typing import Any

import numpy as np

_LONGEST = 2000
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff"  # HTML has no place for these
    "\u202a-\u202e\u2066-\u2069]"  # and these turn the text around them
)
_NOTHING = "-"


def clean(value: Any) -> Any:
    """`value`, and of text what can stand in a page: a sign for each control, and not endlessly."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    text = _CONTROLS.sub("\ufffd", value)
    more = len(text) - _LONGEST
    return f"{text[:_LONGEST]} … ({more:,} characters more)" if more > 0 else text


def number(value: Any) -> str:
    """A number in few digits; a dash where there is none.

    Examples
    --------
    >>> number(0.123456), number(1234567), number(True), number(float("nan"))
    ('0.1235', '1,234,567', 'yes', '-')
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return _NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return (
            f"{value:,.0f}" if value.is_integer() and 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
        )
    return str(value)


def count(value: Any) -> str:
    """A whole number that may be stored as a float; a dash where there is none."""
    return number(int(value)) if math.isfinite(value) else _NOTHING


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    Examples
    --------
    >>> duration(3.21), duration(75), duration(7300), duration(200_000)
    ('3.2 s', '1 min 15 s', '2 h 1 min', '2 d 7 h')
    """
    if not math.isfinite(seconds):
        return _NOTHING
    if abs(seconds) < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, name, below, small in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min")):
        if whole >= size:
            return f"{whole // size} {name} {whole % size // below} {small}"
    return f"{whole // 60} min {whole % 60} s"


def moment(time: np.datetime64) -> str:
    """A time in UTC, to the minute."""
    return "unknown" if np.isnat(time) else f"{time.astype('datetime64[m]')!s}".replace("T", " ")


def counted(n: int, what: str) -> str:
    """``1 mode``, ``2 modes``."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"
