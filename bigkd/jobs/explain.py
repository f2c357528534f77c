"""What is wrong with a job, in words: each problem with the key that it is about."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]

_TAGS = ("name", "kind")
"""Keys that tell which of several models a mapping is."""

_OF_KEY = "[key]"
"""What pydantic puts behind a key that is itself wrong."""

_MOST_LETTERS = 1000


class Problem(NamedTuple):
    """One thing that is wrong."""

    path: Path
    """Keys that lead to it from the top, as they stand in the file; empty for the whole."""

    message: str
    """A sentence that begins with what the key is missing or must be, without the key."""


def problems(error: ValidationError, model: type[BaseModel], data: Any) -> list[Problem]:
    """Every problem of `data`, which `model` refused."""
    return [_problem(detail, model, data) for detail in error.errors(include_url=False)]


def suggestion(word: str, known: Sequence[str]) -> str:
    """Which of `known` was probably meant, as a sentence; empty if nothing is close."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f" Did you mean {close[0]}?" if close else ""


def dotted(path: Path) -> str:
    """``modes.columns[0]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _problem(detail: ErrorDetails, model: type[BaseModel], data: Any) -> Problem:
    path = _path_in(data, detail["loc"])
    kind, given = detail["type"], detail["input"]
    path += getattr(detail.get("ctx", {}).get("error"), "path", ())
    if kind == "extra_forbidden":
        fields = {k: v for p in _parts(model, path[:-1], data) for k, v in p.model_fields.items()}
        known = sorted(fields, key=lambda name: not fields[name].is_required())
        listed = ", ".join(known)
        hint = suggestion(str(path[-1]), known)
        return Problem(path, f"is not a key here.{hint} Known keys: {listed}.")
    if kind == "missing":
        return Problem(path, f"is missing{_meaning(model, path, data)}.")
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        known = [value for part in _parts(model, path, data) for value in _choices(part)]
        return Problem(path, _wrong_tag(detail, [str(value) for value in known]))
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return Problem(path, f"must be a mapping of keys to values; got {_shown(given)}.")
    message = detail["msg"].replace("Input should be", "must be")
    if message.startswith("Value error, "):
        return Problem(path, _cut(message.removeprefix("Value error, ")).rstrip(".") + ".")
    return Problem(path, f"{_cut(message)}; got {_shown(given)}.")


def _shown(given: Any) -> str:
    try:
        return _cut(repr(given))
    except ValueError:  # Python does not write numbers of so many digits
        return "a number of too many digits"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}..."


def _path_in(data: Any, loc: Path) -> Path:
    """`loc` without what pydantic puts between the keys: the tags of unions."""
    path: list[str | int] = []
    at = data
    for number, part in enumerate(loc):
        inside = part in at if isinstance(at, Mapping) else isinstance(at, list)
        if part == _OF_KEY:
            break
        if inside:
            at = at[part]
        # What is not there is a tag, unless it comes last: then it is the key that is missing.
        elif number < len(loc) - 1 or not isinstance(at, Mapping) or part in _tags(at):
            continue
        path.append(part)
    return tuple(path)


def _parts(model: type[BaseModel], path: Path, data: Any) -> list[type[BaseModel]]:
    """The models that may stand at `path`; of several, the one whose name the data give."""
    found = [model]
    at = data
    by_name = False
    for key in path:
        at = at.get(key) if isinstance(at, Mapping) else None
        if by_name:  # a key that the user chose
            by_name = False
            continue
        fields = [field for part in found if (field := part.model_fields.get(str(key))) is not None]
        by_name = any(get_origin(field.annotation) is dict for field in fields)
        found = [part for field in fields for part in _models(field.annotation)]
    tags = _tags(at) if isinstance(at, Mapping) else []
    named = [part for part in found if any(tag in _choices(part) for tag in tags)]
    return named or found


def _tags(at: Mapping[str, Any]) -> list[Any]:
    return [at.get(key) for key in _TAGS]


def _choices(part: type[BaseModel]) -> list[Any]:
    """The values of the key that tells `part` from other models."""
    found = [part.model_fields[key].annotation for key in _TAGS if key in part.model_fields]
    return [value for kind in found if get_origin(kind) is Literal for value in get_args(kind)]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _meaning(model: type[BaseModel], path: Path, data: Any) -> str:
    """What the field at `path` is for, after a colon."""
    for part in _parts(model, path[:-1], data):
        field = part.model_fields.get(str(path[-1]))
        if field is not None and field.description:
            return f": {field.description}"
    return ""


def _wrong_tag(detail: ErrorDetails, names: Sequence[str]) -> str:
    context = detail.get("ctx", {})
    key = str(context.get("discriminator", "name")).strip("'")
    if "tag" not in context:
        return f"must have a {key}: {', '.join(names)}."
    tag = str(context["tag"])
    listed = ", ".join(repr(name) for name in names)
    return f"has the {key} {tag!r}, which must be one of {listed}.{suggestion(tag, names)}"
