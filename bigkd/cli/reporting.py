"""Progress on stderr or in a file, as ``--progress`` asks."""

import sys

import click

from bigkd.engine import Event, Reporting

_EVERY_SECONDS = 10.0


class Lines:
    """A line on stderr for a pass that takes long, now and then, and one at its end."""

    def __init__(self) -> None:
        self._label = ""
        self._shown = 0.0

    def __call__(self, event: Event) -> None:
        """Write a line if it is time."""
        if event.label != self._label:
            self._label, self._shown = event.label, 0.0
        finished = event.done >= event.total
        if self._shown < 0.0 or not (finished or event.seconds - self._shown >= _EVERY_SECONDS):
            return
        self._shown = -1.0 if finished else event.seconds
        click.echo(
            f"{event.label}: {event.done:,} of {event.total:,} {event.unit} after "
            f"{event.seconds:.1f} s",
            err=True,
        )


def reporting(progress: str, *, quiet: bool) -> Reporting:
    """What `bigkd.finc` takes as its progress."""
    if progress not in ("auto", "bar", "none"):
        return progress
    if quiet or progress == "none":
        return False
    return True if progress == "bar" or sys.stderr.isatty() else Lines()
