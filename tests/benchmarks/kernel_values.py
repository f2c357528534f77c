"""Tiles of kernel values beside the same in NumPy, SciPy, PyTorch and scikit-learn."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from bigkd.kernels import Gaussian, InverseMultiquadric, KernelValues, Laplace, Matern, RadialKernel
from tests.benchmarks.kernel_sums import pairwise, torch
from tests.benchmarks.measure import Line, Sizes, seconds

LENGTH = 0.5
VALUES = 2e7
SHAPES = ((100, 512), (10_000, 512))
GOALS = {("float32", "laplace"): ">= 2 G/s", ("float32", "gaussian"): ">= 2 G/s"}


def _of_squared(kernel: RadialKernel, squared: Any) -> Any:
    """The kernel of squared distances, in place."""
    if isinstance(kernel, Laplace):
        np.sqrt(squared, out=squared)
        squared *= -1 / LENGTH
    else:
        squared *= -0.5 / LENGTH**2
    return np.exp(squared, out=squared)


def _by_numpy(kernel: RadialKernel, x: Any, y: Any) -> Any:
    squared = x @ y.T
    squared *= -2
    squared += np.einsum("ij,ij->i", x, x)[:, None]
    squared += np.einsum("ij,ij->i", y, y)
    np.maximum(squared, 0, out=squared)
    return _of_squared(kernel, squared)


def _by_scipy(kernel: RadialKernel, x: Any, y: Any) -> Any:
    return _of_squared(kernel, cdist(x, y, "sqeuclidean"))


def _by_sklearn(module: Any, kernel: RadialKernel, x: Any, y: Any) -> Any:
    return _of_squared(kernel, module.euclidean_distances(x, y, squared=True))


def _by_torch(kernel: RadialKernel, x: Any, y: Any) -> Any:
    distances = torch.cdist(x, y)
    if isinstance(kernel, Laplace):
        return distances.mul_(-1 / LENGTH).exp_()
    return distances.square_().mul_(-0.5 / LENGTH**2).exp_()


def _ways(kernel: RadialKernel, x: Any, y: Any) -> dict[str, Callable[[], Any]]:
    prepared, out = KernelValues(kernel, y), np.empty((len(x), len(y)), x.dtype)
    ways: dict[str, Callable[[], Any]] = {
        "bigkd": lambda: prepared(x, out),
        "bigkd.kernels": lambda: kernel(x, y),
        "numpy": lambda: _by_numpy(kernel, x, y),
    }
    if x.dtype == np.float64:  # which cdist computes in
        ways["scipy"] = lambda: _by_scipy(kernel, x, y)
    if pairwise is not None:
        ways["sklearn"] = lambda: _by_sklearn(pairwise, kernel, x, y)
    if torch is not None:
        torch.set_num_threads(1)
        one, other = torch.from_numpy(x), torch.from_numpy(y)
        ways["torch"] = lambda: _by_torch(kernel, one, other)
    return ways


def _repeated(function: Callable[[], Any], n: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(n):
            function()

    return run


def _rates(sizes: Sizes, ways: dict[str, Callable[[], Any]], n_values: int) -> dict[str, float]:
    """10^9 values a second."""
    n = max(1, round(VALUES / n_values)) if sizes.turns > 1 else 1
    took = seconds({name: _repeated(way, n) for name, way in ways.items()}, 2 * sizes.turns)
    return {name: 1e-9 * n * n_values / cpu for name, cpu in took.items()}


def _rows(sizes: Sizes, shape: tuple[int, int], width: int, dtype: str) -> tuple[Any, Any]:
    generator = np.random.default_rng(width)
    counts = (min(count, sizes.rows) for count in shape)
    return tuple(generator.uniform(size=(count, width)).astype(dtype) for count in counts)


def kernel_values(sizes: Sizes) -> list[Line]:
    """Laplace and Gaussian values, 10^9 a second, beside what others compute."""
    lines = []
    for dtype in ("float32", "float64"):
        for kernel in (Laplace(LENGTH), Gaussian(LENGTH)):
            for width in (1, 3):
                for shape in SHAPES:
                    x, y = _rows(sizes, shape, width, dtype)
                    rates = _rates(sizes, _ways(kernel, x, y), len(x) * len(y))
                    ours = rates.pop("bigkd")
                    name = f"{dtype} {kernel.name}, {len(x)} x {len(y)}, d = {width} / "
                    goal = GOALS.get((dtype, kernel.name), ">= 1 G/s")
                    lines += [
                        Line(name=name + other, value=ours, unit="G/s", against=rate, goal=goal)
                        for other, rate in rates.items()
                    ]
    return lines


def value_kinds(sizes: Sizes) -> list[Line]:
    """Values of other kernels and widths, 10^9 a second, beside Laplace of width 3."""
    kernels = [Gaussian(LENGTH), Matern(2.5, LENGTH), InverseMultiquadric(LENGTH, 1.0)]
    lines = []
    for dtype in ("float32", "float64"):
        x, y = _rows(sizes, (512, 512), 6, dtype)
        ways, out = {}, np.empty((len(x), len(y)), dtype)
        for width in (3, 6):
            for kernel in (Laplace(LENGTH), *kernels):
                prepared, rows = KernelValues(kernel, y[:, :width]), x[:, :width].copy()
                ways[f"{kernel.name}, d = {width}"] = lambda p=prepared, r=rows: p(r, out)  # noqa: B023
        rates = _rates(sizes, ways, len(x) * len(y))
        laplace = rates.pop("laplace, d = 3")
        lines += [
            Line(name=f"{dtype} {name} / Laplace", value=rate, unit="G/s", against=laplace)
            for name, rate in rates.items()
        ]
    return lines
