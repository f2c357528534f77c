"""What the axes of a datum are: a grid of positions, and the values at each of its points."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from bigkd.engine import open_source
from bigkd.errors import DataError, InputError, ShapeError
from bigkd.io import Source
from bigkd.linalg import Matrix

VALUE_DIMS = ("channel", "variable", "band")
"""Names of an axis of values, where `value_dim` does not name another."""

IMAGE_DIMS = ("y", "x", "channel")
"""The axes of a datum of three axes without names."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The grid of a datum, and how many values there are at each point.

    Attributes
    ----------
    dims
        Names of the axes of the grid, in order.
    labels
        Coordinates along each axis as the user knows them; None where there are none.
    shape
        Points along each axis.
    value_dim
        Name of the axis of values, the last; None where each point has one value.
    n_values
        Values at a point: colours, variables.
    values
        What they are called, in order; None where they have no names.
    """

    dims: tuple[str, ...]
    labels: tuple[Any, ...]
    shape: tuple[int, ...]
    value_dim: str | None
    n_values: int
    values: Any = None

    @property
    def n_points(self) -> int:
        """Points of the grid."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def volume(self) -> float:
        """Volume of the domain: [0, 1] for series, a square or cube of side 2 otherwise."""
        return float(_ends(self)[1] - _ends(self)[0]) ** len(self.shape)

    @property
    def axes(self) -> tuple[Matrix, ...]:
        """Positions along each axis, from one end of the domain to the other."""
        return tuple(
            _rescaled(None if label is None else _numbers(label), n, *_ends(self))
            for label, n in zip(self.labels, self.shape, strict=True)
        )

    @property
    def shares(self) -> tuple[Matrix, ...]:
        """Positions along each axis, from 0 to 1."""
        low, high = _ends(self)
        return tuple((axis - low) / (high - low) for axis in self.axes)

    def positions(self) -> Matrix:
        """Positions of all points, in order, shape ``(n_points, number of axes)``."""
        return product_grid(self.axes)

    def coords(self) -> dict[str, Any]:
        """Labels of the axes that have some, as coordinates of a Dataset."""
        pairs = zip(self.dims, self.labels, strict=True)
        return {dim: label for dim, label in pairs if label is not None}


class Opened(NamedTuple):
    """A collection, not read yet, and what one datum of it looks like."""

    source: Source
    layout: Layout
    names: Any
    """Labels of the data along their own axis; None where there are none."""


def product_grid(axes: Sequence[Matrix]) -> Matrix:
    """Every combination of the numbers along each axis, the last running fastest."""
    grids = np.meshgrid(*axes, indexing="ij")
    return np.stack([grid.ravel() for grid in grids], axis=-1)


def open_datum(
    data: Any,
    *,
    name: str,
    dims: Sequence[str] | None,
    value_dim: str | None,
    like: Layout | None = None,
) -> Opened:
    """One datum as a collection of one; a path is that of a picture."""
    options: dict[str, Any] = {}
    data = _one_array(data, value_dim)
    if isinstance(data, xr.DataArray):
        options = {"dim": "datum" if "datum" not in data.dims else "datum_"}
        data = data.expand_dims(options["dim"])
    elif hasattr(data, "shape") and hasattr(data, "dtype"):
        data = data[None, ...]
    elif not isinstance(data, str | Path):
        raise InputError(
            f"{name} must be an array or an xarray.DataArray of one image, series or field, or the "
            f"path of a picture; got {type(data).__name__}."
        )
    opened = open_data(data, options, name=name, dims=dims, value_dim=value_dim, like=like)
    if opened.source.n_rows != 1:
        raise InputError(
            f"{name} must be one image, series or field; {data} holds {opened.source.n_rows}."
        )
    return opened


def open_data(
    data: Any,
    options: Mapping[str, Any],
    *,
    name: str,
    dims: Sequence[str] | None,
    value_dim: str | None,
    like: Layout | None = None,
) -> Opened:
    """A collection opened; `dims` name the axes of one datum where the data do not.

    Labelled axes come in the order of those of `like`, if they are the same.

    Raises
    ------
    InputError
        If the axes cannot be told, or labels along one are not in order.
    """
    data = _one_array(data, value_dim)
    if isinstance(data, xr.DataArray):
        return _labelled(data, options, name, value_dim, like)
    source = open_source(data, options, name=name)
    named = _named(source.row_shape, name, dims, value_dim)
    labels = getattr(source, "labels", None)
    names = None if labels is None else np.asarray(labels)
    return Opened(source, _layout(named, source.row_shape, {}, value_dim, name), names)


