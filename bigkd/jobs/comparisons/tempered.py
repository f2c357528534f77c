"""Kernels of MMD-PCA in a job file: by the names of the paper, by moments, or with a length."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from bigkd.jobs.base import Part, Positive
from bigkd.jobs.kernels import (
    EpanechnikovPart,
    GaussianPart,
    InverseMultiquadricPart,
    MaternPart,
    PolynomialPart,
    TrianglePart,
    of_a_length,
)
from bigkd.kernels import Laplace
from bigkd.mmdpca import HigherMoments
from bigkd.mmdpca.kernels import NAMES


class NamedPart(Part):
    """A kernel whose scale is ``a``, or which has none."""

    name: Literal["gauss", "poisson", "kurtosis"]

    def build(self) -> Any:
        """What `bigkd.mmdpca.fit` takes as its kernel."""
        return self.name


class LaplaceChoicePart(Part):
    """The Laplace kernel at the scale ``a``, or with a length of its own."""

    name: Literal["laplace"]
    length_scale: Positive | None = None

    def build(self) -> Any:
        """What `bigkd.mmdpca.fit` takes as its kernel."""
        return self.name if self.length_scale is None else Laplace(self.length_scale)


class HigherMomentsPart(Part):
    """``sum_s w_s (x . y / n)^s``."""

    name: Literal["higher_moments"]
    weights: list[float] = Field(description="the w, that of order 1 first; 0, 1 is PCA")

    def build(self) -> Any:
        """What `bigkd.mmdpca.fit` takes as its kernel."""
        return HigherMoments(tuple(self.weights))

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        self.build()
        return self


TemperedPart: TypeAlias = (
    NamedPart | LaplaceChoicePart | HigherMomentsPart | GaussianPart | MaternPart
    | InverseMultiquadricPart | TrianglePart | EpanechnikovPart | PolynomialPart
)  # fmt: skip


def _spelled_out(value: Any) -> Any:
    """The mapping that a name stands for, and any mapping as it is."""
    if isinstance(value, str) and value in NAMES:
        return {"name": value}
    if isinstance(value, Mapping | Part):
        return value
    raise ValueError(
        f"must be {', '.join(NAMES)}, or a mapping such as {{name: higher_moments, weights: [0, "
        f"1]}} or {{name: gaussian, sigma: 2.5}}; got {value!r}"
    )


TemperedNamed: TypeAlias = Annotated[TemperedPart, Field(discriminator="name")]

TemperedKernelField: TypeAlias = Annotated[
    TemperedNamed,
    BeforeValidator(_spelled_out, json_schema_input_type=Literal[NAMES] | TemperedNamed),
    AfterValidator(of_a_length),
]
"""A kernel of `bigkd.mmdpca.fit`."""

GAUSS = NamedPart(name="gauss")
