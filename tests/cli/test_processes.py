"""The command line as a process: streams, signals, and going on afterwards."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from bigkd.engine import graph, stripes
from bigkd.io import load_dataset
from bigkd.jobs.workspace import n_segments
from tests.cluster.harm import wait_until_stopped

FAST = ("--kernel", "gaussian:3", "--n-frequencies", "50", "--n-modes", "4", "--scheduler", "sync")
PAIR = ("modes", "test.npy", "reference.npy", *FAST, "--block-rows", "10")


def same_bits(folder, one, other):
    results = [load_dataset(folder / name, kind="modes") for name in (one, other)]
    xr.testing.assert_identical(*results)
    first, second = (result["eigenvalue"].values.tobytes() for result in results)
    assert first == second


def finish(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_process__keeps_stdout_for_json(start, folder):
    code, out, err = finish(start(*PAIR, "--json", "--out", "result.zarr"))
    assert code == 0
    assert len(json.loads(out)["modes"]) == 4
    assert "Wrote the result to result.zarr." in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((*PAIR, "--fail-if-significant", "--quiet"), 3, ""),
        ((*PAIR, "--rho", "-1"), 2, "Error: --rho must be"),
        (("modes", "nowhere.npy", "reference.npy"), 4, "Error: test: nowhere.npy does not exist"),
    ],
)
def test_process__exit_codes(start, arguments, code, message):
    found, _, err = finish(start(*arguments))
    assert found == code
    assert err.startswith(message)
    assert message or not err
    assert "Traceback" not in err


@pytest.mark.slow
def test_process__cluster_that_is_not_there(start):
    code, out, err = finish(start(*PAIR[:3], "--kernel", "gaussian:3", "--n-frequencies", "50",
                                  "--scheduler", "tcp://127.0.0.1:1"))  # fmt: skip
    assert code == 5
    assert out == ""
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in err
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_process__stopped_and_resumed_gives_the_same_bits(
    start, folder, bigkd, monkeypatch, number
):
    process = start(*PAIR, "--out", "result.zarr", stop_at=12)
    wait_until_stopped(process.pid)
    process.send_signal(number)
    process.send_signal(signal.SIGCONT)
    code, out, err = finish(process)
    assert out == ""
    assert "Traceback" not in err
    assert not (folder / "result.zarr").exists()
    if number == signal.SIGKILL:
        assert code == -signal.SIGKILL
        assert (folder / "result.zarr.lock").exists()  # a dead process's: to be taken over
    else:
        assert code == 130
        assert "Interrupted." in err
        assert "kept in result.zarr.checkpoint. Run the same command to go on" in err
        assert not (folder / "result.zarr.lock").exists()

    kept = n_segments(str(folder / "result.zarr.checkpoint"))
    monkeypatch.setattr(stripes, "STRIPE_WORK", 100_000)  # as in the process
    restored = []
    original = graph.restore
    monkeypatch.setattr(
        graph, "restore", lambda *arguments: restored.append(1) or original(*arguments)
    )
    resumed = bigkd(*PAIR, "--out", "result.zarr", "--resume")
    assert resumed.exit_code == 0
    assert f"Resumed: {kept} finished segments were there." in resumed.stderr
    assert len(restored) == kept >= 3
    assert bigkd(*PAIR, "--out", "whole.zarr").exit_code == 0
    assert len(restored) == kept
    same_bits(folder, "result.zarr", "whole.zarr")
    assert {path.name for path in folder.iterdir()} == {
        "test.npy", "reference.npy", "result.zarr", "whole.zarr",
    }  # fmt: skip


INTERRUPTED_TWICE = """
import signal
from bigkd.cli import failures, job_commands, main

def interrupted(*_, **__):
    raise KeyboardInterrupt

def message(*given, original=failures._message):
    signal.raise_signal({number})
    return original(*given)

job_commands.run_job, failures._message = interrupted, message
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run with `&`
main(["modes", "a.npy", "b.npy"])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_process__interrupted_again_while_it_says_so(number):
    code = INTERRUPTED_TWICE.format(number=int(number))
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "Interrupted.\n")


def test_process__two_of_one_output(start, folder):
    first = start(*PAIR, "--out", "result.zarr", stop_at=12)
    wait_until_stopped(first.pid)
    code, _, err = finish(start(*PAIR, "--out", "result.zarr"))
    assert code == 75
    assert f"result.zarr.lock is held by process {first.pid} on" in err
    assert "Traceback" not in err
    assert first.poll() is None


@pytest.mark.slow
@pytest.mark.cluster
def test_process__on_a_local_cluster_tells_a_fault_of_the_data_once(start, folder):
    rows = np.load(folder / "test.npy")
    rows[3] = np.nan
    np.save(folder / "bad.npy", rows)
    local = [word if word != "sync" else "local" for word in FAST]
    code, out, err = finish(start("modes", "bad.npy", "reference.npy", *local, "--quiet"))
    assert (code, out) == (4, "")
    assert err.startswith("Error: test: row 3 ")
    assert err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.cluster
def test_process__local_cluster_gives_the_same_bits(start, folder, bigkd, monkeypatch):
    local = [word if word != "sync" else "local" for word in PAIR]
    code, _, err = finish(start(*local, "--out", "local.zarr"))
    assert code == 0, err
    monkeypatch.setattr(stripes, "STRIPE_WORK", 100_000)
    assert bigkd(*PAIR, "--out", "sync.zarr").exit_code == 0
    same_bits(folder, "local.zarr", "sync.zarr")


@pytest.mark.slow
@pytest.mark.cluster
def test_process__local_cluster_tells_of_bad_data(start, folder):
    rows = np.load("test.npy")
    rows[3] = np.nan
    np.save("nan.npy", rows)
    local = [word if word != "sync" else "local" for word in PAIR]
    local[1] = "nan.npy"
    code, _, err = finish(start(*local, "--progress", "none"))
    assert code == 4
    # Dask's workers log the task that failed; what is ours comes last.
    assert err.splitlines()[-1].startswith("Error: test: row 3 (row 3 of block 0) is not finite")
