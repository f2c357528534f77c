"""Thresholds: results that end a command with an exit code of its own."""

import math
from collections.abc import Mapping
from typing import Any

import click

from bigkd.cli.checked import flag
from bigkd.errors import InputError
from bigkd.jobs import Job
from bigkd.jobs.schema import WhatPart
from bigkd.jobs.thresholds import ThresholdsPart

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


_OPTIONS = {
    "significant": "fail_if_significant",
    "rejected": "fail_if_rejected",
    "above": "fail_above",
    "explained_below": "fail_if_explained_below",
    "error_above": "fail_if_error_above",
}
"""Options by the keys of ``fail_if``."""


def with_thresholds(job: Job, options: Mapping[str, Any]) -> Job:
    """`job` with the thresholds of the command line, for all comparisons that they can judge.

    Raises
    ------
    InputError
        If a limit is not a number that can be exceeded, or there is nothing to judge.
    """
    found = {key: options.get(name) for key, name in _OPTIONS.items()}
    given = {key: limit for key, limit in found.items() if limit is not None and limit is not False}
    if not given:
        return job
    for key, limit in given.items():
        if limit is not True and not 0 <= limit < math.inf:
            raise InputError(f"{_flag(key)} must be finite and not negative; got {limit}.")
    _require_judged(job, ThresholdsPart(**given))
    if not job.comparisons:
        return job.model_copy(update={"fail_if": _more(job, given)})
    entries = {
        name: entry.model_copy(update={"fail_if": _more(entry, given)})
        for name, entry in job.comparisons.items()
    }
    return job.model_copy(update={"comparisons": entries})


def _require_judged(job: Job, thresholds: ThresholdsPart) -> None:
    judged = frozenset[str]().union(*(entry.comparison.judged for entry in job.entries().values()))
    for key, needed in thresholds.unjudged(judged).items():
        raise InputError(f"{_flag(key)} is for jobs that make {needed}.")


def _more(what: WhatPart, given: Mapping[str, Any]) -> ThresholdsPart:
    """Thresholds of `what`, and those that are `given` as far as they fit."""
    unfit = ThresholdsPart(**given).unjudged(what.comparison.judged)
    fitting = {key: limit for key, limit in given.items() if key not in unfit}
    return what.fail_if.model_copy(update=fitting)


def _flag(key: str) -> str:
    return flag(_OPTIONS[key])
