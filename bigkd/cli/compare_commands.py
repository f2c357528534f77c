"""Two collections compared: `bigkd modes`, `bigkd run` and `bigkd show`."""

from collections.abc import Mapping
from typing import Any

import click
import xarray as xr

from bigkd.cli.failures import THRESHOLD
from bigkd.cli.options import (
    checked,
    fail_option,
    given,
    given_kernel,
    json_option,
    modes_options,
    out_option,
    overwrite_option,
    progress_options,
    resume_option,
    rows_options,
    run_options,
    scheduler_option,
    sheet_options,
)
from bigkd.cli.records import comparison_record, modes_record, print_json, summary_record
from bigkd.cli.reporting import reporting
from bigkd.cli.tables import print_comparison, print_modes, print_summary
from bigkd.errors import StoreError
from bigkd.io import load_dataset, store_kind
from bigkd.jobs import Job, Outcome, load_job, run_job
from bigkd.jobs.schema import ModesPart, OutputPart, RowsPart, RunPart

_SHOWN = {
    "modes": (modes_record, print_modes),
    "comparison": (comparison_record, print_comparison),
    "finc-summary": (summary_record, print_summary),
}


@click.command("modes")
@click.argument("test")
@click.argument("reference")
@out_option("Zarr store for the result.")
@overwrite_option
@sheet_options
@json_option
@fail_option
@modes_options
@rows_options
@run_options
@progress_options
def modes(
    *,
    progress: str,
    quiet: bool,
    as_json: bool,
    resume: bool,
    fail_if_significant: bool,
    **options: Any,
) -> None:
    """Find the modes that TEST has more of than REFERENCE.

    Both are paths or URLs of Zarr, .npy or Parquet. Swap them for what TEST has less of.
    """
    outcome = run_job(_job(options), resume=resume, progress=reporting(progress, quiet=quiet))
    _present(outcome, as_json=as_json, quiet=quiet)
    _judge(outcome.result, fail_if_significant)


@click.command()
@click.argument("job_file", metavar="JOB.yaml")
@scheduler_option
@resume_option
@json_option
@fail_option
@progress_options
def run(
    *,
    job_file: str,
    scheduler: str | None,
    resume: bool,
    as_json: bool,
    fail_if_significant: bool,
    progress: str,
    quiet: bool,
) -> None:
    """Carry out a job file, YAML or TOML."""
    job = load_job(job_file)
    if scheduler is not None:
        overridden = checked(RunPart, {**job.run.model_dump(), "scheduler": scheduler})
        job = job.model_copy(update={"run": overridden})
    logged = progress == "auto" and job.run.progress_log is not None
    shown = None if logged else reporting(progress, quiet=quiet)
    outcome = run_job(job, resume=resume, progress=shown)
    _present(outcome, as_json=as_json, quiet=quiet)
    _judge(outcome.result, fail_if_significant)


@click.command()
@click.argument("store", metavar="RESULT.zarr")
@json_option
def show(*, store: str, as_json: bool) -> None:
    """Print a stored result, or what a stored summary is of."""
    kind = store_kind(store)
    if kind not in _SHOWN:
        raise StoreError(f"{store} holds {kind!r}; expected one of {', '.join(_SHOWN)}.")
    record, table = _SHOWN[kind]
    dataset = load_dataset(store, kind=kind)
    if as_json:
        print_json(record(dataset))
    else:
        table(dataset)


def _job(options: Mapping[str, Any]) -> Job:
    how = given(options, RowsPart)
    modes = {
        **given(options, ModesPart),
        **given_kernel(options),
        **{role: {"path": options[role], **how} for role in ("test", "reference")},
    }
    return checked(
        Job,
        {
            "modes": modes,
            "output": given(options, OutputPart),
            "run": given(options, RunPart),
        },
    )


def _present(outcome: Outcome, *, as_json: bool, quiet: bool) -> None:
    sheet = None if outcome.sheet is None else str(outcome.sheet)
    written = {"result": outcome.store, "contact sheet": sheet}
    if as_json:
        print_json({**modes_record(outcome.result), "store": outcome.store, "sheet": sheet})
    elif not quiet:
        print_modes(outcome.result)
    if quiet:
        return
    if outcome.n_resumed:
        click.echo(f"Resumed: {outcome.n_resumed} finished segments were there.", err=True)
    for what, path in written.items():
        if path is not None:
            click.echo(f"Wrote the {what} to {path}.", err=True)


def _judge(result: xr.Dataset, fail_if_significant: bool) -> None:
    if fail_if_significant and bool(result["significant"].any()):
        click.get_current_context().exit(THRESHOLD)
