"""Squared distances between rows that are exactly zero for equal rows."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from bigkd.backends import device, namespace
from bigkd.kernels._rows import centre_of, check_rows, common_dtype, tiles
from bigkd.protocols import Array

_WIDTH_OF_DIFFERENCES = 4
_TILE_ELEMENTS = 2**20
_PAIR_ELEMENTS = 2**19


def squared_distances(x: Array, y: Array) -> Array:
    r"""Squared Euclidean distance between every row of `x` and every row of `y`.

    Parameters
    ----------
    x
        Rows, shape ``(n, d)``, any real dtype.
    y
        Rows, shape ``(m, d)``, same namespace and device as `x`.

    Returns
    -------
    Array
        Shape ``(n, m)``, non-negative, in the dtype of computation: float64 if either is float64 or
        a wide integer, else float32.

    Raises
    ------
    ShapeError
        If `x` and `y` are not both two-dimensional with equal width.

    Notes
    -----
    Up to width 4 coordinates are subtracted one by one. Beyond, distances come from
    :math:`\lVert x\rVert^2 - 2xy^T + \lVert y\rVert^2` about the mean of `y`: one matrix product
    and an error of about :math:`\epsilon S`, :math:`S = \lVert x\rVert^2 + \lVert y\rVert^2`, which
    follows the spread of the data and not its offset. Pairs whose result is below
    :math:`\max(\sqrt\epsilon, d\epsilon) S` have lost half of their digits or more and are computed
    again: one by one from their differences, or, where many of them form a tight cluster, by the
    same product about a row of that cluster. Since the product errs by at most :math:`d\epsilon S`,
    equal rows are always among them and come out as exactly 0; what remains has a relative error of
    about :math:`\sqrt\epsilon` at worst and :math:`\epsilon` for pairs as far apart as the spread.
    Beyond the result
    it needs a copy of `y` and a few tiles of about a million elements.

    Examples
    --------
    >>> import numpy as np
    >>> squared_distances(np.zeros((1, 2)), np.array([[3.0, 4.0]]))
    array([[25.]])
    """
    xp = namespace(x, y)
    check_rows("squared_distances", xp, x, y)
    return map_tiles(lambda squared: squared, xp, x, y)


def map_tiles(function: Callable[[Array], Array], xp: Any, x: Array, y: Array) -> Array:
    """Elementwise `function` of the squared distances, in tiles that stay in cache."""
    dtype = common_dtype(xp, x, y)
    x, y = xp.astype(x, dtype, copy=False), xp.astype(y, dtype, copy=False)
    (n, d), m = x.shape, y.shape[0]
    out = xp.empty((n, m), dtype=dtype, device=device(x))
    if n == 0 or m == 0:
        return out
    if d <= _WIDTH_OF_DIFFERENCES:
        for rows in tiles(n, max(1, _TILE_ELEMENTS // m)):
            out[rows, :] = function(_by_differences(xp, x[rows, :], y))
    else:
        for rows, squared in _by_product(xp, x, y, centre_of(xp, y, dtype)):
            out[rows, :] = function(squared)
    return out


def _by_differences(xp: Any, x: Array, y: Array) -> Array:
    squared = xp.zeros((x.shape[0], y.shape[0]), dtype=x.dtype, device=device(x))
    for k in range(x.shape[1]):
        gap = x[:, k][:, None] - y[:, k][None, :]
        gap *= gap
        squared += gap
    return squared


def _by_product(xp: Any, x: Array, y: Array, centre: Array) -> Iterator[tuple[slice, Array]]:
    """Tiles of rows, and their squared distances to all of `y`."""
    n, d = x.shape
    right = y - centre
    norms = xp.sum(right * right, axis=1)[None, :]
    epsilon = float(xp.finfo(x.dtype).eps)
    threshold = max(math.sqrt(epsilon), d * epsilon)
    for rows in tiles(n, max(1, _TILE_ELEMENTS // y.shape[0])):
        left = x[rows, :] - centre
        total = xp.sum(left * left, axis=1)[:, None] + norms
        squared = left @ right.T
        squared *= -2.0
        squared += total
        total *= threshold
        lost = squared < total
        if bool(xp.any(lost)):
            lost = _mend_clusters(xp, x[rows, :], y, squared, lost)
            _mend_pairs(xp, x[rows, :], y, squared, lost)
        yield rows, squared


def _mend_clusters(xp: Any, x: Array, y: Array, squared: Array, lost: Array) -> Array:
    """Mend blocks of lost pairs in `squared`; return the mask of what is still lost.

    A block is worth a product of its own when its pairs, one by one, would cost more than the few
    passes over the whole mask that finding it costs. Its rows and columns all lie near one row of
    `y`; about that row their norms are smaller by the factor that made them lost, so the recursion
    ends after as many steps as the exponent range holds such factors.
    """
    n, m = lost.shape
    while True:
        per_row = xp.sum(xp.astype(lost, xp.int32), axis=1)
        i = int(xp.argmax(per_row))
        columns = lost[i, :]
        j = int(xp.argmax(xp.astype(columns, xp.int32)))
        rows = lost[:, j]
        pairs = int(per_row[i]) * int(xp.sum(xp.astype(rows, xp.int32)))
        if pairs * x.shape[1] <= n * m or pairs <= n + m:
            return lost
        block = rows[:, None] & columns[None, :]
        near_x = xp.take(x, xp.nonzero(rows)[0], axis=0)
        near_y = xp.take(y, xp.nonzero(columns)[0], axis=0)
        mended = [part for _, part in _by_product(xp, near_x, near_y, y[j, :])]
        squared[block] = xp.reshape(xp.concat(mended), (-1,))
        lost = lost & ~block


def _mend_pairs(xp: Any, x: Array, y: Array, squared: Array, lost: Array) -> None:
    """Recompute the lost pairs of `squared` in place from their differences."""
    i, j = xp.nonzero(lost)
    step = max(1, _PAIR_ELEMENTS // x.shape[1])
    mended = []
    for piece in tiles(i.shape[0], step):
        gap = xp.take(x, i[piece], axis=0) - xp.take(y, j[piece], axis=0)
        mended.append(xp.sum(gap * gap, axis=1))
    if mended:
        squared[lost] = xp.concat(mended)
