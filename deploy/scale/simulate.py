"""A large cluster on one machine: the real scheduler, many tiny workers, our graphs, no work.

    python deploy/scale/simulate.py --workers 200 --stripes 4096 --seconds 2 --blocks 20

The scheduler is a process of its own, so that its CPU time is its own; workers share some processes
and sleep. What is measured: seconds to build and to send the graph, its bytes, CPU seconds and peak
memory of the scheduler, and how much longer the pass takes than its chains of sleeps.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
from distributed import Client, Worker

from bigkd.engine import Settings, open_session, stripes
from bigkd.engine.cost import TaskCosts, Workers, pass_cost
from bigkd.engine.graph import GraphBuilder
from bigkd.engine.session import Session
from bigkd.engine.tasks import Telling
from bigkd.io import Source
from bigkd.protocols import Footprint

HOSTED = 100
"""Workers in one process, at most."""

_TOPIC = "simulated"

_SCHEDULER = (
    *(sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"),
    *("--host", "127.0.0.1", "--port", "0"),
)


class Slept(NamedTuple):
    """State of `Sleep`."""

    count: Any
    payload: Any


@dataclass(frozen=True, kw_only=True)
class Sleep:
    """A summary that takes its time, and reports meanwhile; states are of some bytes."""

    seconds: float
    n_blocks: int
    n_bytes: int
    often: bool
    exact: bool = True

    def init(self, like: Any) -> Slept:
        """State of no rows."""
        del like
        return Slept(np.zeros((), np.int64), np.zeros(self.n_bytes // 8))

    def update(self, state: Slept, rows: Any) -> Slept:
        """State after some rows, later."""
        telling = Telling(_TOPIC)
        for _ in range(self.n_blocks):
            time.sleep(self.seconds / self.n_blocks)
            telling.add(1)
            if self.often:
                telling.send()
        return state._replace(count=state.count + rows.values.shape[0])

    def merge(self, left: Slept, right: Slept) -> Slept:
        """State of both."""
        return Slept(left.count + right.count, left.payload + right.payload)

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """Every row is a task of its own."""
        del n_rows, itemsize
        return Footprint(state=self.n_bytes + 8, scratch=0, row_cost=1)


@dataclass(frozen=True, kw_only=True)
class Zeros(Source):
    """Rows of one zero."""

    def read_raw(self, start: int, stop: int) -> Any:
        """Zeros."""
        return np.zeros((stop - start, 1), np.float32)

    def content(self) -> str:
        """Always the same."""
        return "zeros"


async def _host(address: str, count: int, folder: str) -> None:
    """Workers of one thread each, in one loop, until the scheduler is gone."""
    workers = [
        Worker(address, nthreads=1, memory_limit=0, dashboard=False, local_directory=folder)
        for _ in range(count)
    ]
    await asyncio.gather(*workers)
    await asyncio.gather(*(worker.finished() for worker in workers))


def _run(options: argparse.Namespace) -> dict[str, float]:
    stripes.STRIPE_WORK = 1
    count = options.stripes
    source = Zeros(
        name="zeros", row_shape=(1,), dtype=np.dtype("f4"), bounds=tuple(range(count + 1))
    )
    summary = Sleep(
        seconds=options.seconds,
        n_blocks=options.blocks,
        n_bytes=options.state_bytes,
        often=options.often,
    )
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"
        scheduler = subprocess.Popen(
            [*_SCHEDULER, "--scheduler-file", str(file)],
            stderr=subprocess.DEVNULL,
        )
        hosts = []
        try:
            while not file.exists():
                time.sleep(0.1)
            address = json.loads(file.read_text())["address"]
            left = options.workers
            while left > 0:
                own = min(HOSTED, left)
                command = [sys.executable, __file__, "--host", address, str(own), folder]
                hosts.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
                left -= own
            with Client(address, set_as_default=False, timeout=60) as client:
                client.wait_for_workers(options.workers, timeout=300)
                found = _measured(client, scheduler.pid, source, summary, options)
                client.shutdown()
        finally:
            for process in (*hosts, scheduler):
                process.terminate()
                process.wait()
    return found


def _measured(
    client: Client, pid: int, source: Source, summary: Sleep, options: argparse.Namespace
) -> dict[str, float]:
    process, mine = psutil.Process(pid), psutil.Process()
    seconds: dict[str, float] = {}
    events: list[Any] = []
    client.subscribe_topic(_TOPIC, events.append)
    build, send = GraphBuilder.build, client.compute

    def timed_build(self: GraphBuilder) -> Any:
        began = time.perf_counter()
        graph = build(self)
        seconds["build"] = time.perf_counter() - began
        return graph

    def timed_send(root: Any, **how: Any) -> Any:
        tasks = dict(root.__dask_graph__())
        seconds["tasks"] = len(tasks)
        seconds["graph_bytes"] = len(pickle.dumps(tasks))
        began = time.perf_counter()
        future = send(root, **how)
        seconds["send"] = time.perf_counter() - began
        return future

    GraphBuilder.build = timed_build  # type: ignore[method-assign]
    client.compute = timed_send  # type: ignore[method-assign]
    before, here = process.cpu_times(), mine.cpu_times()
    began = time.perf_counter()
    with open_session(Settings(scheduler=client, stall_seconds=600)) as session:
        assert isinstance(session, Session)
        reduced = session.reduce(summary, source, label="simulated")
        (plan,) = session.plans
    wall = time.perf_counter() - began
    assert int(reduced.state.count) == options.stripes
    after, now = process.cpu_times(), mine.cpu_times()
    cuts = stripes.cut_stripes(source, row_cost=1)
    sizes = [cut.last - cut.first for cut in cuts]
    costs = TaskCosts(sizes=sizes, seconds_each=options.seconds)
    ideal = pass_cost(costs, Workers(n_threads=options.workers))
    peak = int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0])
    cpu = after.user + after.system - before.user - before.system
    return {
        "workers": options.workers,
        "stripes": plan.n_tasks,
        **seconds,
        "wall_s": wall,
        "sleeps_s": ideal.seconds,
        "tasks_per_s": seconds["tasks"] / wall,
        "scheduler_cpu_s": cpu,
        "scheduler_cpu_ms_a_task": 1e3 * cpu / seconds["tasks"],
        "client_cpu_s": now.user + now.system - here.user - here.system,
        "scheduler_peak_mb": peak / 1024,
        "events": len(events),
    }


def main() -> None:
    """Simulate, and print what was measured as JSON."""
    if sys.argv[1:2] == ["--host"]:
        asyncio.run(_host(sys.argv[2], int(sys.argv[3]), sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--stripes", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=1.0, help="that a stripe sleeps")
    parser.add_argument("--blocks", type=int, default=1, help="in a stripe")
    parser.add_argument("--often", action="store_true", help="report every block")
    parser.add_argument("--state-bytes", type=int, default=8)
    found = _run(parser.parse_args())
    sys.stdout.write(f"{json.dumps({name: round(value, 4) for name, value in found.items()})}\n")


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    main()
