"""The spectrum of J A for a positive semi-definite A and a diagonal J of either sign."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg.lapack
import scipy.sparse.linalg

from bigkd.backends import rng
from bigkd.linalg.spectrum import Matrix, top_eigenpairs

_STREAM = 0x6D616E79  # keeps these numbers apart from other uses of a seed
_STEPS = 8
_MOST_STEPS = 96
_SETTLED = 2e-6
_NEGLIGIBLE = 1e-5


@dataclass(frozen=True)
class IndefiniteSpectrum:
    """``A = L L^T``, from which J A is solved for any J: its eigenvalues are those of L^T J L."""

    factor: Matrix
    """L, shape ``(n, rank)``."""

    def top(self, diagonal: Matrix, k: int) -> tuple[Matrix, Matrix]:
        """Largest `k` eigenvalues for ``J = diag(diagonal)``, largest first, and vectors.

        Returns
        -------
        values, vectors
            Shapes ``(k,)`` and ``(n, k)``: ``A J c = value c`` with ``c^T J c = value``, that is,
            ``c = L w`` for a unit eigenvector w of ``L^T J L``. The null space of A adds
            eigenvalues of 0, whose vectors are 0.
        """
        rank = self.factor.shape[1]
        operator = scipy.sparse.linalg.LinearOperator(
            (rank, rank),
            matvec=lambda w: self.factor.T @ (diagonal * (self.factor @ w.ravel())),
            matmat=lambda w: self.factor.T @ (diagonal[:, None] * (self.factor @ w)),
            dtype=np.float64,
        )
        found = min(k, rank)
        values, weights = top_eigenpairs(operator, found)
        n_zeros = self.factor.shape[0] - rank
        return _with_zeros(values, self.factor @ weights, n_zeros, k)

    def largest(self, diagonals: Matrix) -> Matrix:
        """Largest eigenvalue of ``L^T J L`` for each ``J = diag(diagonals[b])``.

        Returns
        -------
        numpy.ndarray
            Shape ``(b,)``, within about 1e-4 of the largest absolute eigenvalue of each.

        Notes
        -----
        Lanczos without reorthogonalisation, in float32, for all diagonals together, so that a step
        is two matrix products; a diagonal is left out of them once eight steps have changed its
        eigenvalue by less than 2e-6. Cost: some 30 steps of ``2 n rank`` multiply-adds a diagonal.
        """
        largest = np.zeros(diagonals.shape[0])
        if min(self.factor.shape) == 0 or diagonals.shape[0] == 0:
            return largest
        run = _ManyLanczos(self.factor, diagonals)
        going = np.arange(diagonals.shape[0])
        largest -= np.inf
        while going.size and run.n_steps < _MOST_STEPS:
            for _ in range(_STEPS):
                run.step()
            found = run.largest()
            moving = np.abs(found - largest[going]) > _SETTLED * np.abs(found)
            largest[going] = found
            going = going[moving]
            run.keep(moving)
        return largest


class _ManyLanczos:
    """Lanczos on ``L^T J L`` for several J at once: column b of `vector` belongs to the b-th."""

    def __init__(self, factor: Matrix, diagonals: Matrix) -> None:
        self._factor = factor.astype(np.float32)
        self._diagonals = diagonals.T.astype(np.float32)
        shape = (factor.shape[1], diagonals.shape[0])
        start = rng(0, _STREAM).standard_normal(shape, dtype=np.float32)
        self._vector = start / np.linalg.norm(start, axis=0)
        self._before = np.zeros_like(self._vector)
        self._diagonal = np.zeros((0, shape[1]))  # of the tridiagonal matrices, one row a step
        self._beside = np.zeros((1, shape[1]))
        self._alive = np.ones(shape[1], dtype=bool)

    @property
    def n_steps(self) -> int:
        """Steps taken."""
        return int(self._diagonal.shape[0])

    def step(self) -> None:
        """Extend every tridiagonal matrix by one row.

        Where the vectors already span an invariant space, it is extended by a copy of its first
        entry instead, which is no larger than its largest eigenvalue.
        """
        vector = self._vector
        image = self._factor.T @ (self._diagonals * (self._factor @ vector))
        own = np.einsum("ib,ib->b", vector, image)
        image -= own * vector + self._beside[-1].astype(np.float32) * self._before
        first = self._diagonal[0] if self.n_steps else own
        self._diagonal = np.vstack([self._diagonal, np.where(self._alive, own, first)])
        beside = np.linalg.norm(image, axis=0)
        scale = np.abs(self._diagonal).max(axis=0) + self._beside.max(axis=0)
        self._alive = self._alive & (beside > _NEGLIGIBLE * scale)
        beside = np.where(self._alive, beside, np.float32(0.0))
        self._beside = np.vstack([self._beside, beside])
        self._before = vector
        self._vector = image * (self._alive / np.where(self._alive, beside, 1.0)).astype(np.float32)

    def largest(self) -> Matrix:
        """Largest eigenvalue of every tridiagonal matrix."""
        at = np.arange(self.n_steps)
        matrices = np.zeros((self._diagonal.shape[1], at.size, at.size))
        matrices[:, at, at] = self._diagonal.T
        matrices[:, at[1:], at[:-1]] = self._beside[1:-1].T
        return np.asarray(np.linalg.eigvalsh(matrices)[:, -1])

    def keep(self, kept: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        """Go on with the columns that are `kept` only."""
        self._diagonals, self._alive = self._diagonals[:, kept], self._alive[kept]
        self._vector, self._before = self._vector[:, kept], self._before[:, kept]
        self._diagonal, self._beside = self._diagonal[:, kept], self._beside[:, kept]


def indefinite_spectrum(gram: Matrix) -> IndefiniteSpectrum:
    """Factor a positive semi-definite `gram`, shape ``(n, n)``, by pivoted Cholesky.

    The factor stops at the numerical rank, so repeated rows cost nothing and do no harm. Cost:
    ``n**3 / 3`` multiply-adds at most, and two matrices of memory.
    """
    lower, pivots, rank, _ = scipy.linalg.lapack.dpstrf(gram, lower=1)
    factor = np.tril(lower)[:, :rank]
    unpivoted = np.empty_like(factor)
    unpivoted[pivots - 1] = factor
    return IndefiniteSpectrum(unpivoted)


def _with_zeros(values: Matrix, vectors: Matrix, n_zeros: int, k: int) -> tuple[Matrix, Matrix]:
    """The largest `k` with the zero eigenvalues that A's null space adds, in their place."""
    added = min(k, n_zeros)
    if added == 0:
        return values, vectors
    padded = np.concatenate([values, np.zeros(added)])
    columns = np.concatenate([vectors, np.zeros((vectors.shape[0], added))], axis=1)
    order: Any = np.argsort(-padded, kind="stable")[:k]
    return padded[order], columns[:, order]
