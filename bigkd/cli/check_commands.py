"""`bigkd check`: what a job would do, and what stands in its way, without running it."""

from typing import Any

import click
from rich.table import Table

from bigkd.cli.checked import checked, named_paths
from bigkd.cli.options import data_option, json_option, scheduler_option
from bigkd.cli.printing import new_table, print_table, stdout_console
from bigkd.cli.records import print_json
from bigkd.errors import without_secrets
from bigkd.jobs import load_job
from bigkd.jobs.check import JobPlan, PlannedComparison, PlannedPass, Where, check_job
from bigkd.jobs.report.text import count, counted, duration
from bigkd.jobs.schema import RunPart


@click.command()
@click.argument("job_file", metavar="JOB.yaml")
@data_option
@scheduler_option
@json_option
def check(*, job_file: str, data: tuple[str, ...], scheduler: str | None, as_json: bool) -> None:
    """Check a job file and all it names, and print what running it would take.

    A few rows of each collection are read, to find out how long a row takes; nothing is written.
    Exits with 2 if the job is wrong or does not fit into memory, and otherwise with the code that
    the run would end with.
    """
    job = load_job(job_file, data=named_paths(data))
    if scheduler is not None:
        overridden = checked(RunPart, {**job.run.model_dump(), "scheduler": scheduler})
        job = job.model_copy(update={"run": overridden, "cluster": None})
    plan = check_job(job)
    if as_json:
        print_json(_record(plan))
    else:
        _print(plan)
    for problem in plan.problems:
        click.echo(without_secrets(f"Problem: {problem.message}"), err=True)
    if plan.exit_code:
        click.get_current_context().exit(plan.exit_code)


def _print(plan: JobPlan) -> None:
    console = stdout_console()
    if plan.where is not None:
        console.print(_where(plan.where), markup=False)
    if plan.comparisons:
        table = _table(plan)
        if table.row_count:
            print_table(console, table)
        for comparison in plan.comparisons:
            if comparison.note:
                console.print(f"{comparison.name}: {comparison.note}.", markup=False)
        if plan.passes:
            console.print(_total(plan), markup=False)
    if not plan.problems:
        console.print("Nothing stands in its way.")


def _table(plan: JobPlan) -> Table:
    table = new_table(
        ("comparison", "pass"),
        ("rows", "kept", "reads", "tasks", "a task holds", "sends", "keeps", "takes"),
    )
    for comparison in plan.comparisons:
        for one in comparison.passes:
            table.add_row(comparison.name, *_row(one))
        if comparison.passes or not comparison.note:
            between = duration(comparison.driver_seconds)
            what = "between passes" if comparison.passes else "no pass: done here"
            table.add_row(comparison.name, what, *[""] * 7, between)
    return table


def _where(where: Where) -> str:
    threads = counted(where.n_threads, "thread")
    processes = (
        f"{counted(where.n_processes, 'worker')}, {threads}" if where.distributed else threads
    )
    return f"Runs on: {where.kind}, {processes}, {_size(where.thread_bytes)} for a task"


def _row(one: PlannedPass) -> list[str]:
    cost = one.cost
    return [
        one.label,
        count(one.n_rows),
        f"{one.share_kept:.0%}",
        _size(one.bytes_read),
        count(one.n_tasks),
        _size(one.task_bytes) if one.task_bytes else "",
        "" if cost is None else _size(cost.bytes_moved),
        "" if cost is None else _size(one.bytes_kept),
        "?" if cost is None else duration(cost.seconds),
    ]


def _total(plan: JobPlan) -> str:
    read, kept = (
        _size(sum(getattr(one, name) for one in plan.passes))
        for name in ("bytes_read", "bytes_kept")
    )
    passes = f"{len(plan.passes)} pass{'' if len(plan.passes) == 1 else 'es'}"
    least = "at least " if any(comparison.note for comparison in plan.comparisons) else ""
    return (
        f"In all: {passes}, {read} to read, {kept} to keep, {least}about "
        f"{duration(plan.seconds)} with processors as fast as this one"
    )


def _size(n_bytes: float) -> str:
    """Bytes in the largest unit that leaves a digit before the point."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes:.0f} B"


def _record(plan: JobPlan) -> dict[str, Any]:
    return {
        "cluster": None if plan.where is None else plan.where._asdict(),
        "comparisons": {one.name: _comparison(one) for one in plan.comparisons},
        "bytes_read": sum(one.bytes_read for one in plan.passes),
        "bytes_kept": sum(one.bytes_kept for one in plan.passes),
        "seconds": plan.seconds,
        "problems": [problem._asdict() for problem in plan.problems],
        "exit_code": plan.exit_code,
    }


def _comparison(planned: PlannedComparison) -> dict[str, Any]:
    passes = [
        {**one._asdict(), "cost": None if one.cost is None else one.cost._asdict()}
        for one in planned.passes
    ]
    own = planned._asdict() | {"passes": passes, "seconds": planned.seconds}
    return {name: value for name, value in own.items() if name != "name"}
