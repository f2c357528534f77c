"""What a row is made of: the axes of its features, their labels, and how much each counts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import xarray as xr

from bigkd.backends import is_array, to_host
from bigkd.engine import open_source
from bigkd.errors import InputError, ShapeError
from bigkd.io import Source, open_labelled
from bigkd.linalg import Matrix
from bigkd.schema import SUBSPACE

LATITUDES = ("lat", "latitude")

SAMPLE = "sample"
"""What the axis of rows is called where it has no name."""

_OF_ROWS = frozenset({"k", "score", "reconstruction"})
_OF_FEATURES = frozenset({*_OF_ROWS, *SUBSPACE} - {"feature"})
"""Names that results have for themselves."""

_ENCODED = ("scale_factor", "add_offset", "missing_value", "_Unsigned")


@dataclass(frozen=True, kw_only=True)
class Features:
    """The axes of one row, in C order.

    Attributes
    ----------
    dims, shape
        Names and lengths of the axes.
    coords
        Labels of those axes that have some, and further coordinates along them.
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coords: xr.Coordinates

    @property
    def size(self) -> int:
        """Number of features."""
        return int(np.prod(self.shape, dtype=np.int64))

    def unstacked(self, flat: Matrix) -> Matrix:
        """Shape ``(..., *shape)`` of shape ``(..., size)``."""
        return flat.reshape(*flat.shape[:-1], *self.shape)


class Opened(NamedTuple):
    """A collection, not read yet, and what one row of it looks like."""

    source: Source
    features: Features
    sample_dim: str
    labels: xr.Coordinates
    """Labels of the rows, if there are some."""


def open_data(
    data: Any,
    options: Mapping[str, Any],
    *,
    name: str = "X",
    dim: str | None = None,
    axes: tuple[str, ...] = (),
) -> Opened:
    """A collection opened, with the names and labels of its axes.

    Where the options name no dimension of samples it is the one beside `axes`, or else `dim`, if
    the data have such. Features come in the order of `axes` where they bear these names.

    Raises
    ------
    BigkdError
        As `bigkd.io.open_rows`.
    InputError
        If the elements are complex, or a name is one of those of results.
    """
    name = data.name if isinstance(data, Source) else name
    labelled = _labelled(data, options, name)
    if labelled is None:
        if options.get("dim") is not None and not isinstance(data, Source):
            raise InputError(
                f"dim={options['dim']!r} names a dimension, and {name} has none with names: its "
                f"first axis counts samples. Leave dim out, or pass an xarray.DataArray."
            )
        _refuse_complex(data, name)
        source = open_source(data, options, name=name)
        shape = source.row_shape
        features = Features(dims=_unnamed(len(shape)), shape=shape, coords=xr.Coordinates())
        return Opened(source, features, SAMPLE, _names(source))
    _refuse_complex(labelled, name)
    labelled = _named_by_text(labelled)
    asked = options.get("dim")
    dim = _likely_dim(labelled, dim, axes) if asked is None else str(asked)
    dim = _sample_dim(labelled, dim, name)
    ordered = _ordered(labelled, dim, axes)
    path = _stored(data, labelled) if ordered.dims == labelled.dims else None
    own, rows = (ordered, dim) if path is None else (path, None)
    source = open_source(own, {**options, "dim": rows}, name=name)
    dims = tuple(str(other) for other in ordered.dims if other != dim)
    coords = _coords(labelled, lambda part: bool(part.dims) and dim not in part.dims)
    features = Features(dims=dims, shape=source.row_shape, coords=coords)
    labels = _coords(labelled, lambda part: part.dims == (dim,) and part.name in labelled.xindexes)
    _refuse_names((dim, *labels), _OF_ROWS, name)
    _refuse_names((*dims, *coords), _OF_FEATURES, name)
    return Opened(source, features, dim, labels)


