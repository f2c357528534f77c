"""A large cluster on one machine: the real scheduler, many tiny workers, our graphs, no work.

    python deploy/scale/simulate.py --workers 1000 --rows 1000000000

The graph is that of a pass over rows of 1024 float32 numbers whose states are kept: stripes,
segments and chapters as they would be cut. Workers share a few processes and sleep in place of
working; states are tokens, which nobody writes. They do without what each worker process watches in
itself twenty times a second, and report progress as always. The scheduler is a process of its own,
as it comes. What is measured of it, in CPU seconds because machines are shared: its time, the
longest and the 99th percentile of what its event loop was busy at a stretch, and its peak memory;
of the client, seconds to build and to send the graph, and its bytes.
"""

import argparse
import asyncio
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import psutil
from dask import config
from distributed import Client, Worker

from bigkd.engine import Settings, checkpoints, open_session
from bigkd.engine.cost import TaskCosts, Workers, pass_cost
from bigkd.engine.graph import GraphBuilder
from bigkd.engine.session import Session
from bigkd.engine.stripes import cut_stripes
from bigkd.io import Source
from bigkd.protocols import Footprint

BLOCK, ROW_BYTES = 8192, 4096

_SCHEDULER = (
    *(sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"),
    *("--host", "127.0.0.1", "--port", "0"),
)

_QUIET = {
    "distributed.admin.tick.interval": "10 minutes",
    "distributed.admin.tick.cycle": "10 minutes",
    "distributed.admin.system-monitor.interval": "10 minutes",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.worker.profile.enabled": False,
}
"""What a thousand workers in two processes cannot all do to themselves."""

_TICK = 0.02

_IDLE = 30.0
"""Seconds in which the scheduler has its workers, and nothing to do."""


class Slept(NamedTuple):
    """State of `Sleep`."""

    count: Any
    payload: Any


@dataclass(frozen=True, kw_only=True)
class Sleep:
    """A summary that takes its time; states are of some bytes."""

    row_seconds: float
    row_work: int
    n_bytes: int
    exact: bool = True

    def init(self, like: Any) -> Slept:
        """State of no rows."""
        del like
        return Slept(np.zeros((), np.int64), np.zeros(self.n_bytes // 8))

    def update(self, state: Slept, rows: Any) -> Slept:
        """State after some rows, later."""
        n_rows = rows.values.shape[0]
        time.sleep(n_rows * self.row_seconds)
        return state._replace(count=state.count + n_rows)

    def merge(self, left: Slept, right: Slept) -> Slept:
        """State of both."""
        return Slept(left.count + right.count, left.payload + right.payload)

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """Work as if rows had all their numbers."""
        del n_rows, itemsize
        return Footprint(state=self.n_bytes + 8, scratch=0, row_cost=self.row_work + ROW_BYTES - 1)


@dataclass(frozen=True, kw_only=True)
class Zeros(Source):
    """Rows of one zero."""

    def read_raw(self, start: int, stop: int) -> Any:
        """Zeros."""
        return np.zeros((stop - start, 1), np.int8)

    def content(self) -> str:
        """Always the same."""
        return "zeros"


def _forget(path: str, state: Any, *, token: str) -> None:
    """Write nothing."""


async def _host(address: str, count: int, folder: str) -> None:
    """Workers of one thread each, in one loop, until the scheduler is gone."""
    with (
        config.set(_QUIET),
        mock.patch.object(checkpoints, "save_state", _forget),
    ):
        workers = [
            Worker(address, nthreads=1, memory_limit=0, dashboard=False, local_directory=folder)
            for _ in range(count)
        ]
        await asyncio.gather(*workers)
        await asyncio.gather(*(worker.finished() for worker in workers))


async def watch_loop(dask_scheduler: Any) -> None:
    """Note how long the scheduler's event loop does not come round, in CPU and wall seconds."""
    found = dask_scheduler.watched = []

    async def watch() -> None:
        while True:
            busy, wall = time.thread_time(), time.perf_counter()
            await asyncio.sleep(_TICK)
            found.append((time.thread_time() - busy, time.perf_counter() - wall - _TICK))

    dask_scheduler.watcher = asyncio.get_running_loop().create_task(watch())


def watched(dask_scheduler: Any) -> Any:
    """What `watch_loop` noted."""
    dask_scheduler.watcher.cancel()
    return dask_scheduler.watched


@contextmanager
def _cluster(n_workers: int, n_processes: int, folder: str) -> Any:
    """Client of a cluster, and its scheduler's process."""
    file = Path(folder) / "scheduler.json"
    command = [*_SCHEDULER, "--scheduler-file", str(file)]
    scheduler = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    hosts = []
    try:
        while not file.exists():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        for at in range(n_processes):
            own = n_workers * (at + 1) // n_processes - n_workers * at // n_processes
            command = [sys.executable, __file__, "--host", address, str(own), folder]
            hosts.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        with Client(address, set_as_default=False, timeout=60) as client:
            client.wait_for_workers(n_workers, timeout=900)
            yield client, psutil.Process(scheduler.pid)
            client.shutdown()
    finally:
        for process in (*hosts, scheduler):
            process.terminate()
            process.wait()


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def _timed(client: Client, found: dict[str, float]) -> Any:
    """Note what the client does with the graph."""
    build, send, topics = GraphBuilder.build, client.compute, client.subscribe_topic

    def timed_build(self: GraphBuilder) -> Any:
        began = time.process_time()
        graph = build(self)
        found["build_cpu_s"] = time.process_time() - began
        return graph

    def timed_send(root: Any, **how: Any) -> Any:
        tasks = dict(root.__dask_graph__())
        found["tasks"] = len(tasks)
        found["graph_kb"] = len(pickle.dumps(tasks)) / 1e3
        began = time.process_time()
        future = send(root, **how)
        found["send_cpu_s"] = time.process_time() - began
        return future

    def counted(topic: str, handler: Any) -> Any:
        def handle(event: Any) -> None:
            found["reports"] = found.get("reports", 0) + 1
            handler(event)

        return topics(topic, handle)

    with (
        mock.patch.object(GraphBuilder, "build", timed_build),
        mock.patch.object(client, "compute", timed_send),
        mock.patch.object(client, "subscribe_topic", counted),
    ):
        yield


def _measured(
    client: Client, process: psutil.Process, options: argparse.Namespace
) -> dict[str, float]:
    source = Zeros(
        name="zeros",
        row_shape=(1,),
        dtype=np.dtype("i1"),
        bounds=(*range(0, options.rows, BLOCK), options.rows),
    )
    row_seconds = 1e-6 * options.row_us
    summary = Sleep(row_seconds=row_seconds, row_work=options.row_work, n_bytes=options.state_bytes)
    found: dict[str, float] = {"workers": options.workers}
    before, began = _cpu(process), time.perf_counter()
    time.sleep(_IDLE)
    idle = (_cpu(process) - before) / (time.perf_counter() - began)
    client.run_on_scheduler(watch_loop)
    memory = process.memory_info().rss / 1e6
    before, here, began = _cpu(process), time.process_time(), time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        _timed(client, found),
        open_session(Settings(scheduler=client, stall_seconds=1800, checkpoint=folder)) as session,
    ):
        assert isinstance(session, Session)
        reduced = session.reduce(summary, source, label="simulated")
    wall = time.perf_counter() - began
    assert int(reduced.state.count) == options.rows
    scheduler, client_cpu = _cpu(process) - before, time.process_time() - here
    stretches, delays = np.array(client.run_on_scheduler(watched)).T
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    row_cost = summary.footprint(1, 1).row_cost
    cuts = cut_stripes(source, row_cost=row_cost)
    sizes = [source.bounds[cut.last] - source.bounds[cut.first] for cut in cuts]
    costs = TaskCosts(sizes=sizes, seconds_each=row_seconds, keep_seconds=1e-9)
    model = pass_cost(costs, Workers(n_threads=options.workers, apart=True))
    return {
        **found,
        "stripes": len(sizes),
        "wall_s": wall,
        "model_s": model.seconds,
        "model_tasks": model.n_tasks,
        "model_client_and_scheduler_s": model.scheduler_seconds,
        "scheduler_cpu_s": scheduler,
        "scheduler_idle_cpu_s_a_second": idle,
        "scheduler_ms_a_task": 1e3 * (scheduler - idle * wall) / found["tasks"],
        "client_cpu_s": client_cpu,
        "loop_busy_longest_s": float(stretches.max()),
        "loop_busy_p99_s": float(np.percentile(stretches, 99)),
        "loop_late_longest_s": float(delays.max()),
        "loop_late_p99_s": float(np.percentile(delays, 99)),
        "scheduler_mb_before": memory,
        "scheduler_mb_peak": int(status.split("VmHWM:")[1].split()[0]) / 1e3,
    }


def main() -> None:
    """Simulate, and print what was measured as JSON."""
    if sys.argv[1:2] == ["--host"]:
        asyncio.run(_host(sys.argv[2], int(sys.argv[3]), sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--processes", type=int, default=2, help="that the workers share")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--row-work", type=int, default=10_316_192, help="modes with r = 2000")
    parser.add_argument("--row-us", type=float, default=106.5, help="that a row sleeps")
    parser.add_argument("--state-bytes", type=int, default=8)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        _cluster(options.workers, options.processes, folder) as (client, process),
    ):
        found = _measured(client, process, options)
    sys.stdout.write(f"{json.dumps({name: round(value, 4) for name, value in found.items()})}\n")


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    main()
