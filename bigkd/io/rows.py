"""Anything a user may call a collection of rows, opened as a `Source`."""

import math
from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr
import zarr
from dask.base import tokenize
from numpy.lib import format as npy_format

from bigkd.backends import is_array
from bigkd.errors import EmptyInputError, InputError, ShapeError, StoreError
from bigkd.io.image_folder import holds_pictures, image_source
from bigkd.io.parquet import parquet_source
from bigkd.io.sources import (
    ArraySource,
    DaskSource,
    FileSource,
    Source,
    even_bounds,
    rows_per_block,
)
from bigkd.io.zarr_rows import Missing, open_zarr, zarr_source


def open_rows(
    data: Any,
    *,
    name: str,
    dim: Hashable | None = None,
    columns: tuple[str, ...] | None = None,
    block_rows: int | None = None,
    missing: Missing = "raise",
    image_size: tuple[int, int] | None = None,
    weights: Any = None,
    vectors: Any = None,
) -> Source:
    """Open `data` as blocks of rows; nothing is computed.

    Parameters
    ----------
    data
        A NumPy array, `numpy.memmap` or other array of the array API standard, a Dask array, an
        `xarray.DataArray` or a Dataset with one variable, a `zarr.Array`, or a path or URL of a
        Zarr array, a Zarr group with one array of rows, a ``.npy`` file, Parquet, a picture, or a
        folder of pictures as `bigkd.io.image_folder.image_source` reads them. The first axis
        counts rows; the others are flattened, so that images ``(n, y, x, channel)`` are rows.
        A `Source` stays as it was opened, under the new name.
    name
        What messages call it.
    dim
        The dimension of an xarray object that counts rows; the first by default.
    columns
        Columns of a Parquet file.
    block_rows
        Rows of one block; by default about 32 MB, and a multiple of the store's chunk. The blocks
        of a Dask array are its own.
    missing
        What a Zarr chunk that does not exist means: an error, rows to leave out, or fill values.
    image_size
        Height and width that pictures in files are resampled to; by default all must be of one.
    weights, vectors
        A number, and a direction of ``c`` elements, for each row as stored: arrays or paths as
        `data`, shapes ``(n,)`` and ``(n, c)``.

    Raises
    ------
    ShapeError
        If rows are not at least two-dimensional, a Dask array's chunk sizes are unknown, pictures
        differ in size, or `weights` or `vectors` are not one for each row.
    EmptyInputError
        If there are no rows, or rows have no elements.
    InputError
        If the type is not one of the above, or elements are not real numbers.
    StoreError, DataError
        If a path does not exist or is not a store, or a chunk is missing.
    """
    if isinstance(data, Source):
        source = replace(data, name=name)
    else:
        source = _open(data, name, dim, columns, block_rows, missing, image_size)
        _need_axes((source.n_rows, *source.row_shape), name, least=2)
    along: dict[str, Any] = {
        what: _companion(part, f"{what} of {name}", source, dim)
        for what, part in (("weights", weights), ("vectors", vectors))
        if part is not None
    }
    if "weights" in along and along["weights"].width != 1:
        raise ShapeError(
            f"weights of {name} must be one number for each row; got rows of shape "
            f"{along['weights'].row_shape}."
        )
    return replace(source, **along, known=None) if along else source


def _companion(data: Any, name: str, rows: Source, dim: Hashable | None) -> Source:
    """What belongs to each row of `rows` as stored."""
    own = dim if isinstance(data, xr.DataArray) and dim in data.dims else None
    source = _open(data, name, own, None, None, "raise")
    stored = rows.n_rows + rows.skipped
    if source.n_rows != stored:
        raise ShapeError(f"{name} must be one for each of the {stored} rows; got {source.n_rows}.")
    return source


def _open(
    data: Any,
    name: str,
    dim: Hashable | None,
    columns: tuple[str, ...] | None,
    block_rows: int | None,
    missing: Missing,
    image_size: tuple[int, int] | None = None,
) -> Source:
    if isinstance(data, xr.Dataset):
        data = _only_variable(data, name)
    _check_options(block_rows, missing)
    if isinstance(data, str | Path):
        source = _open_path(str(data), name, columns, block_rows, missing, image_size)
    elif isinstance(data, zarr.Array):
        source = zarr_source(data, name=name, block_rows=block_rows, missing=missing)
    elif isinstance(data, xr.DataArray):
        source = _labelled(data, name, dim, block_rows)
    elif isinstance(data, da.Array):
        source = _lazy(data, name)
    elif is_array(data):
        source = _in_memory(data, name, block_rows)
    else:
        raise InputError(
            f"{name} must be an array (NumPy, CuPy, Dask, Zarr, xarray) or a path; got "
            f"{type(data).__name__}. Convert it with numpy.asarray(...) if it is a list."
        )
    _check(source)
    return source


