"""The command line: parsing only."""

import os
import sys
from collections.abc import Sequence

from bigkd.cli.app import commands
from bigkd.cli.failures import INTERRUPTED

__all__ = ["commands", "main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line on `arguments`, by default those of the process, and exit."""
    try:
        commands.main(args=arguments, prog_name="bigkd")
    except SystemExit as ending:
        if ending.code == INTERRUPTED:
            # Threads in the middle of a block cannot be stopped, and exit waits for them.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        raise
