"""A job carried out."""

from pathlib import Path
from typing import NamedTuple

import xarray as xr

from bigkd.engine import NonFinite, Options, Reporting
from bigkd.errors import InputError
from bigkd.jobs.schema import Job, OutputPart, RunPart
from bigkd.jobs.workspace import require_replaceable, workspace


class Outcome(NamedTuple):
    """What a job led to."""

    result: xr.Dataset
    store: str | None
    """Where the result was written."""

    sheet: Path | None
    """Where the picture of it was written."""

    n_resumed: int
    """Finished segments of an earlier run that were there to go on from."""


def run_job(job: Job, *, resume: bool = False, progress: Reporting = None) -> Outcome:
    """Carry out a job: compare, write the result, draw its sheet.

    The result's store appears whole or not at all. While the job runs it holds ``<store>.lock`` and
    keeps finished work in ``<store>.checkpoint`` and, of a result in tiles, in a folder beside the
    store; all of them go when it succeeds.

    Parameters
    ----------
    job
        From `load_job`, or made by hand.
    resume
        Go on from what an interrupted run of the same job has finished, to the same bits;
        otherwise that is removed first.
    progress
        As for `bigkd.finc.modes`; by default the job's own `progress_log`.

    Raises
    ------
    LockedError
        If another run writes the same output.
    BigkdError
        As the function that makes the result. What can be checked before the rows are read is.
    """
    output, comparison = job.output, job.comparison
    draw = None if output.sheet is None else comparison.drawing(output.images)
    shown = job.run.progress_log if progress is None else progress
    with workspace(
        output.store,
        checkpoint=job.run.checkpoint,
        keep_checkpoints=job.run.keep_checkpoints,
        resume=resume,
    ) as place:
        _refuse_existing(output)
        how = options_of(job.run, place.checkpoint, shown, nonfinite=comparison.policy)
        if output.store is None:
            result = comparison.carry_out(how)
        else:
            result = comparison.carry_out_to(output.store, how)
        sheet = None
        if output.sheet is not None and draw is not None:
            Path(output.sheet).parent.mkdir(parents=True, exist_ok=True)
            sheet = draw(result, output.sheet)
    return Outcome(result, output.store, sheet, place.n_found)


def options_of(
    run: RunPart, checkpoint: str | None, progress: Reporting, *, nonfinite: NonFinite
) -> Options:
    """How passes run, as keywords of the functions that make them."""
    return Options(
        nonfinite=nonfinite,
        scheduler=run.scheduler,
        progress=progress,
        checkpoint=checkpoint,
        memory_limit=run.memory_limit,
        stall_seconds=run.stall_seconds,
    )


def _refuse_existing(output: OutputPart) -> None:
    """Refuse to write over what must not be, before the long work."""
    if output.store is not None:
        require_replaceable(output.store, overwrite=output.overwrite)
    if output.sheet is not None:
        sheet = Path(output.sheet)
        if sheet.exists() and not (output.overwrite and sheet.is_file()):
            raise InputError(
                f"{sheet} exists already; pass --overwrite, or overwrite: true in a job file, to "
                f"replace a file."
            )
