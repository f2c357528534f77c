"""Spectra of symmetric matrices."""

import inspect
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
import scipy.linalg.blas
import scipy.sparse.linalg

from bigkd.backends import rng

Matrix: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

_DENSE = 600
_LEAST_RESTARTS = 20
# From SciPy 1.17 on restarts are drawn afresh in every call, unless told; before, they were fixed.
_DRAWS_RESTARTS = "rng" in inspect.signature(scipy.sparse.linalg.eigsh).parameters
_STREAM = 0x6C616E63  # keeps these numbers apart from other uses of a seed


def top_eigenpairs(
    matrix: Matrix | scipy.sparse.linalg.LinearOperator, k: int
) -> tuple[Matrix, Matrix]:
    """Largest `k` eigenvalues of a symmetric matrix, largest first, and their eigenvectors.

    Parameters
    ----------
    matrix
        Symmetric, shape ``(n, n)``, float64; or an operator of that shape.
    k
        At most ``n``.

    Returns
    -------
    values, vectors
        Shapes ``(k,)`` and ``(n, k)``; the signs of the vectors are arbitrary.

    Notes
    -----
    Implicitly restarted Lanczos (ARPACK), from a fixed start and to a relative 1e-11, where `k` is
    small beside `n`; a dense solver otherwise, and where Lanczos has not converged by the time that
    one would take, as where the largest eigenvalues are all about zero. Cost of Lanczos: 60 to a
    few hundred products with the matrix, of which it reads one triangle.
    """
    n = matrix.shape[0]
    operator = isinstance(matrix, scipy.sparse.linalg.LinearOperator)
    if 4 * k < n and (operator or n > _DENSE):
        found = _lanczos(matrix, k)
        if found is not None:
            return found
    dense = np.asarray(matrix @ np.eye(n) if operator else matrix)
    values, vectors = scipy.linalg.eigh(dense, subset_by_index=(n - k, n - 1))
    return values[::-1].copy(), vectors[:, ::-1].copy()


def eigenvalues(matrix: Matrix) -> Matrix:
    """All eigenvalues of a symmetric matrix, largest first."""
    return np.asarray(scipy.linalg.eigvalsh(matrix)[::-1])


def _lanczos(
    matrix: Matrix | scipy.sparse.linalg.LinearOperator, k: int
) -> tuple[Matrix, Matrix] | None:
    n = matrix.shape[0]
    operator = matrix
    if not isinstance(matrix, scipy.sparse.linalg.LinearOperator):
        operator = _symmetric(matrix)
    start = rng(0, _STREAM).standard_normal(n)
    restarts: dict[str, Any] = {"rng": rng(1, _STREAM)} if _DRAWS_RESTARTS else {}
    try:
        values, vectors = scipy.sparse.linalg.eigsh(
            operator,
            k=k,
            which="LA",
            v0=start,
            ncv=min(n, max(4 * k, 60)),
            tol=1e-11,
            maxiter=max(_LEAST_RESTARTS, n // 40),
            **restarts,
        )
    except scipy.sparse.linalg.ArpackError:
        return None
    order = np.argsort(values, kind="stable")[::-1]
    return values[order], vectors[:, order]


def _symmetric(matrix: Matrix) -> scipy.sparse.linalg.LinearOperator:
    """Products with `matrix`: they cost what is read of it, and one triangle is enough."""
    columns = matrix if matrix.flags.f_contiguous else np.ascontiguousarray(matrix).T
    return scipy.sparse.linalg.LinearOperator(
        matrix.shape,
        matvec=lambda vector: scipy.linalg.blas.dsymv(1.0, columns, vector.ravel(), lower=1),
        dtype=np.float64,
    )
