"""From a job file to a `Job`, or to an error that names the key and the line."""

from pathlib import Path

from pydantic import ValidationError

from bigkd.errors import JobFileError
from bigkd.jobs.documents import Document, read_toml, read_yaml
from bigkd.jobs.explain import Problem, dotted, problems
from bigkd.jobs.schema import Job

_READERS = {".yaml": read_yaml, ".yml": read_yaml, ".toml": read_toml}


def load_job(path: str | Path) -> Job:
    """Read and check a job file.

    Parameters
    ----------
    path
        A ``.yaml``, ``.yml`` or ``.toml`` file. Paths in it are relative to its folder.

    Returns
    -------
    Job
        With absolute paths if `path` is absolute, else relative to the current folder.

    Raises
    ------
    JobFileError
        If it cannot be read or holds a mistake: every mistake with its line and key, what was
        expected and what was given.
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
    try:
        return Job.model_validate(document.values, context={"folder": file.parent})
    except ValidationError as error:
        found = problems(error, Job, document.values)
        found.sort(key=lambda problem: document.line(problem.path))
        lines = [_sentence(str(path), document, problem) for problem in found]
        raise JobFileError("\n".join(lines)) from error


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise JobFileError(f"{file} does not exist (looked in {Path.cwd()}).") from error
    except (OSError, UnicodeDecodeError) as error:
        raise JobFileError(f"{file} cannot be read: {error}.") from error


def _sentence(name: str, document: Document, problem: Problem) -> str:
    line = document.line(problem.path)
    subject = dotted(problem.path)
    return f"{name}, line {line}: {subject + ' ' if subject else ''}{problem.message}"
