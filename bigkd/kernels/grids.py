"""Equispaced frequencies that stand for a kernel on a box, with a bound of the error."""

import dataclasses
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from bigkd.backends import device, is_array, namespace, to_host
from bigkd.errors import InputError, ShapeError
from bigkd.kernels._lattice import (
    MOST_MODES,
    Design,
    Floats,
    Spectrum,
    axis_weights,
    design,
    spectrum_of,
)
from bigkd.kernels._rows import positive, positive_integer
from bigkd.kernels.base import Kernel, RadialKernel
from bigkd.kernels.covariance import CovarianceGaussian
from bigkd.kernels.families import Gaussian
from bigkd.protocols import Array

MOST_WIDTH = 3
_LEAST_EPS, _LARGEST_EPS = 1e-13, 0.5
_LEAST_TOLERANCE = 4e-14  # three axes of 1e-14


@dataclasses.dataclass(frozen=True, kw_only=True)
class FrequencyGrid:
    r"""A kernel on a box as a short sum of cosines of equispaced frequencies.

    .. math:: |K(x, y) - \sum_n w_n \cos(k_n \cdot (x - y))|
              \le \text{truncation} + \text{aliasing}, \quad k_n = \sum_j n_j b_j

    for all x, y between `lower` and `upper`, with weights :math:`w_n \ge 0`. Made by `for_box`; the
    sums :math:`F_P(n) = \sum_i \mu_i e^{i k_n (p_i - c)}` of a set P, c the `centre`, are made by
    `bigkd.summaries.FourierSums` and put to use by `inner_product` and `squared_distance`.

    A small frozen value: compare it, hash it, pickle it.

    Notes
    -----
    Poisson's formula turns the sum over all of the lattice into the kernel and its images one
    period away and further: the proof of both bounds is at the top of `bigkd.kernels._lattice`. A
    `CovarianceGaussian` is ``Gaussian(1.0)`` of whitened rows, so its box is the one that holds the
    whitened box. An axis so short that the kernel hardly changes along it has one mode.

    Examples
    --------
    >>> grid = FrequencyGrid.for_box(Gaussian(0.25), [0.0, 0.0], [1.0, 1.0], eps=1e-3)
    >>> grid.shape
    (11, 11)
    >>> cosines = np.cos(grid.frequencies @ np.array([0.3, -0.4]))
    >>> bool(abs((grid.weights * cosines).sum() - np.exp(-2.0)) <= grid.error <= 1e-3)
    True
    """

    kernel: Kernel
    """What it stands for."""

    lower: tuple[float, ...]
    """Least coordinates of the box."""

    upper: tuple[float, ...]
    """Largest coordinates of the box."""

    period: tuple[float, ...]
    """Period along each axis, of whitened rows for a kernel that whitens them."""

    shape: tuple[int, ...]
    """Number of modes along each axis, odd: the numbers n_j go from -shape_j // 2 up."""

    aliasing: float
    """Bound of the error that comes of steps between frequencies."""

    truncation: float
    """Bound of the error that comes of frequencies left out."""

    transform: float
    """Bound of the error that transforms of `tolerance` add."""

    tolerance: float
    """Weighted sum of the errors of F over the modes that a transform of one point may have.

    A transform is linear, so those of a set are as many times larger as its sum of |strengths|.
    """

    @classmethod
    def for_box(cls, kernel: Kernel, lower: Array, upper: Array, *, eps: float) -> Self:
        """Grid of about the fewest modes whose `error` is at most `eps`.

        Parameters
        ----------
        kernel
            A Gaussian, CovarianceGaussian, Laplace or Matern kernel.
        lower
            Least coordinates of the points, shape ``(d,)``, d at most 3.
        upper
            Their largest coordinates, shape ``(d,)``; may equal `lower`.
        eps
            Largest error of a kernel value, between 1e-13 and 0.5; K(x, x) is 1.

        Raises
        ------
        InputError
            If the kernel has no grid, the box or `eps` cannot be used, or it takes more than 2^22
            modes.
        """
        low, high = _box(lower, upper)
        found = _design(kernel, low, high, eps)
        if found.n_modes > MOST_MODES:
            raise InputError(
                f"{kernel} on a box of {', '.join(f'{x:.3g}' for x in high - low)} needs about "
                f"{found.n_modes:.3g} modes for eps={eps:g}; the limit is {MOST_MODES}. Pass a "
                f"larger eps, a smoother kernel or a longer length, or use another method."
            )
        if not found.tolerance > _LEAST_TOLERANCE and any(found.half):
            raise InputError(
                f"eps={eps:g} is out of reach of float64 for {kernel} on this box, which is many "
                f"lengths wide; pass a larger eps."
            )
        return cls(
            kernel=kernel,
            lower=tuple(low.tolist()),
            upper=tuple(high.tolist()),
            period=tuple(length * _length(kernel) for length in found.period),
            shape=tuple(2 * int(half) + 1 for half in found.half),
            aliasing=found.aliasing,
            truncation=found.truncation,
            transform=found.transform,
            tolerance=found.tolerance,
        )

    @classmethod
    def finest(
        cls,
        kernel: Kernel,
        lower: Array,
        upper: Array,
        *,
        errors: Sequence[float],
        most_modes: float,
    ) -> Self | None:
        """Grid of the first of `errors` that takes at most `most_modes`; None if all take more."""
        for eps in errors:
            if cls.count_for(kernel, lower, upper, eps=eps) <= most_modes:
                try:
                    return cls.for_box(kernel, lower, upper, eps=eps)
                except InputError:  # out of reach of float64 on a very wide box
                    continue
        return None

    @staticmethod
    def count_for(kernel: Kernel, lower: Array, upper: Array, *, eps: float) -> float:
        """Number of modes that `for_box` takes; an estimate, maybe inf, above its limit."""
        return _design(kernel, *_box(lower, upper), eps).n_modes

    @property
    def width(self) -> int:
        """Width `d` of the rows it takes."""
        return len(self.lower)

    @property
    def centre(self) -> Floats:
        """Point from which phases count, shape ``(d,)``: the middle of the box."""
        low, high = np.asarray(self.lower), np.asarray(self.upper)
        return np.asarray(low + (high - low) / 2)

    @property
    def basis(self) -> Floats:
        """Steps b_j between frequencies, one to a row, shape ``(d, d)``."""
        return np.asarray(
            (2 * math.pi / np.asarray(self.period))[:, None] * _whitening(self.kernel, self.width)
        )

    @property
    def n_modes(self) -> int:
        """Number of modes."""
        return math.prod(self.shape)

    @property
    def half_shape(self) -> tuple[int, ...]:
        """Shape of the modes that are kept: n_1 is not negative, for F(-n) is conj F(n)."""
        return (self.shape[0] // 2 + 1, *self.shape[1:])

    @property
    def error(self) -> float:
        """Bound of the error of a kernel value from transformed points: all three together."""
        return self.aliasing + self.truncation + self.transform

    @property
    def frequencies(self) -> Floats:
        """The k_n above of the modes that are kept, shape ``(*half_shape, d)``."""
        axes = [np.arange(size) - size // 2 for size in self.shape]
        axes[0] = axes[0][self.shape[0] // 2 :]
        return np.asarray(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1) @ self.basis)

    @cached_property
    def weights(self) -> Floats:
        """The w_n above of the modes that are kept, each with its mirror image, read-only."""
        half = np.asarray([size // 2 for size in self.shape], dtype=np.float64)
        long = half > 0
        weights = np.ones((1,) * self.width)
        if long.any():
            period = np.asarray(self.period)[long] / _length(self.kernel)
            own = axis_weights(_spectrum(self.kernel), half[long], period)
            weights = own.reshape([int(last) + 1 for last in half])
        for axis in range(1, self.width):
            mirrored = np.flip(weights, axis)[(slice(None),) * axis + (slice(-1),)]
            weights = np.concatenate([mirrored, weights], axis=axis)
        weights[1:] *= 2.0
        weights.flags.writeable = False
        return weights

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


def supports(kernel: Kernel, width: int) -> bool:
    """Whether there are frequency grids of `kernel` for rows of `width`.

    Examples
    --------
    >>> supports(Gaussian(1.0), 3), supports(Gaussian(1.0), 4)
    (True, False)
    """
    if isinstance(kernel, CovarianceGaussian) and kernel.width != width:
        return False
    known = isinstance(kernel, CovarianceGaussian) or spectrum_of(kernel) is not None
    return known and 1 <= width <= MOST_WIDTH


def inner_product(grid: FrequencyGrid, left: Array, right: Array) -> float:
    r"""The kernel summed over all pairs of two sets, :math:`\sum_n w_n F_P(n) \bar F_Q(n)`.

    Parameters
    ----------
    grid
        The grid of both.
    left
        Sums of one set, from `bigkd.summaries.FourierSums`, shape
        ``(n_vectors, *grid.half_shape, 2)``.
    right
        Those of the other.

    Returns
    -------
    float
        Within `inner_product_error` of the sum.
    """
    _check_sums(grid, left=left, right=right)
    return _weighted(grid, left * right)


def squared_distance(grid: FrequencyGrid, left: Array, right: Array) -> float:
    r"""Squared kernel distance of two sets, :math:`\sum_n w_n |F_P(n) - F_Q(n)|^2`.

    It keeps its digits where the sets are nearly equal, and is never negative.

    Parameters
    ----------
    grid
        The grid of both.
    left
        Sums of one set, from `bigkd.summaries.FourierSums`, shape
        ``(n_vectors, *grid.half_shape, 2)``; divide them by its mass to compare distributions.
    right
        Those of the other.

    Returns
    -------
    float
        Within `squared_distance_error` of the squared distance.
    """
    _check_sums(grid, left=left, right=right)
    difference = left - right
    return _weighted(grid, difference * difference)


def inner_product_error(grid: FrequencyGrid, left_mass: float, right_mass: float) -> float:
    """Bound of the error of `inner_product`; a mass is the sum of the |strengths| of a set."""
    return grid.error * left_mass * right_mass


def squared_distance_error(grid: FrequencyGrid, left_mass: float, right_mass: float) -> float:
    """Bound of the error of `squared_distance`; a mass is the sum of the |strengths| of a set."""
    return grid.error * (left_mass + right_mass) ** 2


def _weighted(grid: FrequencyGrid, products: Array) -> float:
    xp = namespace(products)
    weights = xp.asarray(grid.weights.copy(), device=device(products))
    return float(xp.sum(weights * xp.sum(xp.sum(products, axis=-1), axis=0)))


def _check_sums(grid: FrequencyGrid, **sums: Array) -> None:
    expected = (*grid.half_shape, 2)
    for name, value in sums.items():
        if value.ndim != grid.width + 2 or tuple(value.shape[1:]) != expected:
            raise ShapeError(
                f"{name} must have shape (n_vectors, {', '.join(map(str, expected))}), the modes "
                f"of the grid; got {tuple(value.shape)}."
            )
    if len({value.shape[0] for value in sums.values()}) > 1:
        shapes = " and ".join(str(tuple(value.shape)) for value in sums.values())
        raise ShapeError(f"left and right must have as many vectors; got {shapes}.")


def _design(kernel: Kernel, low: Floats, high: Floats, eps: float) -> Design:
    if not supports(kernel, len(low)):
        raise InputError(
            f"a frequency grid needs a Gaussian, CovarianceGaussian, Laplace or Matern kernel and "
            f"rows of width 1 to {MOST_WIDTH}; got {kernel} and width {len(low)}. The method 'rff' "
            f"takes every kernel with a spectrum, and any width."
        )
    if not _LEAST_EPS <= positive("eps", eps) <= _LARGEST_EPS:
        raise InputError(f"eps must be between {_LEAST_EPS} and {_LARGEST_EPS}; got {eps!r}.")
    with np.errstate(over="ignore"):
        extents = np.abs(_whitening(kernel, len(low))) @ (high - low) / _length(kernel)
    return design(_spectrum(kernel), extents, eps)


def _spectrum(kernel: Kernel) -> Spectrum:
    radial = Gaussian(1.0) if isinstance(kernel, CovarianceGaussian) else kernel
    found = spectrum_of(radial)
    if found is None:
        raise InputError(f"{kernel} has no frequency grid.")
    return found


def _length(kernel: Kernel) -> float:
    return kernel.length if isinstance(kernel, RadialKernel) else 1.0


def _whitening(kernel: Kernel, width: int) -> Floats:
    return kernel.whitening if isinstance(kernel, CovarianceGaussian) else np.eye(width)


def _box(lower: Array, upper: Array) -> tuple[Floats, Floats]:
    low, high = (
        np.asarray(to_host(side) if is_array(side) else side, dtype=np.float64)
        for side in (lower, upper)
    )
    positive_integer("width", low.size)
    if low.ndim != 1 or low.shape != high.shape:
        raise ShapeError(
            f"lower and upper must have one coordinate for each column; got shapes {low.shape} and "
            f"{high.shape}."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        usable = np.isfinite(high - low) & (high >= low)
    if not usable.all():
        at = int(np.flatnonzero(~usable)[0])
        raise InputError(
            f"lower and upper must be finite, and upper nowhere less; in column {at} they are "
            f"{low[at]!r} and {high[at]!r}."
        )
    return low, high
