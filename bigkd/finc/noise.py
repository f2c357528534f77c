"""How far an eigenvalue can be trusted: sampling noise from random groups of rows.

The second moments of G random groups tell how far a second moment of n rows strays from that of
the whole population. With centred group sums D_g = S_g - n_g C and random signs e_g, the matrix

    N = 1/n sum_g e_g D_g            (and rho times the same of the reference, independent signs)

is distributed as the error of C_test - rho C_reference. By Weyl's inequality the i-th eigenvalue is
at most the population's i-th plus the largest of that error. So an eigenvalue above the quantile
1 - alpha of lambda_1(N) tells of a mode that is there in the population, whatever else differs:
the family-wise error is alpha, for any rho, and with equal sets nothing is reported but with
probability alpha.

Noise is estimated in the features of the first few frequencies, of the same kernel. A mode has to
stand out there, by its own eigenvalue there, and among all features.
"""

from typing import Any, NamedTuple

import numpy as np

from bigkd.backends import rng, to_host
from bigkd.linalg import eigenvalues, top_eigenpairs
from bigkd.summaries import GroupedMomentState

Vector = np.ndarray[Any, np.dtype[np.float64]]

_STREAM = 0x6E6F6973  # keeps these numbers apart from other uses of a seed


class Noise(NamedTuple):
    """Sampling noise of one comparison."""

    eigenvalue: Vector  # (k,), the difference's own eigenvalues in the noise features
    null: Vector  # (n_draws,), largest eigenvalues of noise alone
    test: Vector  # (G, width, width), centred group sums over n
    reference: Vector  # the same of the reference, times rho

    def p_values(self, eigenvalue: Vector) -> Vector:
        """Share of noise spectra, this one included, whose top reaches each eigenvalue."""
        seen = np.minimum(eigenvalue, self.eigenvalue)
        reached = (self.null[None, :] >= seen[:, None]).sum(axis=1)
        positive = seen > 0.0
        return np.where(positive, (1.0 + reached) / (1.0 + self.null.size), 1.0)

    def level(self, alpha: float) -> float:
        """Smallest eigenvalue whose p-value is at most `alpha`."""
        allowed = int(np.floor(alpha * (1 + self.null.size))) - 1
        if allowed < 0 or self.null.size == 0:
            return float("inf")
        return float(np.sort(self.null)[::-1][allowed])

    def standard_errors(self, vectors: Vector) -> Vector:
        """Standard error of u.(C_test - rho C_reference) u for columns u in the noise features.

        The jackknife of a mean over groups; NaN where there are fewer than two groups of rows.
        """
        variance = np.zeros(vectors.shape[1])
        for groups in (self.test, self.reference):
            count = groups.shape[0]
            if count == 0:
                continue
            if count < 2:
                return np.full(vectors.shape[1], np.nan)
            quadratic = np.einsum("ik,gij,jk->gk", vectors, groups, vectors, optimize=True)
            variance += count / (count - 1) * (quadratic**2).sum(axis=0)
        return np.sqrt(variance)


def estimate_noise(
    test: GroupedMomentState,
    reference: GroupedMomentState,
    *,
    rho: float,
    k: int,
    n_draws: int,
    seed: int,
) -> Noise:
    """Sampling noise of ``C_test - rho C_reference``, from the group sums of both.

    Cost: `n_draws` eigenvalues of matrices of 128 features.
    """
    centred_test, mean_test = _centred(test)
    centred_reference, mean_reference = _centred(reference)
    centred_reference *= rho
    found = min(k, mean_test.shape[0])
    values, _ = top_eigenpairs(mean_test - rho * mean_reference, found)
    signs = rng(seed, _STREAM).choice(
        [-1.0, 1.0], (n_draws, centred_test.shape[0] + centred_reference.shape[0])
    )
    stacked = np.concatenate([_inflated(centred_test), _inflated(centred_reference)])
    width = mean_test.shape[0]
    null = np.empty(n_draws)
    for at in range(n_draws):
        null[at] = _largest((signs[at] @ stacked.reshape(-1, width**2)).reshape(width, width))
    padded = np.concatenate([values, np.zeros(k - found)])
    return Noise(padded, null, centred_test, centred_reference)


def _largest(matrix: Vector) -> float:
    return float(eigenvalues(matrix)[0]) if matrix.size else 0.0


def _centred(groups: GroupedMomentState) -> tuple[Vector, Vector]:
    """Centred sums of the groups that have rows, over the number of rows; and the mean."""
    weight, outer = to_host(groups.weight), to_host(groups.outer)
    filled = weight > 0
    weight, outer = weight[filled], outer[filled]
    total = weight.sum()
    mean = outer.sum(axis=0) / total
    return (outer - weight[:, None, None] * mean) / total, mean


def _inflated(centred: Vector) -> Vector:
    """Undo that deviations from an estimated mean are a little too small."""
    count = centred.shape[0]
    return centred * np.sqrt(count / (count - 1)) if count > 1 else centred
