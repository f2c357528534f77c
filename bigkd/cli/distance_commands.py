"""Distances and tests: `bigkd distance`, `bigkd two-sample` and `bigkd distance-matrix`."""

from collections.abc import Mapping
from typing import Any

import click

from bigkd.cli.checked import given, given_kernel, given_of_each
from bigkd.cli.job_commands import carry_out, job_of
from bigkd.cli.options import (
    distance_matrix_options,
    distance_options,
    json_option,
    mesh_options,
    out_option,
    overwrite_option,
    progress_options,
    rows_options,
    run_options,
    test_options,
    two_sample_options,
)
from bigkd.cli.thresholds import fail_above_option, fail_if_rejected_option
from bigkd.errors import InputError
from bigkd.jobs.comparisons import DistanceMatrixPart, DistancePart, TwoSamplePart
from bigkd.jobs.comparisons.two_sample import PermutationPart
from bigkd.jobs.rows import CollectionPart, RowsPart


@click.command()
@click.argument("x")
@click.argument("y")
@out_option("Zarr store for the result.")
@overwrite_option
@json_option
@fail_above_option
@test_options
@fail_if_rejected_option
@distance_options
@rows_options
@mesh_options
@run_options
@progress_options
def distance(**options: Any) -> None:
    """Measure how far apart X and Y are, with a bound of the error.

    Both are paths or URLs of Zarr, .npy or Parquet, folders of pictures, or mesh files: .off, .obj,
    .ply or .stl, which are compared as surfaces with normals. Pass --no-normalize if their areas
    are to count.
    """
    how_tested = {name: options.pop(name) for name in ("n_permutations", "alpha")}
    tested = {**given(how_tested, PermutationPart)}
    if tested and not options["test"]:
        named = " and ".join(f"--{name.replace('_', '-')}" for name in tested)
        raise InputError(f"{named} goes with --test.")
    part = {
        **given({**options, "test": tested if options["test"] else None}, DistancePart),
        **given_kernel(options, rule="median"),
        **_pair(options, CollectionPart),
    }
    carry_out(job_of("distance", part, options), **options)


@click.command("two-sample")
@click.argument("x")
@click.argument("y")
@out_option("Zarr store for the result.")
@overwrite_option
@json_option
@fail_if_rejected_option
@two_sample_options
@rows_options
@run_options
@progress_options
def two_sample(**options: Any) -> None:
    """Test whether X and Y come from one source, by permutations.

    Both are paths or URLs of Zarr, .npy or Parquet, or folders of pictures. Rows must not
    depend on each other.
    """
    part = {
        **given(options, TwoSamplePart),
        **given_kernel(options, rule="median"),
        **_pair(options, RowsPart),
    }
    carry_out(job_of("two_sample", part, options), **options)


@click.command("distance-matrix")
@click.argument("collections", nargs=-1, metavar="[NAME=]PATH...")
@out_option("Zarr store for the result.")
@overwrite_option
@json_option
@fail_above_option
@distance_matrix_options
@rows_options
@mesh_options
@run_options
@progress_options
def distance_matrix(**options: Any) -> None:
    """Measure how far apart every two of many collections are; each is read once or twice.

    Without NAME a collection is called like its file. For weights write a job file.
    """
    how = given(options, CollectionPart)
    paths = _named(options.pop("collections"))
    part = {
        **given(options, DistanceMatrixPart),
        **given_kernel(options, rule="median"),
        "collections": {name: {"path": path, **how} for name, path in paths.items()},
    }
    carry_out(job_of("distance_matrix", part, options), **options)


def _pair(options: Mapping[str, Any], part: type[RowsPart]) -> dict[str, Any]:
    """Both collections, read in the same way, each with its own weights and vectors."""
    how = given(options, part)
    return {
        role: {"path": options[role], **how, **given_of_each(options, role)} for role in ("x", "y")
    }


def _named(arguments: tuple[str, ...]) -> dict[str, str]:
    """Paths by name.

    Raises
    ------
    InputError
        If two have one name.
    """
    paths: dict[str, str] = {}
    for text in arguments:
        name, separator, path = text.partition("=")
        if not separator or "/" in name:  # an equals sign inside a path
            name, path = text.rstrip("/").rpartition("/")[2], text
        if not (name and path):
            raise InputError(f"distance-matrix needs arguments PATH or NAME=PATH; got {text!r}.")
        if name in paths:
            raise InputError(f"two collections are called {name!r}; name them: NAME=PATH.")
        paths[name] = path
    return paths
