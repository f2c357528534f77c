"""One writer at a time: a lock is a small file, or an object, made by exclusive create.

It names host, process and when the process began, and its holder writes it anew every few seconds.
The lock of a process of this machine that is gone, or whose number another process has now, is
taken over at once, and that of one that runs never is. Of processes elsewhere only their writing
tells: a lock that stays the same for a minute of the waiting process's own time is taken over, so
that no clock has to be right. Who was stopped for so long, and goes on, finds its lock lost.
"""

import fcntl
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from operator import eq
from pathlib import Path
from typing import NamedTuple, Protocol

import psutil

from bigkd.errors import BigkdError, LockedError, StoreError
from bigkd.io.small_files import Bucket

_BEAT = 5.0
_STALE = 60.0
_POLL = {False: 0.05, True: 0.25}
"""Seconds between looks at a lock of somebody else: in a folder, in a bucket."""


class Holder(NamedTuple):
    """Who holds a lock."""

    host: str
    machine: str
    """Boot and space of process numbers; equal for processes that see each other's."""

    pid: int
    began: float
    """Seconds from the start of the machine; setting its clock does not change them."""

    token: str
    beats: int

    @property
    def is_here(self) -> bool:
        """Whether its number can be looked up."""
        return (self.host, self.machine) == (socket.gethostname(), _machine())

    def is_gone(self) -> bool:
        """Whether it surely does not run any more."""
        if not self.is_here:
            return False
        try:
            return abs(_began(self.pid) - self.began) > 2.0
        except psutil.NoSuchProcess:
            return True


class Lock:
    """A lock that is held."""

    def __init__(self, place: "_Place", holder: Holder) -> None:
        self._place, self._holder = place, holder
        self._one_at_a_time = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="bigkd lock", daemon=True)
        self._thread.start()

    def require(self) -> None:
        """Do nothing if it is still held.

        Raises
        ------
        LockedError
            If another process took it over, because this one was stopped for too long.
        """
        if not self._renewed():
            raise LockedError(
                f"{self._place.path} was taken over by another job, because this process did not "
                f"run for {_STALE:.0f} s. Run it again."
            )

    def release(self) -> None:
        """Let others have it. What cannot be removed now is taken over later."""
        self._over.set()
        self._thread.join()
        with suppress(Exception):  # an object store raises whatever its client does
            self._place.remove(self._is_mine)

    def _beat(self) -> None:
        while not self._over.wait(_BEAT):
            with suppress(Exception):
                self._renewed()

    def _renewed(self) -> bool:
        with self._one_at_a_time:
            self._holder = self._holder._replace(beats=self._holder.beats + 1)
            return self._place.replace(self._is_mine, _content(self._holder))

    def _is_mine(self, content: bytes) -> bool:
        return self._holder.token.encode() in content


@contextmanager
def lock(path: str | Path, *, wait: float = 0.0) -> Iterator[Lock]:
    """Hold the lock at `path`, a file or the URL of an object; it is gone afterwards.

    Parameters
    ----------
    wait
        Seconds to wait for a process that holds it. With 0, LockedError comes as soon as it is
        known that the holder runs: at once if it is one of this machine, within seconds otherwise.

    Raises
    ------
    LockedError
        If another process holds it.
    StoreError
        If it can be neither made nor read.
    """
    url = str(path)
    try:
        place: _Place = _Object(url) if "://" in url else _File(Path(path))
        held = _acquired(place, wait)
    except BigkdError:
        raise
    except Exception as error:  # object stores raise what their clients do
        raise StoreError(
            f"the lock {url} cannot be made: {type(error).__name__}: {error}. Make room, or pass a "
            f"place that can be written."
        ) from error
    try:
        yield held
    finally:
        held.release()


def holder_of(path: str | Path) -> Holder | None:
    """Who holds the lock at `path`, or held it last; None if there is no lock."""
    url = str(path)
    try:
        content = _Object(url).read() if "://" in url else Path(path).read_bytes()
    except FileNotFoundError:
        return None
    return None if content is None else _holder(content)


class _Place(Protocol):
    """Where a lock is."""

    path: str
    is_remote: bool
    can_replace: bool

    def create(self, content: bytes) -> bool:
        """Whether there was none, and now there is."""

    def read(self) -> bytes | None:
        """What is there."""

    def replace(self, expected: Callable[[bytes], bool], content: bytes) -> bool:
        """Whether what was there was `expected`, and is replaced."""

    def remove(self, expected: Callable[[bytes], bool]) -> None:
        """Remove what is there, if it is `expected`."""


