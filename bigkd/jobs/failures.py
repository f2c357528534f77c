"""What is said of errors that do not end a run."""

import logging

from bigkd.errors import BigkdError, without_secrets


def told(error: Exception, logger: logging.Logger | None = None) -> str:
    """The message of an error; of a defect with its type, and its traceback goes to `logger`."""
    if isinstance(error, BigkdError | OSError):
        return without_secrets(str(error))
    if logger is not None:
        logger.error("an internal error", exc_info=error)
    return without_secrets(f"internal error: {type(error).__name__}: {error}")
