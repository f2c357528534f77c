"""Two collections compared by their modes: `bigkd modes`."""

from typing import Any

import click

from bigkd.cli.checked import given, given_kernel
from bigkd.cli.job_commands import carry_out, job_of
from bigkd.cli.options import (
    json_option,
    modes_options,
    out_option,
    overwrite_option,
    progress_options,
    rows_options,
    run_options,
    sheet_options,
)
from bigkd.cli.thresholds import fail_if_significant_option
from bigkd.jobs.comparisons import ModesPart
from bigkd.jobs.rows import RowsPart


@click.command("modes")
@click.argument("test")
@click.argument("reference")
@out_option("Zarr store for the result.")
@overwrite_option
@sheet_options
@json_option
@fail_if_significant_option
@modes_options
@rows_options
@run_options
@progress_options
def modes(**options: Any) -> None:
    """Find the modes that TEST has more of than REFERENCE.

    Both are paths or URLs of Zarr, .npy or Parquet, or folders of pictures. Swap them for what TEST
    has less of.
    """
    how = given(options, RowsPart)
    part = {
        **given(options, ModesPart),
        **given_kernel(options),
        **{role: {"path": options[role], **how} for role in ("test", "reference")},
    }
    carry_out(job_of("modes", part, options), **options)
