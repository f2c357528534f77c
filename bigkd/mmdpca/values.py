"""Kernel values from inner products and squared distances."""

from typing import Any

from bigkd.backends import device, namespace
from bigkd.kernels import Kernel, Polynomial
from bigkd.protocols import Array


def values(kernel: Kernel, dot: Array, squared: Array) -> Array:
    """H of pairs with inner products `dot` and squared distances `squared`, elementwise.

    `kernel` is a RadialKernel or a Polynomial; distances below 0, which are rounding, count as 0.
    """
    if isinstance(kernel, Polynomial):
        return kernel.of_products(dot)
    radial: Any = kernel
    found = radial.of_squared(namespace(squared).clip(squared, min=0.0))
    return flushed(found)


def values_between(kernel: Kernel, dot: Array, one: Array, other: Array) -> Array:
    """H of rows of squared lengths `one` and `other`, in the memory of their inner products."""
    if isinstance(kernel, Polynomial):
        return kernel.of_products(dot)
    dot *= -2.0
    dot += one[:, None]
    dot += other[None, :]
    return values(kernel, dot, dot)


def flushed(found: Array) -> Array:
    """Values, with 0 for those so small that products with them are slow."""
    xp = namespace(found)
    least = float(xp.finfo(found.dtype).smallest_normal) * 1e6
    return xp.where(found < least, xp.zeros((), dtype=found.dtype, device=device(found)), found)


def squared_lengths(x: Array) -> Array:
    """Squared length of every row, shape ``(n,)``."""
    return namespace(x).sum(x * x, axis=1)