def require_same_grid(one: Layout, other: Layout, names: Sequence[str]) -> None:
    """Refuse two collections whose data do not live on one grid."""
    if one.shape != other.shape:
        raise ShapeError(
            f"{names[0]} has a grid of {_size(one)} and {names[1]} one of {_size(other)}; they "
            f"are compared on one grid. Resample one of them, as with xarray's interp, "
            f"skimage.transform.resize, or image_size=(height, width), on the command line "
            f"--image-size HEIGHT,WIDTH, for pictures in files."
        )
    if one.n_values != other.n_values:
        raise ShapeError(
            f"{names[0]} has {one.n_values} values at each point and {names[1]} "
            f"{other.n_values}; expected the same channels, or variables, in both."
        )
    mine, yours = one.values, other.values
    if mine is not None and yours is not None and not np.array_equal(mine, yours):
        raise InputError(
            f"{names[0]} has the values {', '.join(map(str, mine))} and {names[1]} "
            f"{', '.join(map(str, yours))}; expected the same in the same order, as "
            f"dataset[['t', 'p']] has them."
        )
    for dim, mine, yours in zip(one.dims, one.labels, other.labels, strict=True):
        if mine is not None and yours is not None and not same_labels(mine, yours):
            raise InputError(
                f"{names[0]} and {names[1]} have other coordinates along {dim!r}; they are "
                f"compared on one grid. Use {names[1]}.interp_like({names[0]}), or drop them "
                f"with drop_vars({dim!r})."
            )


def same_labels(one: Any, other: Any) -> bool:
    """Whether coordinates are the same, up to rounding where they are floats.

    That of the coarser type, and a millionth of the least step; never a hundredth of it.
    """
    if one.shape != other.shape or one.dtype.kind != "f" or other.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    eps = max(float(np.finfo(part.dtype).eps) for part in (one, other))
    one, other = one.astype(np.float64), other.astype(np.float64)
    step = float(np.abs(np.diff(one)).min()) if one.size > 1 else 1.0
    rounding = max(1e-6 * step, eps * float(np.abs(one).max()))
    return bool(np.abs(one - other).max() <= min(rounding, 1e-2 * step))


def _size(layout: Layout) -> str:
    return " x ".join(map(str, layout.shape))


def _ends(layout: Layout) -> tuple[float, float]:
    return (0.0, 1.0) if len(layout.shape) == 1 else (-1.0, 1.0)


def _rescaled(label: Matrix | None, n: int, low: float, high: float) -> Matrix:
    """Positions along an axis: evenly spread, or as far apart as the labels are."""
    if n == 1:
        return np.asarray([(low + high) / 2])
    if label is None:
        return np.linspace(low, high, n)
    share = (label - label[0]) / (label[-1] - label[0])
    return np.asarray(low + (high - low) * share)


def _one_array(data: Any, value_dim: str | None) -> Any:
    """The variables of a Dataset side by side, as values."""
    if isinstance(data, xr.Dataset) and len(data.data_vars) > 1:
        grids = {str(name): set(part.dims) for name, part in data.data_vars.items()}
        odd = [name for name, own in grids.items() if own != set(data.dims)]
        if odd:
            raise InputError(
                f"the variables of a Dataset must share their dimensions; {odd[0]!r} has "
                f"{data[odd[0]].dims}. Choose some, as dataset[['t', 'p']]."
            )
        stacked = data.to_dataarray(value_dim or "variable")
        return stacked.transpose(..., stacked.dims[0])
    if isinstance(data, xr.Dataset) and data.data_vars:
        return next(iter(data.data_vars.values()))
    return data


def _counted(array: xr.DataArray, value_dim: str | None) -> Hashable:
    """The axis that counts data: called ``sample``, or the first that does not hold values."""
    if "sample" in array.dims:
        return "sample"
    others = [dim for dim in array.dims if dim not in (value_dim, *VALUE_DIMS)]
    return others[0] if others else array.dims[0]


