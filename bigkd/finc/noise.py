"""How far an eigenvalue can be trusted: sampling noise from random groups of rows.

The second moments of G random groups tell how far a second moment of n rows strays from that of
the whole population. With centred group sums D_g = S_g - n_g C and random signs e_g, the matrix

    N = 1/n sum_g e_g D_g            (and rho times the same of the reference, independent signs)

is distributed as the error of C_test - rho C_reference. By Weyl's inequality the i-th eigenvalue is
at most the population's i-th plus the largest of that error. So an eigenvalue above the quantile
1 - alpha of lambda_1(N) tells of a mode that is there in the population, whatever else differs:
the family-wise error is alpha, for any rho, and with equal sets nothing is reported but with
probability alpha.

Noise is estimated in the features of the first few frequencies, of the same kernel. Coarser
features of unit length have, if anything, larger noise: the comparison errs on the careful side.
"""

from typing import Any, NamedTuple

import numpy as np

from bigkd.backends import rng, to_host
from bigkd.summaries import GroupedMomentState

Vector = np.ndarray[Any, np.dtype[np.float64]]

_STREAM = 0x6E6F6973  # keeps these numbers apart from other uses of a seed
_DRAWS = 64  # made at once: one matrix product, some 8 MB of noise matrices


class Null(NamedTuple):
    """What noise alone does."""

    largest: Vector  # (n_draws,), the largest eigenvalue of each noise spectrum

    def p_values(self, eigenvalue: Vector) -> Vector:
        """Share of spectra, the observed one included, whose largest reaches each eigenvalue."""
        reached = (self.largest[None, :] >= eigenvalue[:, None]).sum(axis=1)
        shares = (1.0 + reached) / (1.0 + self.largest.size)
        return np.where(eigenvalue > 0.0, shares, 1.0)

    def level(self, alpha: float) -> float:
        """Eigenvalue above which the p-value is at most `alpha`; infinite for too few draws."""
        allowed = int(np.floor(alpha * (1 + self.largest.size))) - 1
        return float(np.sort(self.largest)[::-1][allowed]) if allowed >= 0 else float("inf")


class Noise(NamedTuple):
    """Sampling noise of one comparison."""

    null: Null
    test: Vector  # (G, width, width), centred group sums over n
    reference: Vector  # the same of the reference, times rho

    def standard_errors(self, vectors: Vector) -> Vector:
        """Standard error of u.(C_test - rho C_reference) u for columns u in the noise features.

        The jackknife of a mean over groups; NaN where there are fewer than two groups of rows.
        """
        variance = np.zeros(vectors.shape[1])
        for groups in (self.test, self.reference):
            count = groups.shape[0]
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
    n_draws: int,
    seed: int,
) -> Noise:
    """Sampling noise of ``C_test - rho C_reference``, from the group sums of both.

    Cost: `n_draws` eigenvalues of matrices of 128 features.
    """
    parts = (_centred(test), rho * _centred(reference))
    if min(part.shape[0] for part in parts) < 2:
        # One group tells nothing of noise: nothing can stand out.
        return Noise(Null(np.full(n_draws, np.inf)), *parts)
    stacked = np.concatenate([_inflated(part) for part in parts])
    count, width = stacked.shape[:2]
    signs = rng(seed, _STREAM).choice([-1.0, 1.0], (n_draws, count))
    largest = np.empty(n_draws)
    for some in (slice(at, at + _DRAWS) for at in range(0, n_draws, _DRAWS)):
        draws = (signs[some] @ stacked.reshape(count, width**2)).reshape(-1, width, width)
        largest[some] = np.linalg.eigvalsh(draws)[:, -1]
    return Noise(Null(largest), *parts)


def _centred(groups: GroupedMomentState) -> Vector:
    """Centred sums of the groups that have rows, over the number of rows."""
    weight, outer = to_host(groups.weight), to_host(groups.outer)
    filled = weight > 0
    weight, outer = weight[filled], outer[filled]
    mean = outer.sum(axis=0) / weight.sum()
    return np.asarray((outer - weight[:, None, None] * mean) / weight.sum())


def _inflated(centred: Vector) -> Vector:
    """Undo that deviations from an estimated mean are a little too small."""
    count = centred.shape[0]
    return np.asarray(centred * np.sqrt(count / (count - 1)))