class _File:
    """A file, rewritten in place under ``flock``: of two that take it over, one comes second."""

    is_remote = False
    can_replace = True

    def __init__(self, path: Path) -> None:
        self.path, self._path = str(path), path
        path.parent.mkdir(parents=True, exist_ok=True)

    def create(self, content: bytes) -> bool:
        try:
            file = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            return False
        try:
            os.write(file, content)
        except OSError:
            self._path.unlink()
            raise
        finally:
            os.close(file)
        return True

    def read(self) -> bytes | None:
        with self._locked(lambda _: True) as file:
            return None if file is None else os.pread(file, 4096, 0)

    def replace(self, expected: Callable[[bytes], bool], content: bytes) -> bool:
        with self._locked(expected) as file:
            if file is None:
                return False
            os.pwrite(file, content, 0)
            os.ftruncate(file, len(content))
            return True

    def remove(self, expected: Callable[[bytes], bool]) -> None:
        with self._locked(expected) as file:
            if file is not None:
                self._path.unlink()

    @contextmanager
    def _locked(self, expected: Callable[[bytes], bool]) -> Iterator[int | None]:
        """The file, which nobody else reads or writes now; None if it is gone or another."""
        try:
            file = os.open(self._path, os.O_RDWR)
        except FileNotFoundError:
            yield None
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            there = self._is_there(file) and expected(os.pread(file, 4096, 0))
            yield file if there else None
        finally:
            os.close(file)

    def _is_there(self, file: int) -> bool:
        try:
            return os.fstat(file).st_ino == self._path.stat().st_ino
        except FileNotFoundError:
            return False


class _Object:
    """An object, written on condition that it is the one that was read."""

    is_remote = True

    def __init__(self, url: str) -> None:
        folder, _, self._key = url.rpartition("/")
        self.path, self._bucket = url, Bucket(folder)
        self.can_replace = self._bucket.is_conditional

    def create(self, content: bytes) -> bool:
        if self._bucket.put(self._key, content, None) is None:
            return False
        try:
            if self.can_replace:
                self._bucket.require_conditions(self._key)
        except BaseException:
            self._bucket.delete(self._key)  # nobody would renew it
            raise
        return True

    def read(self) -> bytes | None:
        return self._bucket.read([self._key]).get(self._key)

    def replace(self, expected: Callable[[bytes], bool], content: bytes) -> bool:
        version, found = self._bucket.version(self._key), self.read()
        if version is None or found is None or not expected(found):
            return False
        return not self.can_replace or self._bucket.put(self._key, content, version) is not None

    def remove(self, expected: Callable[[bytes], bool]) -> None:
        found = self.read()
        if found is not None and expected(found):
            self._bucket.delete(self._key)


class _Watch:
    """How long a lock stayed the same while this process looked; its own pauses do not count."""

    def __init__(self, poll: float) -> None:
        self._poll, self._content = poll, b""
        self._last = time.monotonic()
        self.seconds, self.looks, self.changed = 0.0, 0, False

    def look(self, content: bytes) -> None:
        """Take note of what is there now."""
        now = time.monotonic()
        self.seconds += min(now - self._last, 4 * self._poll)
        if content != self._content:
            self.seconds, self.changed = 0.0, self.looks > 0
        self._last, self._content, self.looks = now, content, self.looks + 1


def _acquired(place: _Place, wait: float) -> Lock:
    pid = os.getpid()
    me = Holder(socket.gethostname(), _machine(), pid, _began(pid), uuid.uuid4().hex, 0)
    poll = _POLL[place.is_remote]
    watch, until = _Watch(poll), time.monotonic() + wait
    mine = _content(me)
    while not place.create(mine):
        found = place.read()
        if found is None:
            _require_time(place, None, until + _STALE)
        else:
            watch.look(found)
            if _is_abandoned(place, found, watch) and place.replace(partial(eq, found), mine):
                break
            _require_patience(place, _holder(found), watch, until if wait else None)
        time.sleep(poll)
    return Lock(place, me)


def _is_abandoned(place: _Place, content: bytes, watch: _Watch) -> bool:
    holder = _holder(content)
    if not place.can_replace or (holder is not None and holder.is_here and not holder.is_gone()):
        return False
    return (holder is not None and holder.is_gone()) or watch.seconds >= _STALE


def _require_patience(
    place: _Place, holder: Holder | None, watch: _Watch, until: float | None
) -> None:
    """Raise LockedError if there is nothing to wait for."""
    if until is not None:
        _require_time(place, holder, until)
        return
    runs = holder is not None and holder.is_here and not holder.is_gone()
    if runs or watch.changed or not place.can_replace:
        raise LockedError(_held(place.path, holder))


def _require_time(place: _Place, holder: Holder | None, until: float) -> None:
    if time.monotonic() >= until:
        raise LockedError(_held(place.path, holder))


def _began(pid: int) -> float:
    return psutil.Process(pid).create_time() - psutil.boot_time()


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # not Linux
        return ""


def _content(holder: Holder) -> bytes:
    return json.dumps(holder._asdict()).encode()


def _holder(content: bytes) -> Holder | None:
    try:
        fields = json.loads(content)
        kinds = (str, str, int, float, str, int)
        return Holder(
            *(kind(fields[name]) for name, kind in zip(Holder._fields, kinds, strict=True))
        )
    except (ValueError, TypeError, KeyError):
        return None


def _held(path: str, holder: Holder | None) -> str:
    who = "another job" if holder is None else f"process {holder.pid} on {holder.host}"
    return (
        f"{path} is held by {who}, which writes the same output. Wait for it to end; or, if it "
        f"surely does not run any more, delete that file."
    )