def _check_options(block_rows: int | None, missing: str) -> None:
    if missing not in ("raise", "skip", "fill"):
        raise InputError(f"missing must be 'raise', 'skip' or 'fill'; got {missing!r}.")
    if block_rows is not None and not (isinstance(block_rows, int | np.integer) and block_rows > 0):
        raise InputError(f"block_rows must be a whole number of at least 1; got {block_rows!r}.")


def _check(source: Source) -> None:
    if source.dtype.kind not in "fiub" or source.dtype.itemsize > 8:
        raise InputError(
            f"{source.name} has elements of type {source.dtype}; expected real numbers (floating, "
            f"integer or bool) of at most 64 bits."
        )
    if source.n_rows == 0 or source.width == 0:
        raise EmptyInputError(
            f"{source.name} is empty: {source.n_rows} rows of shape {source.row_shape}"
            + (f", after {source.skipped} rows were skipped." if source.skipped else ".")
        )


def _need_axes(shape: tuple[int, ...], name: str, *, least: int = 1) -> None:
    if len(shape) < least:
        raise ShapeError(
            f"{name} has shape {shape}; rows need at least two dimensions, (row, feature). Use "
            f"x[:, None] for rows of one number each, or x[None, :] for a single row."
        )


def _in_memory(array: Any, name: str, block_rows: int | None) -> Source:
    _need_axes(tuple(array.shape), name)
    if isinstance(array, np.ma.MaskedArray):
        masked = int(np.sum(np.ma.getmaskarray(array)))
        raise InputError(
            f"{name} is a masked array, with {masked} of {array.size} elements masked. Pass "
            f"array.filled(numpy.nan), with nonfinite='drop' to leave out rows with such elements."
        )
    dtype = array.dtype
    if not isinstance(array, np.ndarray):
        dtype = np.dtype(str(dtype).rpartition(".")[2])
    row_shape = tuple(int(size) for size in array.shape[1:])
    row_bytes = int(np.prod(row_shape, dtype=np.int64)) * dtype.itemsize
    bounds = even_bounds(array.shape[0], block_rows or rows_per_block(row_bytes))
    if isinstance(array, np.memmap) and _maps_whole_file(array):
        return FileSource(
            name=name,
            row_shape=row_shape,
            dtype=dtype,
            bounds=bounds,
            path=Path(str(array.filename)),
            offset=array.offset,
        )
    return ArraySource(name=name, row_shape=row_shape, dtype=dtype, bounds=bounds, array=array)


def _maps_whole_file(array: np.memmap[Any, Any]) -> bool:
    """Whether `array` is the map itself, C-ordered, not a slice of it nor changed in memory."""
    whole = array.filename is not None and not isinstance(array.base, np.memmap)
    return bool(whole and array.flags.c_contiguous and array.mode in ("r", "r+"))


def _lazy(
    array: Any, name: str, *, origin: Path | str | None = None, unjoined: xr.DataArray | None = None
) -> Source:
    _need_axes(array.shape, name)
    if any(np.isnan(size) for sizes in array.chunks for size in sizes):
        raise ShapeError(
            f"{name} is a Dask array whose chunk sizes are unknown; call "
            f".compute_chunk_sizes() on it first."
        )
    own = array if unjoined is None else unjoined
    array = array.rechunk({axis: -1 for axis in range(1, array.ndim)})
    sizes = [size for size in array.chunks[0] if size]
    if 0 < len(sizes) < len(array.chunks[0]):
        array = array.blocks[[at for at, size in enumerate(array.chunks[0]) if size]]
    bounds = tuple(int(at) for at in np.cumsum([0, *sizes]))
    dtype = np.dtype(array.dtype)
    if dtype.kind in "fiu" and not dtype.isnative:
        array = array.astype(dtype.newbyteorder("="))
    return DaskSource(
        name=name,
        row_shape=tuple(array.shape[1:]),
        dtype=np.dtype(array.dtype),
        bounds=bounds,
        array=array,
        origin=origin,
        unjoined=own,
    )


