"""Options, made from the fields of the job file's models: names, defaults and help are the same."""

from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

import click

from bigkd.cli.checked import flag
from bigkd.jobs.base import Part
from bigkd.jobs.comparisons import (
    CoresetPart,
    DistanceMatrixPart,
    DistancePart,
    ModesPart,
    TwoSamplePart,
)
from bigkd.jobs.rows import CollectionPart, RowsPart
from bigkd.jobs.schema import OutputPart, RunPart

Decorator: TypeAlias = Callable[[Any], Any]


def together(*options: Decorator) -> Decorator:
    """All of `options`, in this order in the help."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def option(
    part: type[Part], field: str, *, name: str = "", metavar: str | None = None, kind: Any = None
) -> Decorator:
    """Option for a field; one that is not given leaves the field's own default.

    `kind` is what click makes of its text, by default what the field's type says.
    """
    about = part.model_fields[field]
    name = name or field
    words = about.description or ""
    text = f"{words[:1].upper()}{words[1:]}."
    kind, default = kind or _kind(about.annotation), about.default
    if kind is bool:
        turned = f"{flag(name)}/--no-{name.replace('_', '-')}"
        if default is not None:
            text = f"{text}  [default: {'' if default else 'no-'}{name.replace('_', '-')}]"
        return click.option(turned, name, default=None, help=text)
    if isinstance(default, str | int | float):
        text = f"{text}  [default: {default}]"
    metavar = metavar or _METAVARS.get(kind)
    return click.option(flag(name), name, type=kind, metavar=metavar, default=None, help=text)


def options(part: type[Part], *fields: str) -> Decorator:
    """Options for some fields of a part."""
    return together(*(option(part, field) for field in fields))


def _kind(annotation: Any) -> Any:
    """What click turns a text into for a field."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(arguments[0])
    if origin is Literal:
        return click.Choice(arguments)
    if origin is list:
        return _names
    if origin in (Union, UnionType):
        kinds = [_kind(argument) for argument in arguments if argument is not NoneType]
        if str in kinds:
            return str
        return kinds[0] if len(kinds) == 1 else _count
    return annotation


def _count(text: str) -> int | str:
    """``auto``, or a number."""
    try:
        return text if text == "auto" else int(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is neither auto nor a whole number.") from error


def _size(text: str) -> list[int]:
    """Height and width, between them a comma."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not HEIGHT,WIDTH, such as 96,128.") from error


def _names(text: str) -> list[str]:
    """The names between the commas."""
    return text.split(",")


_METAVARS = {_count: "INTEGER|auto", _names: "NAME,..."}

_factor_option = click.option(
    "--bandwidth-factor",
    type=float,
    metavar="FACTOR",
    help="What the length that a rule finds is multiplied by; smaller sees finer differences.",
)

kernel_options = together(
    click.option(
        "--kernel",
        metavar="median|NAME:PARAMETERS",
        help="Kernel: gaussian:2.5, laplace:1, matern:1.5:2.0 (nu, length), "
        "inverse_multiquadric:1:0.5 (length, beta), triangle:2, epanechnikov:2 (radius), "
        "polynomial:0,1 (coefficients from the constant on: the distance of means). median in "
        "place of a length is the median distance in a sample: laplace:median; by itself, of a "
        "Gaussian.  [default: median]",
    ),
    _factor_option,
)

feature_options = together(
    click.option(
        "--kernel",
        metavar="auto|median|NAME:PARAMETERS",
        help="Kernel, or rule that chooses a Gaussian: auto, median, gaussian:2.5, laplace:1, "
        "matern:1.5:2.0 (nu, length), inverse_multiquadric:1:0.5 (length, beta). auto or median "
        "in place of a length finds it: laplace:median.  [default: auto]",
    ),
    _factor_option,
    options(ModesPart, "n_frequencies", "sampling", "frequency_tolerance", "seed"),
)

choice_options = options(ModesPart, "rho", "n_modes", "alpha", "n_draws")

modes_options = together(
    feature_options, choice_options, options(ModesPart, "method", "n_top", "top_share")
)

_weights_options = together(
    *(option(CollectionPart, "weights", name=f"{role}_weights", metavar="PATH") for role in "xy")
)

_precision = ("normalize", "method", "eps", "delta", "n_frequencies")

distance_options = together(
    kernel_options,
    _weights_options,
    *(option(CollectionPart, "vectors", name=f"{role}_vectors", metavar="PATH") for role in "xy"),
    options(DistancePart, *_precision, "sizing", "coreset_size", "seed"),
)

test_options = together(
    click.option("--test", is_flag=True, help="Test as well if both come from one source."),
    options(TwoSamplePart, "n_permutations", "alpha"),
)

two_sample_options = together(
    kernel_options,
    _weights_options,
    options(
        TwoSamplePart, "method", "n_permutations", "n_frequencies", "n_groups", "alpha", "seed"
    ),
)

distance_matrix_options = together(kernel_options, options(DistanceMatrixPart, *_precision, "seed"))

coreset_options = together(
    options(CoresetPart, "size", "method"),
    kernel_options,
    option(CollectionPart, "weights", metavar="PATH"),
    options(CoresetPart, "selection", "reweight", "measure", "n_frequencies", "replacement"),
    options(CoresetPart, "seed", "delta"),
)

image_size_option = option(RowsPart, "image_size", kind=_size, metavar="HEIGHT,WIDTH")

data_options = together(options(RowsPart, "columns", "block_rows", "missing"), image_size_option)

rows_options = together(data_options, option(ModesPart, "nonfinite"))

mesh_options = options(CollectionPart, "shape", "degenerate")

scheduler_option = option(RunPart, "scheduler", metavar="ADDRESS|local|threads|sync")

resume_option = click.option(
    "--resume", is_flag=True, help="Go on from what an interrupted run has finished."
)

resume_or_fresh_option = click.option(
    "--resume/--fresh",
    default=None,
    help="Go on from what earlier runs have finished and kept, or begin anew.  [default: resume]",
)

data_option = click.option(
    "--data",
    multiple=True,
    metavar="NAME=PATH",
    help="Path of one of the job's data, in place of the one in the file; may be repeated.",
)

run_options = together(
    scheduler_option,
    resume_option,
    option(RunPart, "checkpoint", metavar="PATH"),
    click.option(
        "--no-checkpoints",
        "keep_checkpoints",
        flag_value=False,
        type=bool,
        default=None,
        help="Keep no finished work on disk.",
    ),
    option(RunPart, "memory_limit", metavar="SIZE"),
    option(RunPart, "stall_seconds"),
)

quiet_option = click.option("--quiet", is_flag=True, help="Print nothing but errors, and --json.")

progress_options = together(
    click.option(
        "--progress",
        metavar="auto|bar|none|LOGFILE",
        default="auto",
        show_default=True,
        help="Progress on stderr, or as lines of JSON in a file.",
    ),
    quiet_option,
)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of a table."
)

overwrite_option = click.option("--overwrite", is_flag=True, help="Replace an earlier result.")


def out_option(text: str, *, required: bool = False) -> Decorator:
    """``--out``, with the help `text`."""
    return click.option("--out", "store", metavar="STORE", required=required, help=text)


sheet_options = together(
    option(OutputPart, "sheet", metavar="FILE"), option(OutputPart, "images", metavar="PATH")
)
