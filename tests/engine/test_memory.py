"""Peak resident memory of real passes, each in a fresh process, against the plan's prediction."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr
from dask.system import CPU_COUNT

from bigkd.config import MEGABYTE, TASK_BYTES
from bigkd.engine.memory import RETAINED_BYTES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc"),
]

CONSTANTS = TASK_BYTES + 24 * MEGABYTE


def peak(**options):
    arguments = [f"--{name}={value}" for name, value in options.items()]
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.peak", *arguments],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_predicted(found, threads=1, constants=CONSTANTS):
    """Not less than what was measured, and not much more: small passes pay for the constants."""
    assert found["growth"] <= threads * found["predicted"]
    assert found["predicted"] <= 2 * found["growth"] / threads + constants


@pytest.mark.parametrize(("frequencies", "rows"), [(500, 40_000), (2_000, 16_000)])
def test_memory__does_not_grow_with_the_rows_and_is_predicted(frequencies, rows):
    shape = {"width": 768, "frequencies": frequencies, "block": 2_048, "scheduler": "sync"}
    few = peak(rows=rows, stripe=rows // 8, **shape)
    many = peak(rows=10 * rows, stripe=rows // 8, **shape)
    assert few["tasks"] > 5
    assert many["tasks"] > 50
    assert many["peak"] <= 1.05 * few["peak"]
    for found in (few, many):
        assert_predicted(found)


def test_memory__of_one_stripe_is_predicted():
    shape = {"width": 768, "frequencies": 500, "block": 2_048, "scheduler": "sync"}
    found = peak(rows=40_000, stripe=40_000, **shape)
    assert found["tasks"] == 1
    assert_predicted(found)


def test_memory__of_threads_is_what_each_needs():
    shape = {"width": 768, "frequencies": 500, "block": 2_048, "scheduler": "threads"}
    found = peak(rows=100_000, stripe=5_000, **shape)
    assert_predicted(found, threads=CPU_COUNT)


def test_memory__of_top_rows_is_predicted():
    shape = {"width": 768, "frequencies": 500, "block": 2_048, "scheduler": "sync"}
    found = peak(rows=40_000, stripe=5_000, summary="top", **shape)
    assert_predicted(found)


@pytest.mark.parametrize(
    "layout",
    [
        {"chunks": (2_048, 768)},
        {"chunks": (10_240, 768)},
        {"chunks": (1_024, 768), "shards": (10_240, 768)},
    ],
    ids=["chunks", "one chunk", "shards"],
)
def test_memory__of_reading_a_store_is_predicted(layout, tmp_path):
    made = np.random.default_rng(0)
    store = zarr.create_array(tmp_path / "x", shape=(61_440, 768), dtype="f4", **layout)
    for start in range(0, 61_440, 10_240):
        store[start : start + 10_240] = made.standard_normal((10_240, 768), dtype="f4")
    shape = {"width": 768, "frequencies": 250, "block": 10_240, "scheduler": "sync"}
    found = peak(rows=61_440, stripe=20_480, store=tmp_path / "x", **shape)
    # What the allocator keeps of decoded chunks is counted at its most; it may give all of it back.
    assert_predicted(found, constants=CONSTANTS + RETAINED_BYTES)