def _labelled(
    array: xr.DataArray, name: str, dim: Hashable | None, block_rows: int | None
) -> Source:
    if dim is not None and dim not in array.dims:
        raise InputError(f"dim={dim!r} is not a dimension of {name}, which has {array.dims}.")
    if dim is not None:
        array = array.transpose(dim, ...)
    _need_axes(array.shape, name)
    unjoined = array if array.chunks is None else None
    if array.chunks is None:
        row_bytes = int(np.prod(array.shape[1:], dtype=np.int64)) * array.dtype.itemsize
        rows = block_rows or rows_per_block(row_bytes)
        array = array.chunk({array.dims[0]: rows}, token=_token(array))
    origin = array.encoding.get("source")
    path: Path | str | None = None
    if isinstance(origin, str):
        path = origin if "://" in origin else Path(origin) if Path(origin).exists() else None
    return _lazy(array.data, name, origin=path, unjoined=unjoined)


def _token(array: xr.DataArray) -> str | None:
    """Name of what is in memory; None for what is read later, which Dask names itself.

    Dask's own is that of the bytes as they lie in memory, in whichever order axes follow there.
    """
    if not array._in_memory:
        return None
    return str(tokenize(array.dims, array.data, getattr(array.data, "strides", None)))


def _only_variable(dataset: xr.Dataset, name: str) -> xr.DataArray:
    if len(dataset.data_vars) != 1:
        raise InputError(
            f"{name} is a Dataset with {len(dataset.data_vars)} variables "
            f"({', '.join(map(str, dataset.data_vars)) or 'none'}); pass one, as dataset['NAME']."
        )
    array = next(iter(dataset.data_vars.values())).copy(deep=False)
    if "source" in dataset.encoding:  # where it was opened from; kept for `Source.identity`
        array.encoding = {**array.encoding, "source": dataset.encoding["source"]}
    return array


def _open_path(
    path: str,
    name: str,
    columns: tuple[str, ...] | None,
    block_rows: int | None,
    missing: Missing,
    image_size: tuple[int, int] | None,
) -> Source:
    if "://" not in path:
        local = Path(path).absolute()
        if not local.exists():
            raise StoreError(f"{name}: {path} does not exist (looked in {Path.cwd()}).")
        if local.suffix == ".npy":
            return _npy(local, name, block_rows)
        if local.suffix == ".parquet" or (local.is_dir() and any(local.glob("*.parquet"))):
            return parquet_source(local, name=name, columns=columns)
        if holds_pictures(local):
            return image_source(local, name=name, image_size=image_size, block_rows=block_rows)
        path = str(local)
    return zarr_source(
        open_zarr(path, name=name), name=name, block_rows=block_rows, missing=missing
    )


def _npy(path: Path, name: str, block_rows: int | None) -> Source:
    try:
        with path.open("rb") as file:
            version = npy_format.read_magic(file)
            read = (
                npy_format.read_array_header_1_0
                if version == (1, 0)
                else npy_format.read_array_header_2_0
            )
            shape, fortran, dtype = read(file)
            offset = file.tell()
    except (ValueError, OSError) as error:
        raise StoreError(f"{name}: {path} cannot be read as a .npy file: {error}.") from error
    _need_axes(shape, name)
    if dtype.hasobject or fortran:
        raise StoreError(
            f"{name}: {path} holds {'Python objects' if dtype.hasobject else 'columns in order'}; "
            f"expected numbers in row (C) order. Save numpy.ascontiguousarray(x) again."
        )
    needed = offset + math.prod(shape) * dtype.itemsize
    if path.stat().st_size < needed:
        raise StoreError(
            f"{name}: {path} is truncated: {path.stat().st_size} bytes where its header promises "
            f"{needed}. Copy it again."
        )
    row_bytes = math.prod(shape[1:]) * dtype.itemsize
    return FileSource(
        name=name,
        row_shape=tuple(shape[1:]),
        dtype=dtype,
        bounds=even_bounds(shape[0], block_rows or rows_per_block(row_bytes)),
        path=path,
        offset=offset,
    )
