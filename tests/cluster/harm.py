"""Sources and watchers that do harm at a chosen moment."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.engine.helpers import Generated


@dataclass(frozen=True, kw_only=True)
class Slow(Generated):
    """Rows that take `seconds` a block; those from `held` on are there once `gate` is."""

    seconds: float = 0.05
    held: int = 0
    gate: Path | None = None

    def read_raw(self, start, stop):
        time.sleep(self.seconds)
        if self.gate is not None and start >= self.held:
            wait_for(self.gate.exists)
        return super().read_raw(start, stop)


@dataclass(frozen=True, kw_only=True)
class Deadly(Generated):
    """Rows of which those from `deadly` on kill the process that reads them, while `armed`."""

    deadly: int
    armed: Path

    def read_raw(self, start, stop):
        if start == self.deadly and self.armed.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read_raw(start, stop)


class Strike:
    """A progress function that strikes once, when enough is done."""

    def __init__(self, strike, *, share=0.3):
        self._strike, self._share = strike, share
        self.events = []
        self.struck = False

    def __call__(self, event):
        self.events.append(event)
        if not self.struck and event.done >= self._share * event.total:
            self.struck = True
            self._strike()


def wait_for(condition, seconds=200):
    """Return when something has become true; so late only where it never will."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"{condition} did not become true within {seconds} s")
        time.sleep(0.02)


def alive(pid):
    """Whether a process runs: one that has ended and was not waited for does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until_gone(pids):
    """Return when none of these processes runs."""
    wait_for(lambda: not any(map(alive, pids)))


def wait_until_stopped(pid):
    """Return when a process has stopped itself, and goes on only when it is told to."""
    process = psutil.Process(pid)
    wait_for(lambda: process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE))
    assert process.status() == psutil.STATUS_STOPPED, "it has ended"


def send(pids, sign):
    """Send a signal to processes that may be gone."""
    for pid in pids:
        try:
            os.kill(pid, sign)
        except ProcessLookupError:
            continue
