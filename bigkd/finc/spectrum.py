"""From two states to modes: small dense problems on the driver."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import threadpoolctl

from bigkd.backends import to_host
from bigkd.errors import InputError
from bigkd.finc.noise import Noise, Vector, estimate_noise
from bigkd.finc.spec import FincSpec, FincState
from bigkd.linalg import top_eigenpairs
from bigkd.summaries import GroupedMomentState, MeanState, SecondMomentState


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What a comparison is asked for; checked here, once.

    Attributes
    ----------
    rho
        How much more frequent than in the reference a mode must be; finite, not negative.
    n_modes
        How many modes are returned.
    alpha
        Family-wise error allowed for `significant`.
    n_draws
        Noise spectra that p-values are counted from.
    """

    rho: float = 1.0
    n_modes: int = 10
    alpha: float = 0.01
    n_draws: int = 199

    def __post_init__(self) -> None:
        if not (np.isfinite(self.rho) and self.rho >= 0):
            raise InputError(f"rho must be finite and not negative; got {self.rho!r}.")
        if self.n_modes < 1:
            raise InputError(f"n_modes must be at least 1; got {self.n_modes!r}.")
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha must be between 0 and 1; got {self.alpha!r}.")
        if self.n_draws < 1:
            raise InputError(f"n_draws must be at least 1; got {self.n_draws!r}.")

    def require_features(self, n_features: int) -> None:
        """Raise unless there are at least as many features as modes."""
        if self.n_modes > n_features:
            raise InputError(
                f"n_modes={self.n_modes} is more than the {n_features} features; ask for at most "
                f"{n_features}, or use n_frequencies of at least {-(-self.n_modes // 2)}."
            )


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """Modes of one comparison."""

    eigenvalue: Vector  # (k,)
    vectors: Vector  # (2r, k)
    frequency_test: Vector  # (k,)
    frequency_reference: Vector  # (k,)
    standard_error: Vector  # (k,)
    noise: Noise

    def variables(self, alpha: float) -> dict[str, Any]:
        """What every comparison reports of its modes."""
        p_value = self.noise.null.p_values(self.eigenvalue)
        return {
            "eigenvalue": self.eigenvalue,
            "standard_error": self.standard_error,
            "p_value": p_value,
            "significant": p_value <= alpha,
            "frequency_test": self.frequency_test,
            "frequency_reference": self.frequency_reference,
        }


def decompose(spec: FincSpec, test: FincState, reference: FincState, choices: Choices) -> Spectrum:
    """Top eigenpairs of ``C_test - rho C_reference``, with the noise they stand against.

    BLAS runs on one thread, so that the bits do not depend on the machine's cores.
    """
    choices.require_features(spec.features.n_features)
    with threadpoolctl.threadpool_limits(limits=1):
        own, other = (_mean_outer(state.moment) for state in (test, reference))
        values, vectors = top_eigenpairs(own - choices.rho * other, choices.n_modes)
        vectors = vectors * _signs(vectors, to_host(test.mean.total))
        noise = estimate_noise(
            test.groups,
            reference.groups,
            rho=choices.rho,
            n_draws=choices.n_draws,
            seed=spec.seed,
        )
        coarse = spec.noise_features(vectors.T).T
        lengths = np.linalg.norm(coarse, axis=0)
        return Spectrum(
            eigenvalue=values,
            vectors=vectors,
            frequency_test=_quadratic(own, vectors),
            frequency_reference=_quadratic(other, vectors),
            standard_error=noise.standard_errors(coarse / np.where(lengths > 0, lengths, 1.0)),
            noise=noise,
        )


def pool(states: list[FincState]) -> FincState:
    """State of the union of collections; fresh arrays."""
    return FincState(
        SecondMomentState(*_sums([state.moment for state in states])),
        MeanState(*_sums([state.mean for state in states])),
        GroupedMomentState(*_sums([state.groups for state in states])),
    )


def mmd2(spec: FincSpec, test: FincState, reference: FincState) -> dict[str, float]:
    """Squared MMD of two collections from their mean embeddings, and what it is uncertain by.

    ``|phi(x)| = 1`` gives the unbiased estimate without another look at the rows. The standard
    error is over the random frequencies only: what the features miss of the kernel.
    """
    means = [to_host(state.mean.total) / float(state.mean.weight) for state in (test, reference)]
    difference = means[0] - means[1]
    by_frequency = spec.r * (difference[: spec.r] ** 2 + difference[spec.r :] ** 2)
    error = by_frequency.std(ddof=1) / np.sqrt(spec.r) if spec.r > 1 else np.nan
    within = [
        without_diagonal(float(mean @ mean), int(state.mean.count))
        for mean, state in zip(means, (test, reference), strict=True)
    ]
    return {
        "mmd2": float(difference @ difference),
        "mmd2_unbiased": within[0] + within[1] - 2.0 * float(means[0] @ means[1]),
        "mmd2_standard_error": float(error),
    }


def without_diagonal(mean_kernel: float, n_rows: int) -> float:
    """Mean of the kernel over pairs of different rows; NaN for a single row."""
    return (n_rows * mean_kernel - 1.0) / (n_rows - 1) if n_rows > 1 else float("nan")


def _sums(states: list[Any]) -> list[Any]:
    return [sum(fields[1:], start=fields[0]) for fields in zip(*states, strict=True)]


def _mean_outer(moment: SecondMomentState) -> Vector:
    return np.asarray(to_host(moment.outer) / float(moment.weight))


def _quadratic(matrix: Vector, vectors: Vector) -> Vector:
    return np.asarray(np.sum(vectors * (matrix @ vectors), axis=0))


def _signs(vectors: Vector, total: Vector) -> Vector:
    """Signs that make the mean score of the test set not negative."""
    return np.where(total @ vectors < 0.0, -1.0, 1.0)
