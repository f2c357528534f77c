"""Subspaces from the factors of their matrices."""

from typing import NamedTuple

import numpy as np

from bigkd.linalg import Matrix

_NEGLIGIBLE = 1e-12


class Subspace(NamedTuple):
    """Leading eigenvectors of a matrix."""

    vectors: Matrix
    """Orthonormal columns, shape ``(n, k)``, largest eigenvalue first."""

    values: Matrix
    """Eigenvalues, shape ``(k,)``."""


def nystrom_factor(product: Matrix, basis: Matrix) -> Matrix:
    """B with ``B B^T`` the Nyström approximation of a positive semi-definite M, from M Q.

    Parameters
    ----------
    product
        M Q, shape ``(n, q)``.
    basis
        Q, shape ``(n, q)``.

    Returns
    -------
    Matrix
        Shape ``(n, r)``, r at most q; nowhere more than M, and right along Q.
    """
    core = basis.T @ product
    found, turn = np.linalg.eigh((core + core.T) / 2.0)
    good = found > _NEGLIGIBLE * max(float(found[-1]), 0.0)
    return np.asarray(product @ (turn[:, good] / np.sqrt(found[good])))


def turned(moved: Matrix, found: Subspace, k: int) -> float:
    r"""Angle by which the leading `k` vectors of a matrix turn when a little is added to it.

    Parameters
    ----------
    moved
        E V, what is added times the vectors, shape ``(n, k)``.
    found
        All vectors of the matrix; outside of them it is 0.
    k
        How many lead.

    Returns
    -------
    float
        To first order: the norm of :math:`w_i^T E v_j / (\lambda_j - \lambda_i)` over i after k.
        1 where E changes an eigenvalue by more than half, so that first orders mean nothing.
    """
    top, after = found.values[:k], found.values[k:]
    if (np.abs((found.vectors[:, :k] * moved).sum(axis=0)) > top / 2.0).any():
        return 1.0
    others = found.vectors[:, k:]
    least = np.finfo(np.float64).tiny
    inside = (others.T @ moved) / np.maximum(top[None, :] - after[:, None], least)
    rest = moved - found.vectors @ (found.vectors.T @ moved)
    outside = rest / np.maximum(top, least)
    gram = inside.T @ inside + outside.T @ outside
    return float(np.sqrt(max(0.0, np.linalg.eigvalsh(gram)[-1])))


def distrust(angle: float) -> float:
    """What to tell of an estimated angle: twice that, and more where it is not small; at most 1."""
    return min(1.0, 2.0 * angle / (1.0 - 2.0 * angle)) if angle < 0.5 else 1.0


def leading(factor: Matrix, k: int) -> Subspace:
    """Leading `k` eigenvectors of ``factor factor^T``, from the singular vectors of `factor`."""
    if not factor.shape[1]:
        return Subspace(np.zeros((factor.shape[0], 0)), np.zeros(0))
    q, upper = np.linalg.qr(factor)
    left, strength, _ = np.linalg.svd(upper, full_matrices=False)
    return Subspace(np.asarray(q @ left[:, :k]), np.asarray(strength[:k] ** 2))


def sine(one: Matrix, other: Matrix) -> float:
    """Sine of the largest angle between two subspaces of one dimension, given orthonormal bases."""
    rest = one - other @ (other.T @ one)
    return min(1.0, float(np.linalg.norm(rest, 2)))


def sine_of_cosines(cosines: Matrix) -> float:
    """The same from the inner products of their bases, shape ``(k, k)``.

    Angles below some 1e-8 are rounding: where cosines are 1 to the last digit the sine is 0.
    """
    least = np.linalg.svd(cosines, compute_uv=False).min() if min(cosines.shape) else 0.0
    if cosines.shape[0] != cosines.shape[1]:
        return 1.0
    return float(np.sqrt(max(0.0, 1.0 - min(1.0, least) ** 2)))


def oriented(vectors: Matrix) -> Matrix:
    """Each column with the sign that makes its largest element positive."""
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None, :], axis=0)
    return np.asarray(vectors * np.where(largest < 0.0, -1.0, 1.0))


def rounding_sine(eigenvalues: Matrix, k: int, eps: float) -> float:
    """How far rounding may turn the leading `k` vectors, by the gap after them; at most 1."""
    after = float(eigenvalues[k]) if eigenvalues.size > k else 0.0
    gap = float(eigenvalues[k - 1]) - after
    error = 16.0 * eps * float(eigenvalues[0])
    return min(1.0, error / gap) if gap > 0.0 else 1.0
