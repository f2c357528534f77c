"""Dissimilarity up to smooth deformation: `bigkd did`, `did-matrix` and `did-nearest`."""

from collections.abc import Mapping
from typing import Any

import click

from bigkd.cli.checked import given
from bigkd.cli.did_options import (
    did_matrix_options,
    did_nearest_options,
    did_options,
    given_kernels,
)
from bigkd.cli.job_commands import carry_out, job_of
from bigkd.cli.options import (
    data_options,
    json_option,
    out_option,
    overwrite_option,
    progress_options,
    quiet_option,
    run_options,
)
from bigkd.cli.thresholds import fail_above_option
from bigkd.jobs.comparisons import DidMatrixPart, DidNearestPart, DidPart
from bigkd.jobs.data import DataPart, DatumPart


@click.command()
@click.argument("f")
@click.argument("g")
@out_option("Zarr store for the result.")
@overwrite_option
@click.option(
    "--match", "sheet", metavar="FILE", help="Picture of what matches what: .html or .png."
)
@json_option
@fail_above_option
@did_options
@quiet_option
def did(**options: Any) -> None:
    """Measure how far G is from every smooth deformation of F.

    Each is a picture, or a .npy file or Zarr array of one image, series or field on the same grid;
    or a collection of them, with --f-row or --g-row.
    """
    part = {
        **given(options, DidPart),
        **given_kernels(options),
        **{role: _datum(options, role) for role in ("f", "g")},
    }
    carry_out(job_of("did", part, options), **options, progress="none", resume=False)


@click.command("did-matrix")
@click.argument("collection")
@click.argument("other", required=False)
@out_option("Zarr store for the result, written tile by tile: it may be larger than memory.")
@overwrite_option
@json_option
@fail_above_option
@did_matrix_options
@data_options
@run_options
@progress_options
def did_matrix(**options: Any) -> None:
    """Measure how far all data of OTHER are from every smooth deformation of those of COLLECTION.

    Both are folders of pictures, or paths or URLs of Zarr, .npy or Parquet; OTHER is COLLECTION
    itself by default.
    """
    how = given(options, DataPart)
    roles = [role for role in ("collection", "other") if options[role] is not None]
    part = {
        **given(options, DidMatrixPart),
        **given_kernels(options),
        **{role: {"path": options[role], **how} for role in roles},
    }
    carry_out(job_of("did_matrix", part, options), **options)


@click.command("did-nearest")
@click.argument("query")
@click.argument("collection")
@out_option("Zarr store for the result.")
@overwrite_option
@json_option
@did_nearest_options
@data_options
@run_options
@progress_options
def did_nearest(**options: Any) -> None:
    """Find the data of COLLECTION that are nearest to smooth deformations of QUERY.

    QUERY is a picture, or a .npy file or Zarr array of one image, series or field; or a folder or
    an array of a few. COLLECTION is a folder of pictures, or the path or URL of Zarr, .npy or
    Parquet.
    """
    part = {
        **given(options, DidNearestPart),
        **given_kernels(options),
        "query": _datum(options, "query"),
        "collection": {"path": options["collection"], **given(options, DataPart)},
    }
    carry_out(job_of("did_nearest", part, options), **options)


def _datum(options: Mapping[str, Any], role: str) -> dict[str, Any]:
    row = options[f"{role}_row"]
    found = {"path": options[role], **given(options, DatumPart)}
    return found if row is None else {**found, "row": row}
