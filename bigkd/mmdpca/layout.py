"""What a row is made of: the axes of its features, their labels, and how much each counts."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from bigkd.backends import is_array, to_host
from bigkd.engine import open_source
from bigkd.errors import InputError, ShapeError
from bigkd.io import Source, open_labelled
from bigkd.linalg import Matrix

LATITUDES = ("lat", "latitude")

SAMPLE = "sample"
"""What the axis of rows is called where it has no name."""


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
    coords: dict[str, Any]

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
    labels: Any
    """Labels of the rows; None where there are none."""


def open_data(data: Any, options: Mapping[str, Any], *, name: str = "X") -> Opened:
    """A collection opened, with the names and labels of its axes.

    Raises
    ------
    BigkdError
        As `bigkd.io.open_rows`.
    InputError
        If the elements are complex.
    """
    labelled = _labelled(data, options, name)
    if labelled is None:
        _refuse_complex(data, name)
        source = open_source(data, options, name=name)
        shape = source.row_shape
        dims = (
            ("feature",) if len(shape) == 1 else tuple(f"feature_{at}" for at in range(len(shape)))
        )
        return Opened(source, Features(dims=dims, shape=shape, coords={}), SAMPLE, _names(source))
    _refuse_complex(labelled, name)
    dim = _sample_dim(labelled, options.get("dim"), name)
    path = _stored(data, labelled, dim)
    own, rows = (labelled, dim) if path is None else (path, None)
    source = open_source(own, {**options, "dim": rows}, name=name)
    axes = [other for other in labelled.dims if other != dim]
    coords = {
        str(key): (tuple(map(str, part.dims)), part.values, part.attrs)
        for key, part in labelled.coords.items()
        if part.dims and set(part.dims) <= set(axes)
    }
    features = Features(dims=tuple(map(str, axes)), shape=source.row_shape, coords=coords)
    labels = labelled[dim].values if dim in labelled.coords else None
    return Opened(source, features, str(dim), labels)


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
        found = _along(weights, features)
    elif is_array(weights):
        found = to_host(weights).astype(np.float64)
        if found.shape != features.shape:
            raise ShapeError(
                f"weights must have one number for each feature, shape {features.shape}; got "
                f"shape {found.shape}."
            )
    else:
        raise InputError(f"weights must be None, 'coslat' or an array; got {weights!r}.")
    bad = int(np.sum(~(np.isfinite(found) & (found >= 0.0))))
    if bad or not found.any():
        raise InputError(
            f"weights must be finite, not negative and not all zero; {bad} of {found.size} are "
            f"not. Use 0 for features that are to be left out."
        )
    return found.reshape(-1)


def _refuse_complex(data: Any, name: str) -> None:
    dtype = str(getattr(data, "dtype", ""))
    if "complex" in dtype:
        raise InputError(
            f"{name} has elements of type {dtype}; expected real numbers. Pass real and imaginary "
            f"parts as features of their own."
        )


def _names(source: Source) -> Any:
    labels = getattr(source, "labels", None)
    return None if labels is None else np.asarray(labels)


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


def _stored(data: Any, labelled: xr.DataArray, dim: Hashable) -> Path | None:
    """The array itself where it lies on this machine, so that tasks read it without Dask."""
    if not isinstance(data, str | Path) or labelled.dims[0] != dim:
        return None
    if Path(data).name == labelled.name and not (Path(data) / str(labelled.name)).exists():
        return Path(data)
    inner = Path(data) / str(labelled.name)
    return inner if inner.exists() else None


def _sample_dim(array: xr.DataArray, dim: Hashable | None, name: str) -> Hashable:
    if dim is None:
        return SAMPLE if SAMPLE in array.dims else array.dims[0] if array.dims else SAMPLE
    if dim not in array.dims:
        raise InputError(f"dim={dim!r} is not a dimension of {name}, which has {array.dims}.")
    return dim


def _cosines(weights: str, features: Features) -> Matrix:
    found = [at for at, dim in enumerate(features.dims) if dim in LATITUDES]
    if weights != "coslat" or not found or features.dims[found[0]] not in features.coords:
        raise InputError(
            f"weights must be None, an array, or 'coslat' for data with a coordinate called lat or "
            f"latitude; got {weights!r} for features {', '.join(features.dims)}."
        )
    dim = features.dims[found[0]]
    degrees = np.asarray(features.coords[dim][1], dtype=np.float64)
    if np.abs(degrees).max() > 90.0:
        raise InputError(
            f"weights='coslat' needs latitudes in degrees; {dim!r} reaches "
            f"{np.abs(degrees).max():g}."
        )
    shape = [-1 if at == found[0] else 1 for at in range(len(features.shape))]
    cosines = np.clip(np.cos(np.deg2rad(degrees)), 0.0, None).reshape(shape)
    return np.asarray(np.broadcast_to(cosines, features.shape))


def _along(weights: xr.DataArray, features: Features) -> Matrix:
    """Labelled weights on the axes of a row, which they may have fewer of."""
    odd = [dim for dim in weights.dims if dim not in features.dims]
    if odd:
        raise InputError(
            f"weights has the dimension {odd[0]!r}; the features have {', '.join(features.dims)}."
        )
    like = xr.DataArray(
        np.broadcast_to(0.0, features.shape),
        dims=features.dims,
        coords={key: part for key, part in features.coords.items() if key in features.dims},
    )
    try:
        exact = xr.align(like, weights, join="exact")[1]
    except ValueError as error:
        raise InputError(
            f"weights has other coordinates than the features ({error}); bring them to the grid "
            f"of the data, as weights.interp(...), or drop them with drop_vars."
        ) from error
    return np.asarray(exact.broadcast_like(like).transpose(*features.dims).values, dtype=np.float64)


def require_features(features: Features, component: xr.DataArray) -> None:
    """Refuse rows whose features are not those of a component."""
    if features.shape != component.shape:
        raise ShapeError(
            f"X has features of shape {features.shape} ({', '.join(features.dims)}) and the fit "
            f"{component.shape} ({', '.join(map(str, component.dims))}); pass rows with the "
            f"features that it was made from."
        )
    for dim in component.dims:
        mine = features.coords.get(str(dim))
        if mine is None or dim not in component.coords:
            continue
        if not _same(np.asarray(mine[1]), component[dim].values):
            raise InputError(
                f"X has other coordinates along {dim!r} than the fit; bring it to its grid, as "
                f"X.interp(...), or drop them with drop_vars({dim!r})."
            )


def _same(one: Any, other: Any) -> bool:
    if one.dtype.kind == "f" and other.dtype.kind == "f":
        return bool(np.allclose(one, other, rtol=1e-6, atol=0.0))
    return bool(np.array_equal(one, other))
