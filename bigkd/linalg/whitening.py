"""Cholesky factors that whiten landmarks."""

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg

from bigkd.errors import InputError, ShapeError
from bigkd.linalg.spectrum import Matrix

_RUNGS = 13
_ASYMMETRY = 1e-8


class Whitening(NamedTuple):
    """An upper triangular factor of a Gram matrix."""

    upper: Matrix
    """R with ``R^T R = K + jitter I``, shape ``(n, n)``, zero below the diagonal."""

    jitter: float
    """What was added to the diagonal, in the units of K."""


def whitening(gram: Matrix, *, jitter: float = 0.0) -> Whitening:
    """Upper Cholesky factor of the Gram matrix of landmarks.

    Parameters
    ----------
    gram
        K, symmetric and positive semi-definite, shape ``(n, n)``; a factor is made in float64.
    jitter
        Added to the diagonal, in the units of `gram`; not negative.

    Returns
    -------
    Whitening
        With the smallest jitter that works of `jitter` and the rungs ``eps max(diag K) 10**k``,
        k = 0 to 12, above it.

    Raises
    ------
    ShapeError
        If `gram` is not a square matrix with rows.
    InputError
        If `gram` is not finite and symmetric, has a negative diagonal, or is too far from positive
        semi-definite for any jitter on the ladder; or if `jitter` is negative or not finite.

    Notes
    -----
    A jitter works where every squared pivot is at least ``n eps max(diag K)``: below that it is
    rounding, as where two landmarks coincide. Cost: ``n**3 / 3`` multiply-adds for each rung tried;
    memory: three matrices.

    Examples
    --------
    >>> upper, jitter = whitening(np.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> upper
    array([[2., 1.],
           [0., 2.]])
    >>> jitter
    0.0
    """
    gram = np.asarray(gram, dtype=np.float64)
    largest = _largest_entry(gram, jitter)
    eps = float(np.finfo(np.float64).eps)
    rungs = [eps * largest * 10.0**k for k in range(_RUNGS)]
    for tried in [float(jitter), *(rung for rung in rungs if rung > jitter)]:
        upper = _factor(gram, tried, gram.shape[0] * eps * largest)
        if upper is not None:
            return Whitening(upper, tried)
    raise InputError(
        f"gram, shape {gram.shape}, is not positive semi-definite: it has no Cholesky factor even "
        f"with {rungs[-1]:.1e} added to its diagonal (at most {largest:.3g}). Is it the Gram "
        f"matrix of a positive definite kernel? Pass landmarks that differ, or a larger jitter."
    )


def _largest_entry(gram: Matrix, jitter: float) -> float:
    """Largest entry of the diagonal; refuses what has no factor."""
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or gram.shape[0] == 0:
        raise ShapeError(f"gram must be a square matrix of at least one row; got {gram.shape}.")
    if not (math.isfinite(jitter) and jitter >= 0.0):
        raise InputError(f"jitter must be finite and not negative; got {jitter!r}.")
    if not np.isfinite(gram).all():
        raise InputError(
            f"gram, shape {gram.shape}, has {np.sum(~np.isfinite(gram))} values that are not "
            f"finite. Are landmarks finite, and is the bandwidth of the kernel right?"
        )
    diagonal = np.diagonal(gram)
    if diagonal.min() < 0.0 or diagonal.max() == 0.0:
        raise InputError(
            f"gram needs a diagonal that is not negative, and not all zero; "
            f"it is between {diagonal.min():.3g} and {diagonal.max():.3g}."
        )
    largest = float(diagonal.max())
    gap = float(np.abs(gram - gram.T).max())
    if gap > _ASYMMETRY * largest:
        raise InputError(
            f"gram must be symmetric; entries across its diagonal differ by up to {gap:.3g}, "
            f"with {largest:.3g} on the diagonal. Pass the same landmarks for rows and columns."
        )
    return largest


def _factor(gram: Matrix, jitter: float, least: float) -> Matrix | None:
    """Upper factor of `gram` plus `jitter`, or None where a squared pivot is below `least`."""
    shifted = gram.copy()
    shifted[np.diag_indices_from(shifted)] += jitter
    try:
        upper = scipy.linalg.cholesky(shifted, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    return upper if np.diagonal(upper).min() ** 2 >= least else None
