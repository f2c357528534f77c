"""Kernels made of the inner product of two rows."""

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from bigkd.backends import compute_dtype, namespace
from bigkd.errors import InputError
from bigkd.kernels._rows import check_rows, common_dtype, positive_integer
from bigkd.kernels.base import Kernel
from bigkd.protocols import Array


@dataclass(frozen=True)
class Polynomial(Kernel):
    r"""Polynomial of the inner product, :math:`\sum_i c_i (x \cdot y)^i`.

    The linear kernel is ``Polynomial((0, 1))``, whose distance is that of the weighted sums. It is
    positive definite if no coefficient is negative, and depends on the origin of the rows. It has
    no spectrum: its features are the moments of the rows.

    Parameters
    ----------
    coefficients
        The c above, from the constant on: finite numbers that are not all zero.

    Examples
    --------
    >>> import numpy as np
    >>> Polynomial((1, 0, 2))(np.array([[1.0, 1.0]]), np.array([[1.0, 0.0], [1.0, 1.0]]))
    array([[3., 9.]])
    """

    coefficients: tuple[float, ...]

    name: ClassVar[str] = "polynomial"

    def __post_init__(self) -> None:
        given = self.coefficients
        if not _are_numbers(given) or not any(given):
            raise InputError(
                f"Polynomial.coefficients must be a sequence of finite numbers that are not all "
                f"zero, the constant first, such as (0, 1) for the linear kernel; got {given!r}."
            )
        object.__setattr__(self, "coefficients", tuple(float(value) for value in given))

    def __call__(self, x: Array, y: Array) -> Array:
        """Kernel between every row of `x` and every row of `y`, shape ``(n, m)``."""
        return self.of_products(inner_products("Polynomial kernel", x, y))

    def diagonal(self, x: Array) -> Array:
        """Kernel of every row with itself, shape ``(n,)``."""
        return self.of_products(squared_lengths("Polynomial kernel", x))

    def is_positive_definite(self, width: int) -> bool:
        """Whether it is positive definite in R^width: if no coefficient is negative."""
        positive_integer("width", width)
        return min(self.coefficients) >= 0

    @property
    def maximum(self) -> float | None:
        """None, unless the polynomial is constant."""
        return None if any(self.coefficients[1:]) else abs(self.coefficients[0])

    def of_products(self, products: Array) -> Array:
        """Polynomial of inner products, elementwise: same shape and dtype."""
        values = namespace(products).full_like(products, self.coefficients[-1])
        for coefficient in self.coefficients[-2::-1]:
            values = values * products + coefficient
        return values


@dataclass(frozen=True)
class DotTimes(Kernel):
    r"""Product of the inner product with another kernel, :math:`(x \cdot y)\, H(x, y)`.

    It is positive definite where H is, and depends on the origin of the rows. Sums of it over pairs
    are sums of H with each row as its own vector: the sum over i and j of
    :math:`\mu_i \nu_j \langle x_i, y_j \rangle H(x_i, y_j)`. So every method for H with vectors is
    one for this kernel.

    Parameters
    ----------
    kernel
        The H above.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd.kernels.families import Gaussian
    >>> DotTimes(Gaussian(5.0))(np.array([[1.0, 0.0]]), np.array([[4.0, 4.0]])).round(6)
    array([[2.426123]])
    """

    kernel: Kernel

    name: ClassVar[str] = "dot_times"

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise InputError(
                f"DotTimes.kernel must be a kernel such as bigkd.kernels.Gaussian(2.0); got "
                f"{self.kernel!r}."
            )

    def __call__(self, x: Array, y: Array) -> Array:
        """Kernel between every row of `x` and every row of `y`, shape ``(n, m)``."""
        return inner_products("DotTimes kernel", x, y) * self.kernel(x, y)

    def diagonal(self, x: Array) -> Array:
        """Kernel of every row with itself, shape ``(n,)``."""
        return squared_lengths("DotTimes kernel", x) * self.kernel.diagonal(x)

    def is_positive_definite(self, width: int) -> bool:
        """Whether it is positive definite in R^width: if its `kernel` is."""
        return self.kernel.is_positive_definite(width)

    @property
    def maximum(self) -> None:
        """None: it grows with the rows."""
        return None

    @property
    def parameters(self) -> dict[str, Any]:
        """Name and parameters of its `kernel`, as `from_parameters` takes them."""
        return {"kernel": {"name": self.kernel.name, "parameters": self.kernel.parameters}}


def inner_products(who: str, x: Array, y: Array) -> Array:
    """Inner product of every row of `x` with every row of `y`, in the dtype of computation."""
    xp = namespace(x, y)
    check_rows(who, xp, x, y)
    dtype = common_dtype(xp, x, y)
    return xp.astype(x, dtype, copy=False) @ xp.astype(y, dtype, copy=False).T


def squared_lengths(who: str, x: Array) -> Array:
    """Inner product of every row of `x` with itself, in the dtype of computation."""
    xp = namespace(x)
    check_rows(who, xp, x)
    x = xp.astype(x, compute_dtype(xp, x.dtype), copy=False)
    return xp.sum(x * x, axis=1)


def _are_numbers(given: object) -> bool:
    """Whether `given` is a sequence of finite real numbers."""
    return (
        isinstance(given, Sequence)
        and not isinstance(given, str)
        and all(
            isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
            for value in given
        )
    )
