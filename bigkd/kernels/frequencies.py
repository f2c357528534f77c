"""Random frequencies of isotropic kernels whose spectrum is a scale mixture of normals."""

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from bigkd.backends import rng
from bigkd.errors import InputError
from bigkd.kernels._rows import positive_integer

Sampling: TypeAlias = Literal["iid", "orthogonal"]

Mixing: TypeAlias = Callable[[np.random.Generator, int], np.ndarray[Any, Any]]
"""Draws the standard deviation of each of so many frequencies, shape ``(n,)``."""

_STREAM = 0x66726571  # keeps these numbers apart from other uses of the same seed
_IID_PIECE = 64
_ORTHOGONAL_PIECE = 1024


def draw_frequencies(
    mixing: Mixing, n_frequencies: int, width: int, *, seed: int, sampling: Sampling
) -> np.ndarray[Any, Any]:
    """Frequencies with isotropic normal directions and the lengths that `mixing` gives.

    Piece number `p` is drawn from the stream ``(seed, p)`` and always whole, so that the first `k`
    frequencies are the same bits however many are asked for.

    Returns
    -------
    numpy.ndarray
        Shape ``(n_frequencies, width)``, float64.
    """
    n_frequencies = positive_integer("n_frequencies", n_frequencies)
    width = positive_integer("width", width)
    seed = positive_integer("seed", seed, least=0)
    if sampling not in get_args(Sampling):
        raise InputError(f"sampling must be one of {get_args(Sampling)}; got {sampling!r}.")
    orthogonal = sampling == "orthogonal"
    size = min(width, _ORTHOGONAL_PIECE) if orthogonal else _IID_PIECE
    out = np.empty((n_frequencies, width))
    for piece in range(math.ceil(n_frequencies / size)):
        generator = rng(seed, _STREAM, piece)
        normal = generator.standard_normal((size, width))
        if orthogonal:
            normal = _orthogonalized(normal, generator)
        rows = out[piece * size : (piece + 1) * size]
        rows[:] = (normal * mixing(generator, size)[:, None])[: rows.shape[0]]
    return out


def _orthogonalized(
    normal: np.ndarray[Any, Any], generator: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Haar-distributed orthogonal rows, each as long as an independent normal row."""
    size, width = normal.shape
    q, r = np.linalg.qr(normal.T)
    q *= np.copysign(1.0, np.diagonal(r))  # without it the directions depend on LAPACK's signs
    lengths = np.sqrt(generator.chisquare(width, size))
    return np.asarray(q.T * lengths[:, None])
