"""Every method of a kernel distance: time, memory and error, on the same rows; and long streams.

Each figure comes from a process of its own, whose peak memory is its own, too:

    python -m tests.benchmarks.distances --method nufft --rows 1000000 --width 3
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

from bigkd import distance
from bigkd.backends import rng
from bigkd.engine import Settings, open_session
from bigkd.io import Source, open_rows
from bigkd.io.sources import even_bounds
from bigkd.kernels import FourierFeatures, Gaussian, pair_sum
from bigkd.summaries import MeanEmbedding
from tests.benchmarks.measure import FULL, Line, Sizes, mixture, seconds

ROOT = Path(__file__).parents[2]
METHODS: dict[str, dict[str, Any]] = {
    "exact": {"method": "exact"},
    "nufft": {"method": "nufft"},
    "rff": {"method": "rff", "n_frequencies": 1000},
    "coreset": {"method": "coreset"},
}
STREAMED: dict[str, dict[str, Any]] = {
    "rff of 64": {"method": "rff", "n_frequencies": 64},
    "nufft to 1e-10": {"method": "nufft"},
    "coreset of 1000": {"method": "coreset", "coreset_size": 1000},
}
BLOCK = 65_536


def resident(field: str) -> int:
    """Bytes of a field of the process's status: VmRSS now, VmHWM at most so far."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def kernel_of(width: int) -> Gaussian:
    return Gaussian(0.5 * width**0.5)


@dataclass(frozen=True, kw_only=True)
class Shifted(Source):
    """Normal rows made from (seed, row number) when they are read, all of them shifted."""

    seed: int
    shift: float

    def read_raw(self, start, stop):
        made = rng(self.seed, start).standard_normal((stop - start, self.width), np.float32)
        return made + np.float32(self.shift)

    def content(self):
        return f"generated from {self.seed}, shifted by {self.shift}"


def shifted(rows: int, width: int, *, seed: int, shift: float) -> Shifted:
    return Shifted(
        name="rows",
        row_shape=(width,),
        dtype=np.dtype("f4"),
        bounds=even_bounds(rows, BLOCK),
        seed=seed,
        shift=shift,
    )


def found(method: str, rows: int, width: int) -> dict[str, float]:
    """One distance of two generated collections that differ a little."""
    x, y = shifted(rows, width, seed=0, shift=0.0), shifted(rows, width, seed=1, shift=0.2)
    options = {"eps": 0.05, "scheduler": "sync", **{**METHODS, **STREAMED}[method]}
    kernel = kernel_of(width)
    small = np.ones((64, width), dtype="f4")
    pair_sum(kernel, small, small)  # compiled, and the work area of BLAS is there
    before, cpu = resident("VmHWM"), time.process_time()
    with threadpoolctl.threadpool_limits(limits=1):
        result = distance.kernel_distance(x, y, kernel=kernel, **options)
    return {
        "seconds": time.process_time() - cpu,
        "growth": max(0, resident("VmHWM") - before),
        "value": float(result["distance_squared"]),
        "promise": float(result["promise"]),
    }


def apart(method: str, rows: int, width: int, *, alone: bool) -> dict[str, float]:
    """As `found`, in a process of its own if `alone`."""
    if not alone:
        return found(method, rows, width)
    command = [sys.executable, "-m", "tests.benchmarks.distances", "--method", method]
    command += ["--rows", str(rows), "--width", str(width)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def distances(sizes: Sizes) -> list[Line]:
    """Time, memory, error and promise of each method; the error is against every pair."""
    alone = sizes == FULL
    lines = []
    for n_rows, width in ((25 * sizes.rows, 3), (5 * sizes.rows // 2, sizes.width // 6 or 1)):
        about = f"{n_rows:.0e} x {n_rows:.0e} rows, d = {width}"
        truth = apart("exact", n_rows, width, alone=alone)
        for method in METHODS:
            if method == "nufft" and width > 3:
                continue
            one = truth if method == "exact" else apart(method, n_rows, width, alone=alone)
            error = abs(one["value"] - truth["value"])
            lines += [
                Line(
                    name=f"{method}, {about}",
                    value=one["seconds"],
                    against=truth["seconds"],
                ),
                Line(name="  peak memory above the start", value=one["growth"] / 1e6, unit="MB"),
                Line(
                    name="  promise, against the error",
                    value=one["promise"],
                    against=max(error, 1e-16) if method != "exact" else float("nan"),
                    unit="of D^2",
                ),
            ]
    return lines


def streams(sizes: Sizes) -> list[Line]:
    """Rows a second, and growth of memory with ten times the rows."""
    alone = sizes == FULL
    n_rows, lines = 1250 * sizes.rows if alone else 10 * sizes.rows, []
    for method in STREAMED:
        few, many = (apart(method, n, 3, alone=alone) for n in (n_rows // 10, n_rows))
        lines += [
            Line(
                name=f"{method}, {2 * n_rows:.0e} rows, generated in blocks",
                value=2 * n_rows / many["seconds"],
                unit="rows/s",
            ),
            Line(
                name="  peak memory above the start, against a tenth of the rows",
                value=(many["growth"] + 1) / 1e6,
                against=(few["growth"] + 1) / 1e6,
                unit="MB",
                goal="1.05",
            ),
        ]
    return lines


def rff_pass(sizes: Sizes) -> list[Line]:
    """The pass of random features beside NumPy's product, sine and cosine of the same rows."""
    lines, r = [], max(4, sizes.r // 2)
    for width in (3, sizes.width):
        rows = mixture(sizes.rows // 2, width, range(20), seed=0)
        frequencies = kernel_of(width).frequencies(r, width)
        summary = MeanEmbedding(features=FourierFeatures(frequencies))
        weights = frequencies.T.astype(rows.dtype)

        def through(rows=rows, summary=summary) -> Any:
            with open_session(Settings(scheduler="sync")) as session:
                source = open_rows(rows, name="rows")
                return session.reduce(summary, source, label="benchmark")

        def bare(rows=rows, weights=weights) -> Any:
            total = np.zeros(2 * r)
            for start in range(0, rows.shape[0], 512):
                angle = rows[start : start + 512] @ weights
                total[:r] += np.cos(angle).sum(axis=0)
                total[r:] += np.sin(angle).sum(axis=0)
            return total

        took = seconds({"pass": through, "bare": bare}, sizes.turns)
        lines.append(
            Line(
                name=f"pass of {r} frequencies / product, cos, sin, sum; d = {width}",
                value=took["pass"],
                against=took["bare"],
                goal="<= 1.18",
            )
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--method", choices={**METHODS, **STREAMED}, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--width", type=int, required=True)
    given = parser.parse_args()
    sys.stdout.write(json.dumps(found(given.method, given.rows, given.width)))


if __name__ == "__main__":
    main()
