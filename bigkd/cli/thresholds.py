"""Thresholds: results that end a command with an exit code of its own."""

import math
from collections.abc import Mapping
from typing import Any

import click
import xarray as xr

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
    help="Exit with 3 if a distance or dissimilarity is above this.",
)

_JUDGED = {
    "fail_if_significant": ({"significant"}, "modes"),
    "fail_if_rejected": ({"rejected"}, "a test: two_sample, or distance with a test"),
    "fail_above": (
        {"distance", "dissimilarity"},
        "distances: distance, distance_matrix, did or did_matrix",
    ),
}


def thresholds_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The thresholds that were set.

    Raises
    ------
    InputError
        If a distance is not a number that can be exceeded.
    """
    limit = options.get("fail_above")
    if limit is not None and not 0 <= limit < math.inf:
        raise InputError(f"--fail-above must be finite and not negative; got {limit}.")
    found = {name: options.get(name) for name in _JUDGED}
    return {
        name: value for name, value in found.items() if value is not None and value is not False
    }


def require_judged(job: Job, thresholds: Mapping[str, Any]) -> None:
    """Raise InputError for a threshold of what `job` does not make, before the long work."""
    for name in thresholds:
        variables, needed = _JUDGED[name]
        if not variables & job.comparison.judged:
            raise InputError(f"--{name.replace('_', '-')} is for jobs that make {needed}.")


def judge(result: xr.Dataset, thresholds: Mapping[str, Any]) -> None:
    """End the command with an exit code of its own if a threshold is exceeded."""
    for name, limit in thresholds.items():
        for variable in _JUDGED[name][0] & {*map(str, result.data_vars)}:
            values = result[variable]
            if bool((values if limit is True else values > limit).any()):
                click.get_current_context().exit(THRESHOLD)
