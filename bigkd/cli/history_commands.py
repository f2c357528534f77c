"""What jobs leave behind: `bigkd history`, `bigkd status`, `bigkd report`."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from bigkd.cli.options import json_option
from bigkd.cli.records import print_json
from bigkd.cli.run_tables import print_runs, print_status
from bigkd.errors import InputError
from bigkd.io import load_history
from bigkd.jobs import load_job
from bigkd.jobs.published import report_of
from bigkd.jobs.report import Account, Outcome, Reading, Run, read_history
from bigkd.jobs.status import account_of, status_of

_JOB_FILES = (".yaml", ".yml", ".toml")


@click.command()
@click.argument("store_or_job", metavar="STORE-or-JOB.yaml")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N runs.")
@json_option
def history(*, store_or_job: str, last: int | None, as_json: bool) -> None:
    """Print the runs of a history, oldest first."""
    account = _account(store_or_job)
    runs = account.runs[-last:] if last is not None else account.runs
    if as_json:
        print_json({"runs": [_run(run) for run in runs]})
    else:
        print_runs(runs, len(account.runs) - len(runs))


@click.command()
@click.argument("job_file", metavar="JOB.yaml")
@json_option
def status(*, job_file: str, as_json: bool) -> None:
    """Print whether a job runs, what waits to be taken up, and its last run."""
    found = status_of(load_job(job_file))
    if not as_json:
        print_status(found)
        return
    holder = found.holder
    running = None
    if holder is not None:
        running = {"host": holder.host, "pid": holder.pid, "since": _time(found.since)}
    print_json(
        {
            "running": running,
            "n_finished": found.n_finished,
            "interrupted": found.is_interrupted,
            "last": None if found.last is None else _run(found.last),
            "age_seconds": found.age,
        }
    )


@click.command()
@click.argument("job_file", metavar="JOB.yaml")
@click.option("--out", metavar="FILE", help="Page to write; output.report by default.")
def report(*, job_file: str, out: str | None) -> None:
    """Write the report of a job again, from its history and its stored results."""
    job = load_job(job_file)
    path = job.output.report if out is None else out
    if path is None:
        raise InputError("the job names no report; give --out, or output.report in the job file.")
    if Path(path).suffix != ".html":
        raise InputError(f"a report ends in .html; got {path!r}.")
    click.echo(f"Wrote the report to {report_of(job, path)}.", err=True)


def _account(store_or_job: str) -> Account:
    if Path(store_or_job).suffix in _JOB_FILES:
        return account_of(load_job(store_or_job))
    return read_history(load_history(store_or_job))


def _run(run: Run) -> dict[str, Any]:
    return {
        "time": None if np.isnat(run.time) else f"{np.datetime_as_string(run.time, unit='s')}Z",
        "run_id": run.run_id,
        "verdict": run.verdict,
        "exit_code": _whole(run.exit_code),
        "seconds": run.seconds,
        "bigkd_version": run.version,
        "rows_read": _whole(run.rows_read),
        "rows_reused": _whole(run.rows_reused),
        "comparisons": {name: _outcome(outcome) for name, outcome in run.outcomes.items()},
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "kind": outcome.kind,
        "verdict": outcome.verdict,
        "message": outcome.message,
        "rows_read": _whole(outcome.rows_read),
        "rows_reused": _whole(outcome.rows_reused),
        "seconds": outcome.seconds,
        "numbers": _numbers(outcome.readings),
    }


def _numbers(readings: Sequence[Reading]) -> list[dict[str, Any]]:
    return [
        {
            "variable": one.measure.variable,
            "label": one.label,
            "value": one.number,
            "lower": one.lower,
            "upper": one.upper,
            "standard_error": one.error,
            "limit": one.limit,
            "exceeded": one.exceeded,
        }
        for one in readings
    ]


def _whole(number: float) -> int | None:
    return int(number) if math.isfinite(number) else None


def _time(seconds: float) -> str | None:
    if not math.isfinite(seconds):
        return None
    return f"{np.datetime_as_string(np.datetime64(round(seconds), 's'))}Z"
