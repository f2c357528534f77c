"""Writes the peak memory of one pass, for tests that start it as a process of its own."""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import zarr

from bigkd.engine import Settings, open_session, stripes
from bigkd.finc.scores import ModeScores
from bigkd.finc.spec import FincSpec
from bigkd.io import open_rows
from bigkd.kernels import FourierFeatures, Gaussian
from bigkd.summaries import TopRows
from tests.engine.helpers import generated


def resident(field):
    """Bytes of a field of the process's status: VmRSS now, VmHWM at most so far."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def main():
    parser = argparse.ArgumentParser()
    for name in ("rows", "width", "frequencies", "block", "stripe"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--scheduler", required=True)
    parser.add_argument("--summary", default="moments")
    parser.add_argument("--store", default=None)
    given = parser.parse_args()

    frequencies = Gaussian(30.0).frequencies(given.frequencies, given.width, seed=0)
    spec = FincSpec(features=FourierFeatures(frequencies), kernel=None, sampling="iid", seed=0)
    summary = spec.summary
    if given.summary == "top":
        scores = ModeScores(spec.features, np.ones((2 * spec.r, 10)))
        summary = TopRows(scores=scores, n_top=25, work_features=2 * spec.r)
    source = generated(given.rows, given.block, width=given.width)
    if given.store is not None:
        store = zarr.open_array(given.store, mode="r")
        source = open_rows(store, name="rows", block_rows=given.block)
    cost = summary.footprint(given.block, 4).row_cost + source.row_bytes
    stripes.STRIPE_WORK = given.stripe * cost
    np.ones((300, 300), dtype="f4") @ np.ones((300, 300), dtype="f4")  # the work area of BLAS
    before = resident("VmHWM")
    with open_session(Settings(scheduler=given.scheduler)) as session:
        session.reduce(summary, source, label="pass")
    (plan,) = session.plans
    found = {
        "peak": resident("VmHWM"),
        "growth": resident("VmHWM") - before,
        "predicted": plan.task_bytes,
        "tasks": plan.n_tasks,
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
