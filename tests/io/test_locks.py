"""Locks, in folders and in buckets: who runs keeps them, who does not loses them."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import fsspec
import psutil
import pytest

from bigkd.errors import LockedError, StoreError
from bigkd.io import locks
from bigkd.io.locks import holder_of, lock

# Threads and sockets of aiohttp and moto outlive a test.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::DeprecationWarning:botocore",
)

HOLDER = """
import sys, time
from bigkd.io.locks import lock

with lock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(params=["folder", "bucket"])
def path(request, tmp_path):
    """Where a lock can be."""
    if request.param == "folder":
        return str(tmp_path / "new" / "out.lock")
    return f"{request.getfixturevalue('bucket')}/{tmp_path.name}/out.lock"


@pytest.fixture
def _hasty(monkeypatch):
    """Seconds become hundredths."""
    monkeypatch.setattr(locks, "_BEAT", 0.05)
    monkeypatch.setattr(locks, "_STALE", 0.6)
    monkeypatch.setattr(locks, "_POLL", {False: 0.02, True: 0.05})


def write(path, content):
    """Put `content` there, whole: who looks meanwhile sees what was there before."""
    if "://" in str(path):
        with fsspec.open(path, "wb") as file:
            file.write(content)
        return
    path = Path(path)
    path.parent.mkdir(exist_ok=True)
    path.with_name("fresh").write_bytes(content)
    path.with_name("fresh").replace(path)


def read(path):
    fs, plain = fsspec.url_to_fs(path, use_listings_cache=False)
    return fs.cat_file(plain)


def exists(path):
    fs, plain = fsspec.url_to_fs(path, use_listings_cache=False)
    return fs.exists(plain)


def held_by(path, **changes):
    me = psutil.Process()
    holder = {
        "host": socket.gethostname(), "machine": locks._machine(), "pid": me.pid,
        "began": me.create_time() - psutil.boot_time(), "token": "0", "beats": 1, **changes,
    }  # fmt: skip
    write(path, json.dumps(holder).encode())


def dead_pid():
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    return child.pid


ELSEWHERE = {"host": "elsewhere"}
OTHER_CONTAINER = {"machine": "another boot, or space of process numbers"}


def test_lock__names_its_holder_and_goes_away(path):
    with lock(path):
        assert json.loads(read(path))["pid"] == holder_of(path).pid == os.getpid()
        with (
            pytest.raises(LockedError, match=f"held by process {os.getpid()} on") as caught,
            lock(path),
        ):
            pass
        assert caught.value.exit_code == 75
        assert exists(path)
    assert not exists(path)
    assert holder_of(path) is None


def test_lock__goes_away_after_an_error(path):
    with pytest.raises(KeyboardInterrupt), lock(path):
        raise KeyboardInterrupt
    assert not exists(path)


@pytest.mark.parametrize("gone", ["dead", "number used again"])
def test_lock__of_a_process_that_is_gone_is_taken_over_at_once(path, gone):
    held_by(path, **({"pid": dead_pid()} if gone == "dead" else {"began": 1.0}))
    begun = time.monotonic()
    with lock(path) as held:
        assert time.monotonic() - begun < 30
        assert json.loads(read(path))["pid"] == os.getpid()
        held.require()
        with pytest.raises(LockedError), lock(path):
            pass
    assert not exists(path)


def test_lock__of_a_killed_process_is_taken_over_at_once(tmp_path):
    """And that of one that is only stopped is not, however long."""
    path = tmp_path / "out.lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    holder.send_signal(signal.SIGSTOP)
    with pytest.raises(LockedError, match=f"process {holder.pid} on"), lock(path):
        pass
    holder.kill()
    holder.communicate()
    with lock(path):
        pass


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("place", [ELSEWHERE, OTHER_CONTAINER], ids=["host", "container"])
def test_lock__of_a_process_elsewhere_is_taken_over_when_it_stays_the_same(path, place):
    held_by(path, **place, pid=dead_pid())
    with pytest.raises(LockedError), lock(path, wait=0.2):
        pass
    with lock(path):
        assert json.loads(read(path))["pid"] == os.getpid()
    assert not exists(path)


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("wait", [0.0, 3.0])
def test_lock__of_a_process_elsewhere_that_runs_is_left_to_it(path, wait, monkeypatch):
    """Its number means nothing here, and times in it would not either: it is written anew."""
    monkeypatch.setattr(locks, "_STALE", 2.0)
    over = threading.Event()

    held_by(path, **ELSEWHERE, pid=1)

    def beat():
        beats = 1
        while not over.wait(0.1):
            beats += 1
            held_by(path, **ELSEWHERE, pid=1, beats=beats)

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        with pytest.raises(LockedError, match="process 1 on elsewhere"), lock(path, wait=wait):
            pass
    finally:
        over.set()
        thread.join()


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"host": "h"}'])
def test_lock__that_nothing_can_be_read_from_is_taken_over_in_the_end(tmp_path, content):
    path = tmp_path / "out.lock"
    path.write_bytes(content)
    with pytest.raises(LockedError, match="another job"), lock(path, wait=0.1):
        pass
    assert path.read_bytes() == content
    with lock(path):
        pass


