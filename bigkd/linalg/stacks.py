"""Largest eigenvalues of many small matrices."""

from typing import Any

import numpy as np
import scipy.linalg.lapack

from bigkd.backends import namespace
from bigkd.linalg.spectrum import Matrix
from bigkd.protocols import Array

CERTIFIED = 1e-12
"""Relative error of `largest_eigenvalues`, beyond the rounding of the matrices."""

_DENSE = 16
_STEPS = (8, 12, 20)
_SETTLED = 1e-13
_TINY = 1e-280


def largest_eigenvalues(stack: Array) -> Array:
    """Largest eigenvalue of every matrix of a stack.

    Parameters
    ----------
    stack
        Symmetric positive semi-definite, to rounding; float64, shape ``(n, l, l)``, any namespace.
        Entries are 0 or well within 1e-140 and 1e140.

    Returns
    -------
    Array
        Shape ``(n,)``, to a relative `CERTIFIED`.

    Notes
    -----
    In NumPy by Lanczos' method from a fixed start, for all matrices together, with a certificate:
    where Cholesky's method fails on ``(1 + 1e-12) value I - matrix``, a larger eigenvalue was
    missed or Lanczos had not converged, and LAPACK finds all eigenvalues, as it does in other
    namespaces. Cost of what is certified: some ``12 l**2 + l**3 / 6`` multiply-adds a matrix;
    memory: one stack.
    """
    if stack.shape[0] == 0 or stack.shape[1] <= _DENSE or not isinstance(stack, np.ndarray):
        return namespace(stack).linalg.eigvalsh(stack)[:, -1]
    found = _lanczos(stack)
    missed = ~_certified(stack, found)
    if missed.any():
        found[missed] = np.linalg.eigvalsh(stack[missed])[:, -1]
    return found


def _lanczos(stack: Matrix) -> Matrix:
    """Rayleigh-Ritz values of Krylov spaces that grow until the values settle, or long enough."""
    found = np.full(stack.shape[0], -np.inf)
    going = np.arange(stack.shape[0])
    # Graded matrices have their largest entries in the first rows.
    vector, before = _normed(stack[:, 0] + stack.sum(axis=1))[0], np.zeros(stack.shape[:2])
    diagonal = np.zeros((stack.shape[0], _STEPS[-1]))
    beside = np.zeros_like(diagonal)
    for step in range(_STEPS[-1]):
        image = np.matmul(stack, vector[:, :, None])[:, :, 0]
        diagonal[:, step] = np.einsum("bi,bi->b", vector, image)
        image -= diagonal[:, step, None] * vector
        if step:
            image -= beside[:, step - 1, None] * before
        before = vector
        vector, beside[:, step] = _normed(image)
        if step + 1 in _STEPS:
            value = _tridiagonal(diagonal[:, : step + 1], beside[:, :step])
            moving = ~(np.abs(value - found[going]) <= _SETTLED * value)
            found[going] = value
            if not moving.any():
                break
            if not moving.all():
                going, stack, vector = going[moving], stack[moving], vector[moving]
                before, diagonal, beside = before[moving], diagonal[moving], beside[moving]
    return found


def _normed(vectors: Matrix) -> tuple[Matrix, Matrix]:
    """Vectors of length 1, or 0 where they are 0; and their lengths."""
    lengths = np.sqrt(np.einsum("bi,bi->b", vectors, vectors))
    return vectors / np.where(lengths > 0.0, lengths, 1.0)[:, None], lengths


def _tridiagonal(diagonal: Matrix, beside: Matrix) -> Matrix:
    """Largest eigenvalues of symmetric tridiagonal matrices."""
    at = np.arange(diagonal.shape[1])
    matrices = np.zeros((len(diagonal), at.size, at.size))
    matrices[:, at, at] = diagonal
    matrices[:, at[1:], at[:-1]] = beside
    return np.asarray(np.linalg.eigvalsh(matrices)[:, -1])


def _certified(stack: Matrix, values: Matrix) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether no eigenvalue of a matrix is above its value."""
    shifted = -stack
    at = np.arange(stack.shape[1])
    shifted[:, at, at] += ((1.0 + CERTIFIED) * values + _TINY)[:, None]
    # The transpose of a symmetric matrix in Fortran's order is factored where it lies.
    failed = [scipy.linalg.lapack.dpotrf(one.T, clean=0, overwrite_a=1)[1] for one in shifted]
    return np.equal(failed, 0)
