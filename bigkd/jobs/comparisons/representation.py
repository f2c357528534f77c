"""How data of `bigkd.did` are represented, and how strong deformations may be."""

import math
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import BeforeValidator, Field, ValidationInfo

from bigkd.did.choice import NanPolicy, Precision, Representation, Scale
from bigkd.did.landmarks import KINDS
from bigkd.io import load_array
from bigkd.jobs.base import Part, located
from bigkd.jobs.kernels import GaussianPart, KernelPart, LaplacePart, LengthKernelField

_ARRAY = ".npy"


def _one_of(*names: str) -> Any:
    """Checks that a text is one of `names`, or the path of an array, seen from the job file."""

    def check(value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, str) and value.endswith(_ARRAY):
            return located(value, info)
        if value in names:
            return value
        raise ValueError(
            f"must be {', '.join(names)}, or the path of a {_ARRAY} file; got {value!r}"
        )

    return BeforeValidator(check)


def _landmarks(value: Any, info: ValidationInfo) -> Any:
    """A number of grid points, a kind with a number, or the path of an array."""
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    if isinstance(value, str):
        kind, _, count = value.partition(":")
        if kind in KINDS and count.isdigit() and int(count) >= 1:
            return value
        if value.endswith(_ARRAY):
            return located(value, info)
    raise ValueError(
        f"must be a number of grid points along each axis, 'grid:8', 'random:500', 'data:500', or "
        f"the path of a {_ARRAY} file; got {value!r}"
    )


def _is_positive(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value < math.inf


def _lam(value: Any) -> Any:
    if value == "rate" or _is_positive(value):
        return value
    raise ValueError(f"must be one positive number, or 'rate' for N^(-1/4); got {value!r}")


def _lams(value: Any) -> Any:
    several = value if isinstance(value, list) else [value]
    if value == "rate" or (several and all(_is_positive(one) for one in several)):
        if len(set(several)) == len(several):
            return value
        raise ValueError(f"must not name a number twice; got {value!r}")
    raise ValueError(
        f"must be a positive number, a list of them, or 'rate' for N^(-1/4); got {value!r}"
    )


MaskField: TypeAlias = Annotated[str, _one_of("blackman", "none")]
WeightsField: TypeAlias = Annotated[str, _one_of("none", "coslat")]
LandmarksField: TypeAlias = Annotated[int | str, BeforeValidator(_landmarks)]
LamField: TypeAlias = Annotated[float | str, BeforeValidator(_lam)]
LamsField: TypeAlias = Annotated[float | list[float] | str, BeforeValidator(_lams)]


class RepresentationPart(Part):
    """What `bigkd.did.Representation` is asked for."""

    x_kernel: LengthKernelField = Field(
        default=GaussianPart(name="gaussian", sigma=1 / 6),
        description="kernel of positions, which lie in [-1, 1], of series in [0, 1]",
    )
    y_kernel: LengthKernelField = Field(
        default=LaplacePart(name="laplace", length_scale=0.2),
        description="kernel of normalised values",
    )
    mask: MaskField = Field(
        default="blackman",
        description="weight of each position in the reference: blackman, none, or a .npy file",
    )
    x_landmarks: LandmarksField | None = Field(
        default=None,
        description="positions that kernels are projected on: a number along each axis, grid:8, "
        "random:500, data:500, or a .npy file",
    )
    y_landmarks: LandmarksField | None = Field(
        default=None, description="values that kernels are projected on, as x_landmarks"
    )
    normalize: Literal["auto", "imagenet", "standardize", "none"] = Field(
        default="auto", description="units of the values; auto: imagenet for colours"
    )
    weights: WeightsField = Field(
        default="none",
        description="weight of each position besides the mask: none, coslat for areas from "
        "latitudes, or a .npy file",
    )
    nan: NanPolicy = Field(default="raise", description="what to do with NaN and infinities")
    dims: list[str] | None = Field(
        default=None, description="names of the axes of one datum, where the data bear none"
    )
    value_dim: str | None = Field(
        default=None, description="axis of values, unless it is channel, variable or band"
    )
    dtype: Precision | None = Field(
        default=None, description="of kernel values; float64 for float64 data, else float32"
    )
    jitter: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="added to the diagonals of the landmarks' Gram matrices"
    )
    seed: int = Field(default=0, ge=0, description="seed of every random choice")

    @property
    def representation(self) -> Representation:
        """The keywords of `bigkd.did.Representation`; arrays are read now."""
        found = {name: getattr(self, name) for name in RepresentationPart.model_fields}
        for name, value in found.items():
            if isinstance(value, KernelPart):
                found[name] = value.build()
            elif name != "dims" and value == "none":
                found[name] = None
            elif name in _ARRAYS and isinstance(value, str) and value.endswith(_ARRAY):
                found[name] = load_array(value, name=name)
        return cast("Representation", found)


_ARRAYS = ("mask", "weights", "x_landmarks", "y_landmarks")


class StrengthPart(Part):
    """In which units lambda is."""

    relative: bool = Field(
        default=False, description="lam counts in units of the squared norm of what is searched"
    )
    scale: Scale = Field(
        default="paper", description="the paper's equations as they stand, or maps of norm 1"
    )
