"""The Gaussian of a full covariance."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from bigkd.backends import device, is_array, namespace, to_host
from bigkd.errors import InputError, ShapeError
from bigkd.kernels._rows import centre_of, check_rows, common_dtype, positive_integer
from bigkd.kernels.base import Kernel, unit_diagonal
from bigkd.kernels.families import Gaussian
from bigkd.kernels.frequencies import Sampling, draw_frequencies
from bigkd.protocols import Array

_ASYMMETRY = 1e-10


@dataclass(frozen=True)
class CovarianceGaussian(Kernel):
    r"""Gaussian kernel of a full covariance, :math:`\exp(-(x-y)^T S^{-1} (x-y) / 2)`.

    Frequencies are :math:`N(0, S^{-1})`. With :math:`S = L L^T` it is ``Gaussian(1.0)`` between
    whitened rows :math:`L^{-1} x`; see `reduced`.

    Parameters
    ----------
    covariance
        The S above, in squared units of the rows: a matrix of shape ``(d, d)``, symmetric and
        positive definite. Kept as a tuple of rows.

    Examples
    --------
    >>> kernel = CovarianceGaussian([[9.0, 0.0], [0.0, 16.0]])
    >>> kernel(np.zeros((1, 2)), np.array([[3.0, 4.0]]))
    array([[0.36787944]])
    """

    covariance: tuple[tuple[float, ...], ...]

    name: ClassVar[str] = "covariance_gaussian"
    has_spectrum: ClassVar[bool] = True

    def __post_init__(self) -> None:
        matrix = _matrix(self.covariance)
        if not np.allclose(matrix, matrix.T, rtol=0, atol=_ASYMMETRY * np.abs(matrix).max()):
            raise InputError(
                f"CovarianceGaussian.covariance must be symmetric; it differs from its transpose "
                f"by up to {np.abs(matrix - matrix.T).max():.3g}."
            )
        matrix = (matrix + matrix.T) / 2
        values = np.linalg.eigvalsh(matrix)
        if not values[0] > values[-1] * np.finfo(np.float64).eps * len(values):
            raise InputError(
                f"CovarianceGaussian.covariance must be positive definite; its eigenvalues go from "
                f"{values[0]:.3g} to {values[-1]:.3g}. Add a small multiple of the identity, or "
                f"drop columns that depend on others."
            )
        object.__setattr__(self, "covariance", tuple(tuple(row) for row in matrix.tolist()))

    @property
    def width(self) -> int:
        """Width `d` of the rows it takes."""
        return len(self.covariance)

    @property
    def maximum(self) -> float:
        """One: K(x, x)."""
        return 1.0

    @cached_property
    def whitening(self) -> np.ndarray[Any, Any]:
        """Inverse of the lower Cholesky factor L, shape ``(d, d)``, read-only."""
        factor = np.linalg.cholesky(np.asarray(self.covariance))
        inverse = solve_triangular(factor, np.eye(self.width), lower=True)
        inverse.flags.writeable = False
        return np.asarray(inverse)

    def reduced(self, x: Array, y: Array) -> tuple[Gaussian, Array, Array]:
        """The Gaussian and the whitened rows with the same values as this kernel of `x` and `y`.

        Parameters
        ----------
        x
            Rows, shape ``(n, d)``, any real dtype.
        y
            Rows, shape ``(m, d)``, same namespace and device as `x`.

        Returns
        -------
        tuple
            ``Gaussian(1.0)``, and the whitened `x` and `y`, both about the mean of `y` and in the
            dtype of computation.

        Raises
        ------
        ShapeError
            If `x` and `y` are not both two-dimensional and of width `d`.

        Notes
        -----
        Whitening rounds each row once, so a distance errs by about the machine epsilon times the
        spread of the whitened rows, whatever their offset: a value K at whitened distance r by
        ``r K`` times that.
        """
        xp = namespace(x, y)
        self._check(xp, x, y)
        dtype = common_dtype(xp, x, y)
        inverse = xp.asarray(self.whitening.T.copy(), dtype=xp.float64, device=device(x))
        if y.shape[0] == 0:
            return Gaussian(1.0), xp.astype(x, dtype), xp.astype(y, dtype)
        centre = xp.astype(centre_of(xp, y, dtype), xp.float64)
        whitened = (
            xp.astype((xp.astype(rows, xp.float64) - centre) @ inverse, dtype) for rows in (x, y)
        )
        return Gaussian(1.0), *whitened

    def __call__(self, x: Array, y: Array) -> Array:
        """Kernel between every row of `x` and every row of `y`, shape ``(n, m)``.

        In ``[0, 1]``, and 1 for equal rows. Digits follow the spread of the rows; see `reduced`.
        """
        gaussian, x, y = self.reduced(x, y)
        return gaussian(x, y)

    def diagonal(self, x: Array) -> Array:
        """One for every row of `x`, shape ``(n,)``; NaN for a row that is not finite."""
        self._check(namespace(x), x)
        return unit_diagonal("CovarianceGaussian", x)

    def is_positive_definite(self, width: int) -> bool:
        """Whether it is positive definite in R^width: always."""
        self._check_width(width)
        return True

    def spectral_moment(self, width: int) -> float:
        """Mean squared length of a frequency: the trace of the inverse covariance."""
        self._check_width(width)
        return float(np.sum(self.whitening**2))

    def frequencies(
        self, n_frequencies: int, width: int, *, seed: int = 0, sampling: Sampling = "iid"
    ) -> np.ndarray[Any, Any]:
        """Random frequencies w with E[cos(w.(x - y))] = K(x, y); see `Kernel.frequencies`.

        Orthogonal ones are orthogonal before they are scaled by the inverse covariance.
        """
        self._check_width(width)
        normal = draw_frequencies(
            lambda _, n: np.ones(n), n_frequencies, width, seed=seed, sampling=sampling
        )
        return np.asarray(normal @ self.whitening)

    def _check(self, xp: Any, *blocks: Array) -> None:
        check_rows("CovarianceGaussian kernel", xp, *blocks)
        self._check_width(blocks[0].shape[1])

    def _check_width(self, width: int) -> None:
        if positive_integer("width", width, least=0) != self.width:
            raise ShapeError(
                f"CovarianceGaussian has a covariance of shape {(self.width, self.width)}, for "
                f"rows of width {self.width}; got rows of width {width}."
            )


def _matrix(given: object) -> np.ndarray[Any, Any]:
    """`given` as a square float64 matrix of finite numbers; InputError if it is none."""
    message = "CovarianceGaussian.covariance must be a square matrix of finite numbers"
    if not is_array(given) and not isinstance(given, Sequence):
        raise InputError(f"{message}; got {given!r}.")
    try:
        matrix = np.array(to_host(given) if is_array(given) else given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{message}, its rows of equal width; got {given!r}.") from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ShapeError(f"{message}; got shape {matrix.shape}.")
    if not np.isfinite(matrix).all():
        bad = np.count_nonzero(~np.isfinite(matrix))
        raise InputError(f"{message}; {bad} of its {matrix.size} elements are not.")
    return matrix
