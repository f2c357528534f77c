"""``fail_if``: when a result counts as a difference that somebody should know of."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from pydantic import Field

from bigkd.jobs.base import Part
from bigkd.jobs.records import Judgement


class ThresholdsPart(Part):
    """When a comparison exceeds what is put up with."""

    significant: bool = Field(default=False, description="any mode is significant")
    rejected: bool = Field(
        default=False, description="the test rejects that both come from one source"
    )
    above: float | None = Field(
        default=None,
        ge=0,
        description="a distance, a dissimilarity or the mmd2 of mmdpca is above this",
    )
    explained_below: float | None = Field(
        default=None, ge=0, description="the components together explain less than this share"
    )
    error_above: float | None = Field(
        default=None, ge=0, description="subspace_error is above this"
    )

    @property
    def given(self) -> dict[str, float | None]:
        """The thresholds that are set; None for those that are yes or no."""
        found = {name: getattr(self, name) for name in type(self).model_fields}
        return {
            name: None if value is True else value
            for name, value in found.items()
            if value is not None and value is not False
        }

    def unjudged(self, judged: frozenset[str]) -> dict[str, str]:
        """Thresholds of what is not among the variables `judged`, and what would be needed."""
        return {
            name: _JUDGED[name].needed
            for name in self.given
            if not _JUDGED[name].variables & judged
        }

    def judgements(self, result: xr.Dataset) -> tuple[Judgement, ...]:
        """Every variable of `result` that there is a threshold for, against it."""
        return tuple(
            Judgement(name, variable, limit, *_JUDGED[name].judge(result[variable].values, limit))
            for name, limit in self.given.items()
            for variable in sorted(_JUDGED[name].variables & {*map(str, result.data_vars)})
        )


class Threshold(NamedTuple):
    """What may be asked of a result."""

    variables: frozenset[str]
    """What is judged, of what a comparison makes."""

    needed: str
    """Which comparisons make it."""

    judge: Callable[[Any, Any], tuple[float, bool]]
    """The value that is judged, of all values of a variable, and whether it is beyond a limit."""


def _any(values: Any, limit: None) -> tuple[float, bool]:
    del limit
    found = bool(np.any(values))
    return float(found), found


def _above(values: Any, limit: float) -> tuple[float, bool]:
    known = values[~np.isnan(values)]  # pairs that have no dissimilarity
    largest = float(np.max(known)) if known.size else np.nan
    return largest, not largest <= limit


def _sum_below(values: Any, limit: float) -> tuple[float, bool]:
    total = float(np.sum(values))
    return total, not total >= limit


_JUDGED = {
    "significant": Threshold(frozenset({"significant"}), "modes", _any),
    "rejected": Threshold(
        frozenset({"rejected"}), "a test: two_sample, or distance with a test", _any
    ),
    "above": Threshold(
        frozenset({"distance", "dissimilarity", "mmd2"}),
        "distances: distance, distance_matrix, did or did_matrix; or an mmd2: mmdpca, unless told "
        "not to measure it, or mmdpca_distance",
        _above,
    ),
    "explained_below": Threshold(
        frozenset({"explained_share"}),
        "shares: mmdpca, unless told not to measure MMDs",
        _sum_below,
    ),
    "error_above": Threshold(frozenset({"subspace_error"}), "subspaces: mmdpca", _above),
}
