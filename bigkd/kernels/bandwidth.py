"""Rules that choose a kernel's length from a sample of the rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bigkd.backends import device, namespace, rng, to_host
from bigkd.errors import DataError, EmptyInputError, InputError
from bigkd.kernels._rows import check_rows, positive, positive_integer
from bigkd.kernels.base import RadialKernel
from bigkd.kernels.distances import squared_distances
from bigkd.kernels.families import Gaussian
from bigkd.protocols import Array

_STREAM = 0x62616E64  # keeps these numbers apart from other uses of the same seed


class BandwidthChoice(NamedTuple):
    """A bandwidth, and what it was chosen from."""

    bandwidth: float
    """Length of the kernel, in the units of the rows."""

    variance: float
    """Variance of the result at that bandwidth, over the subsets."""

    grid: tuple[float, ...]
    """The candidates, largest first."""

    variances: tuple[float, ...]
    """Their variances; NaN for those below the first violation, which are not looked at."""

    met: bool
    """Whether the variance is within the limit; if not, `bandwidth` is the largest candidate."""


def median_distance(x: Array, *, n_rows: int = 1000, seed: int = 0) -> float:
    """Median Euclidean distance between two rows of `x`.

    Parameters
    ----------
    x
        Rows in memory, shape ``(n, d)``.
    n_rows
        Size of the random sample of rows whose pairs are measured; all rows if there are fewer.
    seed
        Equal seeds give equal samples.

    Returns
    -------
    float
        In the units of `x`, computed in float64; positive. If more than half of the pairs are
        equal rows, the median of the pairs that are not.

    Raises
    ------
    EmptyInputError
        If there are fewer than two rows.
    InputError
        If all sampled rows are equal.
    DataError
        If a sampled value is not finite.

    Examples
    --------
    >>> median_distance(np.array([[0.0], [1.0], [3.0]]))
    2.0
    """
    n_rows = positive_integer("n_rows", n_rows, least=2)
    seed = positive_integer("seed", seed, least=0)
    check_rows("median_distance", namespace(x), x)
    if x.shape[0] < 2:
        raise EmptyInputError(f"median_distance needs at least two rows; got {x.shape[0]}.")
    rows = _sample(x, n_rows, rng(seed, _STREAM, 0))
    distances = np.sqrt(squared_distances(rows, rows)[np.triu_indices(rows.shape[0], k=1)])
    median = float(np.median(distances))
    if median == 0.0:
        distances = distances[distances > 0]
        if distances.size == 0:
            raise InputError(
                f"the {rows.shape[0]} sampled rows are all equal, so they have no median distance; "
                "pass a bandwidth, or a larger n_rows."
            )
        median = float(np.median(distances))
    return median


def variance_rule(
    x: Array,
    *,
    kernel: RadialKernel | None = None,
    grid: Sequence[float] | None = None,
    n_subsets: int = 10,
    subset_rows: int = 500,
    limit: float = 0.01,
    seed: int = 0,
) -> BandwidthChoice:
    r"""Smallest bandwidth at which a result still varies little from subset to subset.

    The result is the RKE score of a subset of `s` rows,
    :math:`1 / \frac{1}{s^2}\sum_{ij} K_{ij}^2`: the number of modes that the kernel tells apart.

    Parameters
    ----------
    x
        Rows in memory, shape ``(n, d)``.
    kernel
        Shape of the kernel, ``Gaussian`` unless given; its length is ignored.
    grid
        Bandwidths to choose from; 25 in geometric progression from 2 to 1/20 of
        `median_distance` unless given.
    n_subsets
        Number of random subsets, at least two.
    subset_rows
        Rows of each, without replacement; at most half of the rows are taken, since subsets that
        are all the same do not vary.
    limit
        Largest variance allowed.
    seed
        Equal seeds give equal subsets.

    Returns
    -------
    BandwidthChoice
        With everything that the choice was made from.

    Raises
    ------
    EmptyInputError
        If there are fewer than four rows.
    InputError
        If an argument is out of range, or all rows are equal and no `grid` is given.
    DataError
        If a sampled value is not finite.

    Notes
    -----
    Source: FINC [1]_, section 5, following [2]_: "searching for the smallest sigma value resulting
    in a variance bounded by 0.01"; it does not say how the search goes. Here it walks from the
    largest candidate down and stops at the first whose variance exceeds `limit`: for a tiny sigma
    the kernel matrix is the identity, the score is s for every subset and its variance is 0
    again, though nothing is told apart. Subsets are the same at every candidate.

    The paper does not name the result either. The score is used and not its logarithm, whose
    variance hardly ever reaches 0.01: the rule would then always choose the end of the grid.

    References
    ----------
    .. [1] J. Zhang, M. Jalali, C. T. Li, F. Farnia, "Identification of Novel Modes in Generative
       Models via Fourier-based Differential Clustering".
    .. [2] M. Jalali, C. T. Li, F. Farnia, "An Information-Theoretic Evaluation of Generative Models
       in Learning Multi-modal Distributions", NeurIPS 2023.
    """
    kernel = Gaussian(1.0) if kernel is None else kernel
    if not isinstance(kernel, RadialKernel):
        raise InputError(
            f"variance_rule needs a kernel with a length, such as bigkd.kernels.Laplace(1.0); got "
            f"{kernel!r}."
        )
    n_subsets = positive_integer("n_subsets", n_subsets, least=2)
    subset_rows = positive_integer("subset_rows", subset_rows, least=2)
    limit = positive("limit", limit)
    seed = positive_integer("seed", seed, least=0)
    check_rows("variance_rule", namespace(x), x)
    if x.shape[0] < 4:
        raise EmptyInputError(f"variance_rule needs at least four rows; got {x.shape[0]}.")
    candidates = _candidates(x, grid, seed)
    size = min(subset_rows, x.shape[0] // 2)
    subsets = [_sample(x, size, rng(seed, _STREAM, 1, i)) for i in range(n_subsets)]
    squared = [squared_distances(rows, rows) for rows in subsets]

    variances = [float("nan")] * len(candidates)
    chosen, met = 0, False
    for i, length in enumerate(candidates):
        at_length = kernel.with_length(length)
        scores = [1.0 / np.mean(at_length.of_squared(s) ** 2) for s in squared]
        variances[i] = float(np.var(scores, ddof=1))
        if variances[i] > limit:
            break
        chosen, met = i, True
    return BandwidthChoice(candidates[chosen], variances[chosen], candidates, tuple(variances), met)


def _candidates(x: Array, grid: Sequence[float] | None, seed: int) -> tuple[float, ...]:
    """Bandwidths to try, largest first."""
    if grid is None:
        median = median_distance(x, seed=seed)
        return tuple(np.geomspace(2.0 * median, median / 20.0, 25).tolist())
    if len(grid) == 0:
        raise InputError("grid must hold at least one bandwidth; got none.")
    return tuple(sorted((positive("grid", length) for length in grid), reverse=True))


def _sample(x: Array, n_rows: int, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    """At most `n_rows` random rows of `x`, in their order, as float64 on the host."""
    if n_rows < x.shape[0]:
        xp = namespace(x)
        index = np.sort(generator.choice(x.shape[0], n_rows, replace=False))
        x = xp.take(x, xp.asarray(index, device=device(x)), axis=0)
    rows = to_host(x).astype(np.float64)
    if not np.isfinite(rows).all():
        bad = np.count_nonzero(~np.isfinite(rows).all(axis=1))
        raise DataError(
            f"{bad} of {rows.shape[0]} sampled rows hold values that are not finite; "
            "drop or fill them before choosing a bandwidth."
        )
    return rows
