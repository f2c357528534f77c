"""Arrays with what their store says of them: names of their axes, coordinates along these."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr

from bigkd.errors import InputError, StoreError
from bigkd.io.bounds import require_free
from bigkd.io.urls import plain_location
from bigkd.io.zarr_rows import Missing, open_node, open_zarr, refuse_code, zarr_source

_DIMENSIONS = "_ARRAY_DIMENSIONS"  # where Zarr 2 keeps what Zarr 3 calls dimension_names


def open_labelled(
    path: str | Path, *, name: str, variable: str = "variable", missing: Missing = "raise"
) -> xr.DataArray | None:
    """The variables of a Zarr group as one array that names its axes; nothing is read.

    Parameters
    ----------
    path
        A group, or one of the arrays in it, whose arrays bear the names of their axes, as those
        that xarray writes. Of the variables of a group those with the most axes are taken, in the
        order of their names: a store has none of its own.
    name
        What messages call it.
    variable
        The axis along which several variables are stacked, the last.
    missing
        What a chunk that does not exist means: an error, or fill values.

    Returns
    -------
    xarray.DataArray or None
        None if there is no such group.

    Raises
    ------
    InputError
        If `missing` is ``"skip"``.
    DataError
        If a chunk does not exist and `missing` is ``"raise"``.
    """
    group, only = _group(plain_location(path, name=name))
    if group is None:
        return None
    for stored in dict(group.arrays()).values():
        refuse_code(stored, name=name)
    where = str(path) if only is None else str(path).rstrip("/").rpartition("/")[0]
    variables = xr.open_zarr(where, chunks={}, consolidated=False).data_vars
    most = max((part.ndim for part in variables.values()), default=0)
    wanted = (key for key, part in variables.items() if only or part.ndim == most)
    names = sorted(key for key in wanted if only in (None, key))
    if not names:
        return None
    if missing == "skip":
        raise InputError(
            f"{name}: missing='skip' would leave out parts of {path}, whose data all have a place; "
            f"pass missing='fill' if absent chunks mean fill values."
        )
    for key in names:
        zarr_source(group[str(key)], name=name, missing=missing)
    if len(names) == 1:
        array: xr.DataArray = variables[names[0]]
    else:
        stacked = xr.concat([variables[key] for key in names], xr.Variable(variable, names))
        array = stacked.transpose(..., variable).rename(None)
    array.encoding["source"] = where if "://" in where else str(Path(where).absolute())
    return array


def load_array(path: str | Path, *, name: str) -> np.ndarray[Any, Any]:
    """The array in a ``.npy`` file or in Zarr, of any number of axes; of a file its map to memory.

    Raises
    ------
    StoreError
        If there is none, or it cannot be read.
    """
    if "://" not in str(path) and not Path(path).exists():
        raise StoreError(f"{name}: {path} does not exist (looked in {Path.cwd()}).")
    if Path(path).suffix != ".npy":
        stored = open_zarr(str(path), name=name)
        refuse_code(stored, name=name)
        require_free(f"{name}: {path}", stored.name or "it", stored.nbytes)
        return np.asarray(stored[...])
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError) as error:
        raise StoreError(f"{name}: {path} cannot be read as a .npy file: {error}.") from error
    return np.asarray(array)


def _group(path: str) -> tuple[Any, str | None]:
    """The group at `path`, or around the array at it and the array's name, if all axes have names.

    What cannot be opened here is for the caller to complain of.
    """
    try:
        node: Any = open_node(path)
        only = None
        if isinstance(node, zarr.Array):
            around, _, only = path.rstrip("/").rpartition("/")
            node = open_node(around) if around else None
        arrays = {} if node is None else dict(node.arrays())
    except Exception:  # every store and codec has its own types
        return None, None
    named = arrays and all(_names_axes(array) for array in arrays.values())
    return (node, only) if named else (None, None)


def _names_axes(array: Any) -> bool:
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get(_DIMENSIONS, ())
    return len(names) == array.ndim and all(isinstance(part, str) for part in names)
