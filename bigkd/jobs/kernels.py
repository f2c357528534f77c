"""The kernel of a job: its name and parameters, or a rule that finds its length."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from bigkd.finc import ScaledRule
from bigkd.jobs.base import Part, Positive
from bigkd.kernels import Gaussian, InverseMultiquadric, Kernel, Laplace, Matern

RULES = ("auto", "median")


class KernelPart(Part):
    """A kernel whose length is given, or found by a rule on a sample and multiplied by a factor."""

    family: ClassVar[type[Kernel]]

    bandwidth: Literal["auto", "median"] | None = Field(
        default=None, description="rule that finds the length, in its place"
    )
    factor: Positive | None = Field(
        default=None, description="what the length that the rule finds is multiplied by"
    )

    @model_validator(mode="after")
    def _length_or_rule(self) -> Self:
        length = self.family.length_name
        if (getattr(self, length) is None) == (self.bandwidth is None):
            raise ValueError(f"must have either {length} or bandwidth ('auto' or 'median')")
        if self.factor is not None and self.bandwidth is None:
            raise ValueError(f"has a factor, which goes with bandwidth and not with {length}")
        self.build()
        return self

    def build(self) -> Kernel | ScaledRule | Literal["auto", "median"]:
        """What `bigkd.finc.modes` takes as its kernel."""
        own = [field.name for field in fields(self.family)]
        given = {name: getattr(self, name) for name in own if getattr(self, name) is not None}
        if self.bandwidth is None:
            return self.family(**given)
        if self.family is Gaussian and self.factor is None:
            return self.bandwidth
        shape = self.family(**given, **{self.family.length_name: 1.0})
        return ScaledRule(self.bandwidth, self.factor or 1.0, shape)


class GaussianPart(KernelPart):
    """``exp(-r^2 / (2 sigma^2))``."""

    family = Gaussian
    name: Literal["gaussian"]
    sigma: Positive | None = None


class LaplacePart(KernelPart):
    """``exp(-r / length_scale)``."""

    family = Laplace
    name: Literal["laplace"]
    length_scale: Positive | None = None


class MaternPart(KernelPart):
    """Matérn kernel of smoothness nu."""

    family = Matern
    name: Literal["matern"]
    nu: Positive
    length_scale: Positive | None = None


class InverseMultiquadricPart(KernelPart):
    """``(1 + r^2 / length_scale^2)^-beta``."""

    family = InverseMultiquadric
    name: Literal["inverse_multiquadric"]
    length_scale: Positive | None = None
    beta: Positive


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


KernelField: TypeAlias = Annotated[
    Annotated[
        GaussianPart | LaplacePart | MaternPart | InverseMultiquadricPart,
        Field(discriminator="name"),
    ],
    BeforeValidator(_spelled_out),
]

KERNELS: Mapping[str, type[KernelPart]] = {
    part.family.name: part
    for part in (GaussianPart, LaplacePart, MaternPart, InverseMultiquadricPart)
}
"""The kernels by name."""

AUTO = GaussianPart(name="gaussian", bandwidth="auto")
