"""Shapes cut up until every point is near the centre of its piece."""

import json
import math

import numpy as np
import xarray as xr
from scipy import optimize

from bigkd.errors import InputError
from bigkd.kernels import Gaussian, Kernel, RadialKernel
from bigkd.shapes.elements import halved
from bigkd.shapes.promise import errors_per_weight, radial
from bigkd.shapes.results import check_shape, elements_of, origin, shape_of

MAX_ELEMENTS = 10_000_000


def refine(
    shape: xr.Dataset, *, max_distance: float, max_elements: int = MAX_ELEMENTS
) -> xr.Dataset:
    """The same shape in elements of which no point is further than `max_distance` from the centre.

    Elements that are too large are halved across their longest edge, as often as needed. Directions
    and the total measure stay as they are: pieces of a flat element are flat.

    Raises
    ------
    InputError
        If `shape` has no elements, being of points or sampled, or `max_distance` is not positive.
    MemoryPlanError
        If there would be more than `max_elements`.

    Examples
    --------
    >>> from bigkd import shapes
    >>> line = shapes.polyline([[0.0, 0.0], [4.0, 0.0]])
    >>> refine(line, max_distance=0.5)["point"].values[:, 0].tolist()
    [0.5, 1.5, 2.5, 3.5]
    """
    elements = elements_of(shape, "refined")
    if not (math.isfinite(max_distance) and max_distance > 0):
        raise InputError(f"max_distance must be finite and positive; got {max_distance!r}.")
    pieces = halved(elements, max_distance=max_distance, max_elements=max_elements)
    return shape_of(pieces, {**origin(shape), "max_distance": float(max_distance)})


def grid(
    shape: xr.Dataset, *, kernel: Kernel, eps: float, max_elements: int = MAX_ELEMENTS
) -> xr.Dataset:
    r"""The same shape in elements that are small for `kernel` (the paper's Section 2.1).

    No point of the shape is further from its element's than where the kernel has fallen to
    :math:`\exp(-\epsilon^2)`: :math:`\epsilon\sqrt h = \epsilon\sigma\sqrt 2` for the Gaussian.

    Parameters
    ----------
    shape
        A curve or a surface.
    kernel
        A kernel of the distance.
    eps
        Positive. At most 1/8 keeps the squared Gaussian distance of two such shapes within
        ``eps * W**2``, W the larger total measure.
    max_elements
        Refuse to make more.

    Returns
    -------
    xarray.Dataset
        A shape. Its attribute ``kappa_error`` bounds, per unit of both total measures, what
        putting its points in place of the shape P changes in kappa(P, Q), for any Q:
        ``eps ** 2`` at most for the Gaussian. See `discretisation_error`.

    Raises
    ------
    InputError
        If `kernel` is not one of the distance, `eps` not positive, or `shape` is of points.
    MemoryPlanError
        If there would be more than `max_elements`.
    """
    radial_kernel = radial(kernel, check_shape(shape).sizes["axis"])
    if not (math.isfinite(eps) and eps > 0):
        raise InputError(f"eps must be finite and positive; got {eps!r}.")
    pieces = refine(shape, max_distance=_distance(radial_kernel, eps), max_elements=max_elements)
    kappa_error, norm_error = errors_per_weight(pieces, kernel)
    return pieces.assign_attrs(
        eps=float(eps),
        kernel=kernel.name,
        kernel_parameters=json.dumps(kernel.parameters),
        kappa_error=kappa_error,
        norm_error=norm_error,
    )


def _distance(kernel: RadialKernel, eps: float) -> float:
    """Where `kernel` has fallen to exp(-eps^2)."""
    if isinstance(kernel, Gaussian):
        return eps * kernel.sigma * math.sqrt(2.0)

    def excess(distance: float) -> float:
        value = kernel.with_length(1.0).of_squared(np.asarray([distance * distance]))
        return float(value[0]) - math.exp(-eps * eps)

    far = 1.0
    while excess(far) > 0:
        far *= 2.0
    return kernel.length * float(optimize.brentq(excess, 0.0, far, xtol=1e-14))