def feature_weights(weights: Any, features: Features) -> Matrix | None:
    """Weight of each feature, shape ``(size,)``, finite and not negative; None if all count alike.

    Raises
    ------
    InputError
        If `weights` is none of None, ``"coslat"`` and an array, or weights are negative, not finite
        or all zero.
    ShapeError
        If the array has other axes than a row.
    """
    if weights is None:
        return None
    if isinstance(weights, str):
        found = _cosines(weights, features)
    elif isinstance(weights, xr.DataArray):
        found = _numbers(_along(weights, features), "weights")
    elif is_array(weights) or isinstance(weights, da.Array):
        found = weights.compute() if isinstance(weights, da.Array) else weights
        found = _numbers(to_host(found), "weights")
        if found.shape != features.shape:
            raise ShapeError(
                f"weights must have one number for each feature, shape {features.shape}; got "
                f"shape {found.shape}."
            )
    else:
        raise InputError(f"weights must be None, 'coslat' or an array; got {weights!r}.")
    found = np.where(np.isnan(found), 0.0, found)
    bad = int(np.sum(~(np.isfinite(found) & (found >= 0.0))))
    if bad or not found.any():
        raise InputError(
            f"weights must be finite, not negative and not all zero; {bad} of {found.size} are "
            f"not. Use 0 or NaN for features that are to be left out."
        )
    return found.reshape(-1)


def _refuse_complex(data: Any, name: str) -> None:
    dtype = str(getattr(data, "dtype", ""))
    if "complex" in dtype:
        raise InputError(
            f"{name} has elements of type {dtype}; expected real numbers. Pass real and imaginary "
            f"parts as features of their own."
        )


def _refuse_names(given: tuple[Any, ...], taken: frozenset[str], name: str) -> None:
    bad = next((key for key in given if key in taken), None)
    if bad is not None:
        raise InputError(
            f"{name} has a dimension or coordinate called {bad!r}, as something in the result is; "
            f"rename it first, as {name}.rename({{{bad!r}: 'my_{bad}'}})."
        )


def _numbers(found: Any, name: str) -> Matrix:
    if found.dtype.kind not in "fiub":
        raise InputError(f"{name} must be real numbers; got {found.dtype}.")
    return np.asarray(found, dtype=np.float64)


def _names(source: Source) -> xr.Coordinates:
    labels = getattr(source, "labels", None)
    return xr.Coordinates({} if labels is None else {SAMPLE: np.asarray(labels)})


def _unnamed(n_axes: int) -> tuple[str, ...]:
    """What the axes of a row are called where they have no names."""
    return ("feature",) if n_axes == 1 else tuple(f"feature_{at}" for at in range(n_axes))


def _named_by_text(labelled: xr.DataArray) -> xr.DataArray:
    odd = [key for key in (*labelled.dims, *labelled.coords) if not isinstance(key, str)]
    return labelled.rename({key: str(key) for key in odd}) if odd else labelled


def _ordered(labelled: xr.DataArray, dim: str, axes: tuple[str, ...]) -> xr.DataArray:
    """Rows first, then their axes in the order of `axes` where they are these."""
    own = [str(other) for other in labelled.dims if other != dim]
    own = list(axes) if set(axes) == set(own) else own
    return labelled.transpose(dim, *own, missing_dims="ignore")


def _coords(labelled: xr.DataArray, wanted: Callable[[xr.DataArray], bool]) -> xr.Coordinates:
    """Those of the coordinates that are wanted, in memory, with their indexes."""
    found = labelled.coords.to_dataset()
    others = [key for key, part in found.coords.items() if not wanted(part)]
    return found.drop_vars(others).compute().drop_encoding().coords


def _labelled(data: Any, options: Mapping[str, Any], name: str) -> xr.DataArray | None:
    if isinstance(data, xr.Dataset) and len(data.data_vars) > 1:
        dims = {frozenset(part.dims) for part in data.data_vars.values()}
        if len(dims) > 1:
            raise InputError(
                f"the variables of {name} must share their dimensions; got "
                f"{', '.join(f'{key} {part.dims}' for key, part in data.data_vars.items())}. "
                f"Choose some, as dataset[['u', 'v']]."
            )
        stacked = data.to_dataarray("variable")
        return stacked.transpose(..., "variable")
    if isinstance(data, xr.Dataset) and data.data_vars:
        return next(iter(data.data_vars.values()))
    if isinstance(data, xr.DataArray):
        return data
    if isinstance(data, str | Path):
        return open_labelled(data, name=name, missing=options.get("missing", "raise"))
    return None


def _stored(data: Any, labelled: xr.DataArray) -> Path | None:
    """The array itself where it lies on this machine, so that tasks read it without Dask.

    None where what is stored is not the numbers themselves, or there are several arrays.
    """
    if not isinstance(data, str | Path) or labelled.name is None or _encoded(labelled):
        return None
    if Path(data).name == labelled.name and not (Path(data) / str(labelled.name)).exists():
        return Path(data)
    inner = Path(data) / str(labelled.name)
    return inner if inner.exists() else None


