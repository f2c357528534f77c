"""Jobs: `bigkd run`, `bigkd show`, and what all commands that make a job have in common."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import click

from bigkd.cli.checked import checked, given, named_paths
from bigkd.cli.options import (
    data_option,
    json_option,
    progress_options,
    resume_or_fresh_option,
    scheduler_option,
)
from bigkd.cli.records import print_json
from bigkd.cli.reporting import reporting
from bigkd.cli.run_records import run_record
from bigkd.cli.run_tables import print_run
from bigkd.cli.shown import SHOWN, load_shown, print_result, record_of
from bigkd.cli.thresholds import (
    fail_above_option,
    fail_if_error_above_option,
    fail_if_explained_below_option,
    fail_if_rejected_option,
    fail_if_significant_option,
    with_thresholds,
)
from bigkd.errors import BigkdError, StoreError, without_secrets
from bigkd.io import store_kind
from bigkd.jobs import Job, RunRecord, load_job, run_job
from bigkd.jobs.report import Run
from bigkd.jobs.schema import OutputPart, RunPart
from bigkd.jobs.status import account_of


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
    """Run a job as the options of its command say, print what it found, and end with its code.

    With `log`, and unless ``--progress`` says otherwise, progress goes where the job wants it.
    """
    job = with_thresholds(job, options)
    quiet, as_json = options["quiet"], options["as_json"]
    logged = log and options["progress"] == "auto" and job.run.progress_log is not None
    shown = None if logged else reporting(options["progress"], quiet=quiet)
    record = run_job(job, resume=options["resume"], progress=shown)
    present = _present_several if job.comparisons else _present_one
    present(job, record, as_json=as_json, quiet=quiet)
    if record.trouble:
        click.echo(f"Error: {record.trouble}", err=True)
    if record.exit_code:
        click.get_current_context().exit(record.exit_code)


@click.command()
@click.argument("job_file", metavar="JOB.yaml")
@data_option
@scheduler_option
@resume_or_fresh_option
@json_option
@fail_if_significant_option
@fail_above_option
@fail_if_rejected_option
@fail_if_explained_below_option
@fail_if_error_above_option
@progress_options
def run(*, job_file: str, data: tuple[str, ...], scheduler: str | None, **options: Any) -> None:
    """Carry out a job file, YAML or TOML.

    An interrupted run is taken up again; summaries that earlier runs kept are used.
    """
    job = load_job(job_file, data=named_paths(data))
    if scheduler is not None:
        overridden = checked(RunPart, {**job.run.model_dump(), "scheduler": scheduler})
        job = job.model_copy(update={"run": overridden, "cluster": None})
    carry_out(job, log=True, **options)


@click.command()
def schema() -> None:
    """Print the JSON schema of job files, for editors and other programs."""
    print_json(Job.model_json_schema())


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


def _present_one(job: Job, record: RunRecord, *, as_json: bool, quiet: bool) -> None:
    (made,) = record.comparisons
    (entry,) = job.entries().values()
    sheet = None if made.sheet is None else str(made.sheet)
    if made.result is None:
        return
    if as_json:
        print_json({**record_of(made.result, made.kind), "store": made.store, "sheet": sheet})
    elif not quiet:
        print_result(made.result, made.kind)
    if quiet:
        return
    _say_what_was_there(job, record)
    _say_written({"result": made.store, entry.comparison.sheet_name or "": sheet})
    _say_written(_published(job, record))


def _present_several(job: Job, record: RunRecord, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        print_json(run_record(record))
    elif not quiet:
        print_run(record, _earlier(job, record))
    for made in record.comparisons:
        if made.message:
            click.echo(without_secrets(f"{made.name} failed: {made.message}"), err=True)
    if not quiet:
        _say_what_was_there(job, record)
        is_there = any(made.result is not None for made in record.comparisons)
        results = {"results": job.output.store} if is_there else {}
        _say_written({**results, **_published(job, record)})


def _earlier(job: Job, record: RunRecord) -> tuple[Run, ...]:
    """The runs of the history before this one; none where it cannot be read."""
    if job.output.history is None or record.trouble:
        return ()
    with suppress(BigkdError, OSError):
        return tuple(run for run in account_of(job).runs if run.run_id != record.run_id)
    return ()


def _published(job: Job, record: RunRecord) -> dict[str, str | None]:
    return {} if record.trouble else {"history": job.output.history, "report": job.output.report}


def _say_what_was_there(job: Job, record: RunRecord) -> None:
    reused = sum(made.rows_reused for made in record.comparisons)
    if reused and job.keeps_summaries:
        rows = reused + sum(made.rows_read for made in record.comparisons)
        click.echo(f"Reused the summaries of {reused:,} of {rows:,} rows.", err=True)
    elif record.n_resumed and not job.keeps_summaries:
        click.echo(f"Resumed: {record.n_resumed} finished segments were there.", err=True)


def _say_written(written: Mapping[str, str | None]) -> None:
    for what, path in written.items():
        if path is not None:
            click.echo(f"Wrote the {what} to {path}.", err=True)
