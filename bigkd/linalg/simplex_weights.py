"""Weights of given total that bring a few points nearest to a target, in a kernel's space."""

import numpy as np
import scipy.linalg
import scipy.optimize

from bigkd.linalg.spectrum import Matrix

_MOST_STEPS = 30
_TOLERANCE = 1e-12
_RIDGE = 1e-10


def mass_weights(factor: Matrix, projection: Matrix, mass: float) -> Matrix:
    """Weights v with sum `mass` that minimise ``|sum v_i phi_i - target|``; of either sign.

    Parameters
    ----------
    factor
        Lower triangular L with ``L L^T`` the Gram matrix of the points, shape ``(k, k)``.
    projection
        ``L^{-1} t`` for the inner products t of the points with the target, shape ``(k,)``.
    mass
        Their sum.
    """
    ones = scipy.linalg.solve_triangular(
        factor, np.ones(factor.shape[0]), lower=True, check_finite=False
    )
    free = ones @ projection
    shifted = projection + ones * ((mass - free) / (ones @ ones))
    weights = scipy.linalg.solve_triangular(
        factor, shifted, lower=True, trans="T", check_finite=False
    )
    return of_mass(np.asarray(weights), mass)


def nonnegative_weights(gram: Matrix, target: Matrix, mass: float) -> Matrix:
    """Weights v >= 0 with sum `mass` that minimise ``v^T G v / 2 - v^T target``.

    Parameters
    ----------
    gram
        Positive definite G, shape ``(k, k)``, in an order in which Cholesky's factorisation holds.
    target
        Inner products of the points with the target, shape ``(k,)``.
    mass
        Their sum, positive.

    Notes
    -----
    Block principal pivoting [1]_: all weights on the wrong side of zero change sides at once, which
    takes some 5 to 10 factorisations. It can go round in circles; then SciPy's active sets find
    the answer one weight at a time, with the sum as one more equation of great weight. A ridge of
    1e-10 of the diagonal is added to G.

    References
    ----------
    .. [1] J. Kim, H. Park, "Fast nonnegative matrix factorization: an active-set-like method",
       SIAM J. Sci. Comput. 33, 2011.
    """
    n = target.size
    gram = gram + np.diag(_RIDGE * np.diagonal(gram))
    inside = np.ones(n, dtype=bool)
    for _ in range(_MOST_STEPS):
        weights, slope = _on(gram, target, mass, inside)
        least = -_TOLERANCE * np.where(inside, np.abs(weights).max(), np.abs(target).max())
        wrong = np.where(inside, weights, slope) < least
        if not wrong.any():
            return of_mass(np.maximum(weights, 0.0), mass)
        inside = inside ^ wrong
        if not inside.any():
            break
    return _one_by_one(gram, target, mass)


def _one_by_one(gram: Matrix, target: Matrix, mass: float) -> Matrix:
    """The same by Lawson and Hanson's method."""
    lower = np.linalg.cholesky(gram)
    right = scipy.linalg.solve_triangular(lower, target, lower=True, check_finite=False)
    heavy = 1e3 * np.sqrt(np.diagonal(gram).max())
    matrix = np.concatenate([lower.T, np.full((1, target.size), heavy)])
    weights, _ = scipy.optimize.nnls(
        matrix, np.append(right, heavy * mass), maxiter=50 * target.size
    )
    return of_mass(weights, mass)


def _on(
    gram: Matrix, target: Matrix, mass: float, inside: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> tuple[Matrix, Matrix]:
    """The best weights of those `inside`, and the slopes of the others, less the multiplier."""
    at = np.flatnonzero(inside)
    lower = np.linalg.cholesky(gram[np.ix_(at, at)])
    both = scipy.linalg.cho_solve(
        (lower, True), np.stack([target[at], np.ones(at.size)], axis=1), check_finite=False
    )
    multiplier = (mass - both[:, 0].sum()) / both[:, 1].sum()
    weights = np.zeros(target.size)
    weights[at] = both[:, 0] + multiplier * both[:, 1]
    slope = gram[:, at] @ weights[at] - target - multiplier
    return weights, slope


def of_mass(weights: Matrix, mass: float) -> Matrix:
    """`weights` scaled to the sum `mass`, added up in their order, to the last bit if it can be."""
    weights = weights * (mass / weights.sum())
    largest = int(np.argmax(np.abs(weights)))
    for _ in range(3):
        weights[largest] += mass - weights.sum()
    return weights
