"""What `bigkd check` predicts beside what a run takes, with one worker process and with two.

    python deploy/scale/predicted.py --rows 100000 --frequencies 500 --repeats 3

Rows of 1024 random float32 numbers are written to a temporary Zarr store. Passes of one job are
planned and run in turns, and the least of the repeats counts, for both: other programs only add.
First rows are timed in CPU seconds here, and what workers use is measured in CPU seconds as well,
so that the comparison holds on a machine that is shared.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import psutil
import zarr

from bigkd.engine import Event, timing
from bigkd.jobs import load_job, run_job
from bigkd.jobs.check import check_job

JOB = """\
comparisons:
  found:
    {what}
cluster: {{kind: local, n_workers: {n_workers}}}
"""

WHAT = {
    "modes": "modes: {{test: test.zarr, reference: reference.zarr, n_frequencies: {r}, n_top: 0, "
    "kernel: {{name: gaussian, sigma: 30}}}}",
    "distance": "distance: {{x: test.zarr, y: reference.zarr, n_frequencies: {r}, method: rff, "
    "kernel: {{name: gaussian, sigma: 30}}}}",
}


class Times:
    """Seconds of each pass, and CPU seconds of the worker processes meanwhile."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        self._before = 0.0

    def __call__(self, event: Event) -> None:
        """Note how far a pass is."""
        used = sum(sum(one.cpu_times()[:2]) for one in psutil.Process().children(recursive=True))
        if event.label not in self.seconds:
            self._before = used
        self.seconds[event.label] = event.seconds
        self.cpu[event.label] = used - self._before


def least(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """The smaller of both, for each key."""
    return {key: min(value, other.get(key, value)) for key, value in one.items()}


def compared(folder: Path, what: str, n_workers: int, repeats: int) -> dict[str, Any]:
    """Seconds predicted and measured of each pass."""
    (folder / "job.yaml").write_text(JOB.format(what=what, n_workers=n_workers))
    job = load_job(folder / "job.yaml")
    predicted: dict[str, float] = {}
    work: dict[str, float] = {}
    measured, cpu, took = dict(predicted), dict(predicted), 0.0
    for _ in range(repeats):
        began = time.perf_counter()
        with mock.patch.object(timing, "time", SimpleNamespace(perf_counter=time.process_time)):
            plan = check_job(job)
        took = time.perf_counter() - began
        costs = {one.label: one.cost for one in plan.passes if one.cost is not None}
        predicted = least({key: cost.seconds for key, cost in costs.items()}, predicted)
        work = least({key: cost.work_seconds for key, cost in costs.items()}, work)
        times = Times()
        run_job(job, progress=times)
        measured, cpu = least(times.seconds, measured), least(times.cpu, cpu)
    return {
        "workers": n_workers,
        "check_s": round(took, 2),
        "passes": {
            label: {
                "predicted_s": round(predicted[label], 2),
                "measured_s": round(measured[label], 2),
                "predicted_cpu_s": round(work[label], 2),
                "measured_cpu_s": round(cpu[label], 2),
                "error_of_cpu": f"{work[label] / cpu[label] - 1:+.0%}",
            }
            for label in measured
        },
    }


def main() -> None:
    """Compare, and print the numbers as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--frequencies", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--what", choices=WHAT, default="modes")
    options = parser.parse_args()
    what = WHAT[options.what].format(r=options.frequencies)
    with tempfile.TemporaryDirectory() as folder:
        for name, seed in (("test", 0), ("reference", 1)):
            shape, chunks = (options.rows, 1024), (4096, 1024)
            path = f"{folder}/{name}.zarr"
            array = zarr.create_array(path, shape=shape, chunks=chunks, dtype="f4")
            generator = np.random.default_rng(seed)
            for start in range(0, options.rows, 4096):
                stop = min(start + 4096, options.rows)
                array[start:stop] = generator.standard_normal((stop - start, 1024), np.float32)
        for n_workers in (1, 2):
            found = compared(Path(folder), what, n_workers, options.repeats)
            sys.stdout.write(f"{json.dumps(found, indent=1)}\n")


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    main()
