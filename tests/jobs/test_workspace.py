"""Locks and folders of checkpoints."""

import json
import os
import socket
import subprocess
import sys

import psutil
import pytest

from bigkd.errors import ClusterError, InputError, LockedError
from bigkd.jobs import locks
from bigkd.jobs.locks import lock
from bigkd.jobs.workspace import clear, n_segments, require_replaceable, workspace

TOKEN = "0123456789abcdef" * 2


def held_by(path, **changes):
    me = psutil.Process()
    holder = {"host": socket.gethostname(), "pid": me.pid, "began": me.create_time(), **changes}
    path.write_text(json.dumps(holder))


def dead_pid():
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    return child.pid


def segment(folder, number=0):
    path = folder / TOKEN / f"{number:05d}.zarr"
    path.mkdir(parents=True)
    return path


def test_lock__names_its_holder_and_goes_away(tmp_path):
    path = tmp_path / "new" / "out.lock"
    with lock(path):
        assert json.loads(path.read_text())["pid"] == os.getpid()
        with (
            pytest.raises(LockedError, match=f"held by process {os.getpid()} on") as caught,
            lock(path),
        ):
            pass
        assert caught.value.exit_code == 75
        assert path.exists()
    assert not path.exists()


def test_lock__goes_away_after_an_error(tmp_path):
    with pytest.raises(KeyboardInterrupt), lock(tmp_path / "out.lock"):
        raise KeyboardInterrupt
    assert not (tmp_path / "out.lock").exists()


@pytest.mark.parametrize("gone", ["dead", "number used again"])
def test_lock__of_a_process_that_is_gone_is_taken_over(tmp_path, gone):
    path = tmp_path / "out.lock"
    held_by(path, **({"pid": dead_pid()} if gone == "dead" else {"began": 1.0}))
    with lock(path):
        assert json.loads(path.read_text())["pid"] == os.getpid()
        with pytest.raises(LockedError), lock(path):
            pass
    assert not path.exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"host": "h"}'])
def test_lock__that_nothing_can_be_read_from_is_left_alone(tmp_path, content):
    path = tmp_path / "out.lock"
    path.write_text(content)
    with pytest.raises(LockedError, match="another job"), lock(path):
        pass
    assert path.read_text() == content


def test_lock__of_another_host_is_left_alone(tmp_path):
    held_by(tmp_path / "out.lock", host="elsewhere", pid=dead_pid())
    with pytest.raises(LockedError, match="on elsewhere"), lock(tmp_path / "out.lock"):
        pass


def test_lock__that_vanishes_meanwhile_is_tried_for_again(tmp_path, monkeypatch):
    path = tmp_path / "out.lock"
    held_by(path)
    tries = []

    def create(path):
        tries.append(path)
        if len(tries) == 1:
            path.unlink()
            return False
        return original(path)

    original = locks._create
    monkeypatch.setattr(locks, "_create", create)
    with lock(path):
        assert len(tries) == 2


def test_workspace__removes_checkpoints_at_the_start_and_at_the_end(tmp_path):
    out = str(tmp_path / "out.zarr")
    folder = tmp_path / "out.zarr.checkpoint"
    segment(folder)
    with workspace(out) as place:
        assert place == (str(folder), 0)
        assert not folder.exists()
        assert (tmp_path / "out.zarr.lock").exists()
        segment(folder)
    assert list(tmp_path.iterdir()) == []


def test_workspace__resumes_from_what_is_there(tmp_path):
    segment(tmp_path / "own")
    segment(tmp_path / "own", 1)
    with workspace(None, checkpoint=str(tmp_path / "own"), resume=True) as place:
        assert place.n_found == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ClusterError])
def test_workspace__says_what_is_kept(tmp_path, error):
    out = tmp_path / "out.zarr"
    folder = tmp_path / "out.zarr.checkpoint"

    def work():
        segment(folder)
        raise error

    with pytest.raises(error) as caught, workspace(str(out)):
        work()
    assert n_segments(str(folder)) == 1
    assert caught.value.__notes__ == [
        f"1 finished segment is kept in {out}.checkpoint. Run the same command with --resume to go "
        f"on from there."
    ]


def test_workspace__leaves_alone_what_it_did_not_make(tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("dear")
    (tmp_path / "deadbeef").mkdir()
    segment(tmp_path)
    clear(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"mine.txt", "deadbeef"}


def test_workspace__locks_a_folder_of_checkpoints_of_its_own(tmp_path):
    shared = str(tmp_path / "shared")
    with (
        workspace(str(tmp_path / "a.zarr"), checkpoint=shared),
        pytest.raises(LockedError, match="shared"),
        workspace(str(tmp_path / "b.zarr"), checkpoint=shared),
    ):
        pass


@pytest.mark.parametrize(
    "options", [{"out": None}, {"out": "s3://b/x"}, {"out": "x", "keep_checkpoints": False}]
)
def test_workspace__refuses_to_resume_from_nowhere(options):
    with (
        pytest.raises(InputError, match="nothing to resume from"),
        workspace(**options, resume=True),
    ):
        pass


def test_require_replaceable__spares_what_is_no_store_of_ours(tmp_path):
    require_replaceable(str(tmp_path / "new"), overwrite=False)
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(InputError, match="exists already"):
            require_replaceable(str(path), overwrite=False)
        with pytest.raises(InputError, match="not a store of bigkd; it is left alone"):
            require_replaceable(str(path), overwrite=True)
