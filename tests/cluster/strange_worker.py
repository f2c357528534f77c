"""A worker on a machine where bigkd is not installed, or another version of it."""

import importlib.metadata
import os
import sys

from distributed.cli.dask_worker import main

_version = importlib.metadata.version


def version(name):
    """The version of a package; that of bigkd as the environment says, if it does."""
    if name != "bigkd":
        return _version(name)
    if "STRANGE_VERSION" in os.environ:
        return os.environ["STRANGE_VERSION"]
    raise importlib.metadata.PackageNotFoundError(name)


if __name__ == "__main__":
    sys.modules["bigkd"] = None
    importlib.metadata.version = version
    main([*sys.argv[1:], "--no-nanny"])
