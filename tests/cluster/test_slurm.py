"""Jobs on SLURM itself: the same bits, also when its jobs are cancelled; nothing stays in it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr
import yaml
from click.testing import CliRunner

from bigkd.cli import commands
from bigkd.io import load_dataset
from tests.cluster.harm import send
from tests.cluster.slurm import running_slurm, slurm, until_empty

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

DISTANCE = {
    "x": {"path": "x.npy", "block_rows": 500},
    "y": {"path": "y.npy", "block_rows": 500},
    "kernel": {"name": "gaussian", "sigma": 8.0},
    "method": "rff",
    "n_frequencies": 2000,
}
CLUSTER = {
    "kind": "slurm",
    "cores": 1,
    "memory": "2 GiB",
    "n_jobs": 2,
    "partition": "test",
    "walltime": "00:10:00",
    "interface": "lo",
    "log_directory": "logs",
    "wait_seconds": 60.0,
}

# The command line with tasks so small that many are done before and after any moment.
_SMALL_TASKS = """
import sys
from bigkd.cli import main
from bigkd.engine import stripes
from bigkd.jobs.clusters import slurm
stripes.STRIPE_WORK = 1
slurm.LOOK_SECONDS = 1.0
if __name__ == "__main__":
    main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def queue(tmp_path_factory):
    with running_slurm(tmp_path_factory.mktemp("slurm")) as folder:
        yield folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two collections, and the distance between them found in one thread."""
    folder = tmp_path_factory.mktemp("jobs")
    generator = np.random.default_rng(0)
    for name in ("x", "y"):
        np.save(folder / f"{name}.npy", generator.normal(size=(40_000, 64)).astype("f4"))
    (folder / "small.py").write_text(_SMALL_TASKS)
    done = start(folder, "truth", "--scheduler", "sync")
    assert done.wait(100) == 0, errors(folder, "truth")
    return folder


def job_file(folder, name, **changes):
    job = {
        "distance": DISTANCE,
        "output": {"store": f"{name}.zarr"},
        "run": {"progress_log": f"{name}.progress"},
        "cluster": {**CLUSTER, **changes},
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(job))
    return str(path)


def start(folder, name, *options):
    """`bigkd run` of a job called `name`, as a process."""
    with (folder / f"{name}.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "small.py", "run", job_file(folder, name), *options],
            cwd=folder, stdout=log, stderr=log,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip


def run(folder, name, **changes):
    """`bigkd run` of a job called `name` in this process."""
    return CliRunner().invoke(commands, ["run", job_file(folder, name, **changes)])


def errors(folder, name):
    return (folder / f"{name}.log").read_text()


def until_progress(folder, name, share, process):
    """Wait until `share` of a pass of the job `name` is done."""
    path = folder / f"{name}.progress"
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        lines = path.read_text().splitlines() if path.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("}")]
        if any(share * event["total"] <= event["done"] < event["total"] for event in events):
            return
        time.sleep(0.05)
    raise AssertionError(f"{name} did not come so far: {errors(folder, name)}")


def assert_same_bits(folder, name):
    found, truth = (
        load_dataset(folder / f"{each}.zarr", kind="distance").load() for each in (name, "truth")
    )
    xr.testing.assert_identical(found, truth)


def test_slurm__runs_a_job_and_survives_that_its_jobs_are_cancelled(queue, folder):
    process = start(folder, "cancelled")
    until_progress(folder, "cancelled", 0.2, process)
    jobs = slurm("squeue", "--noheader", "--format=%i").split()
    assert jobs  # the second may come a moment later
    slurm("scancel", *jobs)
    assert process.wait(100) == 0, errors(folder, "cancelled")
    told = errors(folder, "cancelled")
    assert any(f"SLURM's job {job} ended; another takes its place" in told for job in jobs)
    assert_same_bits(folder, "cancelled")
    assert until_empty()
    assert list((folder / "logs").glob("bigkd-*.err"))


def test_slurm__is_left_empty_by_a_client_that_is_interrupted_twice(queue, folder):
    process = start(folder, "interrupted")
    until_progress(folder, "interrupted", 0.2, process)
    send([process.pid], signal.SIGTERM)
    time.sleep(0.5)  # it is closing its cluster now
    send([process.pid], signal.SIGINT)
    assert process.wait(60) == 130, errors(folder, "interrupted")
    assert until_empty()
    assert list(folder.glob("interrupted.zarr.checkpoint/*/*.zarr"))


def test_slurm__that_refuses_a_job_is_told_at_once(queue, folder):
    done = run(folder, "refused", partition="nowhere")
    assert done.exit_code == 5
    assert "SLURM refuses such jobs" in done.output
    assert "invalid partition specified: nowhere" in done.output
    assert until_empty()


def test_slurm__that_starts_no_job_in_time_is_told_with_its_reason(queue, folder):
    done = run(folder, "waiting", directives=["--begin=now+1hour"], wait_seconds=2.0)
    assert done.exit_code == 5
    assert "no worker came to the slurm cluster within 2 s" in done.output
    assert "PENDING BeginTime" in done.output
    assert until_empty()


def test_slurm__that_is_not_here_is_told(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run(folder, "absent")
    assert done.exit_code == 5
    assert "the command sbatch is not here" in done.output
