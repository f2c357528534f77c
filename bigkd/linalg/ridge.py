"""Ridge-regularised projections: how much of one map is left by the best answer of another."""

import math
from typing import NamedTuple

import numpy as np

from bigkd.backends import device, namespace
from bigkd.errors import ShapeError
from bigkd.linalg.factors import Factors
from bigkd.linalg.ridge_plan import (
    EPS,
    Plan,
    check_size,
    checked_lams,
    planned,
    scaled_strengths,
)
from bigkd.linalg.selection import Places
from bigkd.linalg.stacks import CERTIFIED, largest_eigenvalues
from bigkd.protocols import Array

_TINY = float(np.finfo(np.float64).tiny)


class PairValues(NamedTuple):
    """Dissimilarities of all pairs, and how far rounding and truncation may have moved them."""

    value: Array
    """Shape ``(n_lams, n_reference, n_searched)``, float64, never negative."""

    rounding: Array
    """Of the same shape: a bound on the error of `value`, in its units."""


class BestPair(NamedTuple):
    """The dissimilarity of one pair and the functions that attain it."""

    value: float
    """D."""

    h: Array
    """Unit vector, shape ``(columns,)``; its entry of largest magnitude is positive."""

    q: Array
    """``B^T (B B^T + lam I)^-1 A h``, shape ``(columns of B,)``."""


class _Side(NamedTuple):
    """A run of maps of one side, next to each other, as far as they count."""

    packed: Array  # (rows, n * rank): the bases side by side
    strength: Array  # (n, rank)
    dropped: Array  # (n,): the largest strength that is left out

    @property
    def basis(self) -> Array:
        """Shape ``(n, rows, rank)``, a view."""
        xp = namespace(self.packed)
        split = xp.reshape(self.packed, (self.packed.shape[0], *self.strength.shape))
        return xp.permute_dims(split, (1, 0, 2))


def dissimilarities(
    reference: Factors, searched: Factors, lams: Array, *, tolerance: float = 1e-12
) -> PairValues:
    r"""Dissimilarity of every reference map A to every searched map B.

    .. math:: D_\lambda = \max_{|h| \le 1} \min_q |A h - B q|^2 + \lambda |q|^2
                        = \lambda |A^T (B B^T + \lambda I)^{-1} A|_{op}

    Parameters
    ----------
    reference
        ``A = Q diag(a)``, shapes ``(n_reference, rows, l)`` and ``(n_reference, l)``, as from
        `factored`; the columns of Q have length 1, or are zero where a is.
    searched
        ``B = U diag(b)``, in the namespace of `reference` and with as many rows; the columns of U
        are orthonormal, or zero where b is.
    lams
        Between 1e-300 and 1e300, in the units of the squared strengths of `searched`: shape
        ``(n_lams,)``, or ``(n_lams, n_searched)`` where it differs by searched map.
    tolerance
        Directions of A and of B are left out where that changes D by less than this part of it.

    Returns
    -------
    PairValues
        With 0 where A is zero and the squared norm of A where B is zero.

    Raises
    ------
    ShapeError
        If shapes do not fit together.
    InputError
        If a lambda is out of its range, a strength is not finite or above 1e150, whose square would
        not be a number, or `tolerance` is not in [0, 1). D of strengths below some 1e-150 is
        subnormal or 0, which `rounding` allows for.

    Notes
    -----
    With ``X = U^T Q`` and ``W = diag(b**2 / (b**2 + lam))``, D is the largest eigenvalue of
    ``diag(a) (Q^T Q - X^T W X) diag(a)``. The difference loses ``eps a_1**2`` or so, but D may be
    as small as ``lam a_1**2 / (b_1**2 + lam)``. Where that loss matters the first rows and columns
    of the matrix, where a is large, are made of what is left instead, ``Q - U X``, and of
    ``diag(lam / (b**2 + lam))``, so that nothing cancels. `rounding` is, in units of ``u = eps
    sqrt(rows + l)``, with the norms |a| of all and |a'| of the strengths without the first,

    - ``u (|a'|**2 + 2 |a'| |a| + 2 |a| sqrt(D))`` for products, where U is orthonormal to rounding,
      and ``u b_1 / sqrt(lam) D`` for the rounding in that;
    - ``a_(l+1)**2 + D b_(k+1)**2 / lam`` for the directions that are left out;
    - ``1e-12 D`` for the eigenvalue, and the smallest normal number.

    It is what rounding errors do that add up like random numbers, not the worst case. There are as
    many first rows as bring it below 1e-9 D, if any number does.

    Factors of less than float64 are taken as exact and computed with in float64; their U need only
    be orthonormal to their own precision. Cost of a pair: ``rows l**2`` multiply-adds, and ``l**3``
    for each lambda; memory: `scratch_bytes`.
    """
    xp = namespace(reference.basis, reference.strength, searched.basis, searched.strength)
    host = checked_lams(lams, searched.strength.shape[0])
    plan = planned(reference, searched, host, tolerance)
    on = device(reference.basis)
    shape = (host.shape[0], reference.basis.shape[0], searched.basis.shape[0])
    value = xp.zeros(shape, dtype=xp.float64, device=on)
    rounding = xp.zeros(shape, dtype=xp.float64, device=on)
    grams = [_gram(_side(reference, left, plan.left_rank)) for left in plan.lefts]
    top = 0
    for right in plan.rights:
        found = _side(searched, right, plan.right_rank)
        if searched.basis.dtype != xp.float64:
            found = _orthonormal(found)
        lams_found = xp.asarray(host[:, right], device=on)
        side = 0
        for left, gram in zip(plan.lefts, grams, strict=True):
            known = _side(reference, left, plan.left_rank)
            at = (slice(None), slice(side, side + left.size), slice(top, top + right.size))
            leading = int(plan.leading[left].max())
            value[at], rounding[at] = _pairs(known, gram, found, lams_found, leading)
            side += left.size
        top += right.size
    return PairValues(*(_in_order(one, plan) for one in (value, rounding)))


