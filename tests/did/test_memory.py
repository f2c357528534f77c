"""Peak resident memory of real calls, each in a fresh process: flat, and within the plan."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from dask.system import CPU_COUNT

from bigkd.config import MEGABYTE, TASK_BYTES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc"),
]

CONSTANTS = TASK_BYTES + 24 * MEGABYTE + 100 * MEGABYTE  # the last of pairs, where there are many
GRAPH = 20_000  # bytes of one task in Dask's graph
SMALL = {"size": 32, "x": 5, "y": 4}


def peak(folder, **options):
    arguments = [f"--{name}={value}" for name, value in {"folder": folder, **options}.items()]
    done = subprocess.run(
        [sys.executable, "-m", "tests.did.peak", *arguments],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_predicted(found, threads=1):
    assert found["slack"] < 8 * MEGABYTE
    assert found["growth"] <= threads * found["predicted"]
    assert found["predicted"] <= 2 * found["growth"] / threads + CONSTANTS


@pytest.mark.parametrize(("what", "n"), [("nearest", 400), ("matrix", 250)])
def test_memory__does_not_grow_with_the_data_and_is_predicted(what, n, tmp_path):
    few = peak(tmp_path / "few", what=what, n=n, **SMALL)
    many = peak(tmp_path / "many", what=what, n=10 * n, **SMALL)
    graph = GRAPH * sum(n_tasks for n_tasks, _ in many["plans"].values())
    assert many["peak"] <= 1.02 * few["peak"] + graph
    for found in (few, many):
        assert_predicted(found)


@pytest.mark.parametrize("what", ["nearest", "matrix"])
def test_memory__of_maps_as_in_the_paper_is_predicted(what, tmp_path):
    assert_predicted(peak(tmp_path, what=what, n=120, size=64, x=10, y=8))


@pytest.mark.parametrize("what", ["nearest", "matrix"])
def test_memory__of_threads_is_what_each_needs(what, tmp_path):
    found = peak(tmp_path, what=what, n=400, scheduler="threads", **SMALL)
    assert_predicted(found, threads=CPU_COUNT)
