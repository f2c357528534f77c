"""What every method finds, and what theory says of it."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bigkd.errors import DataError, InputError
from bigkd.linalg import Matrix
from bigkd.mmdpca.kernels import Tempered
from bigkd.mmdpca.measures import DAMPED, MMD2, TAIL, TRACE

_ROUNDING = 1e-13
_SURE = 3.0


@dataclass(frozen=True, kw_only=True)
class Found:
    """A subspace of the rows as kernels see them.

    Attributes
    ----------
    vectors
        Orthonormal columns, shape ``(n, k)``, of the features that count.
    eigenvalues
        Of the components, largest first, shape ``(k,)``.
    subspace_error
        Estimate of the sine of the angle to the exact subspace.
    means, errors
        The four terms of `bigkd.mmdpca.measures`, for this subspace and for that of PCA, and their
        standard errors, shape ``(2, 4)``; None where they were not asked for.
    pca_sine
        Sine of the largest angle to PCA's subspace; None where that was not asked for.
    trace, tail
        Of H_f, and of what the components leave of it, where they are known exactly.
    about
        Choices of the method, and counts.
    """

    vectors: Matrix = field(repr=False)
    eigenvalues: Matrix
    subspace_error: float
    means: Matrix | None
    errors: Matrix | None
    pca_sine: float | None = None
    trace: float | None = None
    tail: float | None = None
    about: dict[str, Any]

    def variables(self, chosen: Tempered) -> dict[str, Any]:
        """Scalars of the result."""
        trace = self.trace
        if trace is None and self.means is not None:
            trace = float(self.means[0, TRACE])
        trace = math.nan if trace is None else trace
        out: dict[str, Any] = {
            "eigenvalue": self.eigenvalues,
            "explained_share": self.eigenvalues / trace,
            "trace": trace,
            "subspace_error": self.subspace_error,
        }
        if self.means is None or self.errors is None:
            return out
        lower, tail = self._tails(trace)
        return out | {
            "mmd2": not_negative(self.means[0, MMD2]),
            "mmd2_standard_error": float(self.errors[0, MMD2]),
            "mmd2_pca": not_negative(self.means[1, MMD2]),
            "pca_sine": self.pca_sine,
            "mmd2_lower": lower,
            "mmd2_upper": self._upper(chosen, tail),
        }

    def _tails(self, trace: float) -> tuple[float, float]:
        """Bounds from below and above of the sum of the eigenvalues after the last component's.

        What the projection leaves, the mean of r_x . r_y H, is at least that sum, for any subspace.
        What it holds, the trace less that, is at least 1 - s^2 times the sum of the k largest, if s
        is the sine of the angle to the exact subspace.
        """
        if self.tail is not None:
            return max(0.0, self.tail - _ROUNDING * trace), self.tail + _ROUNDING * trace
        assert self.means is not None
        assert self.errors is not None
        left = float(self.means[0, TAIL])
        unsure = _SURE * float(self.errors[0, TAIL])
        cosine2 = 1.0 - min(1.0, self.subspace_error) ** 2
        held = (trace - left) / cosine2 if cosine2 > 0.0 else trace
        return max(0.0, trace - held - unsure), max(0.0, left + unsure)

    def _upper(self, chosen: Tempered, tail: float) -> float:
        """Theorem 10, or the bound that Theorem 11 rests on."""
        if chosen.degree is not None:
            return chosen.degree * tail
        if chosen.damping is None:
            return math.nan
        assert self.means is not None
        assert self.errors is not None
        damped = float(self.means[0, DAMPED]) + _SURE * float(self.errors[0, DAMPED])
        return tail + chosen.damping * max(0.0, damped)


def not_negative(value: Any) -> float:
    """A number that rounding may have made negative; NaN stays NaN."""
    return float(np.maximum(value, 0.0))


def require_rank(eigenvalues: Matrix, trace: float, k: int) -> None:
    """Refuse more components than there are directions.

    Raises
    ------
    InputError
        If the last eigenvalue is rounding.
    DataError
        If all are.
    """
    good = int(np.sum(eigenvalues > _ROUNDING * abs(trace)))
    if not good:
        raise DataError(
            "X: every row is zero, or the same after it was centred, or so small that products of "
            "its numbers are; there is no direction to find."
        )
    if good < k:
        raise InputError(
            f"k={k} components were asked for, and the rows span {good} directions that the kernel "
            f"sees; pass k of at most {good}."
        )
