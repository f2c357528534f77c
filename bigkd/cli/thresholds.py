"""Thresholds: results that end a command with an exit code of its own."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import click
import xarray as xr

from bigkd.cli.checked import flag
from bigkd.cli.failures import THRESHOLD
from bigkd.errors import InputError
from bigkd.jobs import Job

fail_if_significant_option = click.option(
    "--fail-if-significant", is_flag=True, help="Exit with 3 if any mode is significant."
)

fail_if_rejected_option = click.option(
    "--fail-if-rejected",
    is_flag=True,
    help="Exit with 3 if the test rejects that both come from one source.",
)

fail_above_option = click.option(
    "--fail-above",
    type=float,
    metavar="DISTANCE",
    help="Exit with 3 if a distance, a dissimilarity or the mmd2 of mmdpca is above this.",
)

fail_if_explained_below_option = click.option(
    "--fail-if-explained-below",
    type=float,
    metavar="SHARE",
    help="Exit with 3 if the components together explain less than this share.",
)

fail_if_error_above_option = click.option(
    "--fail-if-error-above",
    type=float,
    metavar="SINE",
    help="Exit with 3 if subspace_error is above this.",
)


class Threshold(NamedTuple):
    """What may be asked of a result."""

    variables: set[str]
    """What is judged, of what a job makes."""

    needed: str
    """Which jobs make it."""

    exceeded: Callable[[xr.DataArray, Any], Any]
    """Whether values are beyond a limit."""


_JUDGED = {
    "fail_if_significant": Threshold({"significant"}, "modes", lambda values, _: values.any()),
    "fail_if_rejected": Threshold(
        {"rejected"}, "a test: two_sample, or distance with a test", lambda values, _: values.any()
    ),
    "fail_above": Threshold(
        {"distance", "dissimilarity", "mmd2"},
        "distances: distance, distance_matrix, did or did_matrix; or an mmd2: mmdpca, unless told "
        "not to measure it, or mmdpca_distance",
        lambda values, limit: (values > limit).any(),
    ),
    "fail_if_explained_below": Threshold(
        {"explained_share"},
        "shares: mmdpca, unless told not to measure MMDs",
        lambda values, limit: not values.sum() >= limit,
    ),
    "fail_if_error_above": Threshold(
        {"subspace_error"}, "subspaces: mmdpca", lambda values, limit: (values > limit).any()
    ),
}


def thresholds_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The thresholds that were set.

    Raises
    ------
    InputError
        If a limit is not a number that can be exceeded.
    """
    found = {name: options.get(name) for name in _JUDGED}
    given = {
        name: value for name, value in found.items() if value is not None and value is not False
    }
    for name, limit in given.items():
        if limit is not True and not 0 <= limit < math.inf:
            raise InputError(f"{flag(name)} must be finite and not negative; got {limit}.")
    return given


def require_judged(job: Job, thresholds: Mapping[str, Any]) -> None:
    """Raise InputError for a threshold of what `job` does not make, before the long work."""
    for name in thresholds:
        if not _JUDGED[name].variables & job.comparison.judged:
            raise InputError(f"{flag(name)} is for jobs that make {_JUDGED[name].needed}.")


def judge(result: xr.Dataset, thresholds: Mapping[str, Any]) -> None:
    """End the command with an exit code of its own if a threshold is exceeded."""
    for name, limit in thresholds.items():
        for variable in _JUDGED[name].variables & {*map(str, result.data_vars)}:
            if bool(_JUDGED[name].exceeded(result[variable], limit)):
                click.get_current_context().exit(THRESHOLD)
