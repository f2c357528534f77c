"""Coresets: how near, beside kernel thinning in memory by goodpoints; and how fast."""

import importlib
import importlib.util
import math
from typing import Any
from unittest import mock

import numpy as np

from bigkd import coreset
from bigkd.kernels import Gaussian, Kernel, potential
from tests.benchmarks.measure import Line, Sizes, times

TREES = (16, 256)
CASES = ((2, 0.1), (10, 0.4))
WAYS = (("greedy", "nonnegative"), ("greedy", "mass"), ("greedy", "equal"), ("halving", "equal"))


def blobs(n_rows: int, width: int) -> np.ndarray[Any, Any]:
    """Rows about eight centres in the unit box."""
    generator = np.random.default_rng(0)
    centres = generator.random((8, width))
    noise = generator.standard_normal((n_rows, width))
    return centres[generator.integers(0, 8, n_rows)] + 0.05 * noise


def coreset_accuracy(sizes: Sizes) -> list[Line]:
    """Kernel distance to all rows, after merge trees of 16 and 256 blocks."""
    lines = []
    n_rows = 2**14 if sizes.rows > 1000 else 2**9
    for width, sigma in CASES:
        rows, kernel = blobs(n_rows, width), Gaussian(sigma)
        to_all = np.asarray(potential(kernel, rows, rows)) / n_rows
        for size in (64, 256, 1024) if sizes.rows > 1000 else (16,):
            peer = _goodpoints(rows, kernel, to_all, size)
            for selection, reweight in WAYS:
                for n_blocks in TREES:
                    with mock.patch("bigkd.engine.stripes.STRIPE_WORK", 1):  # blocks are merged
                        found = coreset.thin(
                            rows, size, kernel=kernel, selection=selection, reweight=reweight,
                            measure="none", block_rows=n_rows // n_blocks,
                        )  # fmt: skip
                    index, weight = found["index"].values, found["weight"].values / n_rows
                    lines.append(
                        Line(
                            name=f"d = {width}, {size} points, {selection}, {reweight}, "
                            f"{n_blocks} blocks",
                            value=_distance(kernel, rows, to_all, index, weight),
                            unit="MMD",
                            against=peer,
                            goal=_goal(width, reweight),
                        )
                    )
    return lines


def coreset_passes(sizes: Sizes) -> list[Line]:
    """CPU microseconds a row."""
    lines = []
    n_rows = 2**16 if sizes.rows > 1000 else 2**9
    for width, sigma in CASES:
        rows, kernel = blobs(n_rows, width), Gaussian(sigma)
        for size in (64, 256, 1024) if sizes.rows > 1000 else (16,):
            ways = {
                f"thin, {selection}": _thinning(rows, size, kernel, selection)
                for selection in ("greedy", "halving")
            }
            ways["sample"] = lambda rows=rows, size=size: coreset.sample(
                rows, size, scheduler="sync"
            )
            for name, (cpu, _) in times(ways, 1).items():
                lines.append(
                    Line(
                        name=f"{name}, d = {width}, {size} points",
                        value=cpu / n_rows * 1e6,
                        unit="us a row",
                    )
                )
    return lines


def _thinning(rows: np.ndarray[Any, Any], size: int, kernel: Kernel, selection: Any) -> Any:
    return lambda: coreset.thin(
        rows, size, kernel=kernel, selection=selection, measure="none", scheduler="sync"
    )


def _goal(width: int, reweight: str) -> str:
    if reweight == "equal":
        return "ratio at most 1"
    return "ratio at most 1/3" if width == 2 else ""


def _distance(kernel: Kernel, rows: Any, to_all: Any, index: Any, weight: Any) -> float:
    own = kernel(rows[index], rows[index])
    squared = to_all.mean() + weight @ own @ weight - 2.0 * weight @ to_all[index]
    return math.sqrt(max(0.0, float(squared)))


def _goodpoints(rows: Any, kernel: Gaussian, to_all: Any, size: int) -> float:
    """Distance of kernel thinning with all rows in memory; NaN where it is not installed."""
    if importlib.util.find_spec("goodpoints") is None:
        return math.nan
    kt = importlib.import_module("goodpoints.kt")

    def values(y: Any, x: Any) -> Any:
        return np.exp(((y - x) ** 2).sum(axis=-1) * (-0.5 / kernel.sigma**2))

    halvings = int(math.log2(len(rows) // size))
    index = kt.thin(rows, halvings, values, values, seed=0, meanK=to_all)
    return _distance(kernel, rows, to_all, index, np.full(len(index), 1.0 / len(index)))