@pytest.mark.usefixtures("_hasty")
def test_lock__is_waited_for(path):
    order = []

    def second():
        with lock(path, wait=20):
            order.append("second")

    with lock(path):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.5)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert not exists(path)


@pytest.mark.usefixtures("_hasty")
def test_lock__is_written_anew_while_it_is_held(path):
    with lock(path):
        before = read(path)
        deadline = time.monotonic() + 30
        while read(path) == before and time.monotonic() < deadline:
            time.sleep(0.02)
        assert read(path) != before


def test_lock__that_was_lost_is_noticed_and_left_to_its_holder(path):
    with lock(path) as held:
        held.require()
        held_by(path, **ELSEWHERE)
        with pytest.raises(LockedError, match="taken over by another job"):
            held.require()
    assert json.loads(read(path))["host"] == "elsewhere"


@pytest.mark.usefixtures("_hasty")
def test_lock__that_is_abandoned_gets_one_new_holder(path):
    """Eight at once want it, and each has it once, alone."""
    held_by(path, **ELSEWHERE)
    inside, most, had = [], [], []

    def want(number):
        with lock(path, wait=60):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.01)
            inside.remove(number)
            had.append(number)

    threads = [threading.Thread(target=want, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(had) == list(range(8))
    assert max(most) == 1


@pytest.mark.usefixtures("_hasty")
def test_lock__that_another_takes_over_first_is_left_to_it(path, monkeypatch):
    held_by(path, pid=dead_pid())
    is_abandoned = locks._is_abandoned

    def looked_at(*what):
        found = is_abandoned(*what)
        held_by(path, token="of another")
        return found

    monkeypatch.setattr(locks, "_is_abandoned", looked_at)
    with pytest.raises(LockedError, match=f"held by process {os.getpid()}"), lock(path):
        pass
    assert json.loads(read(path))["token"] == "of another"


@pytest.mark.usefixtures("_hasty")
def test_lock__that_is_there_and_cannot_be_read_is_not_waited_for_without_end(tmp_path):
    (tmp_path / "out.lock").symlink_to(tmp_path / "nothing")
    with pytest.raises(LockedError, match="held by another job"), lock(tmp_path / "out.lock"):
        pass


def test_lock__leaves_no_file_on_a_full_disk(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(StoreError, match="Make room"), lock(tmp_path / "out.lock"):
            pass
    assert list(tmp_path.iterdir()) == []


def test_lock__whose_file_was_replaced_while_it_was_waited_for_is_another(tmp_path, monkeypatch):
    path = tmp_path / "out.lock"
    path.write_bytes(b"old")

    def waited(*_):
        path.unlink()
        path.write_bytes(b"new")

    monkeypatch.setattr(locks.fcntl, "flock", waited)
    assert not locks._File(path).replace(lambda _: True, b"mine")
    assert path.read_bytes() == b"new"


def test_lock__does_not_count_pauses_of_the_one_who_waits(monkeypatch):
    """A laptop that slept knows nothing of what others did meanwhile."""
    now = [0.0]
    monkeypatch.setattr(locks.time, "monotonic", lambda: now[0])
    watch = locks._Watch(poll=0.02)
    watch.look(b"same")
    now[0] = 3600.0
    watch.look(b"same")
    assert watch.seconds < locks._STALE


def test_lock__does_not_depend_on_the_clock(tmp_path, monkeypatch):
    """When it is set, psutil shifts when processes began, and when the machine did."""
    original, boot = psutil.Process.create_time, psutil.boot_time
    with lock(tmp_path / "out.lock"):
        monkeypatch.setattr(psutil.Process, "create_time", lambda self: original(self) + 86400)
        monkeypatch.setattr(psutil, "boot_time", lambda: boot() + 86400)
        with pytest.raises(LockedError), lock(tmp_path / "out.lock"):
            pass


def test_lock__in_a_store_that_knows_no_conditions_is_never_taken_over():
    path = "memory://locks/out.lock"
    with lock(path):
        assert exists(path)
        with pytest.raises(LockedError), lock(path):
            pass
    held_by(path, pid=dead_pid())
    with pytest.raises(LockedError, match="delete that file"), lock(path):
        pass


def test_lock__that_cannot_be_made_says_why(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with (
        pytest.raises(StoreError, match=r"out.lock cannot be made"),
        lock(tmp_path / "file/out.lock"),
    ):
        pass


@pytest.mark.parametrize("ignored", [{"IfNoneMatch"}, {"IfMatch"}])
def test_lock__on_a_server_that_ignores_conditions_is_refused(bucket, monkeypatch, ignored):
    s3fs = pytest.importorskip("s3fs")
    call = s3fs.S3FileSystem._call_s3

    def careless(self, method, *args, **how):
        kept = {name: what for name, what in how.items() if name not in ignored}
        return call(self, method, *args, **kept)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", careless)
    path = f"{bucket}/careless/out.lock"
    with pytest.raises(StoreError, match="the server does not look at If-"), lock(path):
        pass
    assert not exists(path)
