r"""What random frequencies promise, and how many of them an error needs.

Frequencies must be independent: ``sampling="iid"``. Errors of a kernel sum :math:`\kappa` and of a
squared distance :math:`D^2` are in units of :math:`W^2`, W being the larger total weight of the two
collections, absolute where weights have signs. In these units :math:`D^2` is at most 4 and, for
similar collections, far below 1: an `eps` can exceed it, so look at the relative error, too.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from bigkd.errors import EmptyInputError, InputError
from bigkd.kernels._rows import positive, positive_integer, probability

Vector = np.ndarray[Any, np.dtype[np.float64]]

_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)
_LARGEST_BET = 0.9
_TOLERANCE = 1e-12


class Interval(NamedTuple):
    """Where a mean lies with the promised probability."""

    lower: float
    """Lower end."""

    upper: float
    """Upper end."""

    eps: float
    """How far the farther end is from the mean of the samples."""


def frequencies_for_points(eps: float, delta: float, n: int) -> int:
    r"""Number of frequencies that estimate the kernel of all pairs of `n` points.

    With probability at least ``1 - delta`` no pair errs by more than `eps`. Then, whatever the
    weights, :math:`\kappa` of any two of their subsets errs by at most `eps` and :math:`D^2` by at
    most ``4 eps``.

    Parameters
    ----------
    eps
        Error of the kernel, between 0 and 2.
    delta
        Probability of failure, between 0 and 1.
    n
        Number of points of both collections together.

    Returns
    -------
    int
        Number of frequencies r, half the number of features: the smallest with
        :math:`n^2 \exp(-r g(\epsilon)) \le \delta`.

    Notes
    -----
    Of a mean of r cosines Hoeffding's inequality says
    :math:`P(|f| > \epsilon) \le 2\exp(-rg)` with :math:`g = \epsilon^2/2`, and Bernstein's with
    :math:`g = \epsilon^2/(9/8 + 4\epsilon/3)`, since for a kernel that falls with the distance,
    :math:`K(2u) \le K(u)`, the variance of a cosine, :math:`(1 + K(2u))/2 - K(u)^2`, is at most
    9/16. The larger g counts, for each of at most :math:`n^2/2` unordered pairs.

    This is Lemma 4.1 of [1]_ with other constants. Its proof has
    :math:`2 n^2 \exp(-\rho\epsilon^2/64)` with :math:`\rho = 2r` features, more than 16 times as
    many: it takes the terms of the mean to range over 8, while cosines range over 2.

    For the distance of two collections that are given beforehand `frequencies_for_value` is far
    smaller and does not depend on `n`: this is for answering about all their subsets at once.

    References
    ----------
    .. [1] S. Joshi, R. V. Kommaraju, J. M. Phillips, S. Venkatasubramanian, "Comparing
       Distributions and Shapes using the Kernel Distance", SoCG 2011, arXiv:1001.0591.

    Examples
    --------
    >>> frequencies_for_points(0.1, 0.01, 1000)
    2318
    """
    eps, delta = positive("eps", eps), probability("delta", delta)
    n = positive_integer("n", n)
    return max(1, math.ceil(math.log(n * n / delta) / _rate(eps)))


def points_promise(r: int, delta: float, n: int) -> float:
    """Error that `r` frequencies promise for the kernel of all pairs of `n` points.

    The inverse of `frequencies_for_points`, at most the trivial 2.
    """
    r, n = positive_integer("r", r), positive_integer("n", n)
    rate = math.log(n * n / probability("delta", delta)) / r
    bernstein = 2 * rate / 3 + math.sqrt((2 * rate / 3) ** 2 + 9 * rate / 8)
    return min(2.0, math.sqrt(2 * rate), bernstein)


def frequencies_for_domain(
    eps: float, delta: float, width: int, diameter: float, *, second_moment: float
) -> int:
    r"""Number of frequencies that estimate the kernel of any two points not far apart.

    With probability at least ``1 - delta`` no pair of points of a domain errs by more than `eps`,
    so that :math:`\kappa` of any collections within it errs by at most `eps` and :math:`D^2` by at
    most ``4 eps``.

    Parameters
    ----------
    eps
        Error of the kernel, between 0 and 2.
    delta
        Probability of failure, between 0 and 1.
    width
        Width d of the rows.
    diameter
        Diameter of the domain, in the units of the rows.
    second_moment
        :math:`E\lVert w\rVert^2`, the kernel's `spectral_moment`; finite.

    Returns
    -------
    int
        Number of frequencies r: the smallest for which the bound below is at most `delta`.

    Notes
    -----
    The error :math:`f(u) = \frac1r\sum\cos w_k u - K(u)` of a difference u changes by at most
    :math:`(\frac1r\sum\lVert w_k\rVert + E\lVert w\rVert)\lVert u - v\rVert`. With
    :math:`\sigma^2 = E\lVert w\rVert^2`, Cantelli's inequality bounds the factor by
    :math:`L = \sigma (2 + \sqrt{(2/\delta - 1)/r})`, but for a probability of :math:`\delta/2`. The
    ball of radius :math:`\Delta` has a net of :math:`N \le (1 + 2 \Delta L / c\epsilon)^d` points
    from which none is further than :math:`c\epsilon/L`. On it
    :math:`P(\max |f| > (1-c)\epsilon) \le 2N\exp(-r g((1-c)\epsilon))`, with the g of
    `frequencies_for_points`, which must be at most :math:`\delta/2`; c is the best of a few values
    between 0.01 and 0.2.

    This is the argument of Claim 1 of [1]_. Its constants,
    :math:`2^8 (\sigma\Delta/\epsilon)^2\exp(-r\epsilon^2/4(d+2)) \le \delta`, and those of [2]_,
    proposition 1, need 5 to 14 times as many frequencies.

    References
    ----------
    .. [1] A. Rahimi, B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.
    .. [2] D. J. Sutherland, J. Schneider, "On the Error of Random Fourier Features", UAI 2015.

    Examples
    --------
    >>> frequencies_for_domain(0.1, 0.01, width=2, diameter=10.0, second_moment=2.0)
    3452
    """
    eps, delta = positive("eps", eps), probability("delta", delta)
    slack = _domain_slack(delta, width, diameter, second_moment)
    enough = 1
    while slack(enough, eps) < 0:
        enough *= 2
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if slack(middle, eps) < 0:
            too_few = middle
        else:
            enough = middle
    return enough


def domain_promise(
    r: int, delta: float, width: int, diameter: float, *, second_moment: float
) -> float:
    """Error that `r` frequencies promise for the kernel of any two points of a domain.

    The inverse of `frequencies_for_domain`, at most the trivial 2.
    """
    r = positive_integer("r", r)
    slack = _domain_slack(probability("delta", delta), width, diameter, second_moment)
    if slack(r, 2.0) < 0:
        return 2.0
    eps = brentq(lambda value: slack(r, value), 1e-300, 2.0, xtol=1e-300, rtol=_TOLERANCE)
    return min(2.0, float(eps) * (1 + 2 * _TOLERANCE))


def frequencies_for_value(eps: float, delta: float, *, upper: float = 4.0) -> int:
    r"""Number of frequencies that estimate one squared distance.

    With probability at least ``1 - delta`` the estimate of :math:`D^2` errs by at most `eps`, and
    `value_promise` will promise no more than `eps`.

    Parameters
    ----------
    eps
        Error of the squared distance.
    delta
        Probability of failure, between 0 and 1.
    upper
        Largest value of one frequency: the square of the sum of both total weights.

    Returns
    -------
    int
        Number of frequencies r: the smallest with
        :math:`2\exp(-2 r \epsilon^2 / u^2) \le \delta/2`, u being `upper`.

    Notes
    -----
    With :math:`F_P(w) = \sum_i \mu_i e^{i w p_i}` the estimate is the mean, over independent
    frequencies, of :math:`|F_P(w) - F_Q(w)|^2`, which lies between 0 and `upper` and has the mean
    :math:`D^2`: Hoeffding's inequality [1]_ applies, whatever the number of points. The other half
    of `delta` is for the bound of `value_promise`.

    References
    ----------
    .. [1] W. Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", JASA 1963.

    Examples
    --------
    >>> frequencies_for_value(0.1, 0.01)
    4794
    """
    eps, upper = positive("eps", eps), positive("upper", upper)
    return max(1, math.ceil(math.log(4.0 / probability("delta", delta)) / 2.0 * (upper / eps) ** 2))


def value_promise(samples: Vector, upper: float, delta: float) -> Interval:
    r"""Interval around the mean of independent samples that holds their expectation.

    Parameters
    ----------
    samples
        Values of one quantity, shape ``(r,)``, such as :math:`|F_P(w_k) - F_Q(w_k)|^2` for each of
        `r` independent frequencies.
    upper
        Their upper bound; the lower bound is 0.
    delta
        Probability with which the interval may fail, between 0 and 1.

    Returns
    -------
    Interval
        Its ends, and the distance of the farther one from the mean of the samples. `eps` never
        exceeds what `frequencies_for_value` was asked for; for samples much smaller than `upper` it
        is about ``upper * log(4 / delta) / (0.9 r)``, which falls faster than the root of r.

    Raises
    ------
    EmptyInputError
        If there are no samples.
    InputError
        If one of them is not between 0 and `upper`.

    Notes
    -----
    The intersection of two intervals, with half of `delta` each. One is Hoeffding's. The other is
    the hedged-capital interval of [1]_: one bets, on samples above a mean m or below it, the share
    of a stake that the samples before suggest, at most 0.9 of it. If m is the mean the game is
    fair, and by Ville's inequality the stake grows to :math:`2/\delta'` times with probability at
    most :math:`\delta'/2`, for each side; the interval holds every m at which it does not. Of the
    same `delta`, the empirical Bernstein interval [2]_ was 1.2 times as wide where variance decides
    and twice as wide where the chance of large values that did not come does.

    References
    ----------
    .. [1] I. Waudby-Smith, A. Ramdas, "Estimating Means of Bounded Random Variables by Betting",
       JRSS B 86(1), 2024.
    .. [2] A. Maurer, M. Pontil, "Empirical Bernstein Bounds and Sample Variance Penalization",
       COLT 2009.

    Examples
    --------
    >>> interval = value_promise(np.full(1000, 0.01), upper=4.0, delta=0.01)
    >>> print(f"{interval.lower:.5f} to {interval.upper:.5f}")
    0.00334 to 0.03669
    """
    upper, delta = positive("upper", upper), probability("delta", delta)
    values = _within(samples, upper) / upper
    mean = float(np.mean(values))
    hoeffding = math.sqrt(math.log(4.0 / delta) / (2 * values.size))
    betting_lower = _lower_by_betting(values, delta / 2)
    betting_upper = 1.0 - _lower_by_betting(1.0 - values, delta / 2)
    lower = min(mean, max(0.0, mean - hoeffding, betting_lower))
    above = max(mean, min(1.0, mean + hoeffding, betting_upper))
    return Interval(upper * lower, upper * above, upper * max(above - mean, mean - lower))


def standard_error(samples: Vector) -> float:
    """Standard error of the mean of at least two independent samples."""
    values = np.asarray(samples, dtype=np.float64)
    if values.ndim != 1 or values.size < 2:
        raise InputError(f"standard_error needs at least two samples; got shape {values.shape}.")
    return float(np.std(values, ddof=1)) / math.sqrt(values.size)


def _domain_slack(
    delta: float, width: int, diameter: float, second_moment: float
) -> Callable[[int, float], float]:
    """How much the logarithm of the net's bound is below that of ``delta / 2``, of (r, eps)."""
    width = positive_integer("width", width)
    diameter = positive("diameter", diameter)
    if second_moment == math.inf:
        raise InputError(
            "second_moment is infinite, as for a Laplace kernel or a Matern of nu at most 1, whose "
            "features err on any domain; use frequencies_for_value or frequencies_for_points."
        )
    spread = diameter * math.sqrt(positive("second_moment", second_moment))

    def slack(r: int, eps: float) -> float:
        steepest = spread * (2.0 + math.sqrt((2.0 / delta - 1.0) / r))
        return max(
            r * _rate((1 - share) * eps)
            - width * math.log1p(2 * steepest / (share * eps))
            - math.log(4.0 / delta)
            for share in _SHARES
        )

    return slack


