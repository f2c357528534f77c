r"""How many equispaced frequencies a kernel needs on a box, and what is lost by stopping there.

For a kernel with spectral density p, periods T and steps :math:`h_j = 2\pi / T_j`, Poisson's
formula says, with the weights :math:`w_n = p(h n) \prod_j h_j` for n in Z^d,

.. math:: \sum_n w_n e^{i (h n) z} = \sum_m K(z + T m) = K(z) + \sum_{m \ne 0} K(z + T m)

(both sides converge absolutely: K decays exponentially, p faster than :math:`|w|^{-d}`). A sum over
a finite block of n therefore errs by the images of K on the right, the *aliasing*, less the weights
outside the block, the *truncation*.

Aliasing: for :math:`|z_j| \le L_j < T_j`, and :math:`z_j \ge 0` by symmetry, image m lies at least
:math:`T_j m_j - L_j` away along axis j for :math:`m_j > 0` and :math:`T_j |m_j|` for
:math:`m_j \le 0`; K falls with distance. With all :math:`T_j - L_j = g` an image with
:math:`\max_j |m_j| = M` is at least M g away, which bounds those that are not looked at one by one.

Truncation: the formula at z = 0 gives the sum of all weights, :math:`1 + \sum_{m \ne 0} K(T m)`, so
those outside are that sum less those inside, without any estimate of a tail.

Short axes: a mixture of Gaussians in which coordinate j is left out changes by at most
:math:`1 - K(L_j)`, for so does each Gaussian, and the other factors are at most 1.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import special

from bigkd.kernels.base import Kernel
from bigkd.kernels.families import Gaussian, Laplace, Matern

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

MOST_MODES = 2**22
SUM_ROUNDING = 1e-14  # of sums of weights, which are about 1
PHASE_ROUNDING = 1e-15  # of an exponential, for each unit of its frequency number
MOST_TOLERANCE = 0.05  # so that squares of a transform's errors stay within 5 % of them
_WIDEST = 1e12  # lengths, beyond which there are too many modes on any account
_SHELLS_SEEN = 2
_NEGLIGIBLE = 1e-40
_SHORT = 0.25  # of eps, that leaving out short axes may cost
_SHARES = tuple(0.5**at for at in range(1, 12))  # of the error that aliasing may have


class Spectrum(NamedTuple):
    """A mixture of Gaussians of length 1: its values and its spectral density."""

    at: Callable[[Floats], Floats]  # the kernel of squared distances
    nu: float  # of a Matern kernel; infinite for the Gaussian

    @property
    def transform_share(self) -> float:
        """Of the error, how much the transform may use: less where modes are dear."""
        return 0.5 if math.isinf(self.nu) else 0.2

    def density(self, squared: Floats, width: int) -> Floats:
        """Spectral density at squared frequencies, in R^width."""
        if math.isinf(self.nu):
            logarithm = -0.5 * squared - 0.5 * width * math.log(2 * math.pi)
        else:
            power = self.nu + width / 2
            logarithm = -power * np.log1p(squared / (2 * self.nu))
            logarithm += math.lgamma(power) - math.lgamma(self.nu)
            logarithm -= 0.5 * width * math.log(2 * math.pi * self.nu)
        return np.asarray(np.exp(logarithm))

    def cutoff(self, share: float) -> float:
        """Frequency beyond which an axis has about `share` of the weights."""
        if math.isinf(self.nu):
            return -float(special.ndtri(share / 2))
        return -float(special.stdtrit(2 * self.nu, share / 2))


class Design(NamedTuple):
    """Periods and numbers of modes of a grid, and its errors."""

    period: tuple[float, ...]  # in lengths of the kernel
    half: tuple[float, ...]  # the modes of axis j are -half_j to half_j
    aliasing: float
    truncation: float
    transform: float
    tolerance: float

    @property
    def n_modes(self) -> float:
        """Number of modes."""
        return math.prod(2 * half + 1 for half in self.half)


def spectrum_of(kernel: Kernel) -> Spectrum | None:
    """Spectrum of a kernel scaled to length 1; None if it has none that a grid can use."""
    if isinstance(kernel, Gaussian):
        return Spectrum(kernel.with_length(1.0).of_squared, math.inf)
    if isinstance(kernel, Laplace):
        return Spectrum(kernel.with_length(1.0).of_squared, 0.5)
    if isinstance(kernel, Matern):
        return Spectrum(kernel.with_length(1.0).of_squared, kernel.nu)
    return None


def design(spectrum: Spectrum, extents: Floats, eps: float) -> Design:
    """Fewest modes with an error of at most `eps` between points at most `extents` lengths apart.

    Of more than `MOST_MODES` the number is an estimate, and the errors are not computed.
    """
    if extents.max() > _WIDEST:
        nothing = (math.nan,) * len(extents)
        return Design(nothing, (math.inf,) * len(extents), math.nan, math.nan, math.nan, math.nan)
    lost = 1.0 - spectrum.at(extents**2)
    short = lost <= _SHORT * eps / len(extents)
    lost_here = float(lost[short].sum())
    long = extents[~short]
    period = np.where(extents > 0, extents, 1.0)
    half = np.zeros(len(extents))
    if long.size == 0:
        return Design(tuple(period.tolist()), tuple(half.tolist()), 0.0, lost_here, 0.0, 0.0)
    share = spectrum.transform_share
    allowed = (eps - lost_here) * (1 - share) - SUM_ROUNDING
    gap, cutoff = _cheapest(spectrum, long, allowed)
    period[~short] = long + gap
    half[~short] = _halves(period[~short], cutoff)
    aliasing = images(spectrum, long, long + gap)
    found = Design(tuple(period.tolist()), tuple(half.tolist()), aliasing, math.nan, 0.0, 0.0)
    if found.n_modes > 4 * MOST_MODES:
        return found
    few, truncation, order = _fewest(spectrum, long + gap, cutoff, allowed - aliasing)
    half[~short] = few
    rounding = PHASE_ROUNDING * order
    left = 0.999 * (eps - lost_here - aliasing - truncation)  # whole modes leave some over
    tolerance = min(left / 2.1 - rounding, MOST_TOLERANCE)
    return Design(
        period=tuple(period.tolist()),
        half=tuple(half.tolist()),
        aliasing=aliasing,
        truncation=truncation + lost_here,
        transform=2.1 * (tolerance + rounding),
        tolerance=tolerance,
    )


def images(spectrum: Spectrum, extents: Floats, period: Floats) -> float:
    """Bound of the sum of all images of the kernel, between points at most `extents` apart."""
    steps = np.arange(1, _SHELLS_SEEN + 1)
    squared = np.zeros(())
    for extent, length in zip(extents, period, strict=True):
        away = length * steps
        squared = squared[..., None] + np.concatenate([[0.0], away - extent, away]) ** 2
    near = float(spectrum.at(squared.reshape(-1)[1:]).sum())
    return near + _far_images(spectrum, len(extents), float((period - extents).min()))


def axis_weights(spectrum: Spectrum, half: Floats, period: Floats) -> Floats:
    """Weights of the modes 0 to `half` of each axis, one array axis to each."""
    steps = 2 * math.pi / period
    squared = np.zeros(())
    for last, step in zip(half, steps, strict=True):
        squared = squared[..., None] + (np.arange(last + 1) * step) ** 2
    return np.asarray(spectrum.density(squared, len(half)) * math.prod(steps.tolist()))


def _far_images(spectrum: Spectrum, width: int, gap: float) -> float:
    """Bound of the images beyond the shells that are summed one by one."""
    reach = gap
    while float(spectrum.at(np.asarray([reach**2]))[0]) > _NEGLIGIBLE:
        reach *= 2
    shell = np.arange(_SHELLS_SEEN + 1, max(_SHELLS_SEEN, math.ceil(reach / gap)) + 2)
    count = (2.0 * shell + 1) ** width - (2.0 * shell - 1) ** width
    return float((count * spectrum.at(np.square(shell * gap, dtype=np.float64))).sum())


def _cheapest(spectrum: Spectrum, extents: Floats, allowed: float) -> tuple[float, float]:
    """Gap and cutoff of about the fewest modes, over ways to split the error."""
    best, least = (math.nan, math.nan), math.inf
    for share in _SHARES:
        gap = _gap(spectrum, extents, share * allowed)
        cutoff = spectrum.cutoff((1 - share) * allowed / len(extents))
        count = math.prod((cutoff * (extents + gap)).tolist())  # before it is rounded to modes
        if count <= least:
            best, least = (gap, cutoff), count
    return best


def _gap(spectrum: Spectrum, extents: Floats, allowed: float) -> float:
    """Smallest gap whose images sum to at most `allowed`."""
    high = 1.0
    while float(spectrum.at(np.asarray([high**2]))[0]) < allowed:  # an image is at least this
        high /= 2
    low = high
    while images(spectrum, extents, extents + high) > allowed:
        low, high = high, 2 * high
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        if images(spectrum, extents, extents + middle) > allowed:
            low = middle
        else:
            high = middle
    return high


def _halves(period: Floats, cutoff: float) -> Floats:
    """Last mode of each axis: weights stand for half a step to each side of them."""
    return np.maximum(np.ceil(cutoff * period / (2 * math.pi) - 0.5), 0.0)


def _fewest(
    spectrum: Spectrum, period: Floats, cutoff: float, allowed: float
) -> tuple[Floats, float, float]:
    """Fewest modes near `cutoff` with a truncation of at most `allowed`; it; their mean order."""
    total = 1.0 + images(spectrum, np.zeros_like(period), period) + SUM_ROUNDING

    def lost(at: float) -> float:
        return total - _inside(spectrum, _halves(period, at), period)[0]

    low, high = 0.0, cutoff
    while lost(high) > allowed:
        low, high = high, 1.02 * high
    while high - low > 2e-3 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if lost(middle) > allowed else (low, middle)
    half = _halves(period, high)
    inside, order = _inside(spectrum, half, period)
    return half, total - inside, order


def _inside(spectrum: Spectrum, half: Floats, period: Floats) -> tuple[float, float]:
    """Sum of the weights of a block of modes, and of them times the sum of their numbers."""
    weights = axis_weights(spectrum, half, period)
    order = np.zeros(())
    for last in half:
        order = order[..., None] + np.arange(last + 1)
    for last in half:
        own = np.full(int(last) + 1, 2.0)
        own[0] = 1.0
        weights = np.moveaxis(weights, 0, -1) * own
    return float(weights.sum()), float((weights * order).sum())
