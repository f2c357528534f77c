"""Pictures of a match: which parts of the reference were found, and where."""

from pathlib import Path
from typing import Any

import numpy as np

from bigkd.backends import is_array, to_host
from bigkd.errors import InputError, ShapeError
from bigkd.io.images import Picture, as_pictures, plot, sheet_path, write_sheet
from bigkd.linalg import Matrix

_UNLIT = 0.2


def match_sheet(
    path: str | Path,
    f: Any,
    g: Any,
    h: Any,
    q: Any,
    *,
    value_range: tuple[float, float] | None = None,
    threshold: float = 0.0,
    caption: str = "",
) -> Path:
    """Draw f, f lit by h, g, and g lit by q, side by side.

    Images keep their brightness where ``|h|`` is largest and darken to a fifth where it is 0; of
    series, the time is tinted instead. What h and q light up is what matched.

    Parameters
    ----------
    path
        File to write: ``.png`` for the picture alone, ``.html`` for a page with the caption.
    f, g
        The reference and what was searched: images ``(y, x)`` or ``(y, x, channel)`` with 1, 3 or 4
        channels, or series ``(time,)`` or ``(time, variable)``; of any size. NaN is white.
    h, q
        The functions of `bigkd.did.match` on the grids of `f` and `g`. Their sign, which means
        nothing, is not shown.
    value_range
        The values shown as black and white; 0 and 255 for uint8, else the extremes of f and g.
    threshold
        Shares of the largest ``|h|`` or ``|q|`` below this one count as 0.
    caption
        What stands above the pictures of a page.

    Returns
    -------
    pathlib.Path
        `path`.

    Raises
    ------
    InputError
        If `f` or `g` is no image and no series, an option cannot be used, or the suffix is another.
    ShapeError
        If `h` or `q` is not on the grid of its image.
    MissingDependencyError
        If Pillow is not installed: ``pip install 'bigkd[images]'``.
    """
    target = sheet_path(path)
    if not 0.0 <= threshold < 1.0:
        raise InputError(f"threshold must be at least 0 and less than 1; got {threshold!r}.")
    pair = [_opened("f", f, "h", h), _opened("g", g, "q", q)]
    limits = value_range or _extremes([values for values, _ in pair])
    line = []
    for values, light in pair:
        line += _panels(values, _shares(light, threshold), limits)
    return write_sheet(target, [line], [caption], title="Match")


def _opened(name: str, datum: Any, light_name: str, light: Any) -> tuple[Any, Matrix]:
    """A datum and what lights it up, on the host, checked."""
    arrays = {name: getattr(datum, "values", datum), light_name: getattr(light, "values", light)}
    for own, array in arrays.items():
        if not is_array(array):
            raise InputError(f"{own} must be an array; got {type(array).__name__}.")
    values, along = map(to_host, arrays.values())
    if along.ndim not in (1, 2) or values.ndim - along.ndim not in (0, 1):
        raise InputError(
            f"{name} must be an image or a series and {light_name} a function on its grid, of two "
            f"axes or one; got shapes {values.shape} and {along.shape}."
        )
    if values.shape[: along.ndim] != along.shape:
        raise ShapeError(
            f"{light_name} must be on the grid of {name}, {values.shape[: along.ndim]}; got shape "
            f"{along.shape}."
        )
    return values, along


def _extremes(values: list[Any]) -> tuple[float, float]:
    if all(part.dtype == np.uint8 for part in values):
        return 0.0, 255.0
    finite = np.concatenate([part[np.isfinite(part)].astype(np.float64) for part in values])
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def _shares(light: Matrix, threshold: float) -> Matrix:
    """``|light|`` over its largest value, in [0, 1]."""
    size = np.abs(np.nan_to_num(light.astype(np.float64)))
    shares = size / size.max() if size.any() else size
    return np.where(shares < threshold, 0.0, shares)


def _panels(values: Any, shares: Matrix, limits: tuple[float, float]) -> list[Picture]:
    if shares.ndim == 1:
        return [plot(values, None, limits), plot(values, shares, limits)]
    ((picture,),) = as_pictures([values.reshape(1, -1)], values.shape, limits)
    zoom = picture.shape[0] // shares.shape[0]
    bright = _UNLIT + (1.0 - _UNLIT) * shares.repeat(zoom, axis=0).repeat(zoom, axis=1)
    return [picture, np.round(picture * bright[:, :, None]).astype(np.uint8)]