def best_functions(a_map: Array, b_map: Array, lam: float) -> BestPair:
    """Dissimilarity of a pair of maps, the h that attains it and the q that answers it.

    Parameters
    ----------
    a_map
        A, shape ``(rows, columns)``, float32 or float64, finite.
    b_map
        B, in the namespace of `a_map` and with as many rows.
    lam
        Between 1e-300 and 1e300.

    Raises
    ------
    ShapeError
        If the maps are not matrices of as many rows.
    InputError
        If `lam` is not between 1e-300 and 1e300, or an entry of a map not finite and at most 1e150.

    Notes
    -----
    By singular values of ``[A - U U^T A ; diag(sqrt(lam / (b**2 + lam))) U^T A]``, where nothing
    cancels; see `dissimilarities`.
    """
    if a_map.ndim != 2 or b_map.ndim != 2 or a_map.shape[0] != b_map.shape[0]:
        raise ShapeError(
            f"best_functions needs two matrices of as many rows; "
            f"got a_map {tuple(a_map.shape)} and b_map {tuple(b_map.shape)}."
        )
    xp = namespace(a_map, b_map)
    root = math.sqrt(float(checked_lams([lam], 1)[0, 0]))
    a_map, b_map = (xp.astype(one, xp.float64, copy=False) for one in (a_map, b_map))
    for name, largest in (("a_map", xp.max(xp.abs(a_map))), ("b_map", xp.max(xp.abs(b_map)))):
        check_size(name, float(largest))
    left, strength, right = xp.linalg.svd(b_map, full_matrices=False)
    ratio = strength / root
    length = xp.hypot(xp.ones_like(ratio), ratio)
    inside = left.T @ a_map
    _, values, vectors = xp.linalg.svd(
        xp.concat([a_map - left @ inside, inside / length[:, None]]), full_matrices=False
    )
    h = vectors[0, :]
    h = -h if float(h[int(xp.argmax(xp.abs(h)))]) < 0.0 else h
    q = right.T @ (ratio / length / length * (inside @ h)) / root
    return BestPair(float(values[0]) ** 2, h, q)


def _pairs(
    reference: _Side, gram: Array, searched: _Side, lams: Array, n_leading: int
) -> tuple[Array, Array]:
    """Values and rounding of a run of pairs, shapes ``(n_lams, n_reference, n_searched)``."""
    xp = namespace(gram)
    rows, n_left = reference.packed.shape[0], reference.strength.shape[1]
    inner = xp.reshape(
        searched.packed.T @ reference.packed,
        (*searched.strength.shape, *reference.strength.shape),
    )
    inner = xp.permute_dims(inner, (2, 0, 1, 3))
    n_leading = n_leading if 2 * n_leading < n_left else n_left
    beyond = _beyond(reference, searched, inner, n_leading) if n_leading else None
    unit, scaled = scaled_strengths(reference.strength)
    size = xp.sqrt(xp.sum(scaled**2, axis=1))[:, None]
    rest = xp.sqrt(xp.sum(scaled[:, n_leading:] ** 2, axis=1))[:, None]
    values, errors = [], []
    for lam in (lams[at, :] for at in range(lams.shape[0])):
        ratio = searched.strength / xp.sqrt(lam)[:, None]
        matrix = _matrix(gram, inner, beyond, ratio)
        matrix *= scaled[:, None, :, None] * scaled[:, None, None, :]
        top = largest_eigenvalues(xp.reshape(matrix, (-1, n_left, n_left)))
        top = xp.reshape(xp.clip(top, 0.0, None), matrix.shape[:2])
        products = rest**2 + 2.0 * size * rest + 2.0 * size * xp.sqrt(top) + ratio[:, 0] * top
        error = EPS * math.sqrt(rows + n_left) * products
        error = error + (CERTIFIED + searched.dropped**2 / lam) * top
        values.append(unit[:, None] ** 2 * top)
        errors.append(unit[:, None] ** 2 * error + reference.dropped[:, None] ** 2 + _TINY)
    return xp.stack(values), xp.stack(errors)


