"""Histories after SIGKILL and on a full disk, at every step."""

import errno
import itertools
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bigkd.errors import StoreError
from bigkd.io import append_run, history, history_layout, load_history

FIRST = [{"x": 1.0, "eig": [1.0, 2.0]}, {"x": 2.0, "gone": "here"}]
NEXT = {"x": 3.0, "eig": [3.0, 4.0, 5.0], "new": "text"}
LAST = {"x": 4.0, "eig": [6.0]}

WRITER = """
import itertools, os, shutil, signal, sys
from bigkd.io import append_run, history, history_layout
sys.path.insert(0, sys.argv[2])
from test_history_faults import NEXT, a_run

folder = sys.argv[1]
history.CHUNK = history_layout.CHUNK = 2
os.fsync = lambda file: None

def killed_before(number):
    left = iter(range(number))

    def counted(event, arguments):
        known = event in ("open", "os.rename", "os.mkdir", "os.remove")
        if known and folder in str(arguments[0]) and next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(counted)

for number in itertools.count():
    place = os.path.join(folder, str(number))
    if os.path.isdir(os.path.join(folder, "begun")):
        shutil.copytree(os.path.join(folder, "begun"), place)
    child = os.fork()
    if child == 0:
        killed_before(number)
        append_run(os.path.join(place, "h.zarr"), a_run(NEXT), run_id="next")
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
"""


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    for module in (history, history_layout):
        monkeypatch.setattr(module, "CHUNK", 2)
    monkeypatch.setattr(os, "fsync", lambda file: None)


def a_run(values):
    """A Dataset of scalars, and of lists along a dimension of their own."""
    return xr.Dataset(
        {
            name: (f"{name}.n", value) if isinstance(value, list) else value
            for name, value in values.items()
        }
    )


def begun(path, runs=FIRST):
    for number, values in enumerate(runs):
        append_run(path, a_run(values), run_id=f"run-{number}")


def assert_holds(path, runs):
    """Plain xarray finds `runs` and nothing else, and so does `load_history`."""
    with xr.open_zarr(path) as opened:
        plain = opened.load()
    found = load_history(path)
    for dataset in (plain, found):
        assert dataset.sizes.get("run", 0) == len(runs)
        for at, values in enumerate(runs):
            row = dataset.isel(run=at)
            there = {str(name) for name in row if name not in ("run_id", "run_digest")}
            for name in there | set(values):
                empty = "" if dataset[name].dtype.kind in "UT" else np.nan
                expected = np.atleast_1d(values.get(name, empty))
                seen = np.atleast_1d(row[name].values)
                assert len(seen) >= len(expected)
                if isinstance(empty, str):
                    assert str(seen[0]) == expected[0]
                else:
                    missing = np.full(len(seen) - len(expected), np.nan)
                    np.testing.assert_array_equal(seen, [*expected, *missing])


@pytest.mark.parametrize("runs", [[], [*FIRST, FIRST[0]]], ids=len)
def test_killed__before_any_step_leaves_the_last_good_state(tmp_path, runs):
    if runs:
        begun(tmp_path / "begun" / "h.zarr", runs)
    subprocess.run([sys.executable, "-c", WRITER, tmp_path, Path(__file__).parent], check=True)
    places = [place for place in tmp_path.iterdir() if place.name != "begun"]
    found, seen = {}, []
    for place in places:
        left = what_is_in(place)
        if left not in found:
            found[left] = gone_on(place, runs)
        seen.append(found[left])
    assert seen.count("before") > 20
    assert seen.count("after") > 5


def what_is_in(place):
    """All names and contents; that of a lock, which is a dead process's, does not matter."""
    return frozenset(
        (str(path.relative_to(place)), path.read_bytes() if is_content(path) else b"")
        for path in place.rglob("*")
    )


def is_content(path):
    return path.is_file() and path.suffix != ".lock"


def gone_on(place, runs):
    """What a killed append left is whole, and the next ones go on; whether it came before them."""
    path, left = place / "h.zarr", "before"
    if not (path / "zarr.json").exists():
        assert not runs
        left = "nothing"
    elif xr.open_zarr(path).sizes.get("run", 0) == len(runs):
        assert_holds(path, runs)
    else:
        assert_holds(path, [*runs, NEXT])
        left = "after"
    append_run(path, a_run(LAST), run_id="last")  # another than the one that was killed
    done = append_run(path, a_run(NEXT), run_id="next")
    assert_holds(path, [*runs, LAST, NEXT] if done else [*runs, NEXT, LAST])
    assert sorted(inner.name for inner in place.iterdir()) == ["h.zarr"]
    with xr.open_zarr(path, consolidated=False) as other:
        assert other.sizes["run"] == len(runs) + 2
    return left


STEPS = [(os, "replace"), (os, "fsync"), (os, "write"), (Path, "mkdir"), (Path, "open")]


def test_full_disk__at_any_step_leaves_the_last_good_state(tmp_path, monkeypatch):
    begun(tmp_path / "begun")
    found = set()
    for number in itertools.count():
        path = tmp_path / f"{number}.zarr"
        shutil.copytree(tmp_path / "begun", path)
        with monkeypatch.context() as patch:
            left = iter(range(number))
            for owner, name in STEPS:
                patch.setattr(owner, name, full_after(left, getattr(owner, name)))
            with suppress(StoreError):
                append_run(path, a_run(NEXT), run_id="next")
        if next(left, None) is not None:
            break
        if what_is_in(path) in found:
            continue
        found.add(what_is_in(path))
        assert_holds(path, [*FIRST, NEXT][: xr.open_zarr(path).sizes["run"]])
        append_run(path, a_run(NEXT), run_id="next")
        assert_holds(path, [*FIRST, NEXT])
    assert number > 30


def full_after(left, function):
    def counted(*args, **kwargs):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return function(*args, **kwargs)

    return counted


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own, of 300 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", place]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a disk needs root")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_full_disk__is_said_and_leaves_the_last_good_state(small_disk):
    """A disk of which another page is free each time."""
    path, other = small_disk / "h.zarr", small_disk / "other"
    begun(path)
    for pages in itertools.count():
        with other.open("wb", buffering=0) as file:
            while file.write(b"x" * 4096) == 4096 if free(small_disk) else False:
                pass
        with other.open("r+b") as file:
            file.truncate(other.stat().st_size - 4096 * pages)
        try:
            assert append_run(path, a_run(NEXT), run_id="next")
            break
        except StoreError as error:
            message = str(error)
            assert_holds(path, FIRST)
    assert_holds(path, [*FIRST, NEXT])
    assert pages > 3
    assert "No space left" in message


def free(place):
    return os.statvfs(place).f_bavail
