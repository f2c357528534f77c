"""Summaries of collections: `bigkd summarize`, `bigkd add-rows` and `bigkd compare`."""

from collections.abc import Mapping
from typing import Any

import click
import xarray as xr

from bigkd import finc
from bigkd.cli.checked import checked, given, given_kernel, named_paths
from bigkd.cli.options import (
    choice_options,
    feature_options,
    json_option,
    out_option,
    overwrite_option,
    progress_options,
    rows_options,
    run_options,
)
from bigkd.cli.records import comparison_record, print_json, summary_record
from bigkd.cli.reporting import reporting
from bigkd.cli.tables import print_comparison, print_summary
from bigkd.io import save_dataset
from bigkd.jobs.comparisons.modes import ChoicesPart, FeaturesPart
from bigkd.jobs.rows import RowsPart
from bigkd.jobs.run import options_of
from bigkd.jobs.schema import RunPart
from bigkd.jobs.workspace import require_replaceable, workspace


@click.command()
@click.argument("rows")
@out_option("Zarr store for the summary.", required=True)
@overwrite_option
@click.option("--name", help="What comparisons call the collection.  [default: name of the file]")
@click.option("--like", metavar="SUMMARY", help="Use the features of this summary.")
@json_option
@feature_options
@rows_options
@run_options
@progress_options
def summarize(
    *,
    rows: str,
    store: str,
    overwrite: bool,
    name: str | None,
    like: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Summarise ROWS in one pass, to be compared with others later."""
    features = checked(FeaturesPart, {**given(options, FeaturesPart), **given_kernel(options)})
    collection, run = _collection(rows, options), checked(RunPart, given(options, RunPart))
    source = collection.open("rows")
    shown = reporting(options["progress"], quiet=options["quiet"])
    with workspace(
        store,
        checkpoint=run.checkpoint,
        keep_checkpoints=run.keep_checkpoints,
        resume=options["resume"],
    ) as place:
        require_replaceable(store, overwrite=overwrite)
        summary = finc.summarize(
            source,
            kernel=features.kernel.build(),
            n_frequencies=features.n_frequencies,
            sampling=features.sampling,
            frequency_tolerance=features.frequency_tolerance,
            seed=features.seed,
            like=None if like is None else finc.load_summary(like),
            out=store,
            name=collection.name if name is None else name,
            **options_of(run, place.checkpoint, shown, nonfinite=features.nonfinite),
        )
    _present(summary, store, as_json=as_json, quiet=options["quiet"])


@click.command("add-rows")
@click.argument("summary")
@click.argument("rows")
@out_option("Zarr store for the extended summary.  [default: SUMMARY itself]")
@overwrite_option
@json_option
@rows_options
@run_options
@progress_options
def add_rows(
    *,
    summary: str,
    rows: str,
    store: str | None,
    overwrite: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Extend the stored SUMMARY by new ROWS; only these are read."""
    run = checked(RunPart, given(options, RunPart))
    source = _collection(rows, options).open("rows")
    shown = reporting(options["progress"], quiet=options["quiet"])
    out = summary if store is None else store
    with workspace(
        out,
        checkpoint=run.checkpoint,
        keep_checkpoints=run.keep_checkpoints,
        resume=options["resume"],
    ) as place:
        before = finc.load_summary(summary)
        require_replaceable(out, overwrite=overwrite or store is None)
        extended = finc.add_rows(
            before,
            source,
            out=out,
            **options_of(run, place.checkpoint, shown, nonfinite=options["nonfinite"] or "raise"),
        )
    _present(extended, out, as_json=as_json, quiet=options["quiet"])


@click.command()
@click.argument("summaries", nargs=-1, metavar="NAME=SUMMARY...")
@click.option(
    "--mixture",
    type=click.Choice(["rows", "equal"]),
    default="rows",
    show_default=True,
    help="In the mixture of the others every row counts the same, or every set.",
)
@out_option("Zarr store for the comparison.")
@overwrite_option
@json_option
@choice_options
def compare(
    *,
    summaries: tuple[str, ...],
    mixture: Any,
    store: str | None,
    overwrite: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare every ordered pair of stored summaries, and each with the mixture of the others."""
    choices = checked(ChoicesPart, given(options, ChoicesPart))
    paths = named_paths(summaries)
    if store is not None:
        require_replaceable(store, overwrite=overwrite)
    result = finc.compare_many(
        paths,
        rho=choices.rho,
        n_modes=choices.n_modes,
        alpha=choices.alpha,
        n_draws=choices.n_draws,
        mixture=mixture,
    )
    if store is not None:
        save_dataset(result, store, kind="comparison", overwrite=True)
    if as_json:
        print_json({**comparison_record(result), "store": store})
    else:
        print_comparison(result)


def _collection(rows: str, options: Mapping[str, Any]) -> RowsPart:
    return checked(RowsPart, {"path": rows, **given(options, RowsPart)})


def _present(summary: xr.Dataset, store: str, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        print_json({**summary_record(summary), "store": store})
    elif not quiet:
        print_summary(summary)
    if not quiet:
        click.echo(f"Wrote the summary to {store}.", err=True)
