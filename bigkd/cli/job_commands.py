"""Jobs: `bigkd run`, `bigkd show`, and what all commands that make a job have in common."""

from collections.abc import Mapping
from typing import Any

import click

from bigkd.cli.checked import checked, given
from bigkd.cli.options import json_option, progress_options, resume_option, scheduler_option
from bigkd.cli.records import print_json
from bigkd.cli.reporting import reporting
from bigkd.cli.shown import SHOWN, load_shown, print_result, record_of
from bigkd.cli.thresholds import (
    fail_above_option,
    fail_if_error_above_option,
    fail_if_explained_below_option,
    fail_if_rejected_option,
    fail_if_significant_option,
    judge,
    require_judged,
    thresholds_of,
)
from bigkd.errors import StoreError
from bigkd.io import store_kind
from bigkd.jobs import Job, Outcome, load_job, run_job
from bigkd.jobs.comparisons import ComparisonPart
from bigkd.jobs.schema import OutputPart, RunPart


def job_of(key: str, part: Mapping[str, Any], options: Mapping[str, Any]) -> Job:
    """The job that a command makes.

    Raises
    ------
    InputError
        If an option cannot be used; the message names it.
    """
    output, run = given(options, OutputPart), given(options, RunPart)
    return checked(Job, {key: part, "output": output, "run": run})


def carry_out(job: Job, *, log: bool = False, **options: Any) -> None:
    """Run a job as the options of its command say, print its result, and judge it.

    With `log`, and unless ``--progress`` says otherwise, progress goes where the job wants it.
    """
    thresholds = thresholds_of(options)
    require_judged(job, thresholds)
    quiet, as_json = options["quiet"], options["as_json"]
    logged = log and options["progress"] == "auto" and job.run.progress_log is not None
    shown = None if logged else reporting(options["progress"], quiet=quiet)
    outcome = run_job(job, resume=options["resume"], progress=shown)
    _present(outcome, job.comparison, as_json=as_json, quiet=quiet)
    judge(outcome.result, thresholds)


@click.command()
@click.argument("job_file", metavar="JOB.yaml")
@scheduler_option
@resume_option
@json_option
@fail_if_significant_option
@fail_above_option
@fail_if_rejected_option
@fail_if_explained_below_option
@fail_if_error_above_option
@progress_options
def run(*, job_file: str, scheduler: str | None, **options: Any) -> None:
    """Carry out a job file, YAML or TOML."""
    job = load_job(job_file)
    if scheduler is not None:
        overridden = checked(RunPart, {**job.run.model_dump(), "scheduler": scheduler})
        job = job.model_copy(update={"run": overridden})
    carry_out(job, log=True, **options)


@click.command()
@click.argument("store", metavar="RESULT.zarr")
@json_option
def show(*, store: str, as_json: bool) -> None:
    """Print a stored result, or what a stored summary is of."""
    kind = store_kind(store)
    if kind not in SHOWN:
        raise StoreError(f"{store} holds {kind!r}; expected one of {', '.join(SHOWN)}.")
    dataset = load_shown(store, kind)
    if as_json:
        print_json(record_of(dataset, kind))
    else:
        print_result(dataset, kind)


def _present(outcome: Outcome, made: ComparisonPart, *, as_json: bool, quiet: bool) -> None:
    kind, sheet = made.kind, None if outcome.sheet is None else str(outcome.sheet)
    written = {"result": outcome.store, made.sheet_name or "": sheet}
    if as_json:
        print_json({**record_of(outcome.result, kind), "store": outcome.store, "sheet": sheet})
    elif not quiet:
        print_result(outcome.result, kind)
    if quiet:
        return
    if outcome.n_resumed:
        click.echo(f"Resumed: {outcome.n_resumed} finished segments were there.", err=True)
    for what, path in written.items():
        if path is not None:
            click.echo(f"Wrote the {what} to {path}.", err=True)
