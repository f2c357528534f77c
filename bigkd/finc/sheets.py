"""Contact sheets: the pictures behind the top rows of each mode."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr

from bigkd.backends import to_host
from bigkd.errors import InputError
from bigkd.io import Source, open_rows
from bigkd.io.images import Picture, as_pictures, sheet_path, write_sheet


def contact_sheet(
    images: Any,
    modes: xr.Dataset,
    path: str | Path,
    *,
    collection: Literal["test", "reference"] = "test",
    n_columns: int = 10,
    only_significant: bool = False,
    value_range: tuple[float, float] | None = None,
    dim: Hashable | None = None,
) -> Path:
    """Draw the top rows of each mode, a mode a line.

    Parameters
    ----------
    images
        The pictures of the collection, in the order of its rows, though not necessarily what was
        compared: shape ``(n, y, x)``, ``(n, y, x, 1)``, ``(n, y, x, 3)`` or ``(n, y, x, 4)``, in
        any form that `bigkd.finc.modes` takes rows in.
    modes
        From `bigkd.finc.modes` with ``n_top > 0``.
    path
        File to write: ``.png`` for the grid alone, ``.html`` for a page with the numbers of each
        mode beside its pictures; it holds the pictures and needs no network.
    collection
        Whose top rows.
    n_columns
        Pictures in a line, at most the result's `n_top`.
    only_significant
        Leave out modes that are not.
    value_range
        The values shown as black and white; 0 and 255 for uint8, else the extremes of what is
        drawn.
    dim
        Dimension of an xarray object that counts rows.

    Returns
    -------
    pathlib.Path
        `path`.

    Raises
    ------
    InputError
        If `images` are not pictures or too few, `modes` has no top rows, or the suffix is another.
    MissingDependencyError
        If Pillow is not installed: ``pip install 'bigkd[images]'``.
    """
    target = sheet_path(path)
    lines = np.arange(modes.sizes.get("mode", 0))
    if only_significant:
        lines = lines[modes["significant"].values]
    drawn = _pictures(images, modes, lines, collection, n_columns, value_range, dim)
    return write_sheet(target, drawn, _captions(modes, lines, collection), title="Modes")


def top_pictures(
    images: Any,
    modes: xr.Dataset,
    *,
    collection: Literal["test", "reference"] = "test",
    n_columns: int = 10,
    value_range: tuple[float, float] | None = None,
    dim: Hashable | None = None,
) -> list[list[Picture]]:
    """Pictures of the top rows of each mode, as `contact_sheet` draws them.

    Parameters
    ----------
    images, modes, collection, n_columns, value_range, dim
        As for `contact_sheet`.

    Returns
    -------
    list[list[Picture]]
        A list for each mode, of arrays ``(y, x, 3)``, uint8, largest score first.

    Raises
    ------
    InputError
        As `contact_sheet`.
    """
    lines = np.arange(modes.sizes.get("mode", 0))
    return _pictures(images, modes, lines, collection, n_columns, value_range, dim)


def _pictures(
    images: Any,
    modes: xr.Dataset,
    lines: Any,
    collection: str,
    n_columns: int,
    value_range: tuple[float, float] | None,
    dim: Hashable | None,
) -> list[list[Picture]]:
    if f"top_index_{collection}" not in modes:
        raise InputError(
            f"modes has no top_index_{collection}; collection must be 'test' or 'reference', and "
            f"modes a result of bigkd.finc.modes with n_top > 0."
        )
    source = open_rows(images, name="images", dim=dim)
    index = modes[f"top_index_{collection}"].values[:, :n_columns]
    if int(index.max()) >= source.n_rows:
        raise InputError(
            f"images has {source.n_rows} pictures and the modes name row {int(index.max())}; they "
            f"must be those of the {collection} set, in the same order."
        )
    rows = [_read(source, index[line]) for line in lines]
    return as_pictures(rows, source.row_shape, value_range)


def _read(source: Source, index: Any) -> np.ndarray[Any, Any]:
    rows = [to_host(source.take(int(at), int(at) + 1)) for at in index if at >= 0]
    return np.concatenate(rows) if rows else np.zeros((0, source.width), source.dtype)


def _captions(modes: xr.Dataset, lines: Any, collection: str) -> list[str]:
    captions = []
    for line in lines:
        one = modes.isel(mode=int(line))
        verdict = "significant" if bool(one["significant"]) else "not significant"
        captions.append(
            f"mode {int(line)}: eigenvalue {float(one['eigenvalue']):.4f} ± "
            f"{float(one['standard_error']):.4f}, p = {float(one['p_value']):.3f} ({verdict}); "
            f"frequency {float(one['frequency_test']):.4f} in the test set, "
            f"{float(one['frequency_reference']):.4f} in the reference; top rows of the "
            f"{collection} set"
        )
    return captions
