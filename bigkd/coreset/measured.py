"""How far a coreset is from its collection: measured in the pass that makes it."""

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from bigkd.backends import namespace, to_host
from bigkd.engine import Session
from bigkd.errors import InputError
from bigkd.io import Source, open_rows
from bigkd.kernels import FourierFeatures, FrequencyGrid, Kernel, squared_distance
from bigkd.kernels.grids import squared_distance_error, supports
from bigkd.kernels.promises import standard_error, value_promise
from bigkd.protocols import Rows
from bigkd.summaries import Extent, FourierSums, KernelSum, MeanEmbedding, Points

Measure: TypeAlias = Literal["auto", "fourier", "features", "exact", "none"]

MEASURES = get_args(Measure)

_STREAM = 0x6D65  # added to the seed: frequencies are no choice of the coreset's
_GRID_ERRORS = (1e-12, 1e-10, 1e-8, 1e-6)
_MOST_MODES = 2.0**17
_EXACT_ROWS = 4096


@dataclass(frozen=True, kw_only=True)
class Ruler:
    """A way to measure, and what it sums up of the collection while that is read, if anything."""

    method: str
    kernel: Kernel
    summary: FourierSums | MeanEmbedding | None
    about: dict[str, Any]


def ruler_for(
    measure: Measure,
    kernel: Kernel,
    source: Source,
    session: Session,
    n_frequencies: int,
    seed: int,
) -> Ruler:
    """The ruler that `measure` asks for; ``"auto"`` takes the most accurate that is cheap.

    Raises
    ------
    InputError
        If the kernel or the width of the rows does not allow it.
    """
    if measure in ("auto", "fourier") and supports(kernel, source.width):
        grid = _grid(kernel, source, session)
        if grid is not None:
            sums = FourierSums(grid=grid)
            return Ruler(
                method="fourier", kernel=kernel, summary=sums, about={"n_modes": grid.n_modes}
            )
    if measure == "fourier":
        raise InputError(
            f"measure='fourier' needs a Gaussian, CovarianceGaussian, Laplace or Matern kernel, "
            f"rows of width 1 to 3, and a box of not too many lengths; got {kernel} and width "
            f"{source.width}. Pass measure='features' or 'exact'."
        )
    if measure == "features" or (measure == "auto" and kernel.has_spectrum):
        frequencies = kernel.frequencies(n_frequencies, source.width, seed=seed + _STREAM)
        features = MeanEmbedding(features=FourierFeatures(frequencies))
        about = {"n_frequencies": n_frequencies}
        return Ruler(method="features", kernel=kernel, summary=features, about=about)
    if measure == "exact" or (measure == "auto" and source.n_rows <= _EXACT_ROWS):
        return Ruler(method="exact", kernel=kernel, summary=None, about={})
    return Ruler(method="none", kernel=kernel, summary=None, about={})


def distance_to_full(
    ruler: Ruler, state: Any, points: Points, mass: float, delta: float
) -> dict[str, float]:
    """Variables of the distance between `points` and the collection, by the state of its sums."""
    if isinstance(ruler.summary, FourierSums):
        return _by_fourier(ruler.summary, state, points, mass)
    if isinstance(ruler.summary, MeanEmbedding):
        return _by_features(ruler.summary, state, points, mass, delta)
    nothing = dict.fromkeys(("distance_to_full", "distance_squared", "standard_error"), math.nan)
    return {**nothing, "distance_upper": math.nan}


def exact_distance(
    ruler: Ruler, session: Session, source: Source, points: Points
) -> dict[str, float]:
    """Variables of the distance, from every pair of rows."""
    host = Points(*(to_host(part) for part in points))
    own = open_rows(host.values, name="coreset", weights=host.weights)
    summary = KernelSum(kernel=ruler.kernel)
    sums = [
        session.reduce_pairs(summary, *pair, label=f"pairs of {what}").state
        for pair, what in (
            ((source, None), "data"),
            ((own, None), "coreset"),
            ((source, own), "both"),
        )
    ]
    full, few, both = (float(summary.finalize(state)) for state in sums)
    return _variables(full + few - 2.0 * both, 0.0, 0.0)


def _grid(kernel: Kernel, source: Source, session: Session) -> FrequencyGrid | None:
    """Grid of the least error whose modes are not too many, on the box of all rows."""
    extent = Extent(width=source.width)
    state = session.reduce(extent, source, label=f"extent of {source.name}").state
    lower, upper = to_host(state.lower), to_host(state.upper)
    return FrequencyGrid.finest(kernel, lower, upper, errors=_GRID_ERRORS, most_modes=_MOST_MODES)


def _by_fourier(summary: FourierSums, state: Any, points: Points, mass: float) -> dict[str, float]:
    own = summary.update(summary.init(points.values), _rows(points))
    squared = squared_distance(summary.grid, state.total / mass, own.total / mass)
    size = float(namespace(points.weights).sum(abs(points.weights))) / mass
    return _variables(squared, 0.0, squared_distance_error(summary.grid, 1.0, size))


def _by_features(
    summary: MeanEmbedding, state: Any, points: Points, mass: float, delta: float
) -> dict[str, float]:
    own = summary.update(summary.init(points.values), _rows(points))
    difference = to_host(state.total - own.total)[0, 0] / mass
    samples = (difference**2).reshape(2, -1).sum(axis=0) * (difference.size // 2)
    size = float(np.abs(to_host(points.weights)).sum()) / mass
    upper = value_promise(samples, (1.0 + size) ** 2, delta).upper
    squared = float(samples.mean())
    return _variables(squared, standard_error(samples), upper - squared)


def _rows(points: Points) -> Rows:
    return Rows(points.values, points.index, points.weights)


def _variables(squared: float, error: float, promise: float) -> dict[str, float]:
    return {
        "distance_to_full": math.sqrt(max(squared, 0.0)),
        "distance_squared": squared,
        "standard_error": error,
        "distance_upper": math.sqrt(max(squared + promise, 0.0)),
    }
