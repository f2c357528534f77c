"""What FINC keeps of a collection: one summary of the features, for every later question."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bigkd.backends import namespace
from bigkd.engine import Reduced, Tally
from bigkd.errors import InputError, StoreError
from bigkd.kernels import FourierFeatures, Kernel, Sampling, from_parameters
from bigkd.protocols import Array
from bigkd.summaries import (
    GroupedMomentState,
    GroupedSecondMoment,
    Joined,
    Mapped,
    Mean,
    MeanState,
    SecondMoment,
    SecondMomentState,
)

N_GROUPS = 64
NOISE_FREQUENCIES = 64


@dataclass(frozen=True)
class HeadFeatures:
    """The features of the first `kept` of `r` frequencies, from the features of all of them.

    Random frequencies are exchangeable, so these are features of the same kernel, only coarser.
    """

    r: int
    kept: int

    @property
    def width(self) -> int:
        """Features of all frequencies."""
        return 2 * self.r

    @property
    def n_features(self) -> int:
        """Features of the kept frequencies."""
        return 2 * self.kept

    def __call__(self, x: Array) -> Array:
        """Columns of `x`, shape ``(n, 2 r)``, scaled to unit rows again."""
        xp = namespace(x)
        cosines, sines = x[:, : self.kept], x[:, self.r : self.r + self.kept]
        return xp.concat([cosines, sines], axis=1) * (self.r / self.kept) ** 0.5


class FincState(NamedTuple):
    """The parts of the state, by name."""

    moment: SecondMomentState
    mean: MeanState
    groups: GroupedMomentState


@dataclass(frozen=True, kw_only=True)
class FincSpec:
    """Feature map and what is summed of the features.

    Attributes
    ----------
    features
        The random Fourier features.
    kernel
        The kernel they estimate; None where frequencies were given.
    sampling
        How they were drawn: ``"iid"``, ``"orthogonal"`` or ``"given"``.
    seed
        Of the frequencies and of the groups that noise is estimated from.
    """

    features: FourierFeatures
    kernel: Kernel | None
    sampling: Sampling | str
    seed: int

    @property
    def r(self) -> int:
        """Number of frequencies."""
        return self.features.n_frequencies

    @property
    def noise_features(self) -> HeadFeatures:
        """The coarser features in which noise is estimated."""
        return HeadFeatures(self.r, min(self.r, NOISE_FREQUENCIES))

    @property
    def summary(self) -> Mapped:
        """Summary of rows: second moment and mean of features, and second moments of groups."""
        noise = self.noise_features
        groups = GroupedSecondMoment(width=noise.n_features, n_groups=N_GROUPS, seed=self.seed)
        parts = (
            SecondMoment(width=self.features.n_features),
            Mean(width=self.features.n_features),
            Mapped(features=noise, summary=groups),
        )
        return Mapped(features=self.features, summary=Joined(summaries=parts))

    def empty(self) -> Reduced:
        """State of no rows."""
        state = self.summary.init(np.zeros((1, self.features.width)))
        return Reduced(state, Tally(np.asarray(0), np.asarray(0)))

    def attrs(self) -> dict[str, Any]:
        """Parameters, as JSON knows them."""
        kernel = self.kernel
        return {
            "kernel": "given frequencies" if kernel is None else kernel.name,
            "kernel_parameters": json.dumps({} if kernel is None else kernel.parameters),
            "n_frequencies": self.r,
            "sampling": self.sampling,
            "seed": self.seed,
        }

    def require_equal(self, other: "FincSpec") -> None:
        """Raise unless summaries of both can be compared.

        Raises
        ------
        InputError
            If they were made with different frequencies.
        """
        same = np.array_equal(self.features.frequencies, other.features.frequencies)
        if not same or self.seed != other.seed:
            raise InputError(
                f"the summaries were made with different features: {self.attrs()} and "
                f"{other.attrs()}. Summarise both with the same kernel, n_frequencies and seed, or "
                f"pass features=... of one to the other."
            )


def spec_from(attrs: dict[str, Any], frequencies: np.ndarray[Any, Any]) -> FincSpec:
    """Spec that a stored summary or result was made with.

    Raises
    ------
    StoreError
        If a parameter is missing.
    """
    try:
        name, parameters = attrs["kernel"], json.loads(attrs["kernel_parameters"])
        kernel = from_parameters(name, parameters) if parameters else None
        return FincSpec(
            features=FourierFeatures(np.asarray(frequencies, dtype=np.float64)),
            kernel=kernel,
            sampling=attrs["sampling"],
            seed=int(attrs["seed"]),
        )
    except KeyError as error:
        raise StoreError(f"this is no summary or result of FINC: it has no {error}.") from error


def state_of(reduced: Reduced) -> FincState:
    """The state's parts by name."""
    return FincState(*reduced.state)
