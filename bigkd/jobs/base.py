"""What every part of a job has in common, and the types of its fields."""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from dask.utils import parse_bytes
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from bigkd.io.urls import url_problem


class Part(BaseModel):
    """A mapping of a job file: unknown keys refused, nothing converted, nothing changed later."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, validate_default=False,
        hide_input_in_errors=True,
    )  # fmt: skip


class KeyProblem(ValueError):
    """What is wrong with one key below the part that is looked at."""

    def __init__(self, path: tuple[str, ...], message: str) -> None:
        super().__init__(message)
        self.path = path


def located(value: str, info: ValidationInfo) -> str:
    """The path `value`, seen from the folder of the job file; URLs stay as they are.

    In a job file ``~`` is the home of whoever runs it, as in a shell.
    """
    if "\0" in value:
        raise ValueError("must be a path without NUL characters")
    folder = (info.context or {}).get("folder")
    problem = url_problem(value)
    if problem is not None:
        raise ValueError(problem)
    if folder is None or "://" in value:
        return value
    if value.startswith("$"):
        raise ValueError(
            f"must be a path without variables of the environment, which are not replaced; write "
            f"it out, or begin it with ~; got {value!r}"
        )
    return str(Path(folder) / from_home(value))


def from_home(path: str) -> Path:
    """`path` with the home of whoever runs it for a ``~`` alone, or before a slash."""
    return Path(path).expanduser() if path == "~" or path.startswith("~/") else Path(path)


def _count(value: Any) -> Any:
    if value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise ValueError(f"must be 'auto' or a whole number of at least 1; got {value!r}")


def _bytes(value: Any) -> Any:
    try:
        if isinstance(value, int | str) and not isinstance(value, bool) and parse_bytes(value) > 0:
            return value
    except ValueError:
        pass
    raise ValueError(f"must be a positive number of bytes, or text such as '2 GiB'; got {value!r}")


def _scheduler(value: str) -> str:
    problem = url_problem(value)
    if problem is not None:
        raise ValueError(problem)
    if value in ("sync", "threads", "local") or "://" in value:
        return value
    raise ValueError(
        f"must be 'sync', 'threads', 'local', or an address such as tcp://host:8786; got {value!r}"
    )


def _text(value: Any) -> Any:
    if isinstance(value, str) and value:
        return value
    raise ValueError(f"must be a path, as text; got {value!r}")


def _size(value: Any) -> Any:
    if isinstance(value, list) and [type(side) for side in value] == [int, int] and min(value) > 0:
        return value
    raise ValueError(f"must be a height and a width, each a whole number above 0; got {value!r}")


Location: TypeAlias = Annotated[str, BeforeValidator(_text), AfterValidator(located)]
"""A path, relative to the job file, or a URL."""

Count: TypeAlias = Annotated[int | Literal["auto"], BeforeValidator(_count)]
"""A whole number of at least one, or ``auto``."""

Bytes: TypeAlias = Annotated[int | str, BeforeValidator(_bytes)]
"""A number of bytes, or text such as ``2 GiB``."""

SchedulerName: TypeAlias = Annotated[str, AfterValidator(_scheduler)]
"""Where tasks run."""

Positive: TypeAlias = Annotated[float, Field(gt=0)]
Whole: TypeAlias = Annotated[int, Field(ge=1)]
Size: TypeAlias = Annotated[list[int], BeforeValidator(_size)]
"""Height and width of pictures."""
