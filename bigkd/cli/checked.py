"""From options that were given to parts of a job, or to an error that names the option."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from bigkd.cli.kernels import parse_kernel
from bigkd.errors import InputError
from bigkd.jobs.comparisons import COMPARISONS
from bigkd.jobs.explain import Path, problems
from bigkd.jobs.rows import RowsPart

PartType = TypeVar("PartType", bound=BaseModel)

FLAGS = {"store": "--out", "progress_log": "--progress", "fit": "FIT.zarr"}
"""Options that are not called like their field."""

_OF_EACH = ("weights", "vectors", "row")


def given(options: Mapping[str, Any], part: type[BaseModel]) -> dict[str, Any]:
    """Those of `options` that were given and are fields of `part`."""
    return {name: options[name] for name in part.model_fields if options.get(name) is not None}


def given_of_each(options: Mapping[str, Any], role: str) -> dict[str, Any]:
    """What belongs to one of two collections: ``--x-weights`` and ``--x-vectors`` of ``x``."""
    found = {name: options.get(f"{role}_{name}") for name in _OF_EACH}
    return {name: value for name, value in found.items() if value is not None}


def given_kernel(options: Mapping[str, Any], *, rule: str = "auto") -> dict[str, Any]:
    """The kernel of ``--kernel`` and ``--bandwidth-factor``, if either was given."""
    text, factor = options.get("kernel"), options.get("bandwidth_factor")
    if text is None and factor is None:
        return {}
    return {"kernel": parse_kernel(text or rule, factor)}


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


def named_paths(texts: Sequence[str]) -> dict[str, str]:
    """Paths by name, of arguments NAME=PATH.

    Raises
    ------
    InputError
        If one is not like that, or two have one name.
    """
    paths: dict[str, str] = {}
    for text in texts:
        name, separator, path = text.partition("=")
        if not (name and separator and path):
            raise InputError(f"expected NAME=PATH; got {text!r}.")
        if name in paths:
            raise InputError(f"two paths are called {name!r}; give each a name of its own.")
        paths[name] = path
    return paths


def flag(name: str) -> str:
    """The option behind a field."""
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


def _flag(path: Path) -> str:
    """The option or argument behind a key."""
    names = [str(part) for part in path]
    if names[-1:] == ["sheet"]:  # --sheet, --match, --pictures or --picture
        return "the picture's file"
    of = names.pop(0) if names and names[0] in (*COMPARISONS, "output", "run") else ""
    if not names:
        return "the command"
    if names[0] == "kernel":
        return "--bandwidth-factor" if names[-1] == "factor" else "--kernel"
    if of in COMPARISONS and _is_collection(COMPARISONS[of], names[0]):
        return _of_collection(names)
    if of == "distance_matrix" and names[0] == "collections":
        return _of_collection(names[1:])
    return flag(names[1] if names[0] == "test" and len(names) > 1 else names[0])


def _of_collection(names: list[str]) -> str:
    """The option or argument behind a key of a collection, or behind the collection itself."""
    if not names:
        return "COLLECTIONS"
    role, field = names[0], names[1] if len(names) > 1 else "path"
    if field == "path":
        return role.upper() if role in _ROLES else role
    return f"--{role}-{field}" if role in _ROLES and field in _OF_EACH else flag(field)


def _is_collection(part: type[BaseModel], name: str) -> bool:
    field = part.model_fields.get(name)
    kind = None if field is None else field.annotation
    kinds = [kind, *(getattr(part, "__origin__", part) for part in get_args(kind))]
    return any(isinstance(kind, type) and issubclass(kind, RowsPart) for kind in kinds)


_ROLES = {
    name
    for part in COMPARISONS.values()
    for name in part.model_fields
    if _is_collection(part, name)
}
