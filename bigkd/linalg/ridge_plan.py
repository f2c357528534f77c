"""What pairs of maps are computed with together, and how much of them: the plan, and its checks."""

import math
from typing import Any, NamedTuple

import numpy as np

from bigkd.backends import is_array, namespace, to_host
from bigkd.errors import InputError, ShapeError
from bigkd.linalg.factors import Factors
from bigkd.linalg.selection import Places
from bigkd.linalg.spectrum import Matrix
from bigkd.protocols import Array

EPS = float(np.finfo(np.float64).eps)
_PAIRS = 2**25  # bytes of what is computed of the pairs of a run
_SIDE = 2**24  # bytes of the maps on one side of a run
_GOAL = 1e-9
_LARGEST = 1e150


class Plan(NamedTuple):
    """Which maps are computed with together, and how many directions of each count."""

    lefts: list[Places]
    rights: list[Places]
    left_rank: Places
    right_rank: Places
    leading: Places  # of each reference, how many columns the difference is not good enough for


def scratch_bytes(
    rows: int, rank: int, n_reference: int, n_searched: int, *, n_lams: int = 1
) -> int:
    """Memory that `dissimilarities` needs beyond the factors, with what it returns, at most.

    Parameters
    ----------
    rows, rank
        Of the maps and of their factors.
    n_reference, n_searched
        How many maps there are.
    n_lams
        How many lambdas.
    """
    pairs = max(_PAIRS, _pair_bytes(rows, rank, rank, rank))
    copies = 4 * max(_SIDE, 8 * rows * rank)
    outputs = 32 * n_lams * n_reference * n_searched
    return pairs + copies + outputs + 8 * n_reference * rank**2


def checked_lams(lams: Any, n_searched: int) -> Matrix:
    """Lambdas on the host, shape ``(n_lams, n_searched)``."""
    host = np.asarray(to_host(lams) if is_array(lams) else lams, dtype=np.float64)
    if host.ndim not in (1, 2) or (host.ndim == 2 and host.shape[1] != n_searched):
        raise ShapeError(
            f"lams must have shape (n_lams,) or (n_lams, {n_searched}), one for each searched map; "
            f"got {host.shape}."
        )
    wrong = ~((host >= 1.0 / _LARGEST**2) & (host <= _LARGEST**2))
    if wrong.any():
        raise InputError(f"lams must be between 1e-300 and 1e300; got {host[wrong][0]!r}.")
    host = host if host.ndim == 2 else host[:, None]
    return np.array(np.broadcast_to(host, (host.shape[0], n_searched)))


def check_size(name: str, largest: float) -> None:
    """Refuse strengths whose squares are not numbers."""
    if not largest <= _LARGEST:
        raise InputError(
            f"{name} must be finite and at most {_LARGEST:.0e}, so that squares are numbers; got "
            f"{largest!r}. Divide maps by a number c and lambda by c**2: D is divided by c**2, too."
        )


def planned(reference: Factors, searched: Factors, lams: Matrix, tolerance: float) -> Plan:
    """Plan of `dissimilarities`; refuses what it cannot be used for."""
    rows = _checked_rows(reference, searched)
    if not 0.0 <= tolerance < 1.0:
        raise InputError(f"tolerance must be at least 0 and less than 1; got {tolerance!r}.")
    a, b = (np.asarray(to_host(one.strength), np.float64) for one in (reference, searched))
    check_size("strengths of reference", float(np.max(a, initial=0.0)))
    check_size("strengths of searched", float(np.max(b, initial=0.0)))
    roots = np.sqrt(lams)
    # Of D over the squared norm of A, the square root of a lower bound.
    least = 1.0 / np.hypot(1.0, np.max(b[None, :, 0] / roots, initial=0.0))
    scaled = np.asarray(scaled_strengths(a)[1])
    part = math.sqrt(tolerance)
    left_rank = np.maximum(1, np.sum(scaled > part * least, axis=1))
    least_root = np.min(roots, axis=0, initial=_LARGEST)[:, None]
    right_rank = np.maximum(1, np.sum(b > part * least_root, axis=1))
    rest = np.sqrt(np.cumsum(scaled[:, ::-1] ** 2, axis=1)[:, ::-1])
    lost = EPS * math.sqrt(rows + a.shape[1]) * (rest**2 + 2.0 * rest[:, :1] * rest)
    leading = np.sum(lost > 0.5 * max(_GOAL, tolerance) * least**2, axis=1)
    most = [int(np.max(each, initial=1)) for each in (left_rank, right_rank, leading)]
    copied = [max(1, _SIDE // (8 * rows * rank)) for rank in most[:2]]
    pairs = max(1, _PAIRS // _pair_bytes(rows, *most))
    n_lefts = min(a.shape[0] or 1, copied[0], math.isqrt(pairs))
    return Plan(
        _runs(left_rank, n_lefts),
        _runs(right_rank, min(copied[1], pairs // n_lefts)),
        left_rank,
        right_rank,
        leading,
    )


def _runs(ranks: Places, length: int) -> list[Places]:
    """Places of maps of about as many directions."""
    order = np.argsort(ranks, kind="stable")
    return [order[start : start + length] for start in range(0, order.size, length)]


def _pair_bytes(rows: int, n_left: int, n_right: int, n_leading: int) -> int:
    """Memory of what is computed of one pair."""
    return 8 * (2 * n_left * n_right + 4 * n_left**2 + 2 * n_leading * (rows + n_left))


def _checked_rows(reference: Factors, searched: Factors) -> int:
    for name, one in (("reference", reference), ("searched", searched)):
        shape, strengths = tuple(one.basis.shape), tuple(one.strength.shape)
        if len(shape) != 3 or strengths != (shape[0], shape[2]) or shape[2] == 0:
            raise ShapeError(
                f"{name} needs a basis of shape (n, rows, rank) and strengths of shape (n, rank); "
                f"got {shape} and {strengths}."
            )
    if reference.basis.shape[1] != searched.basis.shape[1]:
        raise ShapeError(
            f"reference and searched need as many rows; got {reference.basis.shape[1]} and "
            f"{searched.basis.shape[1]}. Are they maps on the same landmarks?"
        )
    return int(reference.basis.shape[1])


def scaled_strengths(strength: Array) -> tuple[Array, Array]:
    """Largest strengths, and strengths in units of them."""
    xp = namespace(strength)
    unit = strength[:, 0]
    return unit, strength / xp.where(unit > 0.0, unit, xp.ones_like(unit))[:, None]
