"""What is asked of two collections, checked once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from bigkd.distance.collections import require_comparable
from bigkd.errors import InputError
from bigkd.io import Source, sample_rows
from bigkd.kernels import Gaussian, Kernel, median_distance

Method: TypeAlias = Literal["auto", "exact", "rff", "nufft", "coreset"]
Sizing: TypeAlias = Literal["pilot", "value", "points", "domain"]
KernelChoice: TypeAlias = "Kernel | Literal['median']"

METHODS = ("auto", "exact", "rff", "nufft", "coreset")
SIZINGS = ("pilot", "value", "points", "domain")
SAMPLE_ROWS = 1_000


@dataclass(frozen=True, kw_only=True)
class Question:
    """How accurately, and how; see `bigkd.distance.kernel_distance`."""

    method: Method = "auto"
    eps: float = 0.01
    delta: float = 0.01
    n_frequencies: int | None = None
    sizing: Sizing = "pilot"
    coreset_size: int | None = None
    normalize: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        for name, allowed in (("method", METHODS), ("sizing", SIZINGS)):
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in allowed:
                raise InputError(
                    f"{name} must be one of {', '.join(allowed)}; got {getattr(self, name)!r}."
                )
        if not isinstance(self.normalize, bool | np.bool_):
            raise InputError(f"normalize must be True or False; got {self.normalize!r}.")
        self._check_numbers()

    def _check_numbers(self) -> None:
        if not (_is_real(self.eps) and 0 < self.eps < math.inf):
            raise InputError(f"eps must be finite and positive; got {self.eps!r}.")
        if not (_is_real(self.delta) and 0 < self.delta < 1):
            raise InputError(f"delta must lie between 0 and 1; got {self.delta!r}.")
        for name, least in (("n_frequencies", 2), ("coreset_size", 1)):
            given = getattr(self, name)
            if given is not None and not (_is_whole(given) and given >= least):
                raise InputError(
                    f"{name} must be a whole number of at least {least}; got {given!r}."
                )
        if not (_is_whole(self.seed) and self.seed >= 0):
            raise InputError(f"seed must be a whole number and not negative; got {self.seed!r}.")


def choose_kernel(
    kernel: KernelChoice, sources: Sequence[Source], *, seed: int
) -> tuple[Kernel, dict[str, Any]]:
    """The kernel, and what it was chosen from.

    Raises
    ------
    InputError
        If it is neither a kernel nor the name of a rule, or all sampled rows are equal.
    ShapeError
        If a rule is to look at rows that do not fit together.
    """
    if isinstance(kernel, Kernel):
        return kernel, {}
    if not isinstance(kernel, str) or kernel != "median":
        raise InputError(
            f"kernel must be a kernel such as bigkd.kernels.Gaussian(2.0), or 'median' for a "
            f"Gaussian of the median distance; got {kernel!r}."
        )
    require_comparable(sources)
    pooled = np.concatenate([sample_rows(source, SAMPLE_ROWS, seed=seed) for source in sources])
    length = median_distance(pooled, n_rows=pooled.shape[0], seed=seed)
    return Gaussian(length), {"bandwidth_rule": "median distance of a sample"}


def _is_real(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