def _labelled(
    array: xr.DataArray,
    options: Mapping[str, Any],
    name: str,
    value_dim: str | None,
    like: Layout | None,
) -> Opened:
    sample = options.get("dim")
    if sample is None:
        sample = _counted(array, value_dim)
    if sample not in array.dims:
        raise InputError(f"dim={sample!r} is not a dimension of {name}, which has {array.dims}.")
    own = [dim for dim in array.dims if dim != sample]
    values = [dim for dim in own if dim == value_dim or (not value_dim and dim in VALUE_DIMS)]
    if value_dim and not values:
        raise InputError(f"value_dim={value_dim!r} is not a dimension of {name}: {array.dims}.")
    grid = [dim for dim in own if dim not in values]
    if like is not None and set(map(str, grid)) == set(like.dims):
        grid = sorted(grid, key=lambda dim: like.dims.index(str(dim)))
    order = grid + values
    array = array.transpose(sample, *order)
    source = open_source(array, {**options, "dim": sample}, name=name)
    labels = {str(dim): array[dim].values for dim in order if dim in array.coords}
    named = tuple(map(str, order))
    value = str(values[0]) if values else None
    names = array[sample].values if sample in array.coords else None
    return Opened(source, _layout(named, source.row_shape, labels, value, name), names)


def _named(
    row_shape: tuple[int, ...], name: str, dims: Sequence[str] | None, value_dim: str | None
) -> tuple[str, ...]:
    """Names of the axes of a datum without labels."""
    if dims is None and len(row_shape) == 3:
        return (*IMAGE_DIMS[:2], value_dim or IMAGE_DIMS[2])
    if dims is None and len(row_shape) == 1:
        return ("time",)
    if dims is None:
        raise InputError(
            f"{name} has data of shape {row_shape}; pass dims, such as dims=('y', 'x') for images "
            f"of one channel, ('time', 'variable') for series, ('y', 'x', 'channel') for images."
        )
    if isinstance(dims, str) or len(set(dims)) != len(row_shape) or len(dims) != len(row_shape):
        raise InputError(
            f"dims must name each of the {len(row_shape)} axes of a datum once, and not the one "
            f"that counts data; {name} has data of shape {row_shape}, dims is {dims!r}."
        )
    return tuple(map(str, dims))


def _layout(
    named: tuple[str, ...],
    row_shape: tuple[int, ...],
    labels: Mapping[str, Any],
    value_dim: str | None,
    name: str,
) -> Layout:
    values = named[-1] if named[-1] in ((value_dim,) if value_dim else VALUE_DIMS) else None
    grid = named if values is None else named[:-1]
    if not grid:
        raise InputError(f"{name} has no axis but {values!r}: nothing to deform. dims={named}.")
    misplaced = [dim for dim in grid if dim in VALUE_DIMS and dim != values]
    if misplaced:
        raise InputError(
            f"the axis of values must come last; {name} has {misplaced[0]!r} among the axes of "
            f"its grid, {named}. Transpose the data, or pass value_dim."
        )
    return Layout(
        dims=grid,
        labels=tuple(_label(labels.get(dim), dim, name) for dim in grid),
        shape=row_shape[: len(grid)],
        value_dim=values,
        n_values=1 if values is None else row_shape[-1],
        values=None if values is None else labels.get(values),
    )


def _numbers(label: Any) -> Matrix:
    """Coordinates as numbers: times are counted from the first."""
    if label.dtype.kind in "mM":
        label = (label - label[0]).astype(np.int64)
    return np.asarray(label.astype(np.float64))


def _label(values: Any, dim: str, name: str) -> Any:
    """Coordinates along an axis, which run one way; None where they are text."""
    if values is None or values.dtype.kind not in "iufmM":
        return None
    steps = np.diff(_numbers(values))
    if not (np.all(steps > 0) or np.all(steps < 0)):
        raise DataError(
            f"{name}: its coordinates along {dim!r} do not run one way; expected increasing or "
            f"decreasing numbers. Sort them with sortby({dim!r}), or drop_vars({dim!r})."
        )
    return values