def _encoded(array: xr.DataArray) -> bool:
    """Whether xarray makes other numbers of what is stored, or NaN of some."""
    encoding = array.encoding
    fill = encoding.get("_FillValue")
    masked = fill is not None and not np.isnan(fill)
    other = encoding.get("dtype", array.dtype) != array.dtype
    return bool(masked or other or any(key in encoding for key in _ENCODED))


def _likely_dim(array: xr.DataArray, dim: str | None, axes: tuple[str, ...]) -> str | None:
    others = [str(other) for other in array.dims if other not in axes]
    if axes and len(others) == 1 and array.ndim == len(axes) + 1:
        return others[0]
    return dim if dim in array.dims else None


def _sample_dim(array: xr.DataArray, dim: str | None, name: str) -> str:
    if dim is None:
        return str(array.dims[0]) if array.dims and SAMPLE not in array.dims else SAMPLE
    if dim not in array.dims:
        raise InputError(f"dim={dim!r} is not a dimension of {name}, which has {array.dims}.")
    return dim


def _cosines(weights: str, features: Features) -> Matrix:
    if weights != "coslat":
        raise InputError(f"weights must be None, 'coslat' or an array; got {weights!r}.")
    name = next((key for key in LATITUDES if key in features.coords), None)
    if name is None:
        raise InputError(
            f"weights='coslat' needs a coordinate called lat or latitude along dimensions of the "
            f"features; these have {', '.join(features.dims)}. Rename it, or pass an array."
        )
    axes = dict(zip(features.dims, features.shape, strict=True))
    degrees = _numbers(features.coords[name].variable.set_dims(axes).values, name)
    if np.any(np.abs(degrees) > 90.0):
        raise InputError(
            f"weights='coslat' needs latitudes in degrees; {name!r} reaches "
            f"{np.nanmax(np.abs(degrees)):g}."
        )
    return np.clip(np.cos(np.deg2rad(degrees)), 0.0, None)


def _along(weights: xr.DataArray, features: Features) -> Any:
    """Labelled weights on the axes of a row, which they may have fewer of."""
    odd = [dim for dim in weights.dims if dim not in features.dims]
    if odd:
        raise InputError(
            f"weights has the dimension {odd[0]!r}; the features have {', '.join(features.dims)}."
        )
    like = xr.DataArray(
        np.broadcast_to(0.0, features.shape),
        dims=features.dims,
        coords=features.coords,
    )
    try:
        exact = xr.align(like, weights, join="exact")[1]
    except ValueError as error:
        raise InputError(
            f"weights has other coordinates than the features ({error}); bring them to the grid "
            f"of the data, as weights.interp(...), or drop them with drop_vars."
        ) from error
    return exact.broadcast_like(like).transpose(*features.dims).values


def require_features(features: Features, component: xr.DataArray) -> None:
    """Refuse rows whose features are not those of a component."""
    if features.shape != component.shape:
        raise ShapeError(
            f"X has features of shape {features.shape} ({', '.join(features.dims)}) and the fit "
            f"{component.shape} ({', '.join(map(str, component.dims))}); pass rows with the "
            f"features that it was made from."
        )
    own, unnamed = tuple(map(str, component.dims)), _unnamed(component.ndim)
    if features.dims != own and unnamed not in (features.dims, own):
        raise InputError(
            f"X has features over ({', '.join(features.dims)}) and the fit over "
            f"({', '.join(own)}); rename the dimensions of X, as X.rename(...), or pass X.values, "
            f"rows first, if they are the same."
        )
    for dim in own:
        if dim not in features.coords or dim not in component.coords:
            continue
        if not _same(features.coords[dim].values, component[dim].values):
            raise InputError(
                f"X has other coordinates along {dim!r} than the fit; bring it to its grid, as "
                f"X.interp(...), or drop them with drop_vars({dim!r})."
            )


def _same(one: Any, other: Any) -> bool:
    if one.dtype.kind == "f" and other.dtype.kind == "f":
        return bool(np.allclose(one, other, rtol=1e-6, atol=0.0))
    return bool(np.array_equal(one, other))
