"""Preloaded by the workers that are started on this machine."""

import logging
from typing import Any


def dask_setup(worker: Any) -> None:
    """Leave what a task raises to the call that it belongs to, which tells it once.

    Dask would log it, with its traceback, for every stripe and each time that it is tried.
    """
    del worker
    logging.getLogger("distributed.worker").addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("Compute Failed")
