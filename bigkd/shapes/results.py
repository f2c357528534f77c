"""The Dataset of a shape."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import xarray as xr

from bigkd import schema
from bigkd.errors import InputError
from bigkd.shapes.elements import Elements, Floats, centres, mean_square_distance, reaches

Orientation = Literal["current", "varifold"]

KIND = "shape"
"""The attribute ``bigkd_kind`` of every shape."""


def check_orientation(orientation: object) -> None:
    """Refuse what is not an orientation."""
    if orientation not in get_args(Orientation):
        raise InputError(f'orientation must be "current" or "varifold"; got {orientation!r}.')


def check_shape(shape: object, name: str = "shape") -> xr.Dataset:
    """Refuse what the functions of `bigkd.shapes` did not make."""
    if not isinstance(shape, xr.Dataset) or shape.attrs.get("bigkd_kind") != KIND:
        raise InputError(
            f"{name} must be a shape, as bigkd.shapes.polyline, triangle_mesh, read_mesh or "
            f"point_set make it; got {type(shape).__name__}."
        )
    return shape


def elements_of(shape: xr.Dataset, done: str) -> Elements:
    """The segments or triangles of a shape that was made of some.

    Raises
    ------
    InputError
        If `shape` is of points only; `done` is what would have been done to its elements.
    """
    check_shape(shape)
    if "corner" not in shape:
        raise InputError(
            f"a shape of points alone cannot be {done}: it has no segments or triangles. Begin "
            f"with what polyline, triangle_mesh or read_mesh returned."
        )
    return Elements(shape["corner"].values, shape["weight"].values, shape["vector"].values)


def shape_of(elements: Elements, attrs: Mapping[str, Any]) -> xr.Dataset:
    """Shape with a point at the centre of each of `elements`."""
    values = {
        "point": centres(elements.corner),
        "weight": elements.measure,
        "vector": elements.vector,
        "corner": elements.corner,
    }
    size = {
        "discretisation": "centres of the elements",
        "total_measure": float(elements.measure.sum()),
        "reach": float(reaches(elements.corner).max()),
        "mean_square_distance": mean_square_distance(elements.corner, elements.measure),
    }
    return schema.dataset(schema.SHAPE, values, attrs={"bigkd_kind": KIND, **attrs, **size})


def origin(shape: xr.Dataset) -> dict[str, Any]:
    """The attributes of `shape` that do not depend on how it was put into points."""
    kept = ("form", "orientation", "closed", "oriented", "n_dropped", "source")
    return {name: shape.attrs[name] for name in kept if name in shape.attrs}


def outer_products(unit: Floats) -> Floats:
    """Unit vectors v(u) with <v(a), v(b)> = <a, b>^2, shape ``(n, c (c + 1) / 2)``.

    They are the upper triangles of the outer products, what is off the diagonal times sqrt(2).
    """
    row, column = np.triu_indices(unit.shape[1])
    return np.where(row == column, 1.0, np.sqrt(2.0)) * unit[:, row] * unit[:, column]
