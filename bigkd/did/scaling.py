"""Units of the values: colours or variables made comparable before a kernel sees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from bigkd.errors import DataError, InputError
from bigkd.linalg import Matrix

Normalize: TypeAlias = "Literal['auto', 'imagenet', 'standardize'] | tuple[Any, Any] | None"

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_LIMITS = (-1e-6, 1.0 + 1e-6)


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """What is taken from each value, and what the rest is divided by.

    Attributes
    ----------
    rule
        How it was chosen.
    mean, std
        Shape ``(n_values,)``, in the units of the data; for bytes, of 0 to 255.
    low, high
        Range of the values, shape ``(n_values,)``: of colours, or of a sample of the data.
    bounded
        Whether values must lie between `low` and `high`.
    """

    rule: str
    mean: Matrix
    std: Matrix
    low: Matrix
    high: Matrix
    bounded: bool = False

    def __call__(self, values: Any) -> Any:
        """Values without units, shape ``(..., n_values)``."""
        return (values - self.mean) / self.std


def choose_scaling(
    normalize: Normalize, samples: Sequence[Matrix], *, dtype: np.dtype[Any], n_values: int
) -> Scaling:
    """The scaling that `normalize` asks for, from sampled values of shape ``(n, n_values)`` each.

    Raises
    ------
    InputError
        If `normalize` is none of the choices, or asks for three colours where there are not.
    DataError
        If colours do not lie in [0, 1].
    """
    pooled = np.concatenate(samples)
    pooled = pooled[np.isfinite(pooled).all(axis=1)]
    if not pooled.size:
        raise DataError(
            "no sampled point has finite values; expected numbers. Is everything masked?"
        )
    low, high = pooled.min(axis=0), pooled.max(axis=0)
    rule = normalize
    if isinstance(rule, str) and rule == "auto":
        rule = "imagenet" if n_values == 3 and _are_colours(low, high, dtype) else "standardize"
    if isinstance(rule, str) and rule == "imagenet":
        return _colours(low, high, dtype=dtype, n_values=n_values)
    if isinstance(rule, str) and rule == "standardize":
        mean, std = pooled.mean(axis=0), pooled.std(axis=0)
        return Scaling(
            rule="standardize", mean=mean, std=np.where(std > 0, std, 1.0), low=low, high=high
        )
    if rule is None:
        zeros = np.zeros(n_values)
        return Scaling(rule="none", mean=zeros, std=zeros + 1.0, low=low, high=high)
    return _given(rule, low, high, n_values)


def _are_colours(low: Matrix, high: Matrix, dtype: np.dtype[Any]) -> bool:
    return dtype == np.uint8 or bool(np.min(low) >= _LIMITS[0] and np.max(high) <= _LIMITS[1])


def _colours(low: Matrix, high: Matrix, *, dtype: np.dtype[Any], n_values: int) -> Scaling:
    if n_values != 3:
        raise InputError(
            f"normalize='imagenet' is for three colours; got {n_values} values at each point. "
            f"Pass normalize='standardize', None, or (mean, std)."
        )
    if not _are_colours(low, high, dtype):
        raise DataError(
            f"colours must lie in [0, 1], or be bytes (uint8); a sample has values from "
            f"{np.min(low):g} to {np.max(high):g}. Divide them by their largest possible value, "
            f"or pass normalize='standardize'."
        )
    top = 255.0 if dtype == np.uint8 else 1.0
    zeros = np.zeros(3)
    return Scaling(
        rule="imagenet",
        mean=top * np.asarray(IMAGENET_MEAN),
        std=top * np.asarray(IMAGENET_STD),
        low=zeros,
        high=zeros + top,
        bounded=True,
    )


def _given(pair: Any, low: Matrix, high: Matrix, n_values: int) -> Scaling:
    try:
        mean, std = (np.broadcast_to(np.asarray(part, float), (n_values,)) for part in pair)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"normalize must be 'auto', 'imagenet', 'standardize', None, or a pair (mean, std) of "
            f"numbers or of {n_values} numbers each; got {pair!r}."
        ) from error
    if not (np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()):
        raise InputError(f"normalize=(mean, std) must be finite, std positive; got {pair!r}.")
    return Scaling(rule="given", mean=mean.copy(), std=std.copy(), low=low, high=high)