def _rate(eps: float) -> float:
    """Exponent, for each frequency, of the chance that a mean of cosines errs by `eps`."""
    return eps * eps / min(2.0, 9 / 8 + 4 * eps / 3)


def _lower_by_betting(values: Vector, delta: float) -> float:
    """Lower end of a two-sided interval of probability ``1 - delta`` for the mean, in [0, 1]."""
    n, target = values.size, math.log(2.0 / delta)
    times = np.arange(2, n + 2)
    means = (0.5 + np.cumsum(values)) / times
    variances = (0.25 + np.cumsum((values - means) ** 2)) / times
    known = np.concatenate([[0.25], variances[:-1]])  # before each bet
    bets = np.sqrt(2.0 * target / (n * known))

    def excess(mean: float) -> float:
        """Logarithm of the stake over its target; falls with `mean`."""
        shares = np.minimum(bets, _LARGEST_BET / mean)
        return float(np.sum(np.log1p(shares * (values - mean)))) - target

    least = _TOLERANCE
    if excess(least) <= 0:
        return 0.0
    if excess(1.0) >= 0:
        return 1.0
    return max(0.0, float(brentq(excess, least, 1.0, xtol=least)) - 2 * least)


def _within(samples: Vector, upper: float) -> Vector:
    """`samples` as float64 between 0 and `upper`, but for rounding."""
    values = np.asarray(samples, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise EmptyInputError(f"samples must have shape (r,), r at least 1; got {values.shape}.")
    slack = 1e-9 * upper
    if not ((values >= -slack) & (values <= upper + slack)).all():
        raise InputError(
            f"samples must be between 0 and upper={upper:g}; they go from {values.min():g} to "
            f"{values.max():g}."
        )
    return np.clip(values, 0.0, upper)
