"""Pictures out: grids as PNG, pages as HTML."""

import base64
import html
import io
from pathlib import Path
from typing import Any

import numpy as np

from bigkd.errors import InputError
from bigkd.io.optional import require

Picture = np.ndarray[Any, np.dtype[np.uint8]]

_GAP = 2
_LEAST_SIDE = 48
_PLOT = (120, 360)
_TINT = (255.0, 205.0, 60.0)
_INKS = ((20, 60, 140), (180, 40, 40), (30, 120, 60), (120, 60, 140), (90, 90, 90))


def as_pictures(
    lines: list[np.ndarray[Any, Any]],
    shape: tuple[int, ...],
    value_range: tuple[float, float] | None,
) -> list[list[Picture]]:
    """Lines of flattened rows as pictures ``(y, x, 3)``, uint8, small ones enlarged.

    NaN is white.

    Raises
    ------
    InputError
        If `shape` is not ``(y, x)`` or ``(y, x, channel)`` with 1, 3 or 4 channels.
    """
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3, 4)):
        raise InputError(
            f"images must have shape (n, y, x) or (n, y, x, channel) with 1, 3 or 4 channels; a "
            f"row has shape {shape}."
        )
    low, high = value_range or _range(lines)
    scale = 255.0 / (high - low) if high > low else 0.0
    zoom = max(1, -(-_LEAST_SIDE // max(shape[:2])))
    return [
        [
            _picture(np.clip((row.astype(np.float64) - low) * scale, 0.0, 255.0), shape, zoom)
            for row in line
        ]
        for line in lines
    ]


def grid_of(lines: list[list[Picture]]) -> Picture:
    """One picture of all, a line each, with gaps; at least one pixel large.

    Each has a place of the size of the largest.
    """
    sizes = [picture.shape[:2] for line in lines for picture in line]
    height, width = np.max(sizes, axis=0).tolist() if sizes else (1, 1)
    columns = max((len(line) for line in lines), default=1)
    grid = np.full(
        (
            max(1, len(lines) * (height + _GAP) - _GAP),
            max(1, columns * (width + _GAP) - _GAP),
            3,
        ),
        255,
        dtype=np.uint8,
    )
    for down, line in enumerate(lines):
        for across, picture in enumerate(line):
            top, left = down * (height + _GAP), across * (width + _GAP)
            grid[top : top + picture.shape[0], left : left + picture.shape[1]] = picture
    return grid


def sheet_path(path: str | Path) -> Path:
    """Where a sheet of pictures is to be written.

    Raises
    ------
    InputError
        If it is neither ``.png`` nor ``.html``.
    """
    target = Path(path)
    if target.suffix not in (".png", ".html"):
        raise InputError(f"path must end in .png or .html; got {target.name!r}.")
    return target


def write_sheet(
    target: Path, lines: list[list[Picture]], captions: list[str], *, title: str
) -> Path:
    """Write pictures, a line each: alone as PNG, or as a page with captions."""
    if target.suffix == ".png":
        write_png(grid_of(lines), target)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(html_page(lines, captions, title), encoding="utf-8")
    return target


def write_png(picture: Picture, path: Path) -> None:
    """Write one picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_png(picture))


def data_url(picture: Picture) -> str:
    """One picture as a URL that holds it."""
    return f"data:image/png;base64,{base64.b64encode(_png(picture)).decode('ascii')}"


def html_page(lines: list[list[Picture]], captions: list[str], title: str = "Modes") -> str:
    """A page with a caption and a strip of pictures for each line; it needs nothing else."""
    sections = []
    for line, caption in zip(lines, captions, strict=True):
        text = html.escape(caption)
        sections.append(
            f"<figure><figcaption>{text}</figcaption>"
            f'<img alt="{text}" src="{data_url(grid_of([line]))}"></figure>'
        )
    title = html.escape(title)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        "<style>body{font-family:sans-serif;margin:2em}figure{margin:0 0 1.5em}"
        f"img{{max-width:100%;image-rendering:pixelated}}</style></head><body><h1>{title}</h1>"
        + "".join(sections)
        + "</body></html>\n"
    )


def _range(lines: list[np.ndarray[Any, Any]]) -> tuple[float, float]:
    drawn = [line[np.isfinite(line)] for line in lines if line.size]
    drawn = [line for line in drawn if line.size]
    if not drawn or drawn[0].dtype == np.uint8:
        return 0.0, 255.0
    return float(min(line.min() for line in drawn)), float(max(line.max() for line in drawn))


def _picture(row: np.ndarray[Any, Any], shape: tuple[int, ...], zoom: int) -> Picture:
    pixels = np.nan_to_num(row, nan=255.0).reshape(*shape[:2], -1)
    if pixels.shape[2] == 4:  # over white
        opacity = pixels[:, :, 3:] / 255.0
        pixels = pixels[:, :, :3] * opacity + 255.0 * (1.0 - opacity)
    colour = np.broadcast_to(pixels, (*shape[:2], 3))
    return np.round(colour).astype(np.uint8).repeat(zoom, axis=0).repeat(zoom, axis=1)


def _png(picture: Picture) -> bytes:
    image = require("PIL.Image", extra="images")
    with io.BytesIO() as buffer:
        image.fromarray(picture).save(buffer, format="PNG")
        return buffer.getvalue()


def plot(
    series: np.ndarray[Any, Any],
    tint: np.ndarray[Any, Any] | None,
    value_range: tuple[float, float],
) -> Picture:
    """Lines of a series ``(time,)`` or ``(time, variable)``, tinted where `tint` is near 1."""
    height, width = _PLOT
    low, high = value_range
    lines = series.reshape(series.shape[0], -1).astype(np.float64)
    across = np.linspace(0, width - 1, lines.shape[0])
    paper = np.full((height, width, 3), 255.0)
    if tint is not None:
        share = np.interp(np.arange(width), across, tint)[None, :, None]
        paper += share * (np.asarray(_TINT) - 255.0)
    image = require("PIL.Image", extra="images").fromarray(np.round(paper).astype(np.uint8))
    draw = require("PIL.ImageDraw", extra="images").Draw(image)
    scale = (height - 9) / (high - low) if high > low else 0.0
    for number, line in enumerate(lines.T):
        down = height - 5 - (line - low) * scale
        colour = _INKS[number % len(_INKS)]
        for at in np.flatnonzero(np.isfinite(down[:-1] + down[1:])):
            ends = [(across[at], down[at]), (across[at + 1], down[at + 1])]
            draw.line(ends, fill=colour, width=2)
    return np.asarray(image)
