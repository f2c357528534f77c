"""Method coreset: every pair of two random samples, and what that says of the whole."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from bigkd.backends import rng, to_host
from bigkd.distance.collections import Measured
from bigkd.distance.estimates import Kappas, single
from bigkd.distance.methods import exact, rounding_of
from bigkd.distance.setting import Setting
from bigkd.errors import InputError
from bigkd.io import Source, open_rows
from bigkd.kernels.sample_promises import sample_promise, size_for_sample
from bigkd.linalg import independent_draws
from bigkd.summaries import Reservoir, ReservoirState

_STREAM = 0x64726177  # keeps these numbers apart from other uses of a seed
_LEAST_ERROR = 1e-7  # samples for less than this are larger than any collection


def coreset_kappas(setting: Setting) -> tuple[list[Measured], Kappas]:
    """Random samples of both, and every pair of their rows."""
    require_samples(setting)
    size = count_sample(setting)
    summary = Reservoir(width=setting.width, size=size + 1, seed=setting.question.seed)
    found = setting.measure(summary)
    samples, slack = [], []
    for number, (source, (about, (state,))) in enumerate(zip(setting.sources, found, strict=True)):
        generator = rng(setting.question.seed, _STREAM, number)
        rows, share = _drawn(summary, state, source, size, generator)
        samples.append(rows)
        slack.append(share and sample_promise(size, setting.question.delta / 2) * about.total)
    known = [about for about, _ in found]
    (xx, xy), (yy,) = exact(replace(setting, sources=samples), known)
    surplus = [
        _surplus(own, size, about, weighted=source.weights is not None) if share else 0.0
        for own, about, source, share in zip((xx, yy), known, setting.sources, slack, strict=True)
    ]
    return known, single(
        xx,
        yy,
        xy,
        error=rounding_of(setting),
        slack=(slack[0], slack[1]),
        surplus=(surplus[0], surplus[1]),
        kind="probabilistic",
        attrs={"method": "coreset", "coreset_size": size},
    )


def require_samples(setting: Setting) -> None:
    """Refuse what random samples promise nothing about.

    Raises
    ------
    InputError
        If the kernel is not positive definite or K(x, x) is not 1, or rows have vectors.
    """
    kernel = setting.kernel
    if kernel.maximum != 1.0 or not kernel.is_positive_definite(setting.width):
        raise InputError(
            f"method='coreset' needs a positive definite kernel with K(x, x) = 1; got {kernel} for "
            f"rows of width {setting.width}. Pass method='exact'."
        )
    if any(source.vectors is not None for source in setting.sources):
        raise InputError(
            "method='coreset' draws points by weight and takes no vectors; pass method='exact', "
            "'rff' or 'nufft'."
        )


def count_sample(setting: Setting) -> int:
    """Rows of each sample that `eps` needs, as far as a pilot can tell; at most all of them.

    With D the distance, an error e of it is one of ``e (2 D + e)`` of its square.
    """
    question = setting.question
    largest = max(source.n_rows for source in setting.sources)
    if question.coreset_size is not None:
        return min(int(question.coreset_size), largest)
    judged = setting.kernel.has_spectrum and question.normalize
    squared = float(np.mean(setting.pilot)) if judged else 4.0
    error = math.sqrt(squared + question.eps) - math.sqrt(squared)
    if error < _LEAST_ERROR:
        return largest
    # The distance of the samples is above that of the whole: a fifth is left for it.
    return min(size_for_sample(0.4 * error, question.delta / 2), largest)


def _surplus(own: float, size: int, about: Measured, *, weighted: bool) -> float:
    """How much larger the kernel sum of a sample with itself is than that of all, on average.

    Of its pairs one in `size` is of a row with itself; those of weighted draws are independent, the
    others are of different rows.
    """
    if size < 2:
        return 0.0
    square = about.total**2
    apart = (own - square / size) / (1.0 - 1.0 / size)
    if not weighted:
        apart = square / about.n + (1.0 - 1.0 / about.n) * apart
    return own - apart


def _drawn(
    summary: Reservoir,
    state: ReservoirState,
    source: Source,
    size: int,
    generator: np.random.Generator,
) -> tuple[Source, bool]:
    """The sampled rows with their weights, and whether they are a sample and not all rows."""
    points = summary.finalize(state)
    values, weights = to_host(points.values), to_host(points.weights)
    mass, count = float(state.mass), int(state.count)
    name = f"sample of {source.name}"
    if count <= size:
        return open_rows(values, name=name, weights=weights), False
    if source.weights is None:
        shares: np.ndarray[Any, Any] = np.full(size, mass / size)
        return open_rows(values[:size], name=name, weights=shares), True
    counts = independent_draws(weights, mass, size, count, generator)
    some = counts > 0
    shares = counts[some] * (mass / size)
    return open_rows(values[some], name=name, weights=shares), True
