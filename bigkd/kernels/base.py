"""What every kernel can do, and what those of a distance can do besides."""

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from bigkd.backends import compute_dtype, device, namespace
from bigkd.errors import InputError
from bigkd.kernels._rows import check_rows, positive, positive_integer
from bigkd.kernels.distances import map_tiles
from bigkd.kernels.frequencies import Sampling, draw_frequencies
from bigkd.protocols import Array


@dataclasses.dataclass(frozen=True)
class Kernel(ABC):
    """Symmetric function of two rows.

    A kernel is a small frozen value: compare it, hash it, pickle it, or store `name` and
    `parameters` and get it back with `from_parameters`. Parameters out of range raise InputError.
    """

    name: ClassVar[str]
    """What a stored kernel is called."""

    has_spectrum: ClassVar[bool] = False
    """Whether there are random `frequencies` that estimate it."""

    @abstractmethod
    def __call__(self, x: Array, y: Array) -> Array:
        """Kernel between every row of `x` and every row of `y`.

        Parameters
        ----------
        x
            Rows, shape ``(n, d)``, any real dtype.
        y
            Rows, shape ``(m, d)``, same namespace and device as `x`.

        Returns
        -------
        Array
            Shape ``(n, m)``; float64 if either input is float64 or a wide integer, else float32.

        Raises
        ------
        ShapeError
            If `x` and `y` are not both two-dimensional with equal width.
        """

    @abstractmethod
    def diagonal(self, x: Array) -> Array:
        """Kernel K(x_i, x_i) of every row with itself, shape ``(n,)``."""

    @abstractmethod
    def is_positive_definite(self, width: int) -> bool:
        """Whether no sum of K over pairs, with weights of any sign, is negative in R^width."""

    @property
    @abstractmethod
    def maximum(self) -> float | None:
        """Largest ``|K(x, y)|`` of any two rows; None if there is no bound."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters by name, as JSON knows them and `from_parameters` takes them."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def spectral_moment(self, width: int) -> float:
        r"""Mean squared length :math:`E\lVert w\rVert^2` of a frequency; infinite for heavy tails.

        It is minus the Laplacian of the kernel at distance 0.

        Raises
        ------
        InputError
            If the kernel has no spectrum.
        """
        del width
        raise self._no_spectrum()

    def frequencies(
        self, n_frequencies: int, width: int, *, seed: int = 0, sampling: Sampling = "iid"
    ) -> np.ndarray[Any, Any]:
        """Random frequencies w with E[cos(w.(x - y))] = K(x, y).

        Parameters
        ----------
        n_frequencies
            How many, `r`.
        width
            Width `d` of the rows.
        seed
            Equal seeds give equal frequencies; a non-negative integer.
        sampling
            ``"iid"`` draws each from the spectral density. ``"orthogonal"`` draws blocks of
            ``min(d, 1024)`` mutually orthogonal directions, each frequency with the same
            distribution as before [1]_: as unbiased, and of smaller variance for the Gaussian.

        Returns
        -------
        numpy.ndarray
            Shape ``(r, d)``, float64. The first `k` of them are what asking for `k` gives, so a
            feature map can be refined without starting over.

        Raises
        ------
        InputError
            If the kernel has no spectrum.

        References
        ----------
        .. [1] F. Yu et al., "Orthogonal Random Features", NeurIPS 2016.
        """
        del n_frequencies, width, seed, sampling
        raise self._no_spectrum()

    def _no_spectrum(self) -> InputError:
        return InputError(
            f"the {self.name} kernel has no spectrum to draw frequencies from. Use an exact method "
            f"or a coreset, or a kernel that has one: Gaussian, Laplace, Matern, "
            f"InverseMultiquadric, CovarianceGaussian."
        )


@dataclasses.dataclass(frozen=True)
class RadialKernel(Kernel):
    """Kernel that depends on the distance between two rows only, falling from K(x, x) = 1.

    Parameters are finite and positive, and one of them is a length.
    """

    length_name: ClassVar[str] = "length_scale"
    """Which parameter is the length, in the units of the rows."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = positive(f"{type(self).__name__}.{field.name}", getattr(self, field.name))
            object.__setattr__(self, field.name, value)

    def __call__(self, x: Array, y: Array) -> Array:
        """Kernel between every row of `x` and every row of `y`.

        Parameters
        ----------
        x
            Rows, shape ``(n, d)``, any real dtype.
        y
            Rows, shape ``(m, d)``, same namespace and device as `x`.

        Returns
        -------
        Array
            Shape ``(n, m)``, dimensionless, in ``[0, 1]``, exactly 1 for equal rows; float64 if
            either input is float64 or a wide integer, else float32.

        Raises
        ------
        ShapeError
            If `x` and `y` are not both two-dimensional with equal width.

        Notes
        -----
        Digits follow the spread of the rows, not their offset; see `squared_distances`. Beyond the
        result it needs a copy of `y` and a few tiles of about a million elements.
        """
        xp = namespace(x, y)
        check_rows(f"{type(self).__name__} kernel", xp, x, y)
        return map_tiles(self.of_squared, xp, x, y)

    @abstractmethod
    def of_squared(self, squared: Array) -> Array:
        """Kernel of squared distances, same shape and dtype."""

    def diagonal(self, x: Array) -> Array:
        """One for every row of `x`, shape ``(n,)``; NaN for a row that is not finite."""
        return unit_diagonal(type(self).__name__, x)

    @property
    def maximum(self) -> float:
        """One: K(x, x)."""
        return 1.0

    @property
    def length(self) -> float:
        """The length of the kernel, in the units of the rows."""
        return float(self.parameters[self.length_name])

    def with_length(self, length: float) -> Self:
        """Kernel of the same shape with another length."""
        return dataclasses.replace(self, **{self.length_name: length})

    def scaled(self, factor: float) -> Self:
        """Kernel of the same shape with its length multiplied by `factor`."""
        return self.with_length(self.length * positive("factor", factor))


