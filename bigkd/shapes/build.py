"""Shapes out of what a user has: vertices, faces, files, points."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from bigkd import schema
from bigkd.backends import is_array, to_host
from bigkd.errors import DataError, EmptyInputError, InputError, ShapeError
from bigkd.io.meshes import read_mesh as read_vertices_and_faces
from bigkd.shapes.elements import (
    Degenerate,
    Elements,
    Floats,
    Integers,
    segments,
    triangles,
    usable,
)
from bigkd.shapes.results import KIND, Orientation, check_orientation, outer_products, shape_of
from bigkd.shapes.topology import topology


def polyline(
    vertices: Any,
    *,
    closed: bool = False,
    orientation: Orientation = "current",
    degenerate: Degenerate = "raise",
) -> xr.Dataset:
    """Curve, or several, as the midpoints of its segments.

    Parameters
    ----------
    vertices
        Shape ``(n, d)``, in order along the curve, in any dimension; or a list of such arrays, a
        curve each. Arrays of NumPy, xarray, Dask or CuPy, or nested lists.
    closed
        Join the last vertex of each curve to its first, unless they are equal already.
    orientation
        ``"current"``: the vectors are tangents, and the direction of the curve matters.
        ``"varifold"``: they stand for lines without a direction; see `varifold`.
    degenerate
        What a segment of length 0 is: an error, or left out and counted.

    Returns
    -------
    xarray.Dataset
        ``point`` (midpoints), ``weight`` (lengths), ``vector`` and ``corner``, on the host, in
        float64. The attribute ``closed`` says whether every curve ends where it begins, and
        ``reach`` how far a point of the curve is from its midpoint at most.

    Raises
    ------
    ShapeError
        If a curve is not of shape ``(n, d)`` with 2 vertices at least, or widths differ.
    DataError
        If a vertex is not finite, or a segment has no length.

    Examples
    --------
    >>> square = polyline([[0, 0], [2, 0], [2, 2], [0, 2]], closed=True)
    >>> square["point"].values.tolist()
    [[1.0, 0.0], [2.0, 1.0], [1.0, 2.0], [0.0, 1.0]]
    >>> square["vector"].values.tolist()
    [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    """
    check_orientation(orientation)
    curves = [_curve(curve, at, closed) for at, curve in enumerate(_curves(vertices))]
    if not curves:
        raise EmptyInputError("vertices has no curve; pass an array or a list of arrays.")
    widths = {curve.shape[1] for curve in curves}
    if len(widths) > 1:
        raise ShapeError(f"curves must be in the same dimension; got {sorted(widths)}.")
    corner = np.concatenate([np.stack([curve[:-1], curve[1:]], axis=1) for curve in curves])
    return _shape(
        usable(segments(corner), degenerate, "segment"),
        orientation,
        form="curve",
        closed=int(all((curve[0] == curve[-1]).all() for curve in curves)),
        n_given=len(corner),
    )


def triangle_mesh(
    vertices: Any,
    faces: Any,
    *,
    orientation: Orientation = "current",
    degenerate: Degenerate = "raise",
) -> xr.Dataset:
    """Surface in three dimensions as the centroids of its triangles.

    Parameters
    ----------
    vertices
        Shape ``(n, 3)``.
    faces
        Shape ``(m, 3)``, integers: the corners of each triangle by their position in `vertices`,
        counterclockwise as seen from the side that the normal points to.
    orientation
        ``"current"``: the vectors are normals, and which side is outside matters. ``"varifold"``:
        they stand for planes without sides; see `varifold`.
    degenerate
        What a triangle of no area is: an error, or left out and counted.

    Returns
    -------
    xarray.Dataset
        As of `polyline`, with ``weight`` the areas. The attribute ``closed`` says whether every
        edge belongs to two triangles, and ``oriented`` whether no two run along an edge in the same
        direction, as neighbours on the same side do not. The area vectors of a surface that is
        both add up to zero. A surface that is not oriented makes little sense as a current.

    Raises
    ------
    ShapeError
        If the arrays are not of these shapes.
    InputError
        If `faces` are not integers, or one names a vertex that does not exist.
    DataError
        If a vertex is not finite, or a triangle has no area.

    Examples
    --------
    >>> one = triangle_mesh([[0, 0, 0], [3, 0, 0], [0, 3, 0]], [[0, 1, 2]])
    >>> one["point"].values.tolist(), one["weight"].values.tolist(), one["vector"].values.tolist()
    ([[1.0, 1.0, 0.0]], [4.5], [[0.0, 0.0, 1.0]])
    """
    check_orientation(orientation)
    places = _coordinates(vertices, "vertices")
    if places.shape[1] != 3:
        raise ShapeError(f"vertices of a surface must have shape (n, 3); got {places.shape}.")
    corners = _faces(faces, len(places))
    return _shape(
        usable(triangles(places[corners]), degenerate, "triangle"),
        orientation,
        form="surface",
        n_given=len(corners),
        **topology(places, corners)._asdict(),
    )


def read_mesh(
    path: str | Path,
    *,
    orientation: Orientation = "current",
    degenerate: Degenerate = "raise",
) -> xr.Dataset:
    """Surface in an OFF, OBJ, PLY or STL file, as `triangle_mesh` has it; polygons are cut up.

    Needs trimesh: ``pip install 'bigkd[meshes]'``.

    Raises
    ------
    StoreError
        If there is no such file.
    DataError
        If it cannot be read, has no faces, a triangle without area, or a vertex not finite.
    """
    surface = triangle_mesh(
        *read_vertices_and_faces(path), orientation=orientation, degenerate=degenerate
    )
    return surface.assign_attrs(source=Path(path).name)


def point_set(points: Any, *, weights: Any = None) -> xr.Dataset:
    """Points without directions as a shape, so that it may be used where shapes are.

    Parameters
    ----------
    points
        Shape ``(n, d)``.
    weights
        Shape ``(n,)``, of any sign; ones by default.

    Examples
    --------
    >>> point_set([[0.0, 1.0], [2.0, 3.0]])["weight"].values.tolist()
    [1.0, 1.0]
    """
    point = _coordinates(points, "points")
    weight = np.ones(len(point)) if weights is None else _floats(weights, "weights")
    if weight.shape != (len(point),):
        raise ShapeError(
            f"weights must have shape ({len(point)},), one for each point; got {weight.shape}."
        )
    if not np.isfinite(weight).all():
        raise DataError(f"weights[{int(np.isfinite(weight).argmin())}] is not finite.")
    attrs = {
        "bigkd_kind": KIND,
        "form": "points",
        "orientation": "none",
        "discretisation": "none",
        "total_measure": float(np.abs(weight).sum()),
    }
    return schema.dataset(schema.SHAPE, {"point": point, "weight": weight}, attrs=attrs)


def _shape(
    elements: Elements, orientation: Orientation, *, n_given: int, **attrs: object
) -> xr.Dataset:
    if orientation == "varifold":
        elements = elements._replace(vector=outer_products(elements.vector))
    dropped = n_given - elements.measure.size
    return shape_of(elements, {"orientation": orientation, **attrs, "n_dropped": dropped})


def _curves(vertices: Any) -> Sequence[Any]:
    """`vertices` as a list of curves."""
    several = isinstance(vertices, list | tuple) and all(_n_dims(item) > 1 for item in vertices)
    return vertices if several else [vertices]


def _n_dims(item: Any) -> int:
    try:
        return np.ndim(item)
    except ValueError:  # rows of different widths, about which `_host` will complain
        return 2


def _curve(vertices: Any, at: int, closed: bool) -> Floats:
    """One curve, with its first vertex at the end as well if it is to be closed."""
    curve = _coordinates(vertices, f"curve {at}")
    if len(curve) < 2:
        raise ShapeError(f"curve {at} must have 2 vertices or more; got {len(curve)}.")
    joined = not closed or bool((curve[0] == curve[-1]).all())
    return curve if joined else np.concatenate([curve, curve[:1]])


def _faces(faces: Any, n_vertices: int) -> Integers:
    given = _host(faces)
    if given.ndim != 2 or given.shape[1] != 3:
        raise ShapeError(
            f"faces must have shape (m, 3); got {given.shape}. Cut polygons into triangles first."
        )
    if given.size == 0:
        raise EmptyInputError("faces is empty; a surface needs a triangle.")
    if given.dtype.kind not in "iu":
        raise InputError(f"faces must be integers, positions of vertices; got {given.dtype}.")
    outside = ((given < 0) | (given >= n_vertices)).any(axis=1)
    if outside.any():
        bad = int(outside.argmax())
        raise InputError(
            f"faces[{bad}] is {given[bad].tolist()}, but there are {n_vertices} vertices, counted "
            f"from 0."
        )
    return given.astype(np.int64)


def _coordinates(values: Any, name: str) -> Floats:
    """Finite rows in float64."""
    rows = _floats(values, name)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ShapeError(f"{name} must have shape (n, d), a row for each; got {rows.shape}.")
    if len(rows) == 0:
        raise EmptyInputError(f"{name} is empty.")
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        bad = int(finite.argmin())
        raise DataError(f"{name} must be finite; row {bad} is {rows[bad].tolist()}.")
    return rows


def _floats(values: Any, name: str) -> Floats:
    given = _host(values)
    if given.dtype.kind not in "iuf":
        raise InputError(f"{name} must be real numbers; got {given.dtype}.")
    return given.astype(np.float64)


def _host(values: Any) -> np.ndarray[Any, Any]:
    """`values` as a NumPy array; what is lazy is computed."""
    direct = is_array(values) and hasattr(values, "__dlpack__")
    try:
        return to_host(values) if direct else np.asarray(values)
    except ValueError as error:
        raise ShapeError(f"rows must have the same width each; {error}.") from error
