"""How data are represented: kernels, landmarks, masks, weights; chosen once, for every question."""

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np

from bigkd.did.landmarks import LandmarkChoice
from bigkd.did.scaling import Normalize
from bigkd.engine import Options
from bigkd.errors import InputError
from bigkd.kernels import Gaussian, Kernel, Laplace

NanPolicy: TypeAlias = Literal["raise", "zero_weight"]
Scale: TypeAlias = Literal["paper", "unit"]
Precision: TypeAlias = Literal["float32", "float64"]


class Representation(TypedDict, total=False):
    """How data are represented; the defaults are the paper's.

    Attributes
    ----------
    x_kernel
        Kernel of positions, which lie in [-1, 1] along each axis ([0, 1] for series):
        ``Gaussian(1/6)`` by default.
    y_kernel
        Kernel of normalised values: ``Laplace(1/5)`` by default.
    mask
        Weight of each position in the reference f: ``"blackman"`` (default), None, or an array of
        the grid's shape. The window leaves edges out, which what is found in g may have moved in
        from; for fields whose edges are no accident, None tells more apart.
    x_landmarks, y_landmarks
        Positions and values that the kernels are projected on: a number of grid points along each
        axis, ``"grid:8"``, ``"random:500"``, ``"data:500"`` (of the data's own, chosen one after
        the other where the kernel is explained worst), or an array of points: positions in
        the domain, values in the units of the data. By default grids: 10 x 10 positions (20 on one
        axis, 5 on each of more than two), 8 x 8 x 8 values (22 x 22 of two, 64 of one); 512 points
        of the data where there are more than three values. Landmarks that are no grid, or another
        kernel than a Gaussian, take ``8 N M_X`` bytes in every task.
    normalize
        Units of the values: ``"imagenet"`` subtracts the mean colour of ImageNet and divides by its
        standard deviation; ``"standardize"`` does so with those of a sample; None leaves values as
        they are; or a pair ``(mean, std)``. ``"auto"`` (default): ``"imagenet"`` for three values
        in [0, 1] or three bytes, else ``"standardize"``. What a sample decides differs from one
        collection to another: pass numbers, and `y_landmarks`, to compare between calls.
    weights
        Weight of each position besides the mask: None, ``"coslat"`` (areas, from a coordinate
        called lat or latitude, in degrees), or an array of the grid's shape.
    nan
        Values that are not finite: ``"raise"`` (default), or ``"zero_weight"`` for their positions.
    dims
        Names of the axes of one datum, where the data bear none: ``("y", "x")``,
        ``("time", "variable")``. An axis called channel, variable or band holds values.
    value_dim
        Name of the axis that holds values, if it is another.
    dtype
        ``"float32"`` or ``"float64"``, of kernel values and sums over positions; by default float64
        for float64 data and wide integers, and where kernels are so wide that whitening enlarges
        errors 1e5 times; else float32, with relative errors of some 1e-6. All else is float64.
    jitter
        What is added to the diagonal of the landmarks' Gram matrices; more is where they are
        singular, and reported.
    seed
        Of every random choice.
    """

    x_kernel: Kernel | None
    y_kernel: Kernel | None
    mask: Any
    x_landmarks: LandmarkChoice
    y_landmarks: LandmarkChoice
    normalize: Normalize
    weights: Any
    nan: NanPolicy
    dims: Sequence[str] | None
    value_dim: str | None
    dtype: Precision | None
    jitter: float
    seed: int


class DidOptions(Representation, Options, total=False):
    """How data are represented, read, and passes run."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A `Representation` with its defaults, checked."""

    x_kernel: Kernel = field(default_factory=lambda: Gaussian(1 / 6))
    y_kernel: Kernel = field(default_factory=lambda: Laplace(0.2))
    mask: Any = "blackman"
    x_landmarks: LandmarkChoice = None
    y_landmarks: LandmarkChoice = None
    normalize: Normalize = "auto"
    weights: Any = None
    nan: NanPolicy = "raise"
    dims: Sequence[str] | None = None
    value_dim: str | None = None
    dtype: Precision | None = None
    jitter: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("x_kernel", "y_kernel"):
            kernel = getattr(self, name)
            if not isinstance(kernel, Kernel):
                raise InputError(
                    f"{name} must be a kernel such as bigkd.kernels.Gaussian(0.2); got {kernel!r}."
                )
        for name, allowed in (
            ("nan", ("raise", "zero_weight")),
            ("dtype", (None, "float32", "float64")),
        ):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} must be one of {allowed}; got {getattr(self, name)!r}.")
        if not (_is_number(self.jitter) and 0 <= self.jitter < math.inf):
            raise InputError(f"jitter must be finite and not negative; got {self.jitter!r}.")
        if not (isinstance(self.seed, int | np.integer) and self.seed >= 0):
            raise InputError(f"seed must be a whole number and not negative; got {self.seed!r}.")


def split_options(options: Mapping[str, Any]) -> tuple[Choice, dict[str, Any]]:
    """What `options` say of the representation, and the others.

    Raises
    ------
    InputError
        If a value cannot be used.
    """
    names = {one.name for one in fields(Choice)}
    own = {name: value for name, value in options.items() if name in names}
    for name in ("x_kernel", "y_kernel"):
        if own.get(name, 0) is None:
            del own[name]
    return Choice(**own), {name: value for name, value in options.items() if name not in names}


def representation_of(options: Mapping[str, Any]) -> Choice:
    """The representation that `options` ask for, of functions without passes.

    Raises
    ------
    TypeError
        If there is no option of a name.
    """
    choice, others = split_options(options)
    for name in others:
        near = difflib.get_close_matches(name, [one.name for one in fields(Choice)], n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise TypeError(f"unexpected keyword argument {name!r}.{hint}")
    return choice


@dataclass(frozen=True, kw_only=True)
class Strength:
    """Which lambda, and in which units."""

    lams: tuple[float, ...]
    relative: bool
    scale: Scale

    @property
    def attrs(self) -> dict[str, Any]:
        """The choice, as attributes."""
        return {"scale": self.scale, "lam_relative": int(self.relative)}


def strength_of(lam: Any, *, relative: bool, scale: Scale, n_points: int) -> Strength:
    """`lam` as numbers: one, several, or ``"rate"`` for ``N**(-1/4)``.

    Raises
    ------
    InputError
        If one is not a positive finite number, or `scale` or `relative` are no choices.
    """
    if scale not in ("paper", "unit"):
        raise InputError(f"scale must be 'paper' or 'unit'; got {scale!r}.")
    if not isinstance(relative, bool | np.bool_):
        raise InputError(f"relative must be True or False; got {relative!r}.")
    if isinstance(lam, str) and lam == "rate":
        lam = n_points**-0.25
    several = [lam] if _is_number(lam) or isinstance(lam, str) or lam is None else list(lam)
    if not several or not all(_is_number(one) and 0 < one < math.inf for one in several):
        raise InputError(
            f"lam must be a positive finite number, several of them, or 'rate' for N**(-1/4); got "
            f"{lam!r}."
        )
    if len(set(map(float, several))) != len(several):
        raise InputError(f"lam must not name a number twice; got {lam!r}.")
    return Strength(lams=tuple(map(float, several)), relative=bool(relative), scale=scale)


def kernel_text(kernel: Kernel) -> str:
    """A kernel, for attributes."""
    return f"{kernel.name} {json.dumps(kernel.parameters)}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
