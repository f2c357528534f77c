"""Few points that stand for many: which to take, for a positive semi-definite kernel.

Every function here approximates one fixed vector of the kernel's space, known by its inner products
`target` with the candidates: ``target[i] = sum_j w_j K(x_j, x_i)`` for candidates of weights w.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from bigkd.linalg.spectrum import Matrix

KernelFunction = Callable[[Matrix, Matrix], Matrix]
"""Kernel between every row of one block and every row of another."""

NEGLIGIBLE = 1e-9
"""Share of a candidate's own norm that must be left for it to be worth taking."""

_ROUND = 16
_RUNS = 128

Places = np.ndarray[Any, np.dtype[np.int64]]
"""Positions among the candidates."""


class Selection(NamedTuple):
    """Candidates in the order in which they were taken, and their Gram matrix, factored."""

    picked: Places
    """Positions among the candidates, shape ``(k,)``."""

    factor: Matrix
    """Lower triangular L, shape ``(k, k)``: the Gram matrix of `picked` is ``L L^T``."""

    projection: Matrix
    """``L^{-1} target[picked]``, shape ``(k,)``: coordinates of the target in their span."""


def greedy_selection(
    kernel: KernelFunction,
    rows: Matrix,
    target: Matrix,
    diagonal: Matrix,
    size: int,
    start: Places | None = None,
) -> Selection:
    """At most `size` candidates, each where the target is above its projection on those before.

    Parameters
    ----------
    kernel
        Positive semi-definite.
    rows
        Candidates, shape ``(n, d)``, float64. Those that follow one another should be near, as
        `bigkd.linalg.neighbours` orders them: it is what keeps the points of one round apart.
    target
        Inner product of the target with each, shape ``(n,)``.
    diagonal
        ``K(x_i, x_i)``, shape ``(n,)``.
    size
        How many; fewer come back where the others are combinations of them, to `NEGLIGIBLE`.
    start
        Candidates that are taken first, in this order, each more than `NEGLIGIBLE` beyond those
        before it.

    Notes
    -----
    A pivoted Cholesky factorisation. With r what the projection leaves of the target at a candidate
    and s**2 what it leaves of the candidate itself, the score is ``r / sqrt(s)``, between the
    largest residual (r) and the largest gain (r/s), which takes pairs of opposite weight. A round
    offers the best candidate of each of 128 runs of neighbours, takes up to 16 of them one after
    the other, and brings all the others up to date in one matrix product. Cost: ``n size`` kernel
    values and ``n size**2 / 2`` multiply-adds; memory: ``8 n size`` bytes.
    """
    n = rows.shape[0]
    size = min(size, n)
    starts = np.unique(np.linspace(0, n, min(n, _RUNS), endpoint=False).astype(np.int64))
    basis = np.empty((size, n))  # orthonormal directions, at all candidates
    picked = np.empty(size, dtype=np.int64)
    projection = np.empty(size)
    residual, left = target.astype(np.float64), diagonal.astype(np.float64)
    floor = NEGLIGIBLE * diagonal
    taken = 0
    while taken < size:
        given = start is not None and start.size > 0 and taken == 0
        offered = start if given else _offered(_scores(residual, left, floor), starts)
        if offered is None or offered.size == 0:
            break
        known = basis[:taken]
        inner = kernel(rows[offered], rows[offered]) - known[:, offered].T @ known[:, offered]
        order = np.arange(offered.size)
        if not given:
            most = min(_ROUND, size - taken)
            order = _within(inner, residual[offered], floor[offered], most)
        if order.size == 0:
            break
        new, end = offered[order], taken + order.size
        lower = np.linalg.cholesky(inner[np.ix_(order, order)])
        across = kernel(rows[new], rows) - known[:, new].T @ known
        directions = basis[taken:end]
        directions[:] = _solved(lower, across)
        picked[taken:end], projection[taken:end] = new, _solved(lower, residual[new])
        residual -= projection[taken:end] @ directions
        left -= np.einsum("ij,ij->j", directions, directions)
        left[new] = 0.0
        taken = end
    picked = picked[:taken]
    return Selection(picked, np.tril(basis[:taken, picked].T), projection[:taken])


def _scores(residual: Matrix, left: Matrix, floor: Matrix) -> Matrix:
    """What each candidate is worth; -1 for those of which too little is left."""
    worth = left > floor
    safe = np.where(worth, left, 1.0)
    return np.asarray(np.where(worth, residual / safe**0.25, -1.0))


def _offered(score: Matrix, starts: Places) -> Places:
    """Best candidate of every run of neighbours, where it is worth anything."""
    best = np.maximum.reduceat(score, starts)
    run = np.repeat(np.arange(starts.size), np.diff(np.append(starts, score.size)))
    first = np.flatnonzero(score == best[run])
    runs, at = np.unique(run[first], return_index=True)
    return np.asarray(first[at][best[runs] > 0.0])


def _within(inner: Matrix, residual: Matrix, floor: Matrix, most: int) -> Places:
    """Order in which up to `most` of a few candidates are taken, given their own Gram matrix."""
    residual, left = residual.copy(), np.diagonal(inner).copy()
    basis = np.empty((most, residual.size))
    order: list[int] = []
    for at in range(most):
        score = _scores(residual, left, floor)
        best = int(np.argmax(score))
        if score[best] <= 0.0:
            break
        basis[at] = (inner[best] - basis[:at, best] @ basis[:at]) / np.sqrt(left[best])
        residual -= (residual[best] / basis[at, best]) * basis[at]
        left -= basis[at] ** 2
        left[best] = 0.0
        order.append(best)
    return np.asarray(order, dtype=np.int64)


def _solved(lower: Matrix, right: Matrix) -> Matrix:
    return np.asarray(scipy.linalg.solve_triangular(lower, right, lower=True, check_finite=False))
