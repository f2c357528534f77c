"""Nights: a run that finds the summaries of the night before, beside one that reads everything."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import zarr
from distributed import Client, LocalCluster

from bigkd.engine import Settings, open_session, stripes
from bigkd.io import open_rows
from bigkd.jobs import load_job, run_job
from bigkd.summaries import Mean
from tests.benchmarks.measure import Line, Sizes, mixture

_JOB = """\
comparisons:
  drift:
    distance: {{x: tonight.zarr, y: reference.zarr, method: rff, n_frequencies: {r},
      kernel: {{name: gaussian, sigma: 20}}}}
output: {{store: {store}}}
run: {{scheduler: sync}}
"""
_NEW = 0.02  # share of rows that a night adds


def jobs(sizes: Sizes) -> list[Line]:
    """A night that adds few rows, and tasks a second of the scheduler."""
    return [*_nights(sizes), _tasks(sizes)]


def _nights(sizes: Sizes) -> list[Line]:
    rows = mixture(sizes.rows, sizes.width, range(20), seed=0)
    new, chunk = max(1, int(_NEW * sizes.rows)), max(1, sizes.block // 8)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("tonight", "reference"):
            array = zarr.create_array(
                f"{folder}/{name}.zarr", data=rows, chunks=(chunk, sizes.width)
            )
        took: dict[str, list[float]] = {"first": [], "same": [], "grown": []}
        for turn in range(sizes.turns):
            (folder / "job.yaml").write_text(_JOB.format(r=sizes.r, store=f"out{turn}"))
            job = load_job(folder / "job.yaml")
            took["first"].append(_cpu(run_job, job))
            took["same"].append(_cpu(run_job, job))
            array.append(rows[:new])
            took["grown"].append(_cpu(run_job, job))
    best = {name: min(values) for name, values in took.items()}
    return [
        Line(name="a night without new rows / first", value=best["same"], against=best["first"]),
        Line(
            name=f"a night with {_NEW:.0%} new rows / first",
            value=best["grown"],
            against=best["first"],
            goal="<= 0.3",
        ),
    ]


def _tasks(sizes: Sizes) -> Line:
    """Stripes of one row: what a task costs the client, the scheduler and a worker together."""
    source = open_rows(np.ones((sizes.rows // 20, 1)), name="rows", block_rows=1)

    def run(client: Client) -> None:
        with open_session(Settings(scheduler=client)) as session:
            session.reduce(Mean(width=1), source, label="tasks")

    with (
        mock.patch.object(stripes, "STRIPE_WORK", 1),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        cpu = min(_cpu(run, client) for _ in range(sizes.turns))
    return Line(
        name="a task through the scheduler, CPU", value=1e3 * cpu / source.n_rows, unit="ms"
    )


def _cpu(function: Callable[[Any], Any], argument: Any) -> float:
    began = time.process_time()
    function(argument)
    return max(time.process_time() - began, 1e-9)
