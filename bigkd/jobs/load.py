"""From a job file to a `Job`, or to an error that names the key and the line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bigkd.errors import JobFileError
from bigkd.jobs.base import from_home
from bigkd.jobs.documents import Document, read_toml, read_yaml
from bigkd.jobs.explain import Problem, dotted, problems
from bigkd.jobs.schema import Job, with_data

_READERS = {".yaml": read_yaml, ".yml": read_yaml, ".toml": read_toml}
_MOST_BYTES = 2_000_000


def load_job(path: str | Path, *, data: Mapping[str, str] | None = None) -> Job:
    """Read and check a job file.

    Parameters
    ----------
    path
        A ``.yaml``, ``.yml`` or ``.toml`` file. Paths in it are relative to its folder.
    data
        Paths for some of the names under its ``data``, in place of those that are there; relative
        to the current folder.

    Returns
    -------
    Job
        With absolute paths if `path` is absolute, else relative to the current folder.

    Raises
    ------
    JobFileError
        If it cannot be read or holds a mistake: every mistake with its line and key, what was
        expected and what was given.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "job.yaml"
    ...     _ = file.write_text("distance: {x: today.zarr, y: s3://archive/old.zarr}")
    ...     job = load_job(file)
    >>> job.distance.y.path, job.distance.kernel.bandwidth
    ('s3://archive/old.zarr', 'median')
    """
    file = Path(path)
    reader = _READERS.get(file.suffix)
    if reader is None:
        raise JobFileError(f"{path}: a job file ends in .yaml, .yml or .toml.")
    document = reader(_text(file), str(path))
    if not isinstance(document.values, dict):
        raise JobFileError(
            f"{path}, line 1: expected a mapping with a key such as 'modes:'; got "
            f"{'an empty file' if document.values is None else repr(document.values)[:60]}."
        )
    values = _with_paths(document.values, data or {}, str(path))
    try:
        return Job.model_validate(values, context={"folder": file.parent})
    except ValidationError as error:
        found = problems(error, Job, with_data(values)[0])
        found.sort(key=lambda problem: document.line(problem.path))
        lines = [_sentence(str(path), document, problem) for problem in found]
        raise JobFileError("\n".join(lines)) from error


def _with_paths(values: Any, data: Mapping[str, str], name: str) -> Any:
    named = values.get("data")
    for key in data:
        if not isinstance(named, dict) or key not in named:
            raise JobFileError(f"{name} has no data called {key!r} to give a path.")
    found = {} if not isinstance(named, dict) else dict(named)
    for key, path in data.items():
        place = path if "://" in path else str(from_home(path).absolute())
        found[key] = {**found[key], "path": place} if isinstance(found[key], dict) else place
    return {**values, "data": found} if data else values


def _text(file: Path) -> str:
    try:
        if file.exists() and not file.is_file():
            raise OSError("it is not a file")
        if file.stat().st_size > _MOST_BYTES:
            raise OSError(f"it has more than {_MOST_BYTES:,} bytes; is it a job file?")
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise JobFileError(f"{file} does not exist (looked in {Path.cwd()}).") from error
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        raise JobFileError(f"{file}, line {line}: not text in UTF-8; save it as such.") from error
    except (OSError, ValueError) as error:  # a name that cannot be one
        raise JobFileError(f"{file} cannot be read: {error}.") from error


def _sentence(name: str, document: Document, problem: Problem) -> str:
    line = document.line(problem.path)
    subject = dotted(problem.path)
    return f"{name}, line {line}: {subject + ' ' if subject else ''}{problem.message}"
