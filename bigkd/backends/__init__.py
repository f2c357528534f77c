"""One place that knows which array namespace a block belongs to."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_cupy_array

from bigkd.protocols import Array

__all__ = ["compute_dtype", "device", "is_array", "namespace", "rng", "to_host"]


def namespace(*arrays: Array) -> Any:
    """Array API namespace that all `arrays` share."""
    return array_namespace(*arrays)


def is_array(x: object) -> bool:
    """Whether `x` is an array of a namespace of the array API standard."""
    return bool(is_array_api_obj(x))


def to_host(x: Array) -> np.ndarray[Any, Any]:
    """Copy `x` to a NumPy array; a NumPy array comes back as it is."""
    if isinstance(x, np.ndarray | np.generic):
        return np.asarray(x)
    if is_cupy_array(x):
        return np.asarray(x.get())
    return np.from_dlpack(x)


def rng(seed: int, *stream: int) -> np.random.Generator:
    """Generator for one purpose: equal `seed` and `stream` give equal numbers everywhere.

    `stream` is what the numbers belong to, a block index say; never the order of arrival.
    """
    return np.random.default_rng(np.random.SeedSequence([seed, *stream]))


def compute_dtype(xp: Any, dtype: Any) -> Any:
    """Floating dtype to compute in: float64 for float64 and wide integers, else float32."""
    if any(xp.isdtype(dtype, wide) for wide in (xp.float64, xp.int32, xp.uint32)):
        return xp.float64
    if any(xp.isdtype(dtype, wide) for wide in (xp.int64, xp.uint64)):
        return xp.float64
    return xp.float32
