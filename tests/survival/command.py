"""The command line in a process of its own, to which something happens half way.

Harm comes after so many changes of files in its folder, wherever that is: in a checkpoint, in a
result, in the history, in the report.
"""

import errno
import itertools
import os
import signal
import sys
import time
from typing import NamedTuple

from bigkd.cli import main
from bigkd.engine import stripes

STREAMS = ("stdout", "stderr", "changes")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGING = ("os.rename", "os.mkdir", "os.truncate", "os.link", "os.remove", "os.rmdir")


class Harm(NamedTuple):
    """What happens, after how many changes."""

    how: str
    after: int


def kill(event, arguments):
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt(event, arguments):
    signal.raise_signal(signal.SIGINT)


def terminate(event, arguments):
    os.kill(os.getpid(), signal.SIGTERM)


def stop(event, arguments):
    """Go on when somebody says so: meanwhile others look, or do harm."""
    os.kill(os.getpid(), signal.SIGSTOP)


def fill_the_disk(event, arguments):
    """Nothing new can be made; what is there can be renamed and removed."""
    makes = event == "open" and arguments[2] & (os.O_CREAT | os.O_TRUNC)
    if makes or event == "os.mkdir":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def clock_back(event, arguments):
    """The clock goes back by thirty years."""
    now, now_ns = time.time, time.time_ns
    if now() > 1.5e9:
        time.time = lambda: now() - 1e9
        time.time_ns = lambda: now_ns() - 10**18


ONCE = {
    "kill": kill, "interrupt": interrupt, "terminate": terminate, "stop": stop,
    "clock": clock_back,
}  # fmt: skip
ALWAYS = {"full": fill_the_disk}


def run(arguments, folder, harm, streams):
    """Be the command line in `folder`; stdout and stderr go to files in `streams`.

    How many files were changed is in the file ``changes`` there, if it ends by itself.
    """
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(f"{streams}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run with `&`
    stripes.STRIPE_WORK = 1  # every block is a task of its own
    counted = watch(str(folder), harm)
    try:
        main(arguments)
    finally:
        done = counted()
        with open(f"{streams}/changes", "w", encoding="ascii") as file:
            file.write(str(done))
        sys.stdout.flush()
        sys.stderr.flush()


def watch(folder, harm):
    """Strike when as many files below `folder` were changed as `harm` says; what counts them."""
    numbers = itertools.count(1)
    last = 0

    def hook(event, arguments):
        nonlocal last
        if not is_change(event, arguments, folder):
            return
        last = next(numbers)
        if harm is None or last < harm.after:
            return
        if harm.how in ALWAYS:
            ALWAYS[harm.how](event, arguments)
        elif last == harm.after:
            ONCE[harm.how](event, arguments)

    sys.addaudithook(hook)
    return lambda: last


def is_change(event, arguments, folder):
    """Whether a file below `folder` is about to be changed; names without a folder are in it."""
    if event == "open":
        path, _, flags = arguments
        changes = isinstance(flags, int) and flags & _WRITING
    else:
        changes, path = event in _CHANGING, arguments[0] if arguments else None
    if not changes or not isinstance(path, str | bytes | os.PathLike):
        return False
    name = os.fsdecode(path)
    return name == folder or name.startswith(f"{folder}/") or not os.path.isabs(name)
