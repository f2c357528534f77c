"""The map of an image: its colours against its positions, on whitened landmarks.

Of a datum g with values g(x_i) at N positions of weights w_i (Eqs. 10 and 11 of Cantelobre et
al.)::

    B = R_Y^-T  sum_i w_i k_Y(Y~, g(x_i)) k_X(x_i, X~)  R_X^-1

and A is the same with the mask mu(x_i) as a further weight. The kernel values of all positions
never exist at once: a few lines of the grid are taken at a time, and where k_X is a product over
the axes of the grid (a Gaussian), so is the sum over positions.
"""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.linalg

from bigkd.backends import device, namespace
from bigkd.errors import DataError
from bigkd.kernels import Kernel, KernelValues
from bigkd.kernels._rows import tiles as cuts
from bigkd.linalg import Matrix, whitening
from bigkd.protocols import Array

REFERENCE, SEARCHED = 0, 1
"""Sides of a pair: the masked datum f, and the datum g that is searched."""

_TILE_POINTS = 512
_TILE_LANDMARKS = 512
_BLOCK_ROWS = 128
_TRACE = 1e-30
_EVALUATION = 24  # multiply-adds that take as long as one kernel value


@dataclass(frozen=True, kw_only=True)
class ImageMaps:
    """Maps of data on one grid, with one choice of kernels and landmarks.

    Attributes
    ----------
    x_factors
        Kernel between positions and landmarks, shapes ``(n_k, m_k)``: for each axis of the grid
        where it is a product, else one of shape ``(N, M_X)``.
    x_inverse
        ``R_X^-1``, shape ``(M_X, M_X)``.
    y_kernel, y_landmarks, y_jitter
        Kernel of scaled values, landmarks of shape ``(M_Y, p)``, what was added to their diagonal.
    mean, std
        Of the values, shape ``(p,)``.
    limits
        Range that values must keep to, in the units of the data.
    weights
        Weights of positions, on each side, shape ``(2, N)``.
    zero_weight
        Whether positions whose values are not finite count nothing; they are refused otherwise.
    dtype
        ``"float32"`` or ``"float64"``: of kernel values and of sums over positions.
    """

    x_factors: tuple[Array, ...]
    x_inverse: Array
    y_kernel: Kernel
    y_landmarks: Array
    y_jitter: float
    mean: Array
    std: Array
    limits: tuple[float, float] | None
    weights: Array
    zero_weight: bool
    dtype: str

    both: ClassVar[tuple[int, int]] = (REFERENCE, SEARCHED)

    @property
    def n_points(self) -> int:
        """Positions of the grid, N."""
        return math.prod(int(factor.shape[0]) for factor in self.x_factors)

    @property
    def width(self) -> int:
        """Numbers of one datum."""
        return self.n_points * int(self.mean.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of one map, ``(M_Y, M_X)``."""
        return int(self.y_landmarks.shape[0]), int(self.x_inverse.shape[0])

    def __call__(self, data: Array, sides: tuple[int, ...] = both) -> Array:
        """Maps on some sides, shape ``(n, len(sides), M_Y, M_X)``, float64, of ``(n, width)`` rows.

        Raises
        ------
        DataError
            If a value is not finite and that is not allowed, or leaves the limits.
        """
        xp, on = namespace(data), device(data)
        real = getattr(xp, self.dtype)
        landmarks = xp.asarray(self.y_landmarks, device=on)
        kernels = [
            KernelValues(self.y_kernel, landmarks[run, ...], dtype=self.dtype)
            for run in cuts(landmarks.shape[0], _TILE_LANDMARKS)
        ]
        factors = [xp.astype(xp.asarray(part, device=on), real) for part in self.x_factors]
        weights = xp.asarray(self.weights, device=on)
        weights = xp.stack([weights[side, ...] for side in sides], axis=0)
        tiles = list(_weighted_tiles(xp.astype(weights, real), factors[-1]))
        sums = []
        for at in range(data.shape[0]):
            points, finite = self._scaled(data[at, ...], at, self.dtype)
            own = tiles
            if finite is not None:
                lost = xp.astype(weights * xp.astype(finite, weights.dtype), real)
                own = list(_weighted_tiles(lost, factors[-1]))
            parts = [_contracted(points, own, kernel, factors) for kernel in kernels]
            sums.append(xp.reshape(xp.concat(parts, axis=1), (len(sides), *self.shape)))
        return self._whitened(xp.astype(xp.stack(sums, axis=0), xp.float64))

    def points_of(self, datum: Array, side: int) -> tuple[Array, Array]:
        """Scaled values of one datum, shape ``(N, p)``, and weights of its positions, ``(N,)``."""
        xp, on = namespace(datum), device(datum)
        points, finite = self._scaled(datum, 0, "float64")
        weights = xp.asarray(self.weights, device=on)[side, ...]
        return points, weights if finite is None else weights * xp.astype(finite, weights.dtype)

    def row_cost(self, n_sides: int) -> int:
        """Multiply-adds of one datum, a kernel value counting as several."""
        m_y, m_x = self.shape
        last = int(self.x_factors[-1].shape[1])
        inner = self.n_points * (_EVALUATION + n_sides * last)
        outer = self._lines * n_sides * m_x
        return m_y * (inner + outer + n_sides * m_x * (m_y + m_x))

    def scratch(self, n_sides: int) -> int:
        """Bytes of the temporaries of one datum, its maps not counted."""
        m_y, m_x = self.shape
        size = np.dtype(self.dtype).itemsize
        lines, wide = self._lines, n_sides * int(self.x_factors[-1].shape[1])
        tile = _TILE_LANDMARKS * (4 * _TILE_POINTS + 2 * lines * wide)
        whitened = 2 * n_sides * m_y * m_x * 8 + 3 * m_y**2 * 8
        weighted = 2 * self.n_points * wide
        return size * (tile + weighted + 2 * n_sides * m_y * m_x) + whitened + 32 * self.width

    @property
    def _lines(self) -> int:
        return self.n_points // int(self.x_factors[-1].shape[0])

    def _scaled(self, datum: Array, number: int, dtype: str) -> tuple[Array, Array | None]:
        """Scaled values, shape ``(N, p)``, and which are finite; None where all are."""
        xp, on = namespace(datum), device(datum)
        points = xp.reshape(xp.astype(datum, xp.float64), (self.n_points, -1))
        mean, std = (xp.asarray(part, device=on) for part in (self.mean, self.std))
        finite = xp.all(xp.isfinite(points), axis=1)
        complete = bool(xp.all(finite))
        if not complete:
            if not self.zero_weight:
                raise DataError(
                    f"datum {number} of a block has values that are not finite. Pass "
                    f"nan='zero_weight' to give such points no weight, or mend the data."
                )
            points = xp.where(finite[:, None], points, mean)
        if self.limits is not None:
            low, high = float(xp.min(points)), float(xp.max(points))
            if low < self.limits[0] or high > self.limits[1]:
                raise DataError(
                    f"datum {number} of a block has colours from {low:g} to {high:g}; expected "
                    f"{self.limits[0]:g} to {self.limits[1]:g}. Rescale the data, or pass "
                    f"normalize='standardize'."
                )
        points = xp.astype((points - mean) / std, getattr(xp, dtype))
        return points, None if complete else finite

    def _whitened(self, sums: Array) -> Array:
        xp, on = namespace(sums), device(sums)
        sums = xp.matmul(sums, xp.asarray(self.x_inverse, device=on))
        m_y, m_x = self.shape
        flat = xp.reshape(xp.permute_dims(sums, (2, 0, 1, 3)), (m_y, -1))
        white = whitened_values(self.y_kernel, self.y_landmarks, self.y_jitter)
        lower = xp.asarray(white.inverse, device=on)
        rows = [
            xp.matmul(lower[run, : run.stop], flat[: run.stop, :])
            for run in cuts(m_y, max(_BLOCK_ROWS, -(-m_y // 8)))
        ]
        joined = xp.reshape(xp.concat(rows, axis=0), (m_y, *sums.shape[:2], m_x))
        return xp.permute_dims(joined, (1, 2, 0, 3))


class _Tile(NamedTuple):
    """Some positions of some lines of the grid."""

    lines: slice
    run: slice
    weighted: Array
    """Weights times kernel at the landmarks of the last axis, ``(lines, sides * m, run)``."""


def _weighted_tiles(weights: Array, last: Array) -> Iterator[_Tile]:
    """Tiles of the grid, those of the same lines one after the other.

    Numbers too small to count become 0: subnormal ones slow a product down.
    """
    xp = namespace(weights)
    n, m = last.shape
    weights = xp.reshape(weights, (weights.shape[0], -1, n))
    for lines in cuts(weights.shape[1], max(1, _TILE_POINTS // n)):
        for run in cuts(n, 2 * _TILE_POINTS):
            part = xp.permute_dims(weights[:, lines, run], (1, 0, 2))
            weighted = part[:, :, None, :] * last[run, :].T
            weighted = xp.where(xp.abs(weighted) < _TRACE, xp.zeros_like(weighted), weighted)
            shape = (part.shape[0], weights.shape[0] * m, part.shape[2])
            yield _Tile(lines, run, xp.reshape(weighted, shape))


def _contracted(
    points: Array, tiles: list[_Tile], kernel: KernelValues, factors: list[Array]
) -> Array:
    """Sum over positions of one datum against some landmarks, shape ``(sides, J, M_X)``."""
    xp = namespace(points)
    n, m = factors[-1].shape
    points = xp.reshape(points, (points.shape[0] // n, n, -1))
    done: list[Array] = []
    for lines, run, weighted in tiles:
        tile = points[lines, run, :]
        values = kernel(xp.reshape(tile, (-1, tile.shape[2])))
        product = xp.matmul(weighted, xp.reshape(values, (*tile.shape[:2], -1)))
        if run.start:
            done[-1] = done[-1] + product
        else:
            done.append(product)
    sums = xp.concat(done, axis=0)  # (lines, sides * m, J)
    for factor in reversed(factors[:-1]):
        n = factor.shape[0]
        sums = xp.matmul(factor.T, xp.reshape(sums, (sums.shape[0] // n, n, -1)))
    n_landmarks = int(kernel.y.shape[0])
    sums = xp.reshape(sums, (-1, tiles[0].weighted.shape[1] // m, m, n_landmarks))
    return xp.reshape(xp.permute_dims(sums, (1, 3, 0, 2)), (sums.shape[1], n_landmarks, -1))


def _key(points: Array) -> tuple[bytes, tuple[int, ...]]:
    """A value that stands for `points`, so that what is made from them is kept."""
    host = np.ascontiguousarray(points, dtype=np.float64)
    return host.tobytes(), host.shape


class YWhitening(NamedTuple):
    """Landmarks of values, whitened."""

    inverse: Matrix
    """``R^-T``, lower triangular."""

    jitter: float
    """What was added to the diagonal of their Gram matrix."""

    gain: float
    """How much it may enlarge an error: about ``|R^-1|``."""


def whitened_values(kernel: Kernel, points: Array, jitter: float) -> YWhitening:
    """The landmarks of values, whitened: once in each process."""
    return _whitened_values(kernel, *_key(points), jitter)


def gain_of(inverse: Matrix) -> float:
    """Bound of the operator norm of a matrix: the root of its largest row and column sums."""
    sizes = np.abs(inverse)
    return float(np.sqrt(sizes.sum(axis=0).max() * sizes.sum(axis=1).max()))


@functools.lru_cache(maxsize=4)
def _whitened_values(
    kernel: Kernel, content: bytes, shape: tuple[int, int], jitter: float
) -> YWhitening:
    points = np.frombuffer(content).reshape(shape)
    upper, used = whitening(kernel(points, points), jitter=jitter)
    inverse = scipy.linalg.solve_triangular(upper, np.eye(shape[0]), trans="T", check_finite=False)
    inverse = np.tril(inverse)
    inverse.flags.writeable = False
    return YWhitening(inverse, used, gain_of(inverse))
