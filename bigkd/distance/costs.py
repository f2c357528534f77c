"""What each method will cost, and which is the cheapest that keeps the promise."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bigkd.backends import rng
from bigkd.distance.collections import Measured
from bigkd.distance.methods import count_modes, is_wide
from bigkd.distance.samples import count_sample
from bigkd.distance.setting import Setting
from bigkd.distance.sizing import count_frequencies
from bigkd.errors import InputError
from bigkd.kernels import FourierFeatures, FrequencyGrid, Gaussian, pair_sum
from bigkd.kernels.grids import supports
from bigkd.protocols import Rows
from bigkd.summaries import FourierSums, MeanEmbedding, Reservoir

Matrix: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds of one core of a machine, for the smallest pieces of each method.

    The defaults were measured on one core of a server of 2024; `measure_costs` gives those of the
    machine it runs on. They are arguments and not measured on the way, so that ``method="auto"``
    chooses the same method every time.

    Attributes
    ----------
    pair, pair_coordinate
        A pair of rows in float64, and each coordinate of theirs.
    wave, wave_coordinate
        A frequency of a row in float64, and each coordinate of both.
    narrow_pair, narrow_wave
        What share of these float32 takes.
    point
        A row of one, two and three coordinates among the modes of a grid.
    mode
        A mode of a grid.
    draw
        A row among which a sample is drawn.
    """

    pair: float = 4e-10
    pair_coordinate: float = 4e-11
    wave: float = 4e-8
    wave_coordinate: float = 1e-10
    narrow_pair: float = 0.4
    narrow_wave: float = 0.15
    point: tuple[float, float, float] = (3e-8, 5e-8, 2e-7)
    mode: float = 3e-7
    draw: float = 2e-8


class Candidate(NamedTuple):
    """A method, and what it is expected to take."""

    method: str
    seconds: float
    why: str


def cheapest(setting: Setting, costs: Costs) -> Candidate:
    """The cheapest method whose promise meets `eps`; `why` names the others.

    A grid is considered where bounding boxes are known.
    """
    found = [_exact(setting, costs)]
    if setting.known is not None:
        found += _grid(setting, setting.known, costs)
    if setting.kernel.has_spectrum and setting.kernel.is_positive_definite(setting.width):
        found += _waves(setting, costs)
        found += _samples(setting, costs)
    found.sort(key=lambda candidate: candidate.seconds)
    told = "; ".join(f"{one.method} {_short(one.seconds)}{one.why}" for one in found)
    return found[0]._replace(why=f"cheapest for eps={setting.question.eps:g}: {told} of one core")


def wants_extents(setting: Setting) -> bool:
    """Whether a grid is possible, so that bounding boxes are worth a pass."""
    return supports(setting.kernel, setting.width)


def _short(seconds: float) -> str:
    return f"{seconds:.2g} s"


def _pair(setting: Setting, costs: Costs) -> float:
    """Seconds of a pair of rows."""
    share = 1.0 if is_wide(setting) else costs.narrow_pair
    return share * (costs.pair + setting.width * costs.pair_coordinate)


def _exact(setting: Setting, costs: Costs) -> Candidate:
    sizes = [source.n_rows for source in setting.sources]
    pairs = sum(size * size / 2 for size in sizes) + sizes[0] * sizes[-1]
    return Candidate("exact", pairs * _pair(setting, costs), "")


def _grid(setting: Setting, known: Sequence[Measured], costs: Costs) -> list[Candidate]:
    n_modes = count_modes(setting, known)
    if math.isinf(n_modes):
        return []
    n = sum(about.n for about in known) * math.ceil(setting.n_vectors / 2)
    blocks = sum(source.n_blocks for source in setting.sources)
    seconds = n * costs.point[setting.width - 1] + blocks * n_modes * costs.mode
    return [Candidate("nufft", seconds, f" ({n_modes:.0f} modes)")]


