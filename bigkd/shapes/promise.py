r"""What putting points in place of a shape changes, at most.

Let P be a shape of total measure W, P' its weighted points, and phi the feature map of the kernel.
Directions are the same in both, as elements are flat, and of length 1. With s the mean squared
distance of the points of P from those that stand for them:

- Any kernel k(r^2) of a distance r that is positive definite in every dimension is a mixture of
  Gaussians, so that 1 - k is concave in r^2, and by Jensen's inequality
  ||Phi(P) - Phi(P')|| <= W sqrt(2 (1 - k(s))).
- The slope of the Gaussian is exp(-1/2) / sigma at most, which is Lemma 2.2 of the paper with its
  0.858 / sqrt(h), so that kappa(P, Q) changes by no more than exp(-1/2) sqrt(s) / sigma for each
  unit of W_P W_Q.
- Its second derivatives are 1 / sigma^2 at most as a function, sqrt(3) / sigma^2 as a feature map.
  The points are the centres of their elements, hence first-order terms vanish, and these two errors
  are s / (2 sigma^2) and sqrt(3) s / (2 sigma^2): the smaller ones as soon as elements are small.

For n random points McDiarmid's inequality gives, with probability 1 - delta,
||Phi(P) - Phi(P')|| <= W (1 + sqrt(2 log(1 / delta))) / sqrt(n), for any kernel that is 1 at most
and in any dimension.
"""

import json
import math
from typing import NamedTuple

import numpy as np
import xarray as xr

from bigkd import schema
from bigkd.errors import InputError
from bigkd.kernels import Gaussian, Kernel, RadialKernel
from bigkd.shapes.results import check_shape


class Errors(NamedTuple):
    """Largest errors for each unit of measure."""

    kappa: float
    """Of kappa(P, Q), over W_P W_Q."""

    norm: float
    """Of the mean embedding of P, over W_P."""


def discretisation_error(
    x: xr.Dataset, y: xr.Dataset, *, kernel: Kernel, normalize: bool = False
) -> xr.Dataset:
    """What the kernel distance of two shapes may differ from that of their points.

    Parameters
    ----------
    x, y
        Shapes, or sets of points, which are what they are and have no error.
    kernel
        A positive definite kernel of the distance.
    normalize
        Whether total measures are divided out, as `bigkd.distance.kernel_distance` can do.

    Returns
    -------
    xarray.Dataset
        Bounds on the errors: ``kappa_xx``, ``kappa_xy``, ``kappa_yy``, ``distance`` and
        ``distance_squared``. The attribute ``promise`` is ``"deterministic"``, or
        ``"probabilistic"`` where points are random; then all hold at once with probability
        ``1 - delta``. By the triangle inequality the error of the distance is at most the sum of
        what either shape contributes; near a distance of 0 its square tells more than
        ``distance_squared`` does.

    Raises
    ------
    InputError
        If the kernel is not positive definite in this dimension, or not one of the distance.
    """
    weights, errors, deltas = [], [], []
    for shape, name in ((x, "x"), (y, "y")):
        check_shape(shape, name)
        weights.append(1.0 if normalize else float(shape.attrs["total_measure"]))
        errors.append(errors_per_weight(shape, kernel))
        deltas.append(float(shape.attrs.get("delta", 0.0)))
    (wx, wy), (ex, ey) = weights, errors
    values = {
        "kappa_xx": 2.0 * wx * wx * ex.kappa,
        "kappa_xy": wx * wy * (ex.kappa + ey.kappa),
        "kappa_yy": 2.0 * wy * wy * ey.kappa,
        "distance": wx * ex.norm + wy * ey.norm,
        "distance_squared": 2.0 * (wx + wy) * (wx * ex.kappa + wy * ey.kappa),
    }
    attrs = {
        "kernel": kernel.name,
        "kernel_parameters": json.dumps(kernel.parameters),
        "promise": "probabilistic" if any(deltas) else "deterministic",
        "delta": sum(deltas),
        "W": max(wx, wy),
        "normalize": int(normalize),
    }
    return schema.dataset(schema.DISCRETISATION, values, attrs=attrs)


def errors_per_weight(shape: xr.Dataset, kernel: Kernel) -> Errors:
    """Errors of the points of one shape."""
    kernel = radial(kernel, shape.sizes["axis"])
    if shape.attrs["discretisation"] == "none":
        return Errors(0.0, 0.0)
    if shape.attrs["discretisation"] == "random points":
        random = float(shape.attrs["norm_error"])
        return Errors(random, random)
    s = float(shape.attrs["mean_square_distance"])
    lost = 1.0 - float(kernel.of_squared(np.asarray([s]))[0])
    norm = math.sqrt(2.0 * (max(lost, 0.0) + np.finfo(np.float64).eps))
    if not isinstance(kernel, Gaussian):
        return Errors(norm, norm)
    in_sigmas = s / kernel.sigma / kernel.sigma
    return Errors(
        kappa=min(math.exp(-0.5) * math.sqrt(in_sigmas), 0.5 * in_sigmas),
        norm=min(norm, 0.5 * math.sqrt(3.0) * in_sigmas),
    )


def radial(kernel: Kernel, width: int) -> RadialKernel:
    """Refuse kernels of which the errors above are not known."""
    if isinstance(kernel, RadialKernel) and kernel.is_positive_definite(width):
        return kernel
    raise InputError(
        f"what points in place of a shape cost is known for positive definite kernels of the "
        f"distance: Gaussian, Laplace, Matern, InverseMultiquadric; got {kernel!r} in dimension "
        f"{width}."
    )
