"""The spectrum of J A for a positive semi-definite A and a diagonal J of either sign."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg.lapack
import scipy.sparse.linalg

from bigkd.linalg.spectrum import Matrix, top_eigenpairs


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
            ``c = L w`` for a unit eigenvector w of ``L^T J L``. Beyond the rank of A the
            eigenvalues are 0 and so are the vectors.
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
        return _with_zeros(values, self.factor @ weights, k)


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


def _with_zeros(values: Matrix, vectors: Matrix, k: int) -> tuple[Matrix, Matrix]:
    """Pad to `k` with the zero eigenvalues that A's null space adds, in their place."""
    missing = k - values.shape[0]
    if missing == 0:
        return values, vectors
    padded = np.concatenate([values, np.zeros(missing)])
    columns = np.concatenate([vectors, np.zeros((vectors.shape[0], missing))], axis=1)
    order: Any = np.argsort(padded, kind="stable")[::-1]
    return padded[order], columns[:, order]
