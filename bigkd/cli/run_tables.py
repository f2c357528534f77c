"""Runs of jobs as tables: one run with all its comparisons, and all runs of a history."""

from collections.abc import Sequence

import numpy as np
from rich.console import Console

from bigkd.cli.printing import new_table, plus_minus, stdout_console
from bigkd.jobs import RunRecord
from bigkd.jobs.history import run_dataset
from bigkd.jobs.report import Outcome, Run, banner, read_history, word
from bigkd.jobs.report.text import count, counted, duration, moment
from bigkd.jobs.status import Status


def print_run(record: RunRecord) -> None:
    """Print the verdict on a run, and the numbers of each of its comparisons."""
    names = tuple(made.name for made in record.comparisons)
    account = read_history(run_dataset(record).expand_dims("run"), names)
    console, run = stdout_console(), account.runs[-1]
    judged = banner(run)
    console.print(f"{judged.headline}: {judged.sentence}.", markup=False)
    table = new_table(("comparison", "", "number", "how sure"), ("rows read", "reused", "took"))
    for name in names:
        outcome = run.outcomes[name]
        lines = outcome.shown
        table.add_row(
            name,
            word(outcome.kind, outcome),
            "\n".join(_typed(f"{one.label} {one.against}", console) for one in lines),
            "\n".join(_typed(one.doubt, console) for one in lines),
            count(outcome.rows_read),
            count(outcome.rows_reused),
            duration(outcome.seconds),
        )
    console.print(table)


def print_runs(runs: Sequence[Run], n_earlier: int) -> None:
    """Print runs, oldest first: a line for each comparison."""
    console = stdout_console()
    table = new_table(
        ("began (UTC)", "verdict", "comparison", "number"), ("rows read", "reused", "took")
    )
    for run in runs:
        began = moment(run.time)
        for name, outcome in run.outcomes.items():
            table.add_row(
                began,
                outcome.verdict,
                name,
                _typed(_number(outcome), console),
                count(outcome.rows_read),
                count(outcome.rows_reused),
                duration(outcome.seconds),
            )
            began = ""
    if n_earlier:
        console.print(f"{counted(n_earlier, 'earlier run')} left out", markup=False)
    console.print(table)


def print_status(status: Status) -> None:
    """Print how a job stands."""
    lines = {
        "running": _running(status),
        "finished work": f"{counted(status.n_finished, 'segment')} kept for the next run",
        "interrupted": "a run waits to be taken up: run the job again"
        if status.is_interrupted
        else "no",
        "last run": _last(status),
    }
    width = max(map(len, lines))
    console = stdout_console()
    for name, text in lines.items():
        console.print(f"{name:{width}}  {_typed(text, console)}", markup=False)


def _number(outcome: Outcome) -> str:
    return "" if outcome.main is None else f"{outcome.main.label} {outcome.main.against}"


def _running(status: Status) -> str:
    holder = status.holder
    if holder is None:
        return "no"
    since = ""
    if np.isfinite(status.since):
        since = f" since {moment(np.datetime64(round(status.since), 's'))} UTC"
    return f"by process {holder.pid} on {holder.host}{since}"


def _last(status: Status) -> str:
    run = status.last
    if run is None:
        return "none is kept"
    ago = f"ended {duration(status.age)} ago" if status.age >= 0 else "ends in the future"
    judged = banner(run)
    return f"{moment(run.time)} UTC ({ago}): {judged.headline}: {judged.sentence}"


def _typed(text: str, console: Console) -> str:
    """`text` in signs that the terminal has."""
    return text.replace("²", "^2").replace("±", plus_minus(console))
