r"""How far the dissimilarity on landmarks may be from that of the kernels themselves.

With F and G the operators of Eqs. 10 and 11 before they are projected on the landmarks, and A and B
after it, the root of D is Lipschitz in F and, with the factor ``1 / sqrt(lam)``, in G:

.. math:: \frac{\sqrt{\hat D}}{1 + \gamma} - \delta \le \sqrt D \le (1 + \gamma) \sqrt{\hat D}
          + \delta, \quad \delta = |F - A|, \quad \gamma = |G - B| / \sqrt\lambda

since the best q of one problem is a candidate in the other, and ``lam |q|**2`` is at most D. A is
an orthogonal projection of F, so that ``|F - A|`` is at most the root of ``|F|**2 - |A|**2`` in
Hilbert-Schmidt norms, of which the first is a kernel sum over all pairs of positions.
"""

from typing import NamedTuple

import numpy as np

from bigkd.did.maps import ImageMaps
from bigkd.kernels import Kernel, KernelValues
from bigkd.linalg import Matrix

_ROWS = 512
_COLUMNS = 4096


class Projection(NamedTuple):
    """What of a map the landmarks leave out, in Hilbert-Schmidt norms."""

    norm: float
    """Of the map before it is projected."""

    error: float
    """Of what is lost."""


class Bounds(NamedTuple):
    """Where the dissimilarity of the kernels themselves lies, for each lambda."""

    lower: Matrix
    upper: Matrix


def projection(
    maps: ImageMaps, datum: Matrix, side: int, projected: Matrix, *, x_kernel: Kernel, x: Matrix
) -> Projection:
    """Norms of the map of a datum on one side; `projected` is what the landmarks leave of it.

    Cost: ``N**2 / 2`` values of each kernel.
    """
    points, weights = maps.points_of(datum, side)
    squared = _kernel_sum(x_kernel, x, maps.y_kernel, points, weights)
    lost = squared - float(np.sum(projected**2))
    rounding = 1e-12 * squared if maps.dtype == "float64" else 1e-5 * squared
    return Projection(squared**0.5, float(np.sqrt(max(lost, 0.0) + rounding)))


def bounds(
    value: Matrix, rounding: Matrix, lams: Matrix, reference: Projection, searched: Projection
) -> Bounds:
    """Bounds of D from what it is on the landmarks."""
    gamma = searched.error / np.sqrt(lams)
    lower = np.sqrt(np.maximum(value - rounding, 0.0)) / (1.0 + gamma) - reference.error
    upper = np.sqrt(value + rounding) * (1.0 + gamma) + reference.error
    return Bounds(np.maximum(lower, 0.0) ** 2, np.minimum(upper, reference.norm) ** 2)


def _kernel_sum(x_kernel: Kernel, x: Matrix, y_kernel: Kernel, y: Matrix, weights: Matrix) -> float:
    """Weighted sum of the product of both kernels over all pairs of positions, in float64."""
    kept = weights > 0.0
    x, y, weights = x[kept], y[kept], weights[kept]
    total = 0.0
    for start in range(0, weights.size, _COLUMNS):
        columns = slice(start, start + _COLUMNS)
        both = KernelValues(x_kernel, x[columns]), KernelValues(y_kernel, y[columns])
        for first in range(start, weights.size, _ROWS):
            rows = slice(first, first + _ROWS)
            values = both[0](x[rows])
            values *= both[1](y[rows])
            own = first < start + _COLUMNS
            if own:  # pairs of one run of columns are met twice, those on the diagonal once
                at = np.arange(first, first + values.shape[0])[:, None]
                other = np.arange(start, start + values.shape[1])
                values *= np.where(at == other, 1.0, np.where(at > other, 2.0, 0.0))
            part = float(weights[rows] @ (values @ weights[columns]))
            total += part if own else 2.0 * part
    return total
