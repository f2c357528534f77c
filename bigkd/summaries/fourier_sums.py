"""Sums of exponentials of points at the frequencies of a grid: a non-uniform FFT."""

import math
import threading
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import finufft
import numpy as np

from bigkd.backends import device, namespace, to_host
from bigkd.config import MEGABYTE
from bigkd.errors import DataError, ShapeError
from bigkd.kernels import FrequencyGrid
from bigkd.protocols import Array, Footprint, Rows
from bigkd.summaries.compose import tiles
from bigkd.summaries.moments import require_width

_FEWEST_TILE_ROWS = 131_072
_PRODUCT_BYTES = 32 * MEGABYTE
_PER_AXIS = 1.25  # allowed error of a transform over the tolerance that finufft is asked for

_plans = threading.local()


class FourierSumsState(NamedTuple):
    """Sums over points."""

    total: Array  # (n_vectors, *grid.half_shape, 2), real and imaginary parts


@dataclass(frozen=True, kw_only=True)
class FourierSums:
    r"""Sums :math:`F(n) = \sum_i \mu_i U_i e^{i k_n (p_i - c)}` at the modes of a grid.

    All that `bigkd.kernels.squared_distance` and `inner_product` need of a set of points, whatever
    their number.

    Notes
    -----
    NumPy rows go through finufft, everything else through one matrix product for each tile of
    rows; both in float64, since single precision could not promise anything of a million points in
    one place. Two components of the vectors go through as the real and the imaginary part of one
    transform.

    The sums are exact in the sense of the laws up to the rounding of a float64 sum, like a mean of
    features; against the true sums they err by the tolerance of the grid. A transform is linear in
    its strengths, so its error is at most the sum of |strengths| times the error of one point, and
    a product over axes, so that is at most the sum of theirs. Scanned over positions within a cell
    with finufft 2.5.1, asked for powers of ten, the error averaged by the weights of a kernel is at
    most 0.85 of the tolerance for each axis; 1.25 is allowed for, and tests scan it again.
    """

    grid: FrequencyGrid
    n_vectors: int = 1

    exact: ClassVar[bool] = True

    def init(self, like: Array) -> FourierSumsState:
        """State of no points, on the namespace and device of `like`."""
        xp, on = namespace(like), device(like)
        shape = (self.n_vectors, *self.grid.half_shape, 2)
        return FourierSumsState(total=xp.zeros(shape, dtype=xp.float64, device=on))

    def update(self, state: FourierSumsState, rows: Rows) -> FourierSumsState:
        """State after `rows`, shape ``(n, d)``, too; adds into the memory of `state`.

        Raises
        ------
        ShapeError
            If rows or vectors have another width.
        DataError
            If a row lies outside of the box of the grid.
        """
        require_width(rows, self.grid.width)
        self._check_vectors(rows)
        (total,) = state
        fast = isinstance(rows.values, np.ndarray)
        for tile in tiles(rows, self._tile_rows() if fast else self._product_rows()):
            phases, strengths = self._phases(tile), self._strengths(tile)
            sums = self._transformed if fast else self._multiplied
            total += sums(phases, strengths)
        return FourierSumsState(total)

    def merge(self, left: FourierSumsState, right: FourierSumsState) -> FourierSumsState:
        """State of both sets of points; exact up to float64 rounding."""
        return FourierSumsState(left.total + right.total)

    def finalize(self, state: FourierSumsState) -> Array:
        """The sums, shape ``(n_vectors, *grid.half_shape, 2)``."""
        return state.total

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """A fine grid, finufft's copy of it, the modes, and a few numbers for each row of a tile.

        The cost of a row is what multiply-adds of a matrix product would take as long.
        """
        del itemsize
        grid, n_tile = self.grid, max(1, min(n_rows, self._tile_rows()))
        transforms = (self.n_vectors + 1) // 2
        axes = len(self._long_axes())
        tolerance, refinement = _accuracy(grid)
        fine = grid.n_modes * refinement**axes if axes else 0.0
        halves = self.n_vectors * math.prod(grid.half_shape)
        spread = (1.0 - math.log10(tolerance)) ** axes
        per_row = 8 * (grid.width + 1 + self.n_vectors) + 16 * transforms + 96
        copies = 16 * (transforms * grid.n_modes + (4 * halves if self.n_vectors > 1 else 0))
        return Footprint(
            state=16 * halves,
            scratch=int(per_row * n_tile + copies + 32 * fine) + 2 * MEGABYTE,
            row_cost=int(400 * grid.width + transforms * (16 * spread + 500 * fine / n_tile)),
        )

    def _transformed(self, phases: list[Array], strengths: Array) -> Array:
        """Sums of a tile by finufft, shape ``(n_vectors, *half_shape, 2)``."""
        grid, n_vectors = self.grid, self.n_vectors
        pairs = np.zeros(((n_vectors + 1) // 2, strengths.shape[0]), dtype=np.complex128)
        pairs.real[:] = strengths.T[0::2]
        pairs.imag[: n_vectors // 2] = strengths.T[1::2]
        if phases:
            plan = self._plan(pairs.shape[0])
            plan.setpts(*phases)
            modes = plan.execute(pairs if pairs.shape[0] > 1 else pairs[0])
        else:
            modes = pairs.sum(axis=1)
        modes = modes.reshape((pairs.shape[0], *grid.shape))
        first = grid.shape[0] // 2
        if n_vectors == 1:
            return modes[:, first:].view(np.float64).reshape((1, *grid.half_shape, 2))
        sums = np.empty((n_vectors, *grid.half_shape), dtype=np.complex128)
        mirrored = np.conj(np.flip(modes, axis=tuple(range(1, modes.ndim))))
        sums[0::2] = (modes + mirrored)[:, first:] / 2
        sums[1::2] = (modes - mirrored)[: n_vectors // 2, first:] / 2j
        return sums.view(np.float64).reshape((n_vectors, *grid.half_shape, 2))

    def _multiplied(self, phases: list[Array], strengths: Array) -> Array:
        """Sums of a tile by one matrix product, shape ``(n_vectors, *half_shape, 2)``."""
        xp, on, grid = namespace(strengths), device(strengths), self.grid
        waves = dict(zip(self._long_axes(), phases, strict=True))
        n_rows, split = strengths.shape[0], []
        for axis, size in enumerate(grid.shape):
            numbers = xp.arange(0 if axis == 0 else -(size // 2), size // 2 + 1, device=on)
            phase = waves.get(axis, xp.zeros((n_rows,), dtype=xp.float64, device=on))
            angle = phase[:, None] * xp.astype(numbers, xp.float64)[None, :]
            split.append(xp.exp(xp.astype(angle, xp.complex128) * 1j))
        left = xp.astype(strengths, xp.complex128)[:, :, None] * split[0][:, None, :]
        right = xp.ones((n_rows, 1), dtype=xp.complex128, device=on)
        for own in split[1:]:
            right = xp.reshape(right[:, :, None] * own[:, None, :], (n_rows, -1))
        left = xp.reshape(left, (n_rows, -1))
        sums = xp.reshape(left.T @ right, (self.n_vectors, *grid.half_shape))
        return xp.stack([xp.real(sums), xp.imag(sums)], axis=-1)

    def _phases(self, rows: Rows) -> list[Array]:
        """Angle of every row for a step along each axis with more than one mode."""
        grid, xp = self.grid, namespace(rows.values)
        centre, basis = grid.centre, grid.basis
        columns = []
        for column, middle in enumerate(centre.tolist()):
            own = xp.astype(rows.values[:, column], xp.float64) - middle
            # Rounding keeps the order, so that no row between the corners is refused.
            low, high = grid.lower[column] - middle, grid.upper[column] - middle
            if not (low <= float(xp.min(own)) and float(xp.max(own)) <= high):
                self._refuse(rows, column)
            columns.append(own)
        return [_combined(columns, basis[axis].tolist()) for axis in self._long_axes()]

    def _refuse(self, rows: Rows, column: int) -> None:
        """Raise DataError that names the first row outside of the box."""
        values = to_host(rows.values)[:, column].astype(np.float64)
        low, high = self.grid.lower[column], self.grid.upper[column]
        at = int(np.flatnonzero(~((values >= low) & (values <= high)))[0])
        raise DataError(
            f"row {int(rows.index[at])} has {values[at]!r} in column {column}, outside of the box "
            f"of the grid, {low!r} to {high!r}. Make the grid from the extent of all rows of every "
            f"set that is compared."
        )

    def _strengths(self, rows: Rows) -> Array:
        """Weights times vectors, shape ``(n, n_vectors)``, float64."""
        xp, on = namespace(rows.values), device(rows.values)
        strengths = xp.ones((rows.values.shape[0], 1), dtype=xp.float64, device=on)
        if rows.vectors is not None:
            strengths = xp.astype(rows.vectors, xp.float64)
        if rows.weights is not None:
            strengths = strengths * xp.astype(rows.weights, xp.float64)[:, None]
        return strengths

    def _check_vectors(self, rows: Rows) -> None:
        given = 1 if rows.vectors is None else rows.vectors.shape[1]
        if given != self.n_vectors:
            raise ShapeError(
                f"FourierSums of n_vectors={self.n_vectors} needs vectors of that width; "
                f"got {given}."
            )

    def _long_axes(self) -> list[int]:
        """Axes with more than one mode."""
        return [axis for axis, size in enumerate(self.grid.shape) if size > 1]

    def _plan(self, n_transforms: int) -> Any:
        """Plan for so many transforms at once, of this thread."""
        shape = tuple(self.grid.shape[axis] for axis in self._long_axes())
        return _plan(shape, n_transforms, *_accuracy(self.grid))

    def _tile_rows(self) -> int:
        return max(_FEWEST_TILE_ROWS, self.grid.n_modes)

    def _product_rows(self) -> int:
        first, *others = self.grid.half_shape
        row = 16 * (self.n_vectors * first + 2 * math.prod(others) + 2 * sum(self.grid.shape))
        return max(1, _PRODUCT_BYTES // row)


def _combined(columns: list[Array], factors: list[float]) -> Array:
    """Sum of `columns` times their factors, some of which are zero."""
    terms = [own * by for own, by in zip(columns, factors, strict=True) if by]
    total = terms[0]
    for term in terms[1:]:
        total += term
    return total


def _accuracy(grid: FrequencyGrid) -> tuple[float, float]:
    """Tolerance to ask finufft for, and how much finer than the modes its own grid is to be.

    A finer grid costs a larger FFT; a coarser one wider spreading, and it cannot be as accurate.
    """
    axes = max(1, sum(size > 1 for size in grid.shape))
    needed = (grid.tolerance or 1.0) / (axes * _PER_AXIS)
    digits = max(2, math.ceil(-math.log10(needed)))
    coarse = digits <= 8 and grid.n_modes > (2**15 if digits <= 4 else 2**17)
    return 10.0**-digits, 1.25 if coarse else 2.0


def _plan(shape: tuple[int, ...], n_transforms: int, tolerance: float, refinement: float) -> Any:
    """Plan of this thread for these transforms; kept until it needs another."""
    key = (shape, n_transforms, tolerance, refinement)
    if getattr(_plans, "key", None) != key:
        _plans.key = None
        _plans.plan = finufft.Plan(
            1, shape, n_transforms, tolerance, 1, nthreads=1, upsampfac=refinement
        )
        _plans.key = key
    return _plans.plan
