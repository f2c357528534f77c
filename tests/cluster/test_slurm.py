"""Jobs on SLURM itself: the same bits, also when its jobs are cancelled; nothing stays in it."""

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
from tests.cluster.harm import send, wait_for, wait_until_stopped
from tests.cluster.slurm import running_slurm, slurm, wait_until_empty

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

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

# The command line with tasks so small that many are done before and after any moment. Where there
# is a file "stop" it stops itself in the middle of a pass, and with it the scheduler.
_SMALL_TASKS = """
import os, signal, sys
from bigkd.cli import main
from bigkd.engine import progress, stripes
from bigkd.jobs.clusters import slurm
stripes.STRIPE_WORK = 1
slurm.LOOK_SECONDS = 1.0
shown = progress.Log.__call__
def stopping(log, event):
    shown(log, event)
    if 0.2 * event.total <= event.done < 0.8 * event.total and os.path.exists("stop"):
        os.remove("stop")
        os.kill(os.getpid(), signal.SIGSTOP)
progress.Log.__call__ = stopping
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
    assert done.wait(200) == 0, errors(folder, "truth")
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


def stopped(folder, name):
    """A job called `name`, in the middle of a pass, which goes on when it is told to."""
    (folder / "stop").touch()
    process = start(folder, name)
    wait_until_stopped(process.pid)
    return process


def queued():
    """Numbers of the jobs that SLURM has."""
    return slurm("squeue", "--noheader", "--format=%i").split()


def assert_same_bits(folder, name):
    found, truth = (
        load_dataset(folder / f"{each}.zarr", kind="distance").load() for each in (name, "truth")
    )
    xr.testing.assert_identical(found, truth)


def test_slurm__runs_a_job_and_survives_that_its_jobs_are_cancelled(queue, folder):
    process = stopped(folder, "cancelled")
    wait_for(lambda: len(queued()) == 2)
    jobs = queued()
    slurm("scancel", *jobs)
    wait_until_empty()
    send([process.pid], signal.SIGCONT)
    assert process.wait(200) == 0, errors(folder, "cancelled")
    told = errors(folder, "cancelled")
    assert all(f"SLURM's job {job} ended; another takes its place" in told for job in jobs)
    assert_same_bits(folder, "cancelled")
    wait_until_empty()
    assert list((folder / "logs").glob("bigkd-*.err"))


def test_slurm__is_left_empty_by_a_client_that_is_interrupted_twice(queue, folder):
    process = stopped(folder, "interrupted")
    for number in (signal.SIGTERM, signal.SIGCONT):
        send([process.pid], number)
    time.sleep(0.5)  # it is closing its cluster now
    send([process.pid], signal.SIGINT)
    assert process.wait(200) == 130, errors(folder, "interrupted")
    wait_until_empty()
    assert list(folder.glob("interrupted.zarr.checkpoint/*/*.zarr"))


def test_slurm__that_refuses_a_job_is_told_at_once(queue, folder):
    done = run(folder, "refused", partition="nowhere")
    assert done.exit_code == 5
    assert "SLURM refuses such jobs" in done.output
    assert "invalid partition specified: nowhere" in done.output
    wait_until_empty()


def test_slurm__that_starts_no_job_in_time_is_told_with_its_reason(queue, folder):
    for seconds in (2.0, 20.0):  # it takes a moment until SLURM has the job
        done = run(folder, "waiting", directives=["--begin=now+1hour"], wait_seconds=seconds)
        assert done.exit_code == 5
        assert f"no worker came to the slurm cluster within {seconds:g} s" in done.output
        wait_until_empty()
        if "PENDING" in done.output:
            break
    assert "PENDING BeginTime" in done.output


def test_slurm__that_is_not_here_is_told(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run(folder, "absent")
    assert done.exit_code == 5
    assert "the command sbatch is not here" in done.output
