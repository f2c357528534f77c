"""From errors to one clear message and an exit code that a scheduler can use."""

import errno
import math
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

from bigkd.errors import BigkdError, exit_code_of, without_secrets

INTERRUPTED = 130


class CarefulGroup(click.Group):
    """A group whose commands end with the exit codes of `bigkd.errors`."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; tell what went wrong, without a traceback unless asked for."""
        interrupt = _Interrupt()
        with _handling({signal.SIGTERM: interrupt, signal.SIGINT: interrupt}):
            try:
                return super().invoke(ctx)
            except (click.ClickException, click.exceptions.Exit, click.Abort):
                raise
            except (Exception, KeyboardInterrupt) as error:
                if isinstance(error, OSError) and error.errno == errno.EPIPE:
                    raise  # click knows what to do when nobody reads on
                with _handling({signal.SIGTERM: signal.SIG_IGN, signal.SIGINT: signal.SIG_IGN}):
                    ctx.exit(_told(error, debug=bool(ctx.params.get("debug"))))


def _told(error: BaseException, *, debug: bool) -> int:
    """The exit code for an error, which is told."""
    if debug:
        click.echo(without_secrets("".join(traceback.format_exception(error))), err=True)
    click.echo(without_secrets(_message(error, debug)), err=True)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else exit_code_of(error)


def _message(error: BaseException, debug: bool) -> str:
    notes = [str(note) for note in getattr(error, "__notes__", [])]
    if isinstance(error, KeyboardInterrupt):
        return " ".join(["Interrupted.", *notes])
    if isinstance(error, BigkdError):
        return " ".join([f"Error: {error}", *notes])
    if isinstance(error, OSError):
        return f"Error: the system refused: {error}."
    hint = "" if debug else " For the traceback, run it again as: bigkd --debug ..."
    return f"Internal error: {type(error).__name__}: {error}.{hint}"


@contextmanager
def _handling(handlers: Mapping[int, Any]) -> Iterator[None]:
    """Handle signals otherwise meanwhile; only the main thread can.

    SIGTERM, which schedulers send, interrupts as Ctrl-C does: locks go, checkpoints stay. What has
    been interrupted is not interrupted again while it says so. A signal that the caller ignores,
    as shells do for what runs in the background, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Interrupt:
    """Raises KeyboardInterrupt, but for a second signal that comes within a second.

    In the middle of a lock of the standard library a second one would end as RuntimeError.
    """

    def __init__(self) -> None:
        self._last = -math.inf

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last > 1.0:
            self._last = now
            raise KeyboardInterrupt
