"""Kernels that are mixtures of Gaussians: positive definite everywhere, with a spectrum."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import special

from bigkd.backends import device, namespace, to_host
from bigkd.errors import InputError
from bigkd.kernels._rows import positive, positive_integer
from bigkd.kernels.base import MixtureKernel
from bigkd.protocols import Array

_LARGEST_NU = 100.0
_FARTHEST = 1000.0  # exp(-z) is 0 from there on, and z may be infinite


@dataclass(frozen=True)
class Gaussian(MixtureKernel):
    r"""Gaussian kernel :math:`\exp(-r^2 / 2\sigma^2)`.

    A kernel written :math:`\exp(-r^2/h)` has :math:`h = 2\sigma^2`. Frequencies are
    :math:`N(0, \sigma^{-2} I)`.

    Examples
    --------
    >>> Gaussian(5.0)(np.zeros((1, 2)), np.array([[3.0, 4.0]]))
    array([[0.60653066]])
    """

    sigma: float

    name: ClassVar[str] = "gaussian"
    length_name: ClassVar[str] = "sigma"

    def of_squared(self, squared: Array) -> Array:
        """Kernel of squared distances, same shape and dtype."""
        # Scaled before it is squared: sigma**-2 leaves float32's range long before sigma does.
        scaled = squared * (-0.5 / self.sigma) / self.sigma
        return namespace(squared).exp(scaled)

    def _mixing(self, generator: np.random.Generator, n: int) -> np.ndarray[Any, Any]:
        return np.full(n, 1.0 / self.sigma)

    def _mean_square(self) -> float:
        return self.sigma**-2


@dataclass(frozen=True)
class Laplace(MixtureKernel):
    r"""Laplace kernel :math:`\exp(-r / \ell)`, r the Euclidean distance; Matérn of nu = 1/2.

    Frequencies are multivariate Cauchy of scale :math:`1/\ell`.

    Examples
    --------
    >>> Laplace(5.0)(np.zeros((1, 2)), np.array([[3.0, 4.0]]))
    array([[0.36787944]])
    """

    length_scale: float

    name: ClassVar[str] = "laplace"

    def of_squared(self, squared: Array) -> Array:
        """Kernel of squared distances, same shape and dtype."""
        xp = namespace(squared)
        return xp.exp(xp.sqrt(squared) * (-1.0 / self.length_scale))

    def _mixing(self, generator: np.random.Generator, n: int) -> np.ndarray[Any, Any]:
        return _student_mixing(generator, n, nu=0.5, length_scale=self.length_scale)

    def _mean_square(self) -> float:
        return math.inf


@dataclass(frozen=True)
class Matern(MixtureKernel):
    r"""Matérn kernel of smoothness nu.

    .. math:: \frac{2^{1-\nu}}{\Gamma(\nu)} z^\nu K_\nu(z), \quad z = \sqrt{2\nu}\, r / \ell

    Frequencies are multivariate t with :math:`2\nu` degrees of freedom and scale :math:`1/\ell`.
    At most nu = 100; beyond it ``Gaussian(length_scale)``, the limit, differs by less than 1/100.

    Notes
    -----
    The half-integers 1/2, 3/2 and 5/2 are elementary and stay on the device of the rows. Any other
    nu is computed by SciPy in float64 on the host, about a hundred times more slowly.

    Examples
    --------
    >>> Matern(nu=0.5, length_scale=5.0)(np.zeros((1, 2)), np.array([[3.0, 4.0]]))
    array([[0.36787944]])
    """

    nu: float
    length_scale: float

    name: ClassVar[str] = "matern"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu > _LARGEST_NU:
            raise InputError(
                f"Matern.nu must be at most {_LARGEST_NU:g}; got {self.nu!r}. "
                f"Pass Gaussian({self.length_scale!r}), to which it converges."
            )

    @classmethod
    def sobolev(cls, smoothness: float, dimension: int, length_scale: float) -> Self:
        """Reproducing kernel of the Sobolev space of order `smoothness` on R^dimension.

        Its nu is ``smoothness - dimension / 2``, which must be positive: smoother than half the
        dimension is what makes point values continuous.
        """
        smoothness = positive("smoothness", smoothness)
        dimension = positive_integer("dimension", dimension)
        nu = smoothness - dimension / 2
        if nu <= 0:
            raise InputError(
                f"smoothness must exceed half the dimension, {dimension / 2:g}, for a kernel to "
                f"exist; got {smoothness!r}."
            )
        return cls(nu, length_scale)

    def of_squared(self, squared: Array) -> Array:
        """Kernel of squared distances, same shape and dtype."""
        xp = namespace(squared)
        if self.nu not in (0.5, 1.5, 2.5):
            z = np.sqrt(to_host(squared).astype(np.float64))
            values = _matern_by_bessel(self.nu, z * (math.sqrt(2 * self.nu) / self.length_scale))
            return xp.asarray(values, dtype=squared.dtype, device=device(squared))
        z = xp.sqrt(squared) * (math.sqrt(2 * self.nu) / self.length_scale)
        z = xp.clip(z, max=_FARTHEST)
        decay = xp.exp(-z)
        if self.nu == 0.5:
            return decay
        if self.nu == 1.5:
            return decay + z * decay
        return decay + (z + z * z / 3.0) * decay

    def _mixing(self, generator: np.random.Generator, n: int) -> np.ndarray[Any, Any]:
        return _student_mixing(generator, n, nu=self.nu, length_scale=self.length_scale)

    def _mean_square(self) -> float:
        return self.nu / (self.nu - 1) / self.length_scale**2 if self.nu > 1 else math.inf


@dataclass(frozen=True)
class InverseMultiquadric(MixtureKernel):
    r"""Inverse multiquadric kernel :math:`(1 + r^2/\ell^2)^{-\beta}`.

    Frequencies are normal with a Gamma-mixed variance: from
    :math:`(1 + r^2/\ell^2)^{-\beta} = E \exp(-s r^2/\ell^2)`, s of Gamma(beta, 1), each frequency
    is :math:`N(0, (2s/\ell^2) I)` with an s of its own.

    Examples
    --------
    >>> InverseMultiquadric(length_scale=5.0, beta=1.0)(np.zeros((1, 2)), np.array([[3.0, 4.0]]))
    array([[0.5]])
    """

    length_scale: float
    beta: float

    name: ClassVar[str] = "inverse_multiquadric"

    def of_squared(self, squared: Array) -> Array:
        """Kernel of squared distances, same shape and dtype."""
        xp = namespace(squared)
        scaled = squared / self.length_scale / self.length_scale
        return xp.exp(xp.log1p(scaled) * -self.beta)

    def _mixing(self, generator: np.random.Generator, n: int) -> np.ndarray[Any, Any]:
        return np.sqrt(2.0 * generator.standard_gamma(self.beta, n)) / self.length_scale

    def _mean_square(self) -> float:
        return 2.0 * self.beta / self.length_scale**2


def _student_mixing(
    generator: np.random.Generator, n: int, *, nu: float, length_scale: float
) -> np.ndarray[Any, Any]:
    """Draw the deviations whose normal mixture is t with 2 nu degrees, scale 1/length_scale."""
    # chi-square of 2 nu degrees over 2 nu is Gamma(nu, 1) over nu; small nu can underflow to 0.
    gamma = np.maximum(generator.standard_gamma(nu, n), np.finfo(np.float64).tiny)
    return np.asarray(np.sqrt(nu / gamma) / length_scale)


def _matern_by_bessel(nu: float, z: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Matérn of scaled distances `z`, float64, in logarithms because z^nu K_nu(z) overflows."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        bessel = special.kve(nu, z)
        logarithm = (1 - nu) * math.log(2) - math.lgamma(nu) + nu * np.log(z) + np.log(bessel) - z
    # Where K_nu overflows z is so small that the leading term of the series is all there is.
    near = np.exp(-0.25 * z * z / max(nu - 1, 1.0)) if nu > 1 else np.ones_like(z)
    return np.asarray(np.where(np.isposinf(bessel), near, np.exp(np.minimum(logarithm, 0.0))))
