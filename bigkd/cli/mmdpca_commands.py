"""Subspaces that explain a distribution: `bigkd mmdpca`, and what is made of its result."""

from typing import Any

import click

from bigkd.cli.checked import given
from bigkd.cli.job_commands import carry_out, job_of
from bigkd.cli.mmdpca_options import (
    dim_option,
    given_tempered,
    mmdpca_background_options,
    mmdpca_distance_options,
    mmdpca_options,
)
from bigkd.cli.options import (
    json_option,
    out_option,
    overwrite_option,
    progress_options,
    rows_options,
    run_options,
)
from bigkd.cli.thresholds import (
    fail_above_option,
    fail_if_error_above_option,
    fail_if_explained_below_option,
)
from bigkd.jobs.comparisons import (
    MmdpcaBackgroundPart,
    MmdpcaDistancePart,
    MmdpcaPart,
    MmdpcaProjectPart,
)
from bigkd.jobs.data import DataPart


@click.command()
@click.argument("data")
@out_option("Zarr store for the components and what is known of them.")
@overwrite_option
@click.option(
    "--pictures", "sheet", metavar="FILE", help="Picture of the components: .html or .png."
)
@json_option
@fail_above_option
@fail_if_explained_below_option
@fail_if_error_above_option
@mmdpca_options
@dim_option
@rows_options
@run_options
@progress_options
def mmdpca(**options: Any) -> None:
    """Find the subspace on which the projected rows of DATA are nearest to them, by MMD.

    DATA is the path or URL of Zarr, .npy or Parquet, or a folder of pictures.
    """
    part = {
        **given(options, MmdpcaPart),
        **given_tempered(options),
        "data": _data(options, "data"),
    }
    carry_out(job_of("mmdpca", part, options), **options)


@click.command("mmdpca-project")
@click.argument("data")
@click.argument("fit", metavar="FIT.zarr")
@out_option("Zarr store for the scores; while they are made they are in memory.")
@overwrite_option
@json_option
@dim_option
@rows_options
@run_options
@progress_options
def mmdpca_project(**options: Any) -> None:
    """Project the rows of DATA on the components in FIT.zarr, which mmdpca found."""
    part = {**given(options, MmdpcaProjectPart), "data": _data(options, "data")}
    carry_out(job_of("mmdpca_project", part, options), **options)


@click.command("mmdpca-distance")
@click.argument("data")
@click.argument("fit", metavar="FIT.zarr")
@out_option("Zarr store for the result.")
@overwrite_option
@json_option
@fail_above_option
@mmdpca_distance_options
@dim_option
@rows_options
@run_options
@progress_options
def mmdpca_distance(**options: Any) -> None:
    """Measure how far the rows of DATA are from their projections on the components in FIT.zarr.

    Rows of another day are, if the subspace explains them no more.
    """
    part = {**given(options, MmdpcaDistancePart), "data": _data(options, "data")}
    carry_out(job_of("mmdpca_distance", part, options), **options)


@click.command("mmdpca-background")
@click.argument("frames")
@out_option("Zarr store for the background.")
@overwrite_option
@click.option("--picture", "sheet", metavar="FILE", help="Picture of it: .html or .png.")
@json_option
@mmdpca_background_options
@dim_option
@rows_options
@run_options
@progress_options
def mmdpca_background(**options: Any) -> None:
    """Find what most FRAMES of a video have in common, pixel by pixel.

    FRAMES is the path or URL of a Zarr or .npy array (time, y, x) or (time, y, x, channel), or a
    folder of pictures.
    """
    part = {
        **given(options, MmdpcaBackgroundPart),
        **given_tempered(options),
        "frames": _data(options, "frames"),
    }
    carry_out(job_of("mmdpca_background", part, options), **options)


def _data(options: dict[str, Any], role: str) -> dict[str, Any]:
    return {"path": options[role], **given(options, DataPart)}
