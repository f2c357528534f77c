"""KEN: the exact spectrum that FINC estimates, for collections that fit in memory.

The non-zero eigenvalues of ``C_test - rho C_reference`` in the kernel's own feature space are those
of ``J A``, with A the kernel matrix of all rows, scaled by ``1/sqrt(n)`` and ``sqrt(rho/m)``, and J
the signs +1 of the test's and -1 of the reference's rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bigkd.backends import rng
from bigkd.errors import InputError, MemoryPlanError
from bigkd.linalg import IndefiniteSpectrum, indefinite_spectrum

Vector = np.ndarray[Any, np.dtype[np.float64]]

_STREAM = 0x6B656E  # keeps these numbers apart from other uses of a seed


@dataclass(frozen=True)
class GramSpectrum:
    """The factored kernel matrix of two collections."""

    factored: IndefiniteSpectrum
    n_test: int
    n_reference: int
    rho: float

    @property
    def signs(self) -> Vector:
        """J: +1 for rows of the test set, -1 for those of the reference."""
        return np.concatenate([np.ones(self.n_test), -np.ones(self.n_reference)])

    def top(self, k: int) -> tuple[Vector, Vector]:
        """Largest `k` eigenvalues and their vectors c; see `IndefiniteSpectrum.top`."""
        return self.factored.top(self.signs, k)

    def scores(self, vectors: Vector) -> tuple[Vector, Vector]:
        """Projection u.phi(x) of every row of both sets on every mode, shapes ``(rows, k)``."""
        test, reference = vectors[: self.n_test], vectors[self.n_test :]
        return test * np.sqrt(self.n_test), reference * np.sqrt(self.n_reference / self.rho)

    def null(self, n_draws: int, *, seed: int) -> Vector:
        """Largest eigenvalues of noise alone: random signs, centred in each set.

        Infinite where a set has a single row, which tells nothing of noise.
        """
        if min(self.n_test, self.n_reference) < 2:
            return np.full(n_draws, np.inf)
        shape = (n_draws, self.n_test + self.n_reference)
        signs = rng(seed, _STREAM).choice([-1.0, 1.0], shape)
        for own in (slice(self.n_test), slice(self.n_test, None)):
            signs[:, own] -= signs[:, own].mean(axis=1, keepdims=True)
        return self.factored.largest(signs)


def gram_spectrum(
    kernel: Callable[[Vector, Vector], Vector], test: Vector, reference: Vector, *, rho: float
) -> GramSpectrum:
    """Factor the kernel matrix of all rows, shapes ``(n, d)`` and ``(m, d)``, in float64.

    Without reference rows, m = 0, the spectrum is that of ``C_test``.

    Cost: ``(n + m)**2`` kernel values and ``(n + m)**3 / 3`` multiply-adds.
    """
    rows = np.concatenate([test, reference])
    n, m = test.shape[0], reference.shape[0]
    scale = np.concatenate([np.full(n, n**-0.5), np.full(m, (rho / max(m, 1)) ** 0.5)])
    gram = kernel(rows, rows) * scale[:, None] * scale[None, :]
    return GramSpectrum(indefinite_spectrum((gram + gram.T) / 2), n, m, rho)


def require_small(n_rows: int, rho: float, available: int) -> None:
    """Raise unless the exact method can run.

    Raises
    ------
    MemoryPlanError
        If the kernel matrix and its factor do not fit.
    InputError
        If `rho` is 0: the reference then has no place in the matrix.
    """
    if rho == 0:
        raise InputError("method='ken' needs rho > 0; got 0. Use method='finc' for rho = 0.")
    needed = 4 * 8 * n_rows**2
    if needed > available:
        raise MemoryPlanError(
            f"method='ken' keeps kernel matrices of {n_rows} x {n_rows} rows: {needed / 1e9:.1f} "
            f"GB; {available / 1e9:.1f} GB are available. Use method='finc', or fewer rows."
        )