@dataclasses.dataclass(frozen=True)
class MixtureKernel(RadialKernel):
    """Mixture of Gaussians of many lengths: positive definite in every R^d, and has a spectrum."""

    has_spectrum: ClassVar[bool] = True

    @abstractmethod
    def _mixing(self, generator: np.random.Generator, n: int) -> np.ndarray[Any, Any]:
        """Draw a standard deviation for each of `n` frequencies, given which it is normal."""

    @abstractmethod
    def _mean_square(self) -> float:
        """Mean square of what `_mixing` draws."""

    def is_positive_definite(self, width: int) -> bool:
        """Whether it is positive definite in R^width: always."""
        positive_integer("width", width)
        return True

    def spectral_moment(self, width: int) -> float:
        """Mean squared length of a frequency; infinite for heavy tails."""
        return positive_integer("width", width) * self._mean_square()

    def frequencies(
        self, n_frequencies: int, width: int, *, seed: int = 0, sampling: Sampling = "iid"
    ) -> np.ndarray[Any, Any]:
        """Random frequencies w with E[cos(w.(x - y))] = K(x, y); see `Kernel.frequencies`."""
        return draw_frequencies(self._mixing, n_frequencies, width, seed=seed, sampling=sampling)


def unit_diagonal(who: str, x: Array) -> Array:
    """Diagonal of a kernel with K(x, x) = 1; NaN for rows that are not finite, as in the matrix."""
    xp = namespace(x)
    check_rows(f"{who} kernel", xp, x)
    dtype, on = compute_dtype(xp, x.dtype), device(x)
    ones = xp.ones((x.shape[0],), dtype=dtype, device=on)
    if not xp.isdtype(x.dtype, "real floating"):
        return ones
    return xp.where(xp.all(xp.isfinite(x), axis=1), ones, xp.asarray(xp.nan, dtype=dtype))
