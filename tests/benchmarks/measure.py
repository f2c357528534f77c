"""How costs are measured: CPU time of one process with BLAS on one thread, as ratios.

Wall times of shared machines lie, and clocks drift between runs; so what is compared is measured in
turns within one process, and the best of several turns counts.
"""

import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401  (its BLAS is reported, too)
import threadpoolctl

from bigkd.kernels import FourierFeatures, Gaussian

BLAS_SETTINGS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How big the measures are."""

    rows: int = 40_000
    block: int = 8_192
    width: int = 768
    r: int = 2_000
    sample: int = 3_000
    draws: int = 199
    turns: int = 3
    seeds: int = 5


FULL = Sizes()
TINY = Sizes(rows=96, block=32, width=8, r=16, sample=60, draws=9, turns=1, seeds=1)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One comparison: `value` beside what it is measured `against`."""

    name: str
    value: float
    unit: str = "s"
    against: float = float("nan")
    goal: str = ""

    @property
    def ratio(self) -> float:
        return self.value / self.against


def times(functions: Mapping[str, Callable[[], Any]], turns: int) -> dict[str, tuple[float, float]]:
    """Least CPU time and least wall time of each function over `turns`, in which they alternate."""
    best = dict.fromkeys(functions, (float("inf"), float("inf")))
    with threadpoolctl.threadpool_limits(limits=1):
        for _ in range(turns):
            for name, function in functions.items():
                cpu, wall = time.process_time(), time.perf_counter()
                function()
                took = time.process_time() - cpu, time.perf_counter() - wall
                best[name] = min(best[name][0], max(took[0], 1e-9)), min(best[name][1], took[1])
    return best


def seconds(functions: Mapping[str, Callable[[], Any]], turns: int) -> dict[str, float]:
    """Least CPU time of each function over `turns`, in which they alternate."""
    return {name: cpu for name, (cpu, _) in times(functions, turns).items()}


def mixture(n_rows: int, width: int, modes: range, *, seed: int) -> np.ndarray[Any, Any]:
    """Rows around the given ones of 20 centres: what embeddings of a few classes look like."""
    centres = np.random.default_rng(1).standard_normal((20, width))
    generator = np.random.default_rng(seed)
    which = generator.choice(np.asarray(modes), n_rows)
    return (centres[which] + 0.3 * generator.standard_normal((n_rows, width))).astype(np.float32)


def bandwidth(width: int) -> float:
    """About the median distance of rows within a mode, twice: modes stand apart but not alone."""
    return 0.72 * width**0.5


def fourier(sizes: Sizes) -> FourierFeatures:
    """The features of the benchmarks."""
    kernel = Gaussian(bandwidth(sizes.width))
    return FourierFeatures(kernel.frequencies(sizes.r, sizes.width, seed=0))


def machine() -> str:
    """Processor, BLAS and versions."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(": ")[1] for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor()
    kernels = {
        f"{Path(pool['filepath']).parent.name.removesuffix('.libs')}: {pool['internal_api']} "
        f"{pool['version']} {pool.get('architecture', '')}"
        for pool in threadpoolctl.threadpool_info()
        if pool["user_api"] == "blas"
    }
    forced = [f"{name}={os.environ[name]}" for name in BLAS_SETTINGS if name in os.environ]
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "dask", "zarr"))
    return (
        f"{processor}, {os.cpu_count()} cores; BLAS {'; '.join(sorted(kernels))}"
        f"{' (' + ', '.join(forced) + ')' if forced else ''}; "
        f"Python {platform.python_version()}, {versions}"
    )
