"""Kernel values from inner products and squared distances."""

from typing import Any

from bigkd.backends import namespace
from bigkd.kernels import Kernel, Polynomial
from bigkd.kernels._rows import without_subnormals
from bigkd.protocols import Array


def values(kernel: Kernel, dot: Array, squared: Array) -> Array:
    """H of pairs with inner products `dot` and squared distances `squared`, elementwise.

    `kernel` is a RadialKernel or a Polynomial; distances below 0, which are rounding, count as 0.
    """
    if isinstance(kernel, Polynomial):
        return kernel.of_products(dot)
    radial: Any = kernel
    return without_subnormals(radial.of_squared(namespace(squared).clip(squared, min=0.0)))


def values_between(kernel: Kernel, dot: Array, one: Array, other: Array) -> Array:
    """H of rows of squared lengths `one` and `other`, in the memory of their inner products."""
    if isinstance(kernel, Polynomial):
        return kernel.of_products(dot)
    dot *= -2.0
    dot += one[:, None]
    dot += other[None, :]
    return values(kernel, dot, dot)


def squared_lengths(x: Array) -> Array:
    """Squared length of every row, shape ``(n,)``."""
    return namespace(x).sum(x * x, axis=1)
