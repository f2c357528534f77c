"""Workers, schedulers and clients that die or hang in the middle of a pass."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import dask
import numpy as np
import psutil
import pytest
from distributed import Client

from bigkd import finc
from bigkd.engine import tasks
from bigkd.engine.stripes import cut_segments
from bigkd.errors import ClusterError, StoreError
from bigkd.io import load_dataset
from bigkd.kernels import Gaussian
from bigkd.summaries import Mean
from tests.cluster.conftest import started
from tests.cluster.harm import Deadly, Slow, Strike, send, wait_until_gone
from tests.cluster.processes import told_address
from tests.cluster.test_happy import as_zarr, assert_identical, collections
from tests.engine.helpers import assert_same_bits, everything, generated, reduce

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]


def slow(n_blocks=40, **options):
    source = generated(n_blocks * 10, 10)
    return Slow(name="rows", row_shape=(3,), dtype=source.dtype, bounds=source.bounds, **options)


def plain(source):
    """The same rows, without the harm."""
    return generated(source.n_rows, 10, log=source.log)


def pids(client):
    return list(client.run(os.getpid).values())


def stores(folder):
    """Finished segments."""
    return sorted(folder.glob("*/[0-9]*.zarr"))


def n_finished(paths, n_blocks):
    """Blocks of these segments, of a pass whose stripes are single blocks; not of the last."""
    segments = cut_segments(n_blocks)
    labels = {int(path.name.partition("-")[0]) for path in paths} - {len(segments) - 1}
    return sum(len(segments[label]) for label in labels)


@pytest.mark.parametrize("kept", [True, False])
def test_one_worker_killed__changes_no_bit(tmp_path, kept):
    source = slow()
    with started() as client:
        victim = pids(client)[0]
        strike = Strike(lambda: send([victim], signal.SIGKILL))
        found = reduce(
            everything(3), source, scheduler=client, progress=strike,
            checkpoint=tmp_path if kept else None, stall_seconds=200,
        )  # fmt: skip
        assert strike.struck
        assert victim not in pids(client)
    assert_same_bits(found, reduce(everything(3), plain(source)))
    done = [event.done for event in strike.events]
    assert done == sorted(done)
    assert done[-1] == source.n_rows


def test_all_workers_killed__changes_no_bit_and_redoes_no_finished_segment(tmp_path):
    source, kept = slow(log=tmp_path / "reads"), tmp_path / "kept"
    truth = reduce(everything(3), generated(400, 10))
    with started() as client:
        victims = pids(client)
        strike = Strike(lambda: send(victims, signal.SIGKILL), share=0.6)
        settings = {"scheduler": client, "checkpoint": kept, "stall_seconds": 200}
        with suppress(ClusterError):  # Dask may give up, to be resumed; or not
            assert_same_bits(reduce(everything(3), source, progress=strike, **settings), truth)
        assert strike.struck
        before = {path: path.stat().st_mtime_ns for path in stores(kept)}
        assert before
        later = replace(source, log=tmp_path / "again")  # what was begun before may still be read
        again = reduce(everything(3), later, **settings)
        assert {path: path.stat().st_mtime_ns for path in before} == before
        assert len(later.reads()) <= source.n_blocks - n_finished(before, source.n_blocks)
    assert_same_bits(again, truth)


def test_a_block_that_kills_its_workers__is_given_up_and_resumed(tmp_path):
    armed = tmp_path / "armed"
    armed.touch()
    bounds = generated(200, 10).bounds
    source = Deadly(
        name="rows", row_shape=(3,), dtype=np.dtype("f4"), bounds=bounds, deadly=170, armed=armed,
        log=tmp_path / "reads",
    )  # fmt: skip
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), started() as client:
        settings = {"scheduler": client, "checkpoint": tmp_path / "kept", "stall_seconds": 200}
        with pytest.raises(ClusterError, match=r"lost the work: .* same checkpoint to go on"):
            reduce(everything(3), source, **settings)
        armed.unlink()
        kept = stores(tmp_path / "kept")
        again = replace(source, log=tmp_path / "again")  # what was begun before may still be read
        found = reduce(everything(3), again, **settings)
        assert len(kept) > 1
        assert len(again.reads()) <= 20 - n_finished(kept, 20)
    assert_same_bits(found, reduce(everything(3), plain(source)))


def test_a_worker_that_hangs__is_noticed_and_resumed(tmp_path):
    source = slow()
    settings = {"checkpoint": tmp_path, "stall_seconds": 4}
    with started() as client:
        victim = pids(client)[0]
        strike = Strike(lambda: send([victim], signal.SIGSTOP))
        try:
            while not strike.struck:  # a machine that is slow at first looks like one that hangs
                with pytest.raises(ClusterError, match="nothing finished on the cluster") as caught:
                    reduce(everything(3), source, scheduler=client, progress=strike, **settings)
        finally:
            send([victim], signal.SIGCONT)
        (seconds,) = re.findall(r"for (\d+) s;", str(caught.value))
        assert int(seconds) >= 4
        kept = stores(tmp_path)
        assert kept
        found = reduce(everything(3), source, scheduler=client, checkpoint=tmp_path)
    assert_same_bits(found, reduce(everything(3), plain(source)))


def test_a_hanging_cluster__can_still_be_closed():
    began = time.monotonic()
    with started() as client:
        strike = Strike(lambda: send(pids_before, signal.SIGSTOP))
        pids_before = pids(client)
        with pytest.raises(ClusterError, match="nothing finished"):
            reduce(Mean(width=3), slow(), scheduler=client, progress=strike, stall_seconds=2)
    assert time.monotonic() - began < 100
    wait_until_gone(pids_before)


def test_no_workers__is_noticed():
    with started(n_workers=0) as client:
        began = time.monotonic()
        with pytest.raises(ClusterError, match="are there workers"):
            reduce(Mean(width=3), generated(40, 10), scheduler=client, stall_seconds=1.5)
        assert 1.0 < time.monotonic() - began < 60


def test_workers_that_come_late__are_waited_for():
    with started(n_workers=0) as client:
        client.cluster.scale(1)
        found = reduce(everything(3), generated(40, 10), scheduler=client, stall_seconds=200)
    assert_same_bits(found, reduce(everything(3), generated(40, 10)))


@pytest.fixture
def by_hand(tmp_path):
    """A scheduler and a worker started from a shell, as a cluster's manager would."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    file = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    commands = [
        ["scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"],
        ["worker", "--nworkers", "1", "--nthreads", "1", "--death-timeout", "60",
         "--local-directory", str(tmp_path)],
    ]  # fmt: skip
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *command, *common],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT,
        )
        for command in commands
    ]  # fmt: skip
    try:
        yield told_address(file), processes
    finally:
        family = [psutil.Process(process.pid) for process in processes if process.poll() is None]
        family += [child for parent in family for child in parent.children(recursive=True)]
        send([process.pid for process in family], signal.SIGKILL)
        for process in processes:
            process.wait(timeout=30)