def _matrix(gram: Array, inner: Array, beyond: Array | None, ratio: Array) -> Array:
    """``Q^T Q - X^T W X``, the first rows and columns of it from what is beyond U."""
    xp = namespace(gram)
    n_left = gram.shape[2]
    n_leading = 0 if beyond is None else beyond.shape[2]
    length = xp.hypot(xp.ones_like(ratio), ratio)
    if n_leading < n_left:
        weighted = inner * (ratio / length)[None, :, :, None]
        matrix = gram[:, None, ...] - weighted.mT @ weighted
    if beyond is None:
        return matrix
    weighted = inner / length[None, :, :, None]
    top = beyond + weighted[..., :n_leading].mT @ weighted
    if n_leading == n_left:
        return top
    matrix[..., :n_leading, :] = top
    matrix[..., n_leading:, :n_leading] = top[..., n_leading:].mT
    return matrix


def _beyond(reference: _Side, searched: _Side, inner: Array, n_leading: int) -> Array:
    """Inner products of what U leaves of the first columns of Q, with all columns."""
    xp = namespace(inner)
    n, rows = inner.shape[:2], reference.packed.shape[0]
    first = xp.reshape(
        xp.permute_dims(inner[..., :n_leading], (1, 0, 3, 2)), (n[1], -1, inner.shape[2])
    )
    within = xp.reshape(first @ searched.basis.mT, (n[1], n[0], n_leading, rows))
    residual = reference.basis[:, :, :n_leading].mT - within
    own = residual @ residual.mT
    if n_leading < inner.shape[3]:
        own = xp.concat([own, residual @ reference.basis[:, :, n_leading:]], axis=-1)
    return xp.permute_dims(own, (1, 0, 2, 3))


def _side(factors: Factors, places: Places, ranks: Places) -> _Side:
    """The maps at these places, in float64."""
    xp = namespace(factors.basis)
    rank = int(ranks[places].max())
    at = xp.asarray(places, device=device(factors.basis))
    strength = xp.astype(xp.take(factors.strength, at, axis=0), xp.float64)
    below = rank < strength.shape[1]
    dropped = strength[:, rank] if below else xp.zeros_like(strength[:, 0])
    basis = xp.take(factors.basis, at, axis=0)[:, :, :rank]
    packed = xp.reshape(xp.permute_dims(basis, (1, 0, 2)), (basis.shape[1], -1))
    return _Side(xp.astype(packed, xp.float64, copy=False), strength[:, :rank], dropped)


def _gram(side: _Side) -> Array:
    return side.basis.mT @ side.basis


def _orthonormal(side: _Side) -> _Side:
    """The same maps with a basis that is orthonormal to rounding; it nearly is already.

    Columns that are zero get a strength that keeps them apart from all others, and does nothing.
    """
    xp = namespace(side.packed)
    gram = _gram(side)
    empty = xp.sum(side.basis**2, axis=1) < 0.5
    ones = xp.astype(empty, xp.float64)[:, None, :] * xp.eye(gram.shape[1], device=device(gram))
    upper = xp.linalg.cholesky(gram + ones).mT
    top = side.strength[:, :1]
    apart = 2.0 * xp.where(top > 0.0, top, xp.ones_like(top))
    strength = xp.where(empty, apart, side.strength)
    left, strength, _ = xp.linalg.svd(upper * strength[:, None, :])
    turned = side.basis @ xp.linalg.solve(upper, left)
    packed = xp.reshape(xp.permute_dims(turned, (1, 0, 2)), side.packed.shape)
    return _Side(packed, strength, side.dropped)


def _in_order(values: Array, plan: Plan) -> Array:
    """Values of the plan's order in the order of the maps."""
    xp = namespace(values)
    for axis, runs in ((1, plan.lefts), (2, plan.rights)):
        places = np.concatenate([*runs, np.zeros(0, np.int64)])
        order = xp.asarray(np.argsort(places, kind="stable"), device=device(values))
        values = xp.take(values, order, axis=axis)
    return values
