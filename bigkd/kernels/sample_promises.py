r"""What random samples of rows promise, and how large they must be.

Rows are drawn independently, with probabilities proportional to their weights, and count
:math:`W/m` each; W is the total weight. Where weights have signs they are drawn by absolute weight
and keep their signs, and W is the total absolute weight. Kernels have K(x, x) = 1, vectors are of
length 1. With W = 1, where D is at most 2, an error can exceed the distance itself.
"""

import math

from bigkd.errors import InputError
from bigkd.kernels._rows import positive, positive_integer, probability


def sample_promise(size: int, delta: float) -> float:
    r"""Kernel distance, in units of W, between a collection and a random sample of it.

    It is exceeded with probability at most `delta`.

    Notes
    -----
    :math:`(1 + \sqrt{2\ln(1/\delta)})/\sqrt m`. The mean square of the distance is at most
    :math:`1/m`, since features have length 1. Replacing one row changes it by at most :math:`2/m`,
    so by the inequality of bounded differences [1]_ it exceeds its mean by t with probability at
    most :math:`\exp(-mt^2/2)`. Neither the number of rows nor their width matters.

    References
    ----------
    .. [1] C. McDiarmid, "On the Method of Bounded Differences", Surveys in Combinatorics, 1989.

    Examples
    --------
    >>> round(sample_promise(10_000, 0.01), 4)
    0.0403
    """
    size = positive_integer("size", size)
    return _deviation(delta) / math.sqrt(size)


def size_for_sample(eps: float, delta: float) -> int:
    r"""Size of a random sample within a kernel distance of `eps` W of its collection.

    The inverse of `sample_promise`. For two samples and an error of their distance of at most
    `eps`, pass ``eps / 2`` and ``delta / 2``.

    For :math:`D^2(P, S) \le \epsilon W^2`, what Lemma A.1 (`size_by_features`) is about, pass the
    root of eps.

    Examples
    --------
    >>> size_for_sample(0.05, 0.01)
    6513
    """
    return max(1, math.ceil((_deviation(delta) / positive("eps", eps)) ** 2))


def squared_promise(distance: float, error: float) -> float:
    r"""Error of a squared distance, given the distance and how much that may err.

    If :math:`|D(S, T) - D(P, Q)| \le e`, which holds where S and T are within a total of e of P and
    Q, then :math:`|D^2(S, T) - D^2(P, Q)| \le e(2D + e)`, for either of the two distances D.

    Examples
    --------
    >>> squared_promise(0.5, 0.25)
    0.3125
    """
    if not (math.isfinite(distance) and distance >= 0):
        raise InputError(f"distance must be finite and not negative; got {distance!r}.")
    error = positive("error", error)
    return error * (2 * distance + error)


def size_by_ranges(eps: float, delta: float, width: int, *, constant: float = 1.0) -> int:
    r"""Size of a random sample whose kernel density errs nowhere by more than `eps`.

    Notes
    -----
    :math:`(C/\epsilon^2)(d + \ln(1/\delta))`: Theorem 5.2 of [1]_, for kernels whose level sets are
    balls or ellipsoids. The squared distance of two such samples then errs by at most
    :math:`8\epsilon W^2`. The theorem leaves C open: with C = 1 this is a rule and no promise.
    `size_for_sample` is a promise for the distance, and does not grow with the width.

    References
    ----------
    .. [1] S. Joshi, R. V. Kommaraju, J. M. Phillips, S. Venkatasubramanian, "Comparing
       Distributions and Shapes using the Kernel Distance", SoCG 2011, arXiv:1001.0591.

    Examples
    --------
    >>> size_by_ranges(0.05, 0.01, width=3)
    3043
    """
    eps, constant = positive("eps", eps), positive("constant", constant)
    dimension = positive_integer("width", width) - math.log(probability("delta", delta))
    return math.ceil(constant * dimension / eps**2)


def size_by_discrepancy(eps: float, width: int, *, constant: float = 1.0) -> int:
    r"""Size of a low-discrepancy coreset whose kernel density errs nowhere by more than `eps`.

    Notes
    -----
    :math:`C (1/\epsilon)^{2 - 2/(d+1)} \ln(1/\epsilon)^{2 - 1/(d+1)}`, from Lemma 5.1 and Theorem
    5.2 of [1]_. They leave C open: with C = 1 this is a rule and no promise. In width 1 every
    :math:`\epsilon n`-th row in order is enough, which are :math:`1/\epsilon`.

    The theorem prints :math:`\epsilon^{-2 + 1/(d+1)}`, the lemma that it follows from
    :math:`\epsilon^{-2 + 2/(d+1)}`, which stands here; "log^(2-1/d+1)" is read as
    :math:`2 - 1/(d+1)`, as in the general statement before the lemma.

    References
    ----------
    .. [1] S. Joshi, R. V. Kommaraju, J. M. Phillips, S. Venkatasubramanian, "Comparing
       Distributions and Shapes using the Kernel Distance", SoCG 2011, arXiv:1001.0591.

    Examples
    --------
    >>> size_by_discrepancy(0.05, width=2)
    338
    """
    eps, constant = probability("eps", eps), positive("constant", constant)
    width = positive_integer("width", width)
    if width == 1:
        return math.ceil(constant / eps)
    share = 1.0 / (width + 1)
    logarithm = max(1.0, math.log(1 / eps))
    return math.ceil(constant * math.pow(eps, 2 * share - 2) * math.pow(logarithm, 2 - share))


def size_by_features(eps: float, delta: float, n: int) -> int:
    r"""Size of a random sample S with :math:`D^2(P, S) \le \epsilon W^2`, by Lemma A.1.

    Notes
    -----
    Lemma A.1 of [1]_, for a sample of `n` rows P, with the constants of its proof: the size is
    :math:`(4\rho/\epsilon)\ln(4\rho/\delta)`, where :math:`\rho = (64/(\epsilon/8)^2)
    \ln(4n^2/\delta)` is the number of features with which Lemma 4.1 there gives each of the three
    kernel sums within :math:`\epsilon/8` with probability :math:`1 - \delta/2`. It is of the order
    of :math:`\epsilon^{-3}\log n` and larger than `size_for_sample` at the root of eps, which is of
    the order of :math:`1/\epsilon` and promises the same.

    References
    ----------
    .. [1] S. Joshi, R. V. Kommaraju, J. M. Phillips, S. Venkatasubramanian, "Comparing
       Distributions and Shapes using the Kernel Distance", SoCG 2011, arXiv:1001.0591.

    Examples
    --------
    >>> size_by_features(0.1, 0.01, 1000) > 10_000 * size_for_sample(0.1**0.5, 0.01)
    True
    """
    eps, delta = positive("eps", eps), probability("delta", delta)
    n = positive_integer("n", n)
    features = 64 / (eps / 8) ** 2 * math.log(4 * n * n / delta)
    return math.ceil(4 * features / eps * math.log(4 * features / delta))


def _deviation(delta: float) -> float:
    return 1.0 + math.sqrt(2.0 * math.log(1.0 / probability("delta", delta)))
