"""Curves and surfaces as weighted points with directions, for the kernel distance.

A shape is an `xarray.Dataset` whose attribute ``bigkd_kind`` is ``"shape"``: a ``point`` and a
``weight`` (length, area) for each element, and its ``vector``, a unit tangent or normal. With them
kappa(P, Q) is the inner product of two currents, and reversing an orientation flips its sign; or of
two varifolds, which have no orientation. Weights are lengths and areas, not shares: pass
``normalize=False`` where a shape's size is to count.

Make one with `polyline`, `triangle_mesh`, `read_mesh` or `point_set`. `grid` and `sample` choose
the points so that what putting points in place of the shape costs is known, and
`discretisation_error` says what it is.
"""

from bigkd.shapes.build import point_set, polyline, read_mesh, triangle_mesh
from bigkd.shapes.orientation import reverse, varifold
from bigkd.shapes.promise import discretisation_error
from bigkd.shapes.refine import grid, refine
from bigkd.shapes.sampling import sample

__all__ = [
    "discretisation_error",
    "grid",
    "point_set",
    "polyline",
    "read_mesh",
    "refine",
    "reverse",
    "sample",
    "triangle_mesh",
    "varifold",
]
