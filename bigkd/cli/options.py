"""Options, made from the fields of the job file's models: names, defaults and help are the same."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import click
from pydantic import BaseModel, ValidationError

from bigkd.cli.kernels import parse_kernel
from bigkd.errors import InputError
from bigkd.jobs.base import Part
from bigkd.jobs.explain import Path, problems
from bigkd.jobs.schema import ModesPart, OutputPart, RowsPart, RunPart

Decorator: TypeAlias = Callable[[Any], Any]
PartType = TypeVar("PartType", bound=BaseModel)

_FLAGS = {"store": "--out", "progress_log": "--progress"}
_TOPLEVEL = {"test": "TEST", "reference": "REFERENCE", "rows": "ROWS"}


def _count(text: str) -> int | str:
    """``auto``, or a number."""
    try:
        return text if text == "auto" else int(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is neither auto nor a whole number.") from error


def _names(text: str) -> list[str]:
    """The names between the commas."""
    return text.split(",")


def _option(part: type[Part], field: str, *, kind: Any, metavar: str | None = None) -> Decorator:
    """Option for a field; one that is not given leaves the field's own default."""
    about = part.model_fields[field]
    words = about.description or ""
    text = f"{words[:1].upper()}{words[1:]}."
    if isinstance(about.default, str | int | float) and not isinstance(about.default, bool):
        text = f"{text}  [default: {about.default}]"
    flag = _FLAGS.get(field, f"--{field.replace('_', '-')}")
    return click.option(flag, field, type=kind, metavar=metavar, default=None, help=text)


def _together(*options: Decorator) -> Decorator:
    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_FORMS = "auto|median|NAME:PARAMETERS"

feature_options = _together(
    click.option(
        "--kernel",
        metavar=_FORMS,
        help="Kernel, or rule that chooses a Gaussian: auto, median, gaussian:2.5, laplace:1, "
        "matern:1.5:2.0 (nu, length), inverse_multiquadric:1:0.5 (length, beta). auto or median "
        "in place of a length finds it: laplace:median.  [default: auto]",
    ),
    click.option(
        "--bandwidth-factor",
        type=float,
        metavar="FACTOR",
        help="What the length that a rule finds is multiplied by; smaller gives narrower modes.",
    ),
    _option(ModesPart, "n_frequencies", kind=_count, metavar="INTEGER|auto"),
    _option(ModesPart, "sampling", kind=click.Choice(["iid", "orthogonal"])),
    _option(ModesPart, "frequency_tolerance", kind=float),
    _option(ModesPart, "seed", kind=int),
)

choice_options = _together(
    _option(ModesPart, "rho", kind=float),
    _option(ModesPart, "n_modes", kind=int),
    _option(ModesPart, "alpha", kind=float),
    _option(ModesPart, "n_draws", kind=int),
)

modes_options = _together(
    feature_options,
    choice_options,
    _option(ModesPart, "method", kind=click.Choice(["finc", "ken"])),
    _option(ModesPart, "n_top", kind=int),
)

rows_options = _together(
    _option(RowsPart, "columns", kind=_names, metavar="NAME,..."),
    _option(RowsPart, "block_rows", kind=int),
    _option(RowsPart, "missing", kind=click.Choice(["raise", "skip", "fill"])),
    _option(ModesPart, "nonfinite", kind=click.Choice(["raise", "drop"])),
)

scheduler_option = _option(RunPart, "scheduler", kind=str, metavar="ADDRESS|local|threads|sync")

resume_option = click.option(
    "--resume", is_flag=True, help="Go on from what an interrupted run has finished."
)

run_options = _together(
    scheduler_option,
    resume_option,
    _option(RunPart, "checkpoint", kind=str, metavar="PATH"),
    click.option(
        "--no-checkpoints",
        "keep_checkpoints",
        flag_value=False,
        type=bool,
        default=None,
        help="Keep no finished work on disk.",
    ),
    _option(RunPart, "memory_limit", kind=str, metavar="SIZE"),
    _option(RunPart, "stall_seconds", kind=float),
)

progress_options = _together(
    click.option(
        "--progress",
        metavar="auto|bar|none|LOGFILE",
        default="auto",
        show_default=True,
        help="Progress on stderr, or as lines of JSON in a file.",
    ),
    click.option("--quiet", is_flag=True, help="Print nothing but errors, and --json."),
)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of a table."
)

fail_option = click.option(
    "--fail-if-significant", is_flag=True, help="Exit with 3 if any mode is significant."
)

overwrite_option = click.option("--overwrite", is_flag=True, help="Replace an earlier result.")


def out_option(text: str, *, required: bool = False) -> Decorator:
    """``--out``, with the help `text`."""
    return click.option("--out", "store", metavar="STORE", required=required, help=text)


sheet_options = _together(
    _option(OutputPart, "sheet", kind=str, metavar="FILE"),
    _option(OutputPart, "images", kind=str, metavar="PATH"),
)


def given(options: Mapping[str, Any], part: type[BaseModel]) -> dict[str, Any]:
    """Those of `options` that were given and are fields of `part`."""
    return {name: options[name] for name in part.model_fields if options.get(name) is not None}


def given_kernel(options: Mapping[str, Any]) -> dict[str, Any]:
    """The kernel of ``--kernel`` and ``--bandwidth-factor``, if either was given."""
    text, factor = options.get("kernel"), options.get("bandwidth_factor")
    if text is None and factor is None:
        return {}
    return {"kernel": parse_kernel(text or "auto", factor)}


def checked(part: type[PartType], data: Mapping[str, Any]) -> PartType:
    """`data` as a `part`.

    Raises
    ------
    InputError
        If that is not possible; the message names the options.
    """
    try:
        return part.model_validate(dict(data))
    except ValidationError as error:
        found = problems(error, part, data)
        texts = [f"{_flag(problem.path)} {problem.message}" for problem in found]
        raise InputError("\n".join(texts)) from error


def _flag(path: Path) -> str:
    """The option or argument behind a key."""
    names = [str(part) for part in path if part not in ("modes", "output", "run")]
    if not names:
        return "the command"
    if names[0] in _TOPLEVEL and (len(names) == 1 or names[1] == "path"):
        return _TOPLEVEL[names[0]]
    if names[0] == "kernel":
        return "--bandwidth-factor" if names[-1] == "factor" else "--kernel"
    name = names[1] if names[0] in _TOPLEVEL else names[0]
    return _FLAGS.get(name, f"--{name.replace('_', '-')}")
