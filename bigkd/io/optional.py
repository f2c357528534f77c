"""Optional dependencies, imported when a user first needs them."""

import importlib
from typing import Any

from bigkd.errors import MissingDependencyError


def require(module: str, *, extra: str) -> Any:
    """Import `module`, or say which extra brings it.

    Raises
    ------
    MissingDependencyError
        If `module` is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependencyError(
            f"this needs {package}, which is not installed; pip install 'bigkd[{extra}]'."
        ) from error
