"""The two sides of a shape: turning them round, and doing without."""

import xarray as xr

from bigkd import schema
from bigkd.errors import InputError
from bigkd.shapes.results import check_shape, outer_products


def reverse(shape: xr.Dataset) -> xr.Dataset:
    """The same shape run through the other way, or seen from the other side.

    Vectors of a current change their sign, and kappa with it. A varifold has no orientation and
    comes back as it is. A set of points has nothing to reverse: InputError.
    """
    orientation = _oriented(shape, "reversed")
    if orientation == "varifold":
        return shape
    values = {"vector": -shape["vector"].values}
    if "corner" in shape:
        values["corner"] = shape["corner"].values[:, ::-1]
    return shape.assign(schema.variables(schema.SHAPE, values))


def varifold(shape: xr.Dataset) -> xr.Dataset:
    """The same shape without its orientation.

    The vectors U become v(U), of length 1, with <v(U), v(V)> = <U, V>^2: the outer product of U,
    its d (d + 1) / 2 elements on and above the diagonal, those above times sqrt(2). So neither the
    direction of a curve nor the side of a surface matters, and parts that face opposite ways do
    not cancel, as they do in currents when the kernel is wide.
    """
    if _oriented(shape, "a varifold") == "varifold":
        return shape
    values = {"vector": outer_products(shape["vector"].values)}
    rest = shape.drop_vars("vector")
    return rest.assign(schema.variables(schema.SHAPE, values)).assign_attrs(orientation="varifold")


def _oriented(shape: xr.Dataset, done: str) -> str:
    orientation = str(check_shape(shape).attrs["orientation"])
    if orientation == "none":
        raise InputError(f"a set of points has no directions and cannot be {done}.")
    return orientation
