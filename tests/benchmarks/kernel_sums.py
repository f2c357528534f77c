"""Exact kernel sums beside tiles of kernel values in NumPy, PyTorch and scikit-learn."""

import importlib
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from bigkd.kernels import Gaussian, InverseMultiquadric, Laplace, Matern, RadialKernel, pair_sum
from tests.benchmarks.measure import Line, Sizes, seconds

TILE = 1024
GOALS = {
    ("float32", 2): ">= 5.5",
    ("float32", 3): ">= 5.5",
    ("float32", 10): ">= 3",
    ("float32", 100): ">= 1.3",
    ("float64", 2): ">= 3",
    ("float64", 3): ">= 3",
    ("float64", 10): ">= 1.8",
    ("float64", 100): ">= 1.1",
}


def _installed(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


torch = _installed("torch")
pairwise = _installed("sklearn.metrics.pairwise")


def _tiles(x: Any, y: Any, of_tile: Callable[[Any, Any], float]) -> Callable[[], float]:
    """Sum over tiles of ``of_tile``."""

    def run() -> float:
        return sum(
            of_tile(x[i : i + TILE], y[j : j + TILE])
            for i in range(0, len(x), TILE)
            for j in range(0, len(y), TILE)
        )

    return run


def _by_numpy(sigma: float) -> Callable[[Any, Any], float]:
    def of_tile(x: Any, y: Any) -> float:
        squared = x @ y.T
        squared *= -2
        squared += np.einsum("ij,ij->i", x, x)[:, None]
        squared += np.einsum("ij,ij->i", y, y)
        squared *= -0.5 / sigma**2
        return float(np.exp(squared, out=squared).sum(dtype=np.float64))

    return of_tile


def _by_torch(module: Any, sigma: float) -> Callable[[Any, Any], float]:
    def of_tile(x: Any, y: Any) -> float:
        squared = module.addmm((y * y).sum(1), x, y.T, alpha=-2)
        squared += (x * x).sum(1)[:, None]
        squared *= -0.5 / sigma**2
        return float(squared.exp_().sum(dtype=module.float64))

    return of_tile


def _ways(kernel: Gaussian, x: Any, y: Any) -> dict[str, Callable[[], Any]]:
    ways = {
        "bigkd": lambda: pair_sum(kernel, x, y),
        "numpy": _tiles(x, y, _by_numpy(kernel.sigma)),
    }
    if torch is not None:
        torch.set_num_threads(1)
        one, other = torch.from_numpy(x), torch.from_numpy(y)
        ways["torch"] = _tiles(one, other, _by_torch(torch, kernel.sigma))
    if pairwise is not None:
        gamma, rbf_kernel = 0.5 / kernel.sigma**2, pairwise.rbf_kernel
        ways["sklearn"] = _tiles(x, y, lambda a, b: float(rbf_kernel(a, b, gamma=gamma).sum()))
    return ways


def _rows(sizes: Sizes, width: int, dtype: str) -> tuple[Any, Any]:
    n = min(sizes.rows // 5, 8192) if width < 32 else min(sizes.rows // 10, 4096)
    generator = np.random.default_rng(width)
    return tuple(generator.standard_normal((max(n, 32), width)).astype(dtype) for _ in range(2))


def kernel_sums(sizes: Sizes) -> list[Line]:
    """Gaussian sums by width, 10^9 pairs a second, beside the tiles of others."""
    lines = []
    for dtype in ("float32", "float64"):
        for width in (2, 3, 10, 100):
            x, y = _rows(sizes, width, dtype)
            ways = _ways(Gaussian(math.sqrt(width)), x, y)
            pairs = 1e-9 * len(x) * len(y)
            rates = {name: pairs / took for name, took in seconds(ways, 2 * sizes.turns).items()}
            ours = rates.pop("bigkd")
            lines += [
                Line(
                    name=f"{dtype}, d = {width} / {name} tiles",
                    value=ours,
                    unit="G/s",
                    against=rate,
                    goal=GOALS[dtype, width] if name == "numpy" else "",
                )
                for name, rate in rates.items()
            ]
    return lines


def kernel_kinds(sizes: Sizes) -> list[Line]:
    """Other kernels, and a set with itself, beside the Gaussian of two sets; d = 2."""
    kernels: list[RadialKernel] = [Laplace(1.0), Matern(2.5, 1.0), InverseMultiquadric(1.0, 1.5)]
    lines = []
    for dtype in ("float32", "float64"):
        x, y = _rows(sizes, 2, dtype)
        pairs = 1e-9 * len(x) * len(y)
        ways: dict[str, Callable[[], Any]] = {
            "gaussian": lambda x=x, y=y: pair_sum(Gaussian(1.0), x, y),
            "x with itself": lambda x=x: pair_sum(Gaussian(1.0), x, x),
        }
        for kernel in kernels:
            ways[repr(kernel)] = lambda x=x, y=y, kernel=kernel: pair_sum(kernel, x, y)
        rates = {name: pairs / took for name, took in seconds(ways, 2 * sizes.turns).items()}
        gaussian = rates.pop("gaussian")
        lines += [
            Line(name=f"{dtype}, {name} / Gaussian", value=rate, unit="G/s", against=gaussian)
            for name, rate in rates.items()
        ]
    return lines
