"""Kernels K(x, y) = (x.y) H(x, y) at the scales of the paper."""

import json
import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from bigkd.errors import InputError
from bigkd.kernels import (
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplace,
    Polynomial,
    RadialKernel,
    from_parameters,
)
from bigkd.kernels._rows import positive

Named: TypeAlias = Literal["gauss", "laplace", "poisson", "kurtosis"]

NAMES = get_args(Named)

_MOMENTS = "higher_moments"


@dataclass(frozen=True)
class HigherMoments:
    r"""Kernel :math:`K(x, y) = \sum_{s=1}^l \lambda_s (x \cdot y / n)^s` of moments up to order l.

    ``HigherMoments((1, 1, 1, 1))`` is the paper's Kurtosis, ``HigherMoments((0, 1))`` is classical
    PCA about the origin, and ``HigherMoments((1,))`` knows the mean direction only.

    Parameters
    ----------
    weights
        The lambdas, that of order 1 first: finite, none negative, not all zero.

    Raises
    ------
    InputError
        If they are not.
    """

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        given = tuple(self.weights) if isinstance(self.weights, tuple | list) else ()
        usable = all(isinstance(value, numbers.Real) for value in given) and any(given)
        if not (usable and all(math.isfinite(value) and value >= 0 for value in given)):
            raise InputError(
                f"HigherMoments needs numbers that are finite, not negative and not all zero, that "
                f"of order 1 first, such as (1, 1, 1, 1); got {self.weights!r}."
            )
        object.__setattr__(self, "weights", tuple(map(float, given)))

    def of_width(self, n: int) -> Polynomial:
        """The H of this K for rows of `n` features."""
        return Polynomial(
            tuple(value / float(n) ** (order + 1) for order, value in enumerate(self.weights))
        )


KernelChoice: TypeAlias = "Named | HigherMoments | RadialKernel | Polynomial"


@dataclass(frozen=True, kw_only=True)
class Tempered:
    """A kernel K(x, y) = (x.y) H(x, y), and what theory knows of it.

    Attributes
    ----------
    kernel
        The H.
    about
        The choice, for the result.
    """

    kernel: Kernel
    about: dict[str, Any]

    @property
    def degree(self) -> int | None:
        """The l of Theorem 10: degree of K as a polynomial of x.y; None where it is none."""
        if not isinstance(self.kernel, Polynomial):
            return None
        return max(at for at, value in enumerate(self.kernel.coefficients) if value) + 1

    @property
    def damping(self) -> float | None:
        """The sigma^2 of Theorem 11, in H = exp(-sigma^2 |x - y|^2 / 2); None for others."""
        return self.kernel.sigma**-2 if isinstance(self.kernel, Gaussian) else None


def tempered(kernel: Any, a: float, n: int) -> Tempered:
    """The kernel that was asked for, on rows of `n` features.

    Raises
    ------
    InputError
        If there is none of the name, `a` is out of range or goes with another kernel, or an object
        is neither radial nor a polynomial of the inner product without negative coefficients.
    """
    if isinstance(kernel, str) and kernel in _SCALED:
        scale = positive("a", a)
        return Tempered(kernel=_SCALED[kernel](scale, n), about={"kernel": kernel, "a": scale})
    if isinstance(a, bool) or not isinstance(a, numbers.Real) or a != 1.0:
        raise InputError(
            f"a goes with the kernels gauss, laplace and poisson, whose scale it is; got a={a!r} "
            f"with kernel={kernel!r}. Leave it out."
        )
    about = _told(kernel)
    if isinstance(kernel, str) and kernel == "kurtosis":
        kernel = HigherMoments((1, 1, 1, 1))
    if isinstance(kernel, HigherMoments):
        kernel = kernel.of_width(n)
    if not _invariant(kernel):
        raise InputError(
            f"kernel must be one of {', '.join(map(repr, NAMES))}, a HigherMoments, or an H of "
            f"bigkd.kernels that is positive definite in {n} dimensions and depends on |x - y| or "
            f"on x.y only, such as Matern(1.5, 10.0); got {kernel!r}."
        )
    if not kernel.is_positive_definite(n):
        raise InputError(f"kernel={kernel!r} is not positive definite in {n} dimensions.")
    return Tempered(kernel=kernel, about=about)


def stored_kernel(attrs: Mapping[str, Any]) -> tuple[Any, float]:
    """The kernel and `a` of a result, as `tempered` takes them."""
    name = attrs["kernel"]
    if "kernel_parameters" not in attrs:
        return name, float(attrs.get("a", 1.0))
    parameters = json.loads(attrs["kernel_parameters"])
    if name == _MOMENTS:
        return HigherMoments(tuple(parameters["weights"])), 1.0
    return from_parameters(name, parameters), 1.0


def _told(kernel: Any) -> dict[str, Any]:
    """An object as attributes know it."""
    if isinstance(kernel, str):
        return {"kernel": kernel}
    if isinstance(kernel, HigherMoments):
        return {"kernel": _MOMENTS, "kernel_parameters": json.dumps({"weights": kernel.weights})}
    if isinstance(kernel, Kernel):
        return {"kernel": kernel.name, "kernel_parameters": json.dumps(kernel.parameters)}
    return {}


def _invariant(kernel: object) -> bool:
    return isinstance(kernel, RadialKernel | Polynomial)


_SCALED: Mapping[str, Callable[[float, int], Kernel]] = {
    "gauss": lambda a, n: Gaussian(math.sqrt(n / (2.0 * a))),
    "laplace": lambda a, n: Laplace(math.sqrt(n) / a),
    "poisson": lambda a, n: InverseMultiquadric(math.sqrt(n / a), (n + 1) / 2),
}
