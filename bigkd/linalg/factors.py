"""Stacks of tall matrices, kept as their left singular vectors and singular values."""

from typing import NamedTuple

import numpy as np

from bigkd.backends import namespace
from bigkd.errors import DataError, ShapeError
from bigkd.linalg.spectrum import Matrix
from bigkd.protocols import Array

_TALL = 20  # rows a column, from which on Gram matrices win over Householder reflections
_ROUNDS = 4
_SPREAD = 30.0
_SAFE = (1e-200, 1e200)


class Factors(NamedTuple):
    """Maps ``basis diag(strength) V^T`` of which V is forgotten."""

    basis: Array
    """Left singular vectors, shape ``(n, rows, rank)``."""

    strength: Array
    """Singular values, largest first, shape ``(n, rank)``, in the units of the maps."""


def factored(maps: Array) -> Factors:
    """Thin left singular vectors and singular values of every map of a stack.

    Parameters
    ----------
    maps
        Shape ``(n, rows, columns)``, float32 or float64, in any namespace.

    Returns
    -------
    Factors
        Of rank ``min(rows, columns)``, in the namespace and dtype of `maps`; computed in float64.
        Where singular values are zero the basis is any that is orthonormal. Signs are arbitrary,
        but the same in every run with as many threads of BLAS.

    Raises
    ------
    ShapeError
        If `maps` has not three dimensions.
    DataError
        If a value is not finite.

    Notes
    -----
    The factors are those of maps that differ by some ``eps |map|``. In NumPy, columns of maps at
    least 20 times as high as wide are made orthonormal by way of their Gram matrices, in two or
    three rounds [1]_, and what is left is small: twice as fast as LAPACK's decomposition of the
    whole, which is what all others and hopeless cases get. Cost: some ``4 rows columns**2`` to
    ``6 rows columns**2`` multiply-adds a map; memory: three maps.

    References
    ----------
    .. [1] A. Stathopoulos, K. Wu, "A block orthogonalization procedure with constant
       synchronization requirements", SIAM J. Sci. Comput. 23, 2002.
    """
    if maps.ndim != 3:
        raise ShapeError(
            f"maps must be a stack of shape (n, rows, columns); got {tuple(maps.shape)}."
        )
    xp = namespace(maps)
    dtype = maps.dtype if xp.isdtype(maps.dtype, "real floating") else xp.float64
    if not bool(xp.all(xp.isfinite(maps))):
        raise DataError(
            f"maps, shape {tuple(maps.shape)}, have values that are not finite. "
            f"Are the data finite, and masked where they are missing?"
        )
    wide = xp.astype(maps, xp.float64, copy=False)
    if isinstance(wide, np.ndarray) and wide.shape[1] >= _TALL * wide.shape[2] > 0:
        return _each(wide, dtype)
    basis, strength, _ = xp.linalg.svd(wide, full_matrices=False)
    return Factors(xp.astype(basis, dtype, copy=False), xp.astype(strength, dtype, copy=False))


def truncated(factors: Factors, floor: float | Array) -> Factors:
    """Without what is at or below a floor.

    Parameters
    ----------
    factors
        As from `factored`.
    floor
        Squared strengths up to this go; one for all, or one for each item, shape ``(n,)``.

    Returns
    -------
    Factors
        Trailing columns that no item needs are cut, at least one is left; what an item does not
        need of the others is zero.

    Notes
    -----
    With D from `dissimilarities` of the given factors and D' of the truncated ones:

    - of references, ``D' <= D <= D' + floor``;
    - of searched maps, ``D <= D' <= (1 + floor / lam) D``.
    """
    xp = namespace(factors.basis, factors.strength)
    floor = xp.asarray(floor, dtype=xp.float64)
    squared = xp.astype(factors.strength, xp.float64) ** 2
    kept = squared > (floor[:, None] if floor.ndim else floor)
    rank = max(1, int(xp.max(xp.sum(xp.astype(kept, xp.int64), axis=1)))) if kept.size else 1
    kept = kept[:, :rank]
    strength, basis = factors.strength[:, :rank], factors.basis[:, :, :rank]
    return Factors(
        xp.where(kept[:, None, :], basis, xp.zeros_like(basis)),
        xp.where(kept, strength, xp.zeros_like(strength)),
    )


def _each(maps: Matrix, dtype: np.dtype[np.float64]) -> Factors:
    n, rows, columns = maps.shape
    basis, strength = np.empty((n, rows, columns), dtype), np.empty((n, columns), dtype)
    for at in range(n):
        found = _tall(maps[at])
        if found is None:
            found = np.linalg.svd(maps[at], full_matrices=False)[:2]
        basis[at], strength[at] = found
    return Factors(basis, strength)


def _tall(matrix: Matrix) -> tuple[Matrix, Matrix] | None:
    """Singular vectors and values, or None where the columns do not become orthonormal.

    A round turns the columns by the eigenvectors of their Gram matrix and makes their lengths 1,
    except that lengths below some 1e-6 of the largest, which are rounding, are divided by that.
    """
    left = np.eye(matrix.shape[1])
    for _ in range(_ROUNDS):
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            gram = matrix.T @ matrix
        if not _SAFE[0] < np.trace(gram) < _SAFE[1]:
            return None
        values, vectors = np.linalg.eigh(gram)
        least = 10.0 * len(gram) * np.finfo(np.float64).eps * values[-1]
        lengths = np.sqrt(np.maximum(values, least))
        left = (vectors * lengths).T @ left
        if values[-1] < _SPREAD * values[0]:
            turned, strength, _ = np.linalg.svd(left)
            return matrix @ ((vectors / lengths) @ turned), strength
        matrix = matrix @ (vectors / lengths)
    return None