def _waves(setting: Setting, costs: Costs) -> list[Candidate]:
    try:
        r, _ = count_frequencies(setting)
    except InputError:  # more than the limit
        return []
    n = sum(source.n_rows for source in setting.sources)
    narrow = all(source.itemsize < 8 for source in setting.sources)
    share = costs.narrow_wave if narrow else 1.0
    seconds = n * r * share * (costs.wave + setting.width * costs.wave_coordinate)
    return [Candidate("rff", seconds, f" ({r} frequencies)")]


def _samples(setting: Setting, costs: Costs) -> list[Candidate]:
    signed = not setting.question.normalize
    if signed or any(source.vectors is not None for source in setting.sources):
        return []
    size = count_sample(setting)
    if size >= min(source.n_rows for source in setting.sources):
        return []  # no better than exact
    n = sum(source.n_rows for source in setting.sources)
    seconds = n * costs.draw + 2 * size**2 * _pair(setting, costs)
    return [Candidate("coreset", seconds, f" ({size} rows of each)")]


def measure_costs(*, seed: int = 0) -> Costs:
    """Costs of this machine, from about a second of work.

    Examples
    --------
    >>> costs = measure_costs()
    >>> costs.pair > 0
    True
    """
    generator = rng(seed)
    narrow, wide = generator.normal(size=(1500, 3)), generator.normal(size=(1500, 256))
    single = narrow.astype(np.float32)
    pair = [_pairs(x) / x.shape[0] ** 2 for x in (narrow, wide)]
    wave = [_embedding(x, 256) / (x.shape[0] * 256) for x in (narrow, wide)]
    point = [_sums(generator.uniform(size=(20_000, d)), 0.2) / 20_000 for d in (1, 2, 3)]
    few = _sums(generator.uniform(size=(16, 3)), 0.05)
    n_modes = FrequencyGrid.count_for(Gaussian(0.05), np.zeros(3), np.ones(3), eps=1e-3)
    pair_coordinate = max(0.0, (pair[1] - pair[0]) / 253)
    wave_coordinate = max(0.0, (wave[1] - wave[0]) / 253)
    rows = generator.normal(size=(100_000, 3))
    return Costs(
        pair=max(pair[0] - 3 * pair_coordinate, pair[0] / 10),
        pair_coordinate=pair_coordinate,
        wave=max(wave[0] - 3 * wave_coordinate, wave[0] / 10),
        wave_coordinate=wave_coordinate,
        narrow_pair=_pairs(single) / single.shape[0] ** 2 / pair[0],
        narrow_wave=_embedding(single, 256) / (single.shape[0] * 256) / wave[0],
        point=(point[0], point[1], point[2]),
        mode=few / n_modes,
        draw=_draws(rows) / rows.shape[0],
    )


def _least_seconds(work: Callable[[], object]) -> float:
    """Processor time of the fastest of three runs; the first of all is not counted."""
    work()
    seconds = []
    for _ in range(3):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return max(min(seconds), 1e-6)


def _pairs(x: Matrix) -> float:
    kernel = Gaussian(float(x.shape[1]) ** 0.5)
    return _least_seconds(lambda: pair_sum(kernel, x, x + 0.1))


def _rows(x: Matrix) -> Rows:
    return Rows(x, np.arange(x.shape[0]))


def _embedding(x: Matrix, r: int) -> float:
    summary = MeanEmbedding(features=FourierFeatures(Gaussian(1.0).frequencies(r, x.shape[1])))
    return _least_seconds(lambda: summary.update(summary.init(x), _rows(x)))


def _sums(x: Matrix, sigma: float) -> float:
    d = x.shape[1]
    grid = FrequencyGrid.for_box(Gaussian(sigma), np.zeros(d), np.ones(d), eps=1e-3)
    summary = FourierSums(grid=grid)
    return _least_seconds(lambda: summary.update(summary.init(x), _rows(x)))


def _draws(x: Matrix) -> float:
    summary = Reservoir(width=x.shape[1], size=1000)
    state = summary.update(summary.init(x), _rows(x))
    return _least_seconds(lambda: summary.update(state, _rows(x)))
