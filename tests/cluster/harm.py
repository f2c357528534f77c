"""Sources and watchers that do harm at a chosen moment."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from tests.engine.helpers import Generated


@dataclass(frozen=True, kw_only=True)
class Slow(Generated):
    """Rows that take `seconds` a block."""

    seconds: float = 0.05

    def read_raw(self, start, stop):
        time.sleep(self.seconds)
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


def send(pids, sign):
    """Send a signal to processes that may be gone."""
    for pid in pids:
        try:
            os.kill(pid, sign)
        except ProcessLookupError:
            continue
