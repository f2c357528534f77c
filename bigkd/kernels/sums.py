"""Sums of a kernel over pairs of rows, without the matrix of its values."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bigkd.backends import device, namespace
from bigkd.errors import ShapeError
from bigkd.kernels._rows import check_rows, common_dtype, tiles
from bigkd.kernels.covariance import CovarianceGaussian
from bigkd.kernels.numpy_sums import Problem, column_sums, problem_of, symmetric_sum
from bigkd.protocols import Array

TILE_ELEMENTS = 2**18
"""Kernel values in memory at once, where they are not summed as they come."""

Function = Callable[[Array, Array], Array]


def pair_sum(
    kernel: Function, x: Array, y: Array, left: Array | None = None, right: Array | None = None
) -> Array:
    r"""Weighted sum of a kernel over all pairs of a row of `x` and a row of `y`.

    .. math:: \kappa = \sum_{ij} \langle u_i, v_j \rangle K(x_i, y_j)

    Parameters
    ----------
    kernel
        A kernel of this package, or any function of two row blocks, of shapes ``(n, d)`` and
        ``(m, d)``, that returns shape ``(n, m)``.
    x
        Rows, shape ``(n, d)``, any real dtype. Pass the same object as `y`, and one object for
        `left` and `right`, for half of the work.
    y
        Rows, shape ``(m, d)``, same namespace and device as `x`.
    left
        Strengths u of the rows of `x`, of any sign: shape ``(n,)``, or ``(n, c)`` for vectors; 1
        unless given.
    right
        Strengths v of the rows of `y`, of as many components.

    Returns
    -------
    Array
        Of shape ``()``, float64, on the namespace and device of `x`; 0 where there are no pairs.

    Raises
    ------
    ShapeError
        If `x` and `y` are not both two-dimensional with equal width, or strengths do not fit.

    Notes
    -----
    NumPy rows and Gaussian, Laplace, Matérn (nu = 1/2, 3/2, 5/2), inverse multiquadric, triangle
    and Epanechnikov kernels are computed by compiled loops, from the differences of coordinates or,
    for wide rows, from matrix products wherever these are as good. In float64 the relative error
    is below 1e-12 of the sum of ``|u_i| |v_j| K(x_i, y_j)``, whatever the spread, the offset and
    the length of the kernel, as long as the values are not below 1e-295; for the triangle and the
    Epanechnikov kernel, whose digits end at the radius, of the sum of ``|u_i| |v_j|`` over pairs
    within it. In float32 the error is below `rounding_bound` times the sum of ``|u_i| |v_j|``.

    Everything else is computed from ``kernel(x, y)`` in tiles of a quarter of a million values
    and is as good as these are; the sum is taken in float64.

    The same rows give the same bits in whatever thread, as long as BLAS uses one.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd.kernels import Gaussian
    >>> x = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> float(pair_sum(Gaussian(5.0), x, x, np.array([1.0, -1.0]), np.array([1.0, -1.0])).round(6))
    0.786939
    """
    xp = namespace(x, y)
    same = x is y
    check_rows("pair_sum", xp, x, y)
    one = _strengths(xp, "left", left, x)
    other = one if same and left is right else _strengths(xp, "right", right, y)
    if one.shape[1] != other.shape[1]:
        raise ShapeError(
            f"left and right must have equally many components; got {one.shape[1]} and "
            f"{other.shape[1]}. Pass strengths for both, or vectors for both."
        )
    problem = _problem(kernel, xp, x, y)
    if problem is None:
        return _by_values(kernel, xp, x, y, one, other)
    if same and one is other:
        total = symmetric_sum(problem, one)
    elif x.shape[0] > y.shape[0]:
        turned = problem._replace(x=problem.y, y=problem.x)
        total = float(np.sum(column_sums(turned, other) * one.T))
    else:
        total = float(np.sum(column_sums(problem, one) * other.T))
    return np.asarray(total)


def potential(kernel: Function, x: Array, y: Array, right: Array | None = None) -> Array:
    r"""Weighted sum of a kernel over the rows of `y`, at each row of `x`.

    .. math:: p_i = \sum_j v_j K(x_i, y_j)

    Parameters
    ----------
    kernel
        As in `pair_sum`.
    x
        Where it is wanted: rows of shape ``(n, d)``, any real dtype.
    y
        Rows, shape ``(m, d)``, same namespace and device as `x`.
    right
        Strengths v of the rows of `y`, shape ``(m,)``, of any sign; 1 unless given. Shape
        ``(m, c)`` gives `c` sums.

    Returns
    -------
    Array
        Shape ``(n,)``, or ``(n, c)`` for strengths of shape ``(m, c)``, float64; as accurate, one
        by one, as `pair_sum`.

    Raises
    ------
    ShapeError
        If `x` and `y` are not both two-dimensional with equal width, or strengths do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd.kernels import Gaussian
    >>> potential(Gaussian(5.0), np.zeros((1, 2)), np.array([[3.0, 4.0], [0.0, 0.0]])).round(6)
    array([1.606531])
    """
    xp = namespace(x, y)
    check_rows("potential", xp, x, y)
    strengths = _strengths(xp, "right", right, y)
    problem = _problem(kernel, xp, x, y)
    if problem is None:
        sums = _potential_by_values(kernel, xp, x, y, strengths)
    else:
        turned = problem._replace(x=problem.y, y=problem.x)
        sums = column_sums(turned, strengths).T.copy()
    return sums if right is not None and right.ndim == 2 else sums[:, 0]


def _strengths(xp: Any, name: str, given: Array | None, rows: Array) -> Array:
    """Strengths in float64 of shape ``(n, c)``."""
    n = rows.shape[0]
    if given is None:
        return xp.ones((n, 1), dtype=xp.float64, device=device(rows))
    if given.ndim not in (1, 2) or given.shape[0] != n:
        raise ShapeError(
            f"{name} must have shape ({n},) or ({n}, c), a strength for each row; got "
            f"{tuple(given.shape)}."
        )
    given = xp.astype(given, xp.float64, copy=False)
    return given if given.ndim == 2 else given[:, None]


def _problem(kernel: Function, xp: Any, x: Array, y: Array) -> Problem | None:
    """What the compiled loops take; None where there are none."""
    if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
        return None
    reduced: Any = kernel
    dtype = common_dtype(xp, x, y)
    if isinstance(kernel, CovarianceGaussian):
        same = x is y
        reduced, x, y = kernel.reduced(x, y)
        y = x if same else y
    return problem_of(reduced, x, y, dtype)


def _by_values(kernel: Function, xp: Any, x: Array, y: Array, one: Array, other: Array) -> Array:
    """`pair_sum` from tiles of kernel values."""
    sums = _potential_by_values(kernel, xp, x, y, other)
    return xp.sum(one * sums, dtype=xp.float64)


def _potential_by_values(kernel: Function, xp: Any, x: Array, y: Array, strengths: Array) -> Array:
    """`potential` from tiles of kernel values, shape ``(n, c)``."""
    n, m = x.shape[0], y.shape[0]
    out = xp.zeros((n, strengths.shape[1]), dtype=xp.float64, device=device(x))
    if n == 0 or m == 0:
        return out
    width = min(m, max(math.isqrt(TILE_ELEMENTS), TILE_ELEMENTS // n))
    for columns in tiles(m, width):
        for rows in tiles(n, max(1, TILE_ELEMENTS // width)):
            with np.errstate(over="ignore"):  # of distances between rows whose value is 0
                values = xp.astype(kernel(x[rows, :], y[columns, :]), xp.float64, copy=False)
            out[rows, :] += values @ strengths[columns, :]
    return out
