"""What else happens to machines, disks, clocks and data, to the whole command line."""

import os
import shutil
import signal
import subprocess
import time

import pytest

from bigkd.io import load_history
from tests.survival.command import Harm
from tests.survival.harness import history_of, look, night, start
from tests.survival.test_struck import assert_same

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]


def test_interrupted_twice_quickly__ends_and_goes_on(nights, evening):
    work = evening(1)
    running = start(work, Harm("stop", nights[1].changes // 2))
    running.until_stopped()
    for number in (signal.SIGINT, signal.SIGCONT):
        running.signal(number)
    time.sleep(0.005)
    running.signal(signal.SIGINT)
    ended = running.finish()
    assert ended.code == 130
    assert "Traceback" not in ended.stderr
    assert night(work).code == 0
    assert_same(look(work), nights[1].after)


def test_two_runs_at_once__one_waits_and_the_other_is_unharmed(nights, evening):
    work = evening(1)
    first = start(work, Harm("stop", nights[1].changes // 2))
    first.until_stopped()
    second = night(work)
    first.signal(signal.SIGCONT)
    ended = first.finish()
    assert second.code == 75, second.stderr
    assert "nightly.lock is held by process" in second.stderr
    assert ended.code == 0
    assert_same(look(work), nights[1].after)


def test_two_jobs_on_one_history__lose_no_run(evening):
    work = evening(0)
    other = work.parent / "other"
    shutil.copytree(work, other)
    text = (work / "job.yaml").read_text().replace("history.zarr", str(work / "history.zarr"))
    (other / "job.yaml").write_text(text)
    for running in [start(folder) for folder in (work, other)]:
        ended = running.finish()
        assert ended.code == 0, ended.stderr
    found = load_history(work / "history.zarr")
    assert found.sizes["run"] == 2
    assert len(set(found["run_id"].values)) == 2
    assert list(found["drift.distance"].values) == [found["drift.distance"].values[0]] * 2
    shutil.rmtree(other)


def test_a_memory_limit_that_is_too_small__is_refused_with_the_number_needed(evening):
    work = evening(0)
    text = (work / "job.yaml").read_text().replace("run: {", "run: {memory_limit: 1 MiB, ")
    (work / "job.yaml").write_text(text)
    ended = night(work)
    assert ended.code == 2
    assert "one task needs 0.03 GB" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own, that root can mount."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)], capture_output=True,
        check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("mounting is not permitted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place, left):
    """Leave so many bytes on a disk."""
    stat = os.statvfs(place)
    with (place / "ballast").open("wb") as file:
        file.write(b"\1" * max(0, stat.f_bavail * stat.f_frsize - left))


@pytest.mark.parametrize("left", [0, 300_000])
def test_a_full_disk__is_told_and_gone_on_from(nights, small_disk, left):
    work = small_disk / "work"
    shutil.copytree(nights[1].before, work)
    fill(small_disk, left)
    ended = night(work)
    assert ended.code == 4, ended.stderr
    assert "No space left" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(history_of(work)) > 100  # the nights before can be read
    (small_disk / "ballast").unlink()
    again = night(work)
    assert again.code == 0, again.stderr
    found = look(work)
    assert found.results == nights[1].after.results
    differ = found.names ^ nights[1].after.names
    assert not [name for name in differ if not name.startswith("nightly.checkpoint/")]
    assert not [name for name in differ if "partial" in name or "probe" in name]
    history = load_history(work / "history.zarr")
    assert list(history["verdict"].values)[1:-1] in ([], ["failed"])
    assert history["verdict"].values[-1] == "fine"
