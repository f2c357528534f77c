"""Independent draws from a race, in which rows arrive in the order of their first draw."""

from typing import Any, TypeAlias

import numpy as np

Vector: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Counts: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


def independent_draws(
    weights: Vector, mass: float, size: int, count: int, generator: np.random.Generator
) -> Counts:
    """How often each row is drawn in `size` independent draws.

    Parameters
    ----------
    weights
        Weights of the rows that come first when one draws without replacement, each time with
        probabilities proportional to weight, in that order; `size` of them, or all.
    mass
        Sum of the weights of all rows.
    size
        Number of draws.
    count
        Number of all rows of positive weight.
    generator
        Decides which draws repeat an earlier one.

    Returns
    -------
    numpy.ndarray
        Shape ``(len(weights),)``, int64, of sum `size`.

    Notes
    -----
    Each draw repeats one of those before it with the probability of their weight, in proportion to
    it; else it is the next of the race. That is what draws with replacement do.
    """
    counts = np.zeros(weights.size, dtype=np.int64)
    upto = np.cumsum(weights)
    seen = 0
    for uniform in generator.random(size) * mass:
        if seen < min(count, weights.size) and (seen == 0 or uniform >= upto[seen - 1]):
            at, seen = seen, seen + 1
        else:
            at = min(int(np.searchsorted(upto[:seen], uniform, side="right")), seen - 1)
        counts[at] += 1
    return counts
