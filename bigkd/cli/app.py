"""`bigkd`: the group of all commands."""

import logging
import sys

import click

from bigkd import __version__
from bigkd.cli.check_commands import check
from bigkd.cli.compare_commands import modes
from bigkd.cli.coreset_commands import coreset
from bigkd.cli.did_commands import did, did_matrix, did_nearest
from bigkd.cli.distance_commands import distance, distance_matrix, two_sample
from bigkd.cli.failures import CarefulGroup
from bigkd.cli.history_commands import history, report, status
from bigkd.cli.job_commands import run, schema, show
from bigkd.cli.mmdpca_commands import (
    mmdpca,
    mmdpca_background,
    mmdpca_distance,
    mmdpca_project,
)
from bigkd.cli.summary_commands import add_rows, compare, summarize
from bigkd.errors import without_secrets

_EPILOG = """\b
Exit codes:
  0    done
  1    internal error
  2    wrong usage, job file or input
  3    a threshold was exceeded: --fail-if-significant, --fail-above, --fail-if-rejected,
       --fail-if-explained-below, --fail-if-error-above
  4    data fault: rows that are not finite, a store that is absent or damaged
  5    cluster fault: run it again
  75   another job writes the same output
  130  interrupted: run it again

\b
bigkd run goes on from what is finished by itself, the other commands with --resume.
"""


class _Lines(logging.Formatter):
    """Log lines that show no secrets of the environment."""

    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


@click.group(cls=CarefulGroup, epilog=_EPILOG)
@click.version_option(__version__, prog_name="bigkd")
@click.option("--debug", is_flag=True, help="Show tracebacks and what the engine decides.")
def commands(*, debug: bool) -> None:
    """Compare collections too big for memory.

    Results go to stdout; progress, messages and errors to stderr.
    """
    # Anew each time: the stream may be another one than before.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines("%(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("bigkd")
    logger.handlers = [handler]
    logger.setLevel(logging.DEBUG if debug else logging.WARNING)


for _command in (
    modes, distance, two_sample, distance_matrix, coreset, did, did_matrix, did_nearest,
    mmdpca, mmdpca_project, mmdpca_distance, mmdpca_background,
    run, check, status, history, report, schema, show, summarize, add_rows, compare,
):  # fmt: skip
    commands.add_command(_command)
