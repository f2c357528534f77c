"""Half of the points with all of the weight: a self-balancing walk over pairs of neighbours."""

from typing import TypeAlias

import numpy as np

from bigkd.backends import rng
from bigkd.linalg.selection import KernelFunction, Places
from bigkd.linalg.spectrum import Matrix

Pairs: TypeAlias = tuple[Matrix, Matrix]
"""Something of the first and of the second point of every pair."""

_STREAM = 0x6E656172  # keeps these numbers apart from other uses of a seed
_PAIRS = 256
_DIRECTIONS = 16


def halve(
    kernel: KernelFunction, rows: Matrix, weights: Matrix, generator: np.random.Generator
) -> tuple[Places, Matrix]:
    """Positions of half of the points, one of each pair of neighbours, and their weights.

    Parameters
    ----------
    kernel
        Positive semi-definite.
    rows
        Points, shape ``(n, d)``, float64.
    weights
        Not negative, shape ``(n,)``.
    generator
        Of the walk.

    Returns
    -------
    positions, weights
        Shapes ``(ceil(n/2),)``; each weight is the sum of its pair's, so that none is lost and
        equal weights stay equal.

    Notes
    -----
    Kernel halving [1]_, for weights. Of a pair with weights a and b the first stays with
    probability ``a/(a + b)``, tilted by how the errors so far lean: the walk is unbiased where it
    does not lean, and pulled back where it does. Pairs are neighbours, so that steps are short.
    Cost: ``n**2 / 2`` kernel values.

    References
    ----------
    .. [1] R. Dwivedi, L. Mackey, "Kernel thinning", COLT 2021, KT-SPLIT.
    """
    order = neighbours(rows)
    n_pairs = order.size // 2
    first, second = order[0 : 2 * n_pairs : 2], order[1 : 2 * n_pairs : 2]
    stays = _walk(kernel, (rows[first], rows[second]), (weights[first], weights[second]), generator)
    kept = np.where(stays, first, second)
    sums = weights[first] + weights[second]
    if order.size % 2:
        kept, sums = np.append(kept, order[-1]), np.append(sums, weights[order[-1]])
    return kept, sums


def neighbours(rows: Matrix) -> Places:
    """Order in which rows that follow one another are near: the leaves of a balanced k-d tree.

    Each part is halved along the column in which it is widest; of rows wider than 16, along one of
    16 random directions. Halves are even, so that pairs of the order are pairs of one leaf.
    """
    if rows.shape[1] > _DIRECTIONS:
        rows = rows @ rng(0, _STREAM).standard_normal((rows.shape[1], _DIRECTIONS))
    order = np.arange(rows.shape[0])
    starts, sizes = np.zeros(1, dtype=np.int64), np.asarray([rows.shape[0]])
    while sizes.max(initial=0) > 2:
        part = np.repeat(np.arange(sizes.size), sizes)
        own = rows[order]
        extent = np.maximum.reduceat(own, starts) - np.minimum.reduceat(own, starts)
        axis = np.argmax(extent, axis=1)
        along = own[np.arange(order.size), axis[part]]
        order = order[np.lexsort((along, part))]
        left = np.where(sizes > 2, (sizes + 3) // 4 * 2, sizes)
        sizes = np.stack([left, sizes - left], axis=1).ravel()
        sizes = sizes[sizes > 0]
        starts = np.cumsum(sizes) - sizes
    return order


def _walk(
    kernel: KernelFunction, points: Pairs, weights: Pairs, generator: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether the first point of each pair stays, a few hundred pairs at a time."""
    first, second = points
    n_pairs = first.shape[0]
    sums = weights[0] + weights[1]
    safe = np.where(sums > 0, sums, 1.0)
    shares = np.where(sums > 0, weights[0] / safe, 0.5)
    uniform = generator.random(n_pairs)
    stays = np.empty(n_pairs, dtype=bool)
    lean = np.zeros(n_pairs)  # inner product of the error so far with each pair's difference
    longest = 0.0
    for start in range(0, n_pairs, _PAIRS):
        own, later = slice(start, start + _PAIRS), slice(start + _PAIRS, n_pairs)
        one, two = first[own], second[own]
        inner = _differences(kernel, (one, two), (one, two))
        steps = np.zeros(one.shape[0])
        for at in range(steps.size):
            pair = start + at
            longest = max(longest, sums[pair] * inner[at, at])
            tilt = lean[pair] / longest if longest > 0 else 0.0
            stays[pair] = uniform[pair] < shares[pair] - tilt
            steps[at] = weights[1][pair] if stays[pair] else -weights[0][pair]
            lean[pair + 1 : own.stop] += steps[at] * inner[at, at + 1 :]
        if later.start < n_pairs:
            after = (first[later], second[later])
            lean[later] += steps @ _differences(kernel, (one, two), after)
    return stays


def _differences(kernel: KernelFunction, left: Pairs, right: Pairs) -> Matrix:
    """Inner products of the differences within pairs: ``<phi - phi', psi - psi'>``."""
    (a, b), (c, d) = left, right
    return (kernel(a, c) - kernel(a, d)) - (kernel(b, c) - kernel(b, d))
