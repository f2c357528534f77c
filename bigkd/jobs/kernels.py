"""The kernel of a job: its name and parameters, or a rule that finds its length."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from bigkd.finc import ScaledRule
from bigkd.jobs.base import Part, Positive
from bigkd.kernels import (
    CovarianceGaussian,
    Epanechnikov,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplace,
    Matern,
    Polynomial,
    RadialKernel,
    Triangle,
)

RULES = ("auto", "median")


class KernelPart(Part):
    """A kernel by its name and parameters."""

    family: ClassVar[type[Kernel]]

    def build(self) -> Kernel | ScaledRule | Literal["auto", "median"]:
        """What Python functions take as their kernel."""
        return self.family(**{name: getattr(self, name) for name in _parameters(self.family)})

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        self.build()
        return self


class LengthPart(KernelPart):
    """A kernel whose length is given, or found by a rule on a sample and multiplied by a factor."""

    family: ClassVar[type[RadialKernel]]

    bandwidth: Literal["auto", "median"] | None = Field(
        default=None, description="rule that finds the length, in its place"
    )
    factor: Positive | None = Field(
        default=None, description="what the length that the rule finds is multiplied by"
    )

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        length = self.family.length_name
        if (getattr(self, length) is None) == (self.bandwidth is None):
            raise ValueError(f"must have either {length} or bandwidth ('auto' or 'median')")
        if self.factor is not None and self.bandwidth is None:
            raise ValueError(f"has a factor, which goes with bandwidth and not with {length}")
        self.build()
        return self

    def build(self) -> Kernel | ScaledRule | Literal["auto", "median"]:
        """What Python functions take as their kernel: one with a length, or a rule."""
        own = {name: getattr(self, name) for name in _parameters(self.family)}
        given = {name: value for name, value in own.items() if value is not None}
        if self.bandwidth is None:
            return self.family(**given)
        if self.family is Gaussian and self.factor is None:
            return self.bandwidth
        shape = self.family(**given, **{self.family.length_name: 1.0})
        return ScaledRule(self.bandwidth, self.factor or 1.0, shape)


class GaussianPart(LengthPart):
    """``exp(-r^2 / (2 sigma^2))``."""

    family = Gaussian
    name: Literal["gaussian"]
    sigma: Positive | None = None


class LaplacePart(LengthPart):
    """``exp(-r / length_scale)``."""

    family = Laplace
    name: Literal["laplace"]
    length_scale: Positive | None = None


class MaternPart(LengthPart):
    """Matérn kernel of smoothness nu."""

    family = Matern
    name: Literal["matern"]
    nu: Positive
    length_scale: Positive | None = None


class InverseMultiquadricPart(LengthPart):
    """``(1 + r^2 / length_scale^2)^-beta``."""

    family = InverseMultiquadric
    name: Literal["inverse_multiquadric"]
    length_scale: Positive | None = None
    beta: Positive


class TrianglePart(LengthPart):
    """``max(0, 1 - r / radius)``."""

    family = Triangle
    name: Literal["triangle"]
    radius: Positive | None = None


class EpanechnikovPart(LengthPart):
    """``max(0, 1 - r^2 / radius^2)``."""

    family = Epanechnikov
    name: Literal["epanechnikov"]
    radius: Positive | None = None


class CovarianceGaussianPart(KernelPart):
    """``exp(-(x - y)^T S^-1 (x - y) / 2)``."""

    family = CovarianceGaussian
    name: Literal["covariance_gaussian"]
    covariance: list[list[float]] = Field(description="the matrix S, a list of its rows")


class PolynomialPart(KernelPart):
    """``sum_i c_i (x . y)^i``."""

    family = Polynomial
    name: Literal["polynomial"]
    coefficients: list[float] = Field(description="the c, from the constant on")


def _parameters(family: type[Kernel]) -> list[str]:
    return [field.name for field in fields(family)]


def _spelled_out(value: Any) -> Any:
    """The Gaussian that ``auto`` and ``median`` stand for, and any mapping as it is."""
    if value in RULES:
        return {"name": "gaussian", "bandwidth": value}
    if isinstance(value, Mapping | KernelPart):
        return value
    raise ValueError(
        f"must be 'auto', 'median', or a mapping such as {{name: gaussian, sigma: 2.5}}; "
        f"got {value!r}"
    )


SpectralPart: TypeAlias = (
    GaussianPart | LaplacePart | MaternPart | InverseMultiquadricPart | CovarianceGaussianPart
)
AnyPart: TypeAlias = SpectralPart | TrianglePart | EpanechnikovPart | PolynomialPart

SpectralNamed: TypeAlias = Annotated[SpectralPart, Field(discriminator="name")]
AnyNamed: TypeAlias = Annotated[AnyPart, Field(discriminator="name")]

SpectralKernelField: TypeAlias = Annotated[
    SpectralNamed,
    BeforeValidator(_spelled_out, json_schema_input_type=Literal["auto", "median"] | SpectralNamed),
]
"""A kernel with random Fourier features."""

KernelField: TypeAlias = Annotated[
    AnyNamed,
    BeforeValidator(_spelled_out, json_schema_input_type=Literal["auto", "median"] | AnyNamed),
]
"""Any kernel."""


def of_a_length(part: Part) -> Part:
    """`part`, unless a rule stands for its length."""
    if isinstance(part, LengthPart) and part.bandwidth is not None:
        raise ValueError(
            f"has the rule {part.bandwidth!r}; give {part.family.length_name}, as there is no "
            f"rule here"
        )
    return part


def _by_name(value: Any) -> Any:
    if isinstance(value, Mapping | KernelPart):
        return value
    raise ValueError(f"must be a mapping such as {{name: gaussian, sigma: 0.2}}; got {value!r}")


LengthKernelField: TypeAlias = Annotated[
    AnyNamed,
    BeforeValidator(_by_name),
    AfterValidator(of_a_length),
]
"""Any kernel, with its length."""

KERNELS: Mapping[str, type[KernelPart]] = {part.family.name: part for part in get_args(AnyPart)}
"""The kernels by name."""

AUTO = GaussianPart(name="gaussian", bandwidth="auto")


def found_kernel(part: Part, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The field ``kernel`` with the length that a rule found, where `part` has a rule."""
    if not isinstance(part, LengthPart) or part.bandwidth is None:
        return {}
    parameters = json.loads(attrs["kernel_parameters"])
    return {"kernel": {"name": attrs["kernel"], **parameters}}
