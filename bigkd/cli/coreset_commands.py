"""Few rows that stand for a collection: `bigkd coreset`."""

from typing import Any

import click

from bigkd.cli.checked import given, given_kernel
from bigkd.cli.job_commands import carry_out, job_of
from bigkd.cli.options import (
    coreset_options,
    json_option,
    out_option,
    overwrite_option,
    progress_options,
    rows_options,
    run_options,
)
from bigkd.jobs.comparisons import CoresetPart
from bigkd.jobs.rows import WeightedRowsPart


@click.command()
@click.argument("data")
@out_option("Zarr store for the rows, their numbers and weights.")
@overwrite_option
@json_option
@coreset_options
@rows_options
@run_options
@progress_options
def coreset(**options: Any) -> None:
    """Choose few weighted rows that stand for all rows of DATA, and say how well they do.

    DATA is the path or URL of Zarr, .npy or Parquet, or a folder of pictures.
    """
    part = {
        **given(options, CoresetPart),
        **given_kernel(options, rule="median"),
        "data": {"path": options["data"], **given(options, WeightedRowsPart)},
    }
    carry_out(job_of("coreset", part, options), **options)
