"""Points of given weights that stand for many: herding, and exchanges while they help."""

import numpy as np

from bigkd.linalg.selection import KernelFunction, Places
from bigkd.linalg.spectrum import Matrix

_COLUMNS = 64
_STARTS = 16
_SWEEPS = 20


def herd(
    kernel: KernelFunction, rows: Matrix, target: Matrix, diagonal: Matrix, size: int
) -> Places:
    """Positions of `size` different candidates whose plain mean is near to a target.

    Parameters
    ----------
    kernel
        Positive semi-definite.
    rows
        Candidates, shape ``(n, d)``, float64, at least `size`.
    target
        Inner product of the target, of total weight 1, with each, shape ``(n,)``.
    diagonal
        ``K(x_i, x_i)``, shape ``(n,)``.
    size
        How many.

    Notes
    -----
    Kernel herding without repetition: each point brings the mean of those so far nearest. Cost:
    ``n size`` kernel values.
    """
    picked = np.empty(size, dtype=np.int64)
    total = 0.5 * diagonal
    for at in range(size):
        new = int(np.argmin(total - (at + 1) * target))
        picked[at] = new
        total += kernel(rows[new : new + 1], rows)[0]
        total[new] = np.inf
    return picked


def exchange(
    kernel: KernelFunction,
    rows: Matrix,
    target: Matrix,
    diagonal: Matrix,
    picked: Places,
    weights: Matrix,
    *,
    sweeps: int,
) -> tuple[Places, float]:
    """`picked`, improved: every point in turn gives its place and weight to a better candidate.

    Parameters
    ----------
    kernel, rows, target, diagonal
        As `herd` has them; `target` has a total weight of ``weights.sum()``.
    picked
        Positions of different candidates, shape ``(k,)``.
    weights
        Of each of them, shape ``(k,)``; they stay as they are.
    sweeps
        How often each is looked at, unless a sweep has changed nothing.

    Returns
    -------
    picked, cost
        Positions, and the squared distance to the target but for the target's own square.

    Notes
    -----
    The refinement of kernel thinning [1]_, for any weights; the distance to the target never grows.
    Cost of a sweep: ``n k`` kernel values, and n more for every exchange.

    References
    ----------
    .. [1] R. Dwivedi, L. Mackey, "Generalized kernel thinning", ICLR 2022, KT-SWAP.
    """
    picked, n = picked.copy(), rows.shape[0]
    taken = np.zeros(n)
    taken[picked] = np.inf
    total = -target
    for start in range(0, picked.size, _COLUMNS):
        part = slice(start, start + _COLUMNS)
        total += weights[part] @ kernel(rows[picked[part]], rows)
    for _ in range(sweeps):
        before = picked.copy()
        for start in range(0, picked.size, _COLUMNS):
            columns = kernel(rows[picked[start : start + _COLUMNS]], rows)
            for at, own_column in enumerate(columns, start):
                old, weight, column = picked[at], weights[at], own_column
                # Half of the squared distance, over the weight and but for a constant.
                total -= weight * column
                score = total + (0.5 * weight) * diagonal
                own = score[old]
                score += taken
                new = int(np.argmin(score))
                if score[new] < own - 1e-13 * weight * diagonal[old]:
                    taken[old], taken[new], picked[at] = 0.0, np.inf, new
                    column = kernel(rows[new : new + 1], rows)[0]
                total += weight * column
        if np.array_equal(before, picked):
            break
    return picked, float(weights @ (total - target)[picked])


def equal_points(
    kernel: KernelFunction,
    rows: Matrix,
    target: Matrix,
    diagonal: Matrix,
    size: int,
    generator: np.random.Generator,
) -> tuple[Places, float]:
    """Positions of `size` different candidates whose plain mean is nearest to a target.

    Parameters
    ----------
    kernel, rows, target, diagonal
        As `herd` has them.
    size
        How many, at most the number of candidates.
    generator
        Of random starts.

    Returns
    -------
    picked, cost
        As `exchange` has them.

    Notes
    -----
    `exchange` ends where no single exchange helps, and that is not the best there is: it starts
    from `herd` and from up to 15 random subsets, fewer for a large `size`, and the best end counts.
    """
    equal = np.full(size, 1.0 / size)
    starts = [herd(kernel, rows, target, diagonal, size)]
    for _ in range(min(_STARTS, max(1, _STARTS * 256 // size)) - 1):
        starts.append(generator.choice(rows.shape[0], size, replace=False))
    ends = [
        exchange(kernel, rows, target, diagonal, start, equal, sweeps=_SWEEPS) for start in starts
    ]
    return min(ends, key=lambda end: end[1])
