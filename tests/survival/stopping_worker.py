"""A worker that stops itself in the middle of a pass: after some changes of files in a folder."""

import os
import sys

from distributed.cli.dask_worker import main

from tests.survival.command import Harm, watch

if __name__ == "__main__":
    watch(os.environ["STOP_IN"], Harm("stop", int(os.environ["STOP_AFTER"])))
    main([*sys.argv[1:], "--no-nanny"])
