"""What of a result is followed from run to run: one number of each run, and how sure it is."""

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import xarray as xr

Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]

Reduction: TypeAlias = Literal["largest", "least", "sum"]
Beyond: TypeAlias = Literal["above", "below", "at most"]

_JUDGED = "judged."
_INSTEAD = {
    "judged.distance": {"distance"},
    "judged.dissimilarity": {"dissimilarity"},
    "distance_upper": {"distance", "distance_to_full"},
}
"""Measures that are left out beside others."""

_BEYOND = {"above": np.greater, "below": np.less, "at most": np.less_equal}
_SIGNS = {"above": (">", "<="), "below": ("<", ">="), "at most": ("<=", ">")}
_WANTED = {"above": "at most", "below": "at least", "at most": "above"}


class Measure(NamedTuple):
    """A variable of results, and what of it is followed."""

    variable: str
    label: str
    over: str | None = None
    """Dimension of the variable; None of scalars."""

    takes: Reduction = "largest"
    """What of several values is followed."""

    error: str | None = None
    """Variable that is the standard error."""

    bounds: tuple[str, str] | None = None
    """Variables that are the least and the largest value that the promise leaves."""

    level: str | None = None
    """What the value is to be held against: a variable, or ``alpha``."""

    level_label: str = ""
    logarithmic: bool = False
    limited: bool = True
    """Whether a threshold may be set for it."""

    beyond: Beyond = "above"
    """Which values exceed a threshold."""

    whole: bool = False
    """Whether it counts something."""

    @property
    def wanted(self) -> str:
        """What a value must be, seen from its threshold."""
        return _WANTED[self.beyond]

    def sign(self, exceeded: bool) -> str:
        """How a value stands to its threshold."""
        beyond, within = _SIGNS[self.beyond]
        return beyond if exceeded else within


MEASURES = (
    Measure("distance", "distance", bounds=("distance_lower", "distance_upper")),
    Measure("dissimilarity", "largest dissimilarity", over="lam", bounds=("lower", "upper")),
    Measure(
        "eigenvalue", "largest eigenvalue of the modes", over="mode", error="standard_error",
        level="noise_level", level_label="noise level", limited=False,
    ),
    Measure("significant", "significant modes", over="mode", takes="sum", whole=True),
    Measure(
        "statistic", "MMD² (biased)", level="null_quantile", level_label="1 - alpha quantile of "
        "permutations", limited=False,
    ),
    Measure("mmd2", "MMD²", error="mmd2_standard_error"),
    Measure("explained_share", "share explained", over="k", takes="sum", beyond="below"),
    Measure("subspace_error", "error of the subspace"),
    Measure(
        "p_value", "p-value", level="alpha", level_label="alpha", logarithmic=True, limited=False,
        beyond="at most",
    ),
    Measure(
        "p_value", "least p-value of the modes", over="mode", takes="least", level="alpha",
        level_label="alpha", logarithmic=True, limited=False,
    ),
    Measure("judged.distance", "largest distance"),
    Measure("judged.dissimilarity", "largest dissimilarity"),
    Measure("distance_to_full", "distance to all rows", limited=False),
    Measure("distance_upper", "largest distance to all rows", limited=False),
    Measure("rank_error", "error of the distribution function", limited=False),
)  # fmt: skip
"""In the order of importance."""


class Series(NamedTuple):
    """A measure, run by run; NaN where a run has none."""

    measure: Measure
    value: Numbers
    lower: Numbers
    upper: Numbers
    error: Numbers
    limit: Numbers
    """The threshold in force."""

    level: Numbers

    @property
    def exceeded(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Runs whose value is beyond the threshold in force."""
        with np.errstate(invalid="ignore"):
            return np.asarray(_BEYOND[self.measure.beyond](self.value, self.limit))


def series_of(history: xr.Dataset, name: str, alpha: Numbers) -> list[Series]:
    """What is followed of the comparison `name`; `alpha` is that of its test in each run."""
    found = (_series(history, name, measure, alpha) for measure in MEASURES)
    followed = [one for one in found if one is not None]
    known = {one.measure.variable for one in followed}
    return [one for one in followed if not known & _INSTEAD.get(one.measure.variable, set())]


def _series(history: xr.Dataset, name: str, measure: Measure, alpha: Numbers) -> Series | None:
    values = _values(history, f"{name}.{measure.variable}")
    of = None if measure.over is None else f"{name}.{measure.over}"
    if values is None or values.dims != (("run",) if of is None else ("run", of)):
        return None
    if not np.isfinite(values).any():
        return None
    nothing = np.full(values.sizes["run"], np.nan)
    at = _chosen(values, measure)

    def beside(other: str | None) -> Numbers:
        found = None if other is None else _values(history, f"{name}.{other}")
        if found is None or found.dims not in (values.dims, ("run",)):
            return nothing
        return found.values if found.ndim == 1 else found.values[np.arange(len(at)), at]

    lower, upper = measure.bounds or (None, None)
    return Series(
        measure,
        _reduced(values, measure, at),
        beside(lower),
        beside(upper),
        beside(measure.error),
        beside(f"limit.{measure.variable.removeprefix(_JUDGED)}") if measure.limited else nothing,
        alpha if measure.level == "alpha" else beside(measure.level),
    )


def _values(history: xr.Dataset, name: str) -> xr.DataArray | None:
    if name not in history or history[name].dtype.kind not in "biuf":
        return None
    found = history[name].astype(np.float64)
    return found.where(np.isfinite(found))


def _chosen(values: xr.DataArray, measure: Measure) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Where in each run the value stands that is followed."""
    if values.ndim == 1 or values.shape[1] == 0:
        return np.zeros(values.shape[0], dtype=np.intp)
    sign = -1.0 if measure.takes == "least" else 1.0
    return np.asarray(np.where(np.isnan(values), -np.inf, sign * values).argmax(axis=1))


def _reduced(
    values: xr.DataArray, measure: Measure, at: np.ndarray[tuple[int], np.dtype[np.intp]]
) -> Numbers:
    if values.ndim == 1:
        return np.asarray(values.values)
    if measure.takes == "sum":
        return np.asarray(values.sum(str(values.dims[1]), min_count=1).values)
    return np.asarray(values.values[np.arange(len(at)), at])
