"""The non-uniform FFT pass beside finufft on the same points, and its errors beside promises."""

from collections.abc import Callable
from typing import Any

import finufft
import numpy as np

from bigkd.kernels import FrequencyGrid, Gaussian, squared_distance, squared_distance_error
from bigkd.protocols import Rows
from bigkd.summaries import FourierSums, fourier_sums
from tests.benchmarks.measure import Line, Sizes, seconds

SIGMA = 0.05
SETTINGS = [(2, 1e-2), (2, 1e-6), (3, 1e-2), (3, 1e-6)]


def blobs(n_rows: int, d: int, *, seed: int) -> np.ndarray[Any, Any]:
    """Points around eight centres in the unit box."""
    centres = np.random.default_rng(1).uniform(0.2, 0.8, (8, d))
    generator = np.random.default_rng(seed)
    around = 0.05 * generator.standard_normal((n_rows, d))
    return np.clip(centres[generator.integers(0, 8, n_rows)] + around, 0, 1)


def grid_of(d: int, eps: float) -> FrequencyGrid:
    return FrequencyGrid.for_box(Gaussian(SIGMA), np.zeros(d), np.ones(d), eps=eps)


def sums_of(grid: FrequencyGrid, points: np.ndarray[Any, Any], block: int) -> np.ndarray[Any, Any]:
    """The whole pass over unweighted points, in blocks."""
    summary = FourierSums(grid=grid)
    state = summary.init(points)
    for start in range(0, points.shape[0], block):
        part = points[start : start + block]
        state = summary.update(state, Rows(part, np.arange(start, start + part.shape[0])))
    return np.asarray(summary.finalize(state))


def library(grid: FrequencyGrid, points: np.ndarray[Any, Any], block: int) -> Callable[[], Any]:
    """finufft alone on blocks of the same points, as the library takes them."""
    tolerance, _ = fourier_sums._accuracy(grid)
    transform = getattr(finufft, f"nufft{grid.width}d1")
    phases = [np.ascontiguousarray(own) for own in ((points - grid.centre) @ grid.basis.T).T]
    ones = np.ones(points.shape[0], dtype=np.complex128)

    def run() -> Any:
        total = np.zeros(grid.shape, dtype=np.complex128)
        for start in range(0, points.shape[0], block):
            part = slice(start, start + block)
            own = [phase[part] for phase in phases]
            total += transform(*own, ones[part], grid.shape, eps=tolerance, nthreads=1)
        return total

    return run


def nufft(sizes: Sizes) -> list[Line]:
    """Nanoseconds a row of the pass, beside the library in blocks and on all rows at once."""
    n_rows, block = 25 * sizes.rows, 8 * sizes.block
    lines = []
    for d, eps in SETTINGS:
        points, grid = blobs(n_rows, d, seed=0), grid_of(d, eps)
        best = seconds(
            {
                "pass": lambda g=grid, p=points: sums_of(g, p, block),
                "blocks": library(grid, points, block),
                "at once": library(grid, points, n_rows),
            },
            sizes.turns,
        )
        cost = {name: 1e9 * took / n_rows for name, took in best.items()}
        name = f"d = {d}, eps {eps:g}, {' x '.join(map(str, grid.shape))} modes: pass / finufft"
        lines += [
            Line(
                name=f"{name}, same blocks",
                value=cost["pass"],
                unit="ns/row",
                against=cost["blocks"],
                goal="<= 1.18",
            ),
            Line(
                name=f"{name}, at once", value=cost["pass"], unit="ns/row", against=cost["at once"]
            ),
        ]
    return lines


def nufft_accuracy(sizes: Sizes) -> list[Line]:
    """Error of the squared distance of two sets of mass 1, beside its promise; its cost."""
    n_rows, block = 5 * sizes.rows // 2, 8 * sizes.block
    lines = []
    for d, eps in SETTINGS:
        sets = [blobs(n_rows, d, seed=seed) for seed in (0, 1)]
        grid, fine = grid_of(d, eps), grid_of(d, 1e-12)

        def distance(on: FrequencyGrid, sets: Any = sets) -> float:
            return squared_distance(on, *(sums_of(on, part, block) / n_rows for part in sets))

        error = abs(distance(grid) - distance(fine))
        best = seconds({"both": lambda g=grid, f=distance: f(g)}, sizes.turns)
        name = f"d = {d}, eps {eps:g}, {n_rows} + {n_rows} points"
        promise = squared_distance_error(grid, 1.0, 1.0)
        lines += [
            Line(name=f"{name}: error / promise", value=error, unit="", against=promise),
            Line(name=f"{name}: CPU time", value=best["both"]),
        ]
    return lines
