"""Checks and casts that every function of rows begins with."""

import math
import numbers
from collections.abc import Iterable, Iterator
from typing import Any

from bigkd.backends import compute_dtype, device, namespace
from bigkd.errors import InputError, ShapeError
from bigkd.protocols import Array


def positive(name: str, value: object) -> float:
    """`value` as a float; InputError that names it unless it is finite and positive."""
    usable = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not (usable and math.isfinite(value) and value > 0):  # type: ignore[arg-type,operator]
        raise InputError(f"{name} must be a finite positive number; got {value!r}.")
    return float(value)  # type: ignore[arg-type]


def positive_integer(name: str, value: object, *, least: int = 1) -> int:
    """`value` as an int; InputError that names it unless it is an integer of at least `least`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be an integer of at least {least}; got {value!r}.")
    return int(value)


def probability(name: str, value: object) -> float:
    """`value` as a float; InputError that names it unless it is between 0 and 1, exclusively."""
    if (number := positive(name, value)) >= 1:
        raise InputError(f"{name} must be a probability between 0 and 1; got {value!r}.")
    return number


def check_rows(who: str, xp: Any, *blocks: Array) -> None:
    """Refuse blocks that are not two-dimensional, real, and of one width."""
    if any(block.ndim != 2 for block in blocks):
        raise ShapeError(f"{who} needs rows of shape (n, d); got {_shapes(blocks)}.")
    if any(block.shape[1] != blocks[0].shape[1] for block in blocks):
        raise ShapeError(f"{who} needs two row blocks of equal width; got {_shapes(blocks)}.")
    for block in blocks:
        if xp.isdtype(block.dtype, "complex floating"):
            raise InputError(
                f"{who} needs real rows; got {block.dtype}. Pass the parts as columns."
            )


def _shapes(blocks: Iterable[Array]) -> str:
    return " and ".join(str(tuple(block.shape)) for block in blocks)


def tiles(n: int, size: int) -> Iterator[slice]:
    """Slices of `size` that cover ``range(n)``; the last may be shorter."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def common_dtype(xp: Any, *blocks: Array) -> Any:
    """Floating dtype in which all `blocks` are computed."""
    return xp.result_type(*(compute_dtype(xp, block.dtype) for block in blocks))


def centre_of(xp: Any, x: Array, dtype: Any) -> Array:
    """Mean row of `x`, summed in float64 and rounded to `dtype`.

    A column whose mean is not finite gets 0, so that one bad row spoils itself and no other.
    """
    mean = xp.sum(x, axis=0, dtype=xp.float64) / x.shape[0]
    return xp.astype(xp.where(xp.isfinite(mean), mean, xp.zeros_like(mean)), dtype)


def without_subnormals(values: Array) -> Array:
    """Kernel values, none negative, with 0 for those so small that products with them are slow."""
    xp = namespace(values)
    least = float(xp.finfo(values.dtype).smallest_normal) * 1e6
    return xp.where(values < least, xp.zeros((), dtype=values.dtype, device=device(values)), values)
