"""The kernels by name, for those that were stored."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from bigkd.errors import InputError
from bigkd.kernels.base import Kernel
from bigkd.kernels.compact import Epanechnikov, Triangle
from bigkd.kernels.covariance import CovarianceGaussian
from bigkd.kernels.families import Gaussian, InverseMultiquadric, Laplace, Matern
from bigkd.kernels.products import DotTimes, Polynomial

_FAMILIES: Mapping[str, type[Kernel]] = {
    family.name: family
    for family in (
        Gaussian, Laplace, Matern, InverseMultiquadric, CovarianceGaussian,
        Triangle, Epanechnikov, Polynomial, DotTimes,
    )
}  # fmt: skip


def from_parameters(name: str, parameters: Mapping[str, Any]) -> Kernel:
    """Kernel whose `name` and `parameters` were stored, be it as JSON.

    Raises
    ------
    InputError
        If there is no kernel of that name, or its parameters are others.

    Examples
    --------
    >>> from_parameters("gaussian", {"sigma": 2.0})
    Gaussian(sigma=2.0)
    """
    family = _FAMILIES.get(name)
    if family is None:
        raise InputError(f"kernel must be one of {', '.join(_FAMILIES)}; got {name!r}.")
    expected = [field.name for field in fields(family)]
    if set(expected) != set(parameters):
        raise InputError(
            f"kernel {name!r} takes the parameters {', '.join(expected)}; "
            f"got {', '.join(sorted(parameters)) or 'none'}."
        )
    if family is DotTimes:
        return DotTimes(_inner(parameters["kernel"]))
    return family(**parameters)


def _inner(stored: Any) -> Kernel:
    """Kernel inside another one."""
    if not isinstance(stored, Mapping) or set(stored) != {"name", "parameters"}:
        raise InputError(
            f"the kernel of 'dot_times' must have a name and parameters; got {stored!r}."
        )
    return from_parameters(stored["name"], stored["parameters"])
