"""The methods: each makes the three kernel sums of two collections, and says how far they err."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bigkd.backends import to_host
from bigkd.distance.collections import Measured
from bigkd.distance.estimates import Kappas, single
from bigkd.distance.setting import Setting, bounding_box, characteristic
from bigkd.distance.sizing import count_frequencies
from bigkd.errors import InputError
from bigkd.kernels import (
    FourierFeatures,
    FrequencyGrid,
    inner_product,
    rounding_bound,
    squared_distance,
)
from bigkd.kernels._lattice import MOST_MODES
from bigkd.protocols import Array
from bigkd.summaries import FourierSums, KernelSum, MeanEmbedding

_CHEAP_MODES = 2**15
_LEAST_GRID_EPS = 1e-13
_ACCURACIES = (1e-10, 1e-8, 1e-6, 1e-4)


def exact(setting: Setting, known: Sequence[Measured]) -> list[list[float]]:
    """Kernel sums of every two collections, of scaled weights; the lower triangle is empty.

    Every unordered pair of blocks is visited once.
    """
    summary = KernelSum(kernel=setting.kernel, wide=is_wide(setting))
    sums = []
    for at, (one, about) in enumerate(zip(setting.sources, known, strict=True)):
        row = []
        for other, more in list(zip(setting.sources, known, strict=True))[at:]:
            right = None if other is one else other
            label = f"kernel of {one.name} and {other.name}"
            state = setting.session.reduce_pairs(summary, one, right, label=label).state
            row.append(float(state.total) / (about.scale * more.scale))
        sums.append(row)
    return sums


def rounding_of(setting: Setting) -> float:
    """Error of a kernel sum by rounding, in units of the product of norms."""
    return _rounding(setting, np.float64 if is_wide(setting) else np.float32)


def is_wide(setting: Setting) -> bool:
    """Whether pairs are computed in float64: rows that are, and where float32 may miss `eps`."""
    narrow = all(source.itemsize < 8 for source in setting.sources)
    return not narrow or 4 * _rounding(setting, np.float32) > setting.question.eps


def _rounding(setting: Setting, dtype: Any) -> float:
    if setting.kernel.maximum == 1.0:
        return float(rounding_bound(setting.kernel, dtype, setting.width))
    if not setting.kernel.is_positive_definite(setting.width):
        return math.inf  # values between rows may be larger than sqrt(K(x, x) K(y, y))
    # Sums of products of coordinates, and their powers.
    return 16 * (setting.width + 8) * float(np.finfo(dtype).eps)


def exact_kappas(setting: Setting) -> tuple[list[Measured], Kappas]:
    """Every pair of rows."""
    known = setting.measured()
    (xx, xy), (yy,) = exact(setting, known)
    error = rounding_of(setting)
    return known, single(xx, yy, xy, error=error, kind="rounding", attrs={"method": "exact"})


def features_of(setting: Setting, n_frequencies: int) -> FourierFeatures:
    """Random Fourier features of the kernel."""
    seed = setting.question.seed
    return FourierFeatures(setting.kernel.frequencies(n_frequencies, setting.width, seed=seed))


def embedded(
    setting: Setting, features: FourierFeatures
) -> tuple[list[Measured], list[np.ndarray[Any, Any]]]:
    """Measures of the collections, and their characteristic functions at the frequencies.

    The latter are complex, of shape ``(n_vectors, r)``, for scaled weights.
    """
    summary = MeanEmbedding(features=features, n_vectors=setting.n_vectors)
    found = setting.measure(summary)
    known = [about for about, _ in found]
    return known, [
        characteristic(to_host(states[0].total)[0]) / about.scale for about, states in found
    ]


def sampled_kappas(left: Array, right: Array, **about: Any) -> Kappas:
    """Sums at each frequency, from characteristic functions of shape ``(n_vectors, r)``."""

    def size(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.asarray(np.sum(values.real**2 + values.imag**2, axis=0))

    return Kappas(
        xx=size(left),
        yy=size(right),
        xy=np.sum(left.real * right.real + left.imag * right.imag, axis=0),
        difference=size(left - right),
        kind="probabilistic",
        **about,
    )


def rff_kappas(setting: Setting) -> tuple[list[Measured], Kappas]:
    """Random Fourier features: one pass."""
    n_frequencies, about = count_frequencies(setting)
    known, (left, right) = embedded(setting, features_of(setting, n_frequencies))
    attrs = {"method": "rff", "n_frequencies": n_frequencies, **about}
    return known, sampled_kappas(left, right, attrs=attrs)


def nufft_kappas(setting: Setting) -> tuple[list[Measured], Kappas]:
    """Sums of waves on a grid of frequencies: two passes, the first for the bounding box."""
    known = setting.measured()
    grid = choose_grid(setting, known)
    left, right = grid_sums(setting, grid, known)
    attrs = {"method": "nufft", "n_modes": grid.n_modes}
    return known, single(
        inner_product(grid, left, left),
        inner_product(grid, right, right),
        inner_product(grid, left, right),
        difference=squared_distance(grid, left, right),
        error=grid.error,
        kind="deterministic",
        attrs=attrs,
    )


def count_modes(setting: Setting, known: Sequence[Measured]) -> float:
    """Modes of the grid that `eps` needs; inf if there is none."""
    needed = _grid_error(setting)
    if needed < _LEAST_GRID_EPS:
        return math.inf
    n_modes = FrequencyGrid.count_for(setting.kernel, *bounding_box(known), eps=needed)
    return n_modes if n_modes <= MOST_MODES else math.inf


def _grid_error(setting: Setting) -> float:
    """Error of a kernel value that `eps` allows."""
    return min(0.5, setting.question.eps / 4)


def choose_grid(setting: Setting, known: Sequence[Measured]) -> FrequencyGrid:
    """The grid on the box of all collections: more accurate than asked for where that is cheap.

    Raises
    ------
    InputError
        If there is none.
    """
    box, needed = bounding_box(known), _grid_error(setting)
    if needed < _LEAST_GRID_EPS:
        raise InputError(
            f"method='nufft' needs eps of at least {4 * _LEAST_GRID_EPS:g}; got "
            f"{setting.question.eps:g}. Pass method='exact'."
        )
    finer = [accuracy for accuracy in _ACCURACIES if accuracy < needed]
    cheap = FrequencyGrid.finest(setting.kernel, *box, errors=finer, most_modes=_CHEAP_MODES)
    return cheap or FrequencyGrid.for_box(setting.kernel, *box, eps=needed)


def grid_sums(
    setting: Setting, grid: FrequencyGrid, known: Sequence[Measured]
) -> list[np.ndarray[Any, Any]]:
    """Sums of each collection at the modes of `grid`, of scaled weights: one pass over each."""
    summary = FourierSums(grid=grid, n_vectors=setting.n_vectors)
    sums = []
    for source, about in zip(setting.sources, known, strict=True):
        label = f"waves in {source.name}"
        state = setting.session.reduce(summary, source, label=label).state
        sums.append(to_host(state.total) / about.scale)
    return sums
