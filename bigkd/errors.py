"""The exceptions of bigkd.

::

    BigkdError
    ├── InputError (ValueError)      what was passed cannot be used: says what would be
    │   ├── ShapeError               wrong number of dimensions, or widths that differ
    │   ├── EmptyInputError          no rows
    │   └── JobFileError             a job file: names the key and the line
    ├── DataError (ValueError)       the data themselves: not finite, missing chunk
    ├── StoreError (OSError)         a store: absent, corrupted, incompatible
    ├── MemoryPlanError (MemoryError) the plan needs more than a worker has
    ├── ClusterError (RuntimeError)  the cluster stopped answering: resumable
    ├── LockedError (RuntimeError)   another job is writing the same output
    └── MissingDependencyError (ImportError) an extra is not installed

Each says what was expected, what came, and what to do next. `exit_code` is what the command line
returns for it: 2 usage, 4 data, 5 cluster (run again with ``--resume``), 75 locked. None shows what
the environment holds under the name of a secret, no matter whose message it quotes.
"""

import os
import re
from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import quote

_WORDS = "SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|KEY|AUTHORIZATION|CONNECTION_?STRING"
_SECRET = re.compile(f"{_WORDS}|PASS$", re.IGNORECASE)
_INSIDE = re.compile(
    rf"(?:{_WORDS})\w*[\"']?\s*[=:]\s*[\"']?([^\s\"',;&]+)", re.IGNORECASE
)  # AccountKey=..., {"secret": "..."}
_LEAST_SECRET = 8
_IN_URLS = (
    (re.compile(r"://[^\s'\"<>]*@"), "://***@"),
    (re.compile(r"(://[^\s'\"<>?#]*)[?#][^\s'\"<>]+"), r"\1?***"),
)


def without_secrets(text: str) -> str:
    """`text` with ``***`` in place of secrets, for messages that others worded.

    Those are what environment variables hold whose name speaks of a secret, a token, a password or
    a key, or what follows such a name inside of one (``AccountKey=...``, ``{"secret": ...}``), from
    8 characters on, unless it is the path of a file; and user names and queries of URLs.
    """
    for value in sorted(set(_secrets()), key=len, reverse=True):
        text = text.replace(value, "***")
    for pattern, instead in _IN_URLS:
        text = pattern.sub(instead, text)
    return text


def _secrets() -> Iterator[str]:
    for name, value in os.environ.items():
        whole = [value] if _SECRET.search(name) else []
        for secret in (*whole, *_INSIDE.findall(value)):
            if len(secret) >= _LEAST_SECRET and not _is_path(secret):
                yield secret
                yield quote(secret, safe="")


def _is_path(value: str) -> bool:
    folder = os.path.dirname(value)
    return os.path.isabs(value) and folder != "/" and os.path.isdir(folder)


def exit_code_of(error: BaseException) -> int:
    """What the command line returns for any error: 4 where the system refused, 1 for a defect."""
    if isinstance(error, BigkdError):
        return error.exit_code
    return StoreError.exit_code if isinstance(error, OSError) else BigkdError.exit_code


class BigkdError(Exception):
    """Base of every error that bigkd raises on purpose."""

    exit_code: ClassVar[int] = 1

    def __init__(self, *args: Any) -> None:
        super().__init__(*(without_secrets(arg) if isinstance(arg, str) else arg for arg in args))


class InputError(BigkdError, ValueError):
    """An argument cannot be used; the message names it and says what would be."""

    exit_code = 2


class ShapeError(InputError):
    """Rows of the wrong number of dimensions or width."""


class EmptyInputError(InputError):
    """A collection without rows, or with none left."""


class JobFileError(InputError):
    """A job file that cannot be read; the message names the key and the line."""


class DataError(BigkdError, ValueError):
    """The data are at fault: values that are not finite, chunks that do not exist."""

    exit_code = 4


class StoreError(BigkdError, OSError):
    """A store is absent, corrupted, or of another format."""

    exit_code = 4


class MemoryPlanError(BigkdError, MemoryError):
    """The plan needs more memory in one task than a worker has; raised before anything runs."""

    exit_code = 2


class ClusterError(BigkdError, RuntimeError):
    """The cluster stopped making progress; what is checkpointed is kept and can be resumed."""

    exit_code = 5


class LockedError(BigkdError, RuntimeError):
    """Another job holds the lock of the output; the message names its process."""

    exit_code = 75


class MissingDependencyError(BigkdError, ImportError):
    """An optional dependency is not installed; the message names the extra."""

    exit_code = 2
