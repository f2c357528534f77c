"""Runs of jobs as tables: one run with all its comparisons, and all runs of a history."""

from collections.abc import Sequence

import numpy as np
from rich.console import Console

from bigkd.cli.printing import new_table, plus_minus, print_table, stdout_console
from bigkd.jobs import RunRecord
from bigkd.jobs.history import run_dataset
from bigkd.jobs.report import Outcome, Reading, Run, banner, read_history, state, word
from bigkd.jobs.report.text import count, counted, duration, moment
from bigkd.jobs.status import Status

_RECENT = 7
"""Earlier runs that a run is held against."""

_LONGEST = 80
_WIDE = 120


def print_run(record: RunRecord, earlier: Sequence[Run] = ()) -> None:
    """Print the verdict on a run, and the numbers of each of its comparisons.

    Beside them stands how they were in the last of the `earlier` runs.
    """
    names = tuple(made.name for made in record.comparisons)
    account = read_history(run_dataset(record).expand_dims("run"), names)
    console, run = stdout_console(), account.runs[-1]
    judged = banner(run)
    console.print(f"{judged.headline}: {judged.sentence}.", markup=False)
    console.print(
        f"Began {moment(run.time)} UTC, took {duration(run.seconds)}; {count(run.rows_read)} rows "
        f"read, {count(run.rows_reused)} reused.",
        markup=False,
    )
    before = ("before",) if earlier else ()
    texts = ("comparison", "", "number", *before, "how sure")
    costs = ("rows read", "reused", "took") if console.width >= _WIDE else ()
    table = new_table(texts, costs, wrapped=("", *texts[2:]))
    for name in names:
        outcome = run.outcomes[name]
        own = (name, word(outcome.kind, outcome))
        cost = (count(outcome.rows_read), count(outcome.rows_reused), duration(outcome.seconds))
        for one in outcome.shown or (None,):
            shown = [] if one is None else [f"{one.label} {one.against}", one.doubt]
            if before and one is not None:
                shown.insert(1, _before(one, [run.outcomes.get(name) for run in earlier]))
            texts = tuple(_typed(text, console) for text in shown or [""] * (2 + len(before)))
            table.add_row(*own, *texts, *cost[: len(costs)])
            own, cost = ("", ""), ("", "", "")
    print_table(console, table)


def print_runs(runs: Sequence[Run], n_earlier: int) -> None:
    """Print runs, oldest first: a line for each comparison."""
    console = stdout_console()
    table = new_table(
        ("began (UTC)", "verdict", "comparison", "number"),
        ("rows read", "reused", "took"),
        wrapped=("number",),
    )
    for run in runs:
        began = moment(run.time)
        for name, outcome in run.outcomes.items():
            table.add_row(
                began,
                "-" if state(outcome) == "open" else outcome.verdict,
                name,
                _typed(_number(outcome), console),
                count(outcome.rows_read),
                count(outcome.rows_reused),
                duration(outcome.seconds),
            )
            began = ""
    if n_earlier:
        console.print(f"{counted(n_earlier, 'earlier run')} left out", markup=False)
    print_table(console, table)


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
    if status.last is not None:
        failed = {name: one.message for name, one in status.last.outcomes.items() if one.message}
        lines |= {f"  {name} failed": message for name, message in failed.items()}
    width = max(map(len, lines))
    console = stdout_console()
    for name, text in lines.items():
        console.print(f"{name:{width}}  {_typed(text, console)}", markup=False)


def _before(reading: Reading, outcomes: Sequence[Outcome | None]) -> str:
    """What a number was in the last of the runs that have it."""
    found = [
        one
        for outcome in outcomes
        if outcome is not None
        for one in outcome.readings
        if one.measure == reading.measure
    ][-_RECENT:]
    if not found:
        return ""
    found.sort(key=lambda one: one.number)
    least, most = found[0].value, found[-1].value
    text = least if least == most else f"{least} to {most}"
    return f"{text} in {counted(len(found), 'run')}"


def _number(outcome: Outcome) -> str:
    if outcome.message:
        more = "..." if len(outcome.message) > _LONGEST else ""
        return f"{outcome.message[:_LONGEST]}{more}"
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
