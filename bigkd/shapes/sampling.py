"""Random points on a shape, as many as a promise needs."""

import math

import numpy as np
import xarray as xr

from bigkd import schema
from bigkd.backends import rng
from bigkd.errors import InputError
from bigkd.shapes.results import KIND, elements_of, origin

_STREAM = 0x5A


def sample(
    shape: xr.Dataset,
    *,
    n: int | None = None,
    eps: float | None = None,
    delta: float = 0.05,
    seed: int = 0,
) -> xr.Dataset:
    r"""Random points on a curve or a surface, uniform in its length or area.

    Each carries the direction of its element and the same weight, the total measure W over n. With
    probability :math:`1 - \delta` the mean embedding of the points is within
    :math:`\epsilon W` of the shape's,

    .. math:: \epsilon = (1 + \sqrt{2 \log(1 / \delta)}) / \sqrt n

    for every kernel that is 1 at most, in any dimension. So are then all kernel distances from it,
    and the density of the kernel everywhere, whose promise the paper (Section 2.1) gives as
    :math:`n = O((d + \log(1 / \delta)) / \epsilon^2)`.

    Parameters
    ----------
    shape
        A curve or a surface as it was made; not points.
    n
        How many points; or pass `eps`.
    eps
        The error wanted, for each unit of W; or pass `n`.
    delta
        Probability with which it may be exceeded.
    seed
        Equal seeds give equal points.

    Returns
    -------
    xarray.Dataset
        A shape of points with directions; kappa of it with itself is too large by about
        ``W**2 / n`` in the mean. Attributes ``eps`` and ``norm_error`` (the same), ``delta``,
        ``n_points`` and ``seed``.

    Raises
    ------
    InputError
        If not exactly one of `n` and `eps` is given, or one is out of range.
    """
    elements = elements_of(shape, "sampled")
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta must be between 0 and 1; got {delta!r}.")
    constant = 1.0 + math.sqrt(2.0 * math.log(1.0 / delta))
    n = _number(n, eps, constant)
    generator = rng(seed, _STREAM)
    total = np.cumsum(elements.measure)
    chosen = np.searchsorted(total, generator.random(n) * total[-1], side="right")
    chosen = np.minimum(chosen, total.size - 1)
    share = generator.standard_exponential((n, elements.corner.shape[1]))
    share /= share.sum(axis=1, keepdims=True)
    values = {
        "point": np.einsum("ik,ikd->id", share, elements.corner[chosen]),
        "weight": np.full(n, total[-1] / n),
        "vector": elements.vector[chosen],
    }
    attrs = {
        "bigkd_kind": KIND,
        **origin(shape),
        "discretisation": "random points",
        "total_measure": float(total[-1]),
        "n_points": n,
        "eps": constant / math.sqrt(n),
        "norm_error": constant / math.sqrt(n),
        "delta": delta,
        "seed": seed,
    }
    return schema.dataset(schema.SHAPE, values, attrs=attrs)


def _number(n: int | None, eps: float | None, constant: float) -> int:
    if (n is None) == (eps is None):
        raise InputError("pass either n, the number of points, or eps, the error wanted.")
    if eps is not None:
        if not (math.isfinite(eps) and eps > 0):
            raise InputError(f"eps must be finite and positive; got {eps!r}.")
        return math.ceil((constant / eps) ** 2)
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
        raise InputError(f"n must be an integer of at least 1; got {n!r}.")
    return int(n)
