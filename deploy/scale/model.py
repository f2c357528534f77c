"""The cost model for collections that are not there: plans of 10^9 rows, timed on a few.

    python deploy/scale/model.py --rows 1000000000 --workers 10 100 1000

Passes are rehearsed as `bigkd check` does it, over rows that are made up where they are read, so
that reading costs nothing; it is added at `--read-bytes` a second and worker. Memory, tasks and
bytes are those of a run. A worker is a process with one thread. Rows are timed in CPU seconds, so
that other programs do not count.
"""

import argparse
import functools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from bigkd import distance, finc
from bigkd.engine import Rehearsal, Rehearsed, timing
from bigkd.engine import rehearsed as rehearsed_module
from bigkd.engine.cost import PassCost, TaskCosts, Workers, pass_cost
from bigkd.io import Source
from bigkd.kernels import Gaussian

WIDTH, BLOCK = 1024, 8192
CPU = SimpleNamespace(perf_counter=time.process_time)


@dataclass(frozen=True, kw_only=True)
class Imagined(Source):
    """Rows of random numbers, the same in each block."""

    def read_raw(self, start: int, stop: int) -> Any:
        """Some rows."""
        return _block()[: stop - start]

    def content(self) -> str:
        """Always the same."""
        return "imagined"


@functools.cache
def _block() -> Any:
    return np.random.default_rng(0).standard_normal((BLOCK, WIDTH), np.float32)


def rows(n_rows: int, name: str) -> Source:
    """A collection of `n_rows` rows."""
    bounds = (*range(0, n_rows, BLOCK), n_rows)
    return Imagined(name=name, row_shape=(WIDTH,), dtype=np.dtype("f4"), bounds=bounds)


def rehearsed(call: Callable[..., Any], repeats: int) -> list[Rehearsed]:
    """Passes of a call on a cluster, each with its least times."""
    found: list[Rehearsed] = []
    for _ in range(repeats):
        stage = Rehearsal(
            workers=Workers(n_threads=1000, apart=True), thread_bytes=10**11, distributed=True
        )
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(timing, "time", CPU),
            mock.patch.object(rehearsed_module, "time", CPU),
        ):
            call(scheduler=stage, checkpoint=f"{folder}/kept")
        found = [_least(*both) for both in zip(stage.passes, found or stage.passes, strict=True)]
    return found


def _least(one: Rehearsed, other: Rehearsed) -> Rehearsed:
    assert one.costs is not None
    assert other.costs is not None
    least = {
        name: min(getattr(one.costs, name), getattr(other.costs, name))
        for name in ("seconds_each", "merge_seconds", "keep_seconds")
    }
    return one._replace(costs=replace(one.costs, **least))


def with_reading(costs: TaskCosts, read_bytes: float) -> TaskCosts:
    """The same with rows that have to be read and decoded."""
    return replace(costs, seconds_each=costs.seconds_each + WIDTH * 4 / read_bytes)


def _line(name: str, workers: int, cost: PassCost, costs: TaskCosts, found: Rehearsed) -> str:
    read = (sum(costs.sizes) - costs.n_reused) * WIDTH * 4
    cells = (
        name,
        f"{workers:,}",
        f"{cost.seconds:,.0f}",
        f"{cost.work_seconds / workers / cost.seconds:.0%}",
        f"{cost.chain_seconds:,.0f}",
        f"{cost.n_tasks / workers:,.1f}",
        f"{cost.scheduler_seconds:,.0f}",
        f"{cost.bytes_moved / 1e9:,.1f}",
        f"{found.plan.task_bytes / 1e9:.2f}",
        f"{read / cost.seconds / 1e9:,.2f}",
        f"{cost.bytes_kept / 1e9:,.1f}",
    )
    return f"| {' | '.join(cells)} |"


HEAD = (
    "pass", "workers", "s", "busy", "s of the longest chain", "tasks a worker",
    "client and scheduler s", "GB moved", "GB a worker", "GB/s read", "GB kept",
)  # fmt: skip


def main() -> None:
    """Print a table for each collection."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**9)
    parser.add_argument("--night", type=int, default=10**7, help="rows that a night adds")
    parser.add_argument("--workers", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--modes", type=int, nargs="*", default=[500, 1000, 2000])
    parser.add_argument("--distance", type=int, nargs="*", default=[1000, 4000])
    parser.add_argument("--read-bytes", type=float, default=5e8)
    parser.add_argument("--repeats", type=int, default=2)
    _tables(parser.parse_args())


def _tables(options: argparse.Namespace) -> None:
    both = (rows(options.rows, "test"), rows(BLOCK, "reference"))
    calls: dict[str, Callable[..., Any]] = {}
    for r in options.modes:
        calls[f"modes {r}"] = _modes(both, r)
    for r in options.distance:
        calls[f"distance {r}"] = _distance(both, r)
    say = sys.stdout.write
    say(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}\n")
    for name, call in calls.items():
        for found in rehearsed(call, options.repeats):
            if found.plan.n_rows < options.rows or found.costs is None:
                continue
            whole = with_reading(found.costs, options.read_bytes)
            night = replace(whole, n_reused=options.rows - options.night)
            about = f"{name}: {found.plan.label}"
            say(
                f"# {about}: {1e6 * found.costs.seconds_each:.1f} us a row, states of "
                f"{whole.state_bytes / 1e6:.1f} MB, joined in {whole.merge_seconds:.3f} s, kept in "
                f"{whole.keep_seconds:.2f} s, {len(whole.sizes)} stripes\n"
            )
            for label, costs in ((about, whole), (f"{about}, a night", night)):
                for n in options.workers:
                    cost = pass_cost(costs, Workers(n_threads=n, apart=True))
                    say(_line(label, n, cost, costs, found) + "\n")


def _modes(both: Sequence[Source], r: int) -> Callable[..., Any]:
    def call(**options: Any) -> Any:
        return finc.modes(
            *both, kernel=Gaussian(30.0), n_frequencies=r, n_draws=1, n_top=25, **options
        )

    return call


def _distance(both: Sequence[Source], r: int) -> Callable[..., Any]:
    def call(**options: Any) -> Any:
        return distance.kernel_distance(
            *both, kernel=Gaussian(30.0), method="rff", n_frequencies=r, **options
        )

    return call


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    main()