def test_scheduler_killed__is_told_and_resumed_elsewhere(by_hand, tmp_path):
    address, (scheduler, _) = by_hand
    gate = tmp_path / "gate"
    source = slow(held=350, gate=gate)  # else all may be done before the news of half arrives

    def kill():
        scheduler.kill()
        gate.touch()

    strike = Strike(kill, share=0.5)
    began = time.monotonic()
    with pytest.raises(ClusterError, match=r"lost the work: .*same checkpoint"):
        reduce(
            everything(3), source, scheduler=address, progress=strike, checkpoint=tmp_path / "kept",
            stall_seconds=200,
        )  # fmt: skip
    assert strike.struck
    assert time.monotonic() - began < 100
    kept = {path: path.stat().st_mtime_ns for path in stores(tmp_path / "kept")}
    assert kept
    found = reduce(everything(3), source, checkpoint=tmp_path / "kept")
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert_same_bits(found, reduce(everything(3), plain(source)))


def job(folder, how):
    return subprocess.run(
        [sys.executable, "-m", "tests.cluster.client", str(folder), how],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_client_killed__leaves_no_process_and_goes_on_to_the_same_bits(tmp_path):
    paths = [tmp_path / "test.zarr", tmp_path / "reference.zarr"]
    for rows, path in zip(collections(), paths, strict=True):
        as_zarr(rows, path)
    died = job(tmp_path, "mortal")
    assert died.returncode == -signal.SIGKILL, died.stderr
    children = json.loads((tmp_path / "children").read_text())
    assert children
    wait_until_gone(children)
    kept = {path: path.stat().st_mtime_ns for path in stores(tmp_path / "checkpoint")}
    assert len(kept) >= 5
    assert not (tmp_path / "found.zarr").exists()
    resumed = job(tmp_path, "immortal")
    assert resumed.returncode == 0, resumed.stderr
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    found = load_dataset(tmp_path / "found.zarr", kind="modes")
    shutil.rmtree(tmp_path / "checkpoint")
    sync = finc.modes(
        *map(str, paths), kernel=Gaussian(3.0), n_frequencies=300, n_modes=4, n_top=5,
        n_draws=199, block_rows=100, scheduler="sync",
    )  # fmt: skip
    assert_identical(found, sync)


def test_a_checkpoint_that_workers_cannot_write__is_told(two_workers, tmp_path):
    kept = tmp_path / "kept"

    def block():
        """After the folder was tried, before the workers are done with it."""
        for attempt in range(100):
            kept.rename(tmp_path / f"aside{attempt}")
            with suppress(IsADirectoryError):  # a worker was faster
                kept.write_text("in the way")
                return

    strike = Strike(block, share=0.3)
    with pytest.raises(StoreError, match=r"checkpoint .* cannot be written") as caught:
        reduce(
            everything(3), slow(), scheduler=two_workers, progress=strike, checkpoint=kept,
        )  # fmt: skip
    assert caught.value.exit_code == 4


def test_reports_that_cannot_be_sent__do_not_cost_the_result(two_workers):
    """The worker's way to the scheduler is cut while it works."""
    two_workers.run(break_reports)
    try:
        found = reduce(everything(3), generated(100, 10), scheduler=two_workers)
    finally:
        two_workers.run(mend_reports)
    assert_same_bits(found, reduce(everything(3), generated(100, 10)))


def break_reports(dask_worker):
    def fail(topic, message):
        raise RuntimeError("the event loop is closed")

    dask_worker.log_event = fail


def mend_reports(dask_worker):
    del dask_worker.log_event


def test_telling__is_silent_without_a_worker():
    telling = tasks.Telling("topic")
    telling.add(5)
    telling.send()


def test_address_of_a_cluster_that_is_gone__is_told(monkeypatch):
    monkeypatch.setattr("bigkd.engine.connections.CONNECT_SECONDS", 1.0)
    with started(n_workers=0) as client:
        address = client.scheduler_info()["address"]
        assert isinstance(client, Client)
    with pytest.raises(ClusterError, match="no Dask scheduler answers"):
        reduce(Mean(width=3), generated(40, 10), scheduler=address)
