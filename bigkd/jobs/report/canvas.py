"""Figures as SVG that is part of a page: its colours, its text, and no name twice."""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

from bigkd.io.optional import require

INK = "#101112"
FAINT = "#131415"
LINE = "#161718"
ALARM = "#191a1b"
LOST = "#1c1d1e"
OTHER = "#212223"

_SIZE = (5.2, 2.3)
_COLOURS = {
    INK: "var(--soft)",
    FAINT: "var(--rule)",
    LINE: "var(--line)",
    ALARM: "var(--alarm)",
    LOST: "var(--lost)",
    OTHER: "var(--other)",
}
_STYLE: Mapping[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "bigkd",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 9.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0.0,
    "ytick.major.size": 0.0,
    "ytick.minor.size": 0.0,
    "figure.facecolor": "none",
    "lines.linewidth": 1.6,
    "lines.solid_joinstyle": "round",
}
_SPACES = ("{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}")


def require_drawing() -> None:
    """Raise MissingDependencyError unless charts can be drawn."""
    require("matplotlib", extra="report")


@contextmanager
def drawing() -> Iterator[Any]:
    """Axes to draw on, in the style of the page whatever the user's own."""
    style = require("matplotlib.style", extra="report")
    figures = require("matplotlib.figure", extra="report")
    with style.context(["default", dict(_STYLE)]):
        yield figures.Figure(figsize=_SIZE, layout="constrained").add_subplot()


def svg(axes: Any, *, name: str, label: str) -> str:
    """What was drawn, for screen readers called `label`; `name` sets its names apart.

    To be called within `drawing`.
    """
    with io.StringIO() as out:
        axes.figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
        text = out.getvalue()
    for colour, variable in _COLOURS.items():
        text = text.replace(colour, variable)
    root = ElementTree.fromstring(text)
    for parent in root.iter():
        for child in [*parent]:
            if child.tag.endswith(("metadata", "}style")):
                parent.remove(child)
    used = {value for part in root.iter() for value in part.attrib.values() if "#" in value}
    for part in root.iter():
        _make_plain(part, name, used)
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.attrib |= {"role": "img", "aria-label": label, "class": "chart"}
    return ElementTree.tostring(root, encoding="unicode")


def _make_plain(part: Any, name: str, used: set[str]) -> None:
    """No XML namespaces, which HTML does without, and no name but those that are used."""
    for space in _SPACES:
        part.tag = part.tag.removeprefix(space)
    attributes = {}
    for key, value in part.attrib.items():
        plain = key.removeprefix(_SPACES[1])
        if plain == "id":
            if any(value in use for use in used):
                attributes[plain] = f"{name}-{value}"
        elif plain in ("clip-path", "href"):
            attributes[plain] = value.replace("#", f"#{name}-")
        else:
            attributes[plain] = value
    part.attrib.clear()
    part.attrib.update(attributes)
