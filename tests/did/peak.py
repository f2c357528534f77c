"""Writes the peak memory of one call of did, for tests that start it as a process of its own."""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bigkd import did
from bigkd.config import MEGABYTE
from bigkd.engine import session, stripes, tiles
from bigkd.io import Source
from tests.engine.peak import resident


@dataclass(frozen=True, kw_only=True)
class Noise(Source):
    """Fields of noise, made when they are read."""

    def read_raw(self, start, stop):
        made = np.random.default_rng(start)
        return made.standard_normal((stop - start, *self.row_shape), dtype=np.float32)

    def content(self):
        return "noise"


def noise(n, *, size, block=100):
    bounds = (*range(0, n, block), n)
    return Noise(name="noise", row_shape=(size, size, 3), dtype=np.dtype("f4"), bounds=bounds)


def main():
    parser = argparse.ArgumentParser()
    for name in ("n", "size", "x", "y"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--what", required=True)
    parser.add_argument("--scheduler", default="sync")
    parser.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args()

    plans = []
    admit = session.Session._admit

    def noted(self, plan):
        plans.append(plan)
        admit(self, plan)

    session.Session._admit = noted
    tiles.CHUNK_BYTES = 2 * MEGABYTE
    tiles.TILE_WORK, stripes.STRIPE_WORK = 500_000_000, 4_000_000_000
    options = {
        "x_landmarks": given.x, "y_landmarks": given.y, "scheduler": given.scheduler,
        "normalize": (0.0, 1.0),
    }  # fmt: skip
    few, tiny = noise(7, size=given.size), noise(3, size=4)
    least = {**options, "x_landmarks": 2, "y_landmarks": 2}
    # What libraries take for good is no part of the plan.
    did.matrix(tiny, **least)
    did.nearest(tiny, tiny, **least)
    plans.clear()
    before = resident("VmHWM")
    slack = before - resident("VmRSS")
    collection = noise(given.n, size=given.size)
    if given.what == "nearest":
        did.nearest(few, collection, k=10, **options)
    else:
        did.matrix(collection, output=given.folder / "d.zarr", **options)
    found = {
        "peak": resident("VmHWM"),
        "growth": resident("VmHWM") - before,
        "slack": slack,
        "predicted": max(plan.task_bytes for plan in plans),
        "plans": {plan.label: (plan.n_tasks, plan.task_bytes) for plan in plans},
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
