"""Kernels that vanish beyond a radius: those that eps-samples of balls approximate."""

from dataclasses import dataclass
from typing import ClassVar

from bigkd.backends import namespace
from bigkd.kernels._rows import positive_integer
from bigkd.kernels.base import RadialKernel
from bigkd.protocols import Array


@dataclass(frozen=True)
class Triangle(RadialKernel):
    r"""Triangle kernel :math:`\max(0, 1 - r/R)`.

    Positive definite for rows of width 1 and for no others: from width 2 on a squared kernel
    distance can be negative. It has no spectrum to draw frequencies from.

    Examples
    --------
    >>> import numpy as np
    >>> Triangle(10.0)(np.zeros((1, 2)), np.array([[3.0, 4.0], [30.0, 40.0]]))
    array([[0.5, 0. ]])
    """

    radius: float

    name: ClassVar[str] = "triangle"
    length_name: ClassVar[str] = "radius"

    def of_squared(self, squared: Array) -> Array:
        """Kernel of squared distances, same shape and dtype."""
        xp = namespace(squared)
        return _floored(xp.sqrt(squared) / -self.radius + 1.0)

    def is_positive_definite(self, width: int) -> bool:
        """Whether it is positive definite in R^width: for width 1 only."""
        return positive_integer("width", width) == 1


@dataclass(frozen=True)
class Epanechnikov(RadialKernel):
    r"""Epanechnikov kernel :math:`\max(0, 1 - r^2/R^2)`.

    Positive definite for no width: a squared kernel distance can be negative. It has no spectrum
    to draw frequencies from.

    Examples
    --------
    >>> import numpy as np
    >>> Epanechnikov(10.0)(np.zeros((1, 2)), np.array([[3.0, 4.0], [30.0, 40.0]]))
    array([[0.75, 0.  ]])
    """

    radius: float

    name: ClassVar[str] = "epanechnikov"
    length_name: ClassVar[str] = "radius"

    def of_squared(self, squared: Array) -> Array:
        """Kernel of squared distances, same shape and dtype."""
        # Scaled before it is squared: radius**2 leaves float32's range long before the radius.
        return _floored(squared / -self.radius / self.radius + 1.0)

    def is_positive_definite(self, width: int) -> bool:
        """Whether it is positive definite in R^width: never."""
        positive_integer("width", width)
        return False


def _floored(values: Array) -> Array:
    """`values`, and 0 in place of negative ones; NaN stays."""
    xp = namespace(values)
    return xp.where(values < 0, xp.zeros_like(values), values)
