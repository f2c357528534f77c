"""One writer for each output: a file beside it, made by exclusive create.

The file names host, process and the time the process began. The lock of a process of this host that
is gone, or whose number another process has now, is taken over; one of another host never is,
because nothing here can tell whether it runs.
"""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from bigkd.errors import LockedError

_ATTEMPTS = 10


class Holder(NamedTuple):
    """Who holds a lock."""

    host: str
    pid: int
    began: float

    def is_gone(self) -> bool:
        """Whether it surely does not run any more."""
        if self.host != socket.gethostname():
            return False
        try:
            return abs(psutil.Process(self.pid).create_time() - self.began) > 1.0
        except psutil.NoSuchProcess:
            return True


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold the lock file `path`; it is gone afterwards.

    Raises
    ------
    LockedError
        If another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(_ATTEMPTS):
        if _create(path) or _take_over(path):
            break
    else:
        raise LockedError(f"{path} comes and goes; other jobs are busy there. Try again later.")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _me() -> bytes:
    pid = os.getpid()
    me = Holder(socket.gethostname(), pid, psutil.Process(pid).create_time())
    return json.dumps(me._asdict()).encode()


def _create(path: Path) -> bool:
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    try:
        os.write(file, _me())
    finally:
        os.close(file)
    return True


def _take_over(path: Path) -> bool:
    """Whether the lock was a dead process's and is now ours; False if it vanished meanwhile.

    The file is rewritten in place under ``flock``, so that of two that find the same dead holder
    one finds the other in its place.
    """
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not path.exists() or os.fstat(file).st_ino != path.stat().st_ino:
            return False
        holder = _holder(os.pread(file, 4096, 0))
        if holder is None or not holder.is_gone():
            raise LockedError(_held(path, holder))
        os.ftruncate(file, 0)
        os.pwrite(file, _me(), 0)
        return True
    finally:
        os.close(file)


def _holder(content: bytes) -> Holder | None:
    try:
        fields = json.loads(content)
        return Holder(str(fields["host"]), int(fields["pid"]), float(fields["began"]))
    except (ValueError, TypeError, KeyError):
        return None


def _held(path: Path, holder: Holder | None) -> str:
    who = "another job" if holder is None else f"process {holder.pid} on {holder.host}"
    return (
        f"{path} is held by {who}, which writes the same output. Wait for it to end; or, if it "
        f"surely does not run any more, delete that file."
    )
