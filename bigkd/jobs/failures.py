"""What is said of errors that do not end a run."""

import logging
import traceback
from typing import Any

from bigkd.errors import BigkdError, without_secrets
from bigkd.jobs.places import locations


def told(error: Exception, logger: logging.Logger | None = None) -> str:
    """The message of an error; of a defect with its type, and its traceback goes to `logger`."""
    if isinstance(error, BigkdError | OSError):
        return without_secrets(" ".join([str(error), *getattr(error, "__notes__", [])]))
    if logger is not None:
        trace = "".join(traceback.format_exception(error))
        logger.error("an internal error\n%s", without_secrets(trace).rstrip())
    return without_secrets(f"internal error: {type(error).__name__}: {error}")


def locate(error: Exception, part: Any) -> None:
    """Note on an error which store it is about, if it names collections by their part in `part`."""
    said = str(error)
    for key, place in locations(part):
        name = key.removesuffix(".path")
        if key != name and said.startswith(f"{name}: ") and place not in said:
            error.add_note(f"{name} is {place}.")
