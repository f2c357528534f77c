"""`kernel_distance` and `unbiased_mmd2`: two collections in, a number with a promise out."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import xarray as xr

from bigkd.distance.collections import Measured
from bigkd.distance.costs import Costs, cheapest, wants_extents
from bigkd.distance.estimates import Kappas
from bigkd.distance.methods import exact_kappas, nufft_kappas, rff_kappas
from bigkd.distance.opening import Given, opened
from bigkd.distance.question import KernelChoice, Method, Question, Sizing
from bigkd.distance.results import distance_dataset, unbiased_dataset
from bigkd.distance.samples import coreset_kappas
from bigkd.distance.setting import Setting
from bigkd.engine import Options
from bigkd.errors import InputError

_METHODS: Mapping[str, Callable[[Setting], tuple[list[Measured], Kappas]]] = {
    "exact": exact_kappas,
    "rff": rff_kappas,
    "nufft": nufft_kappas,
    "coreset": coreset_kappas,
}


class _Found(NamedTuple):
    setting: Setting
    known: list[Measured]
    kappas: Kappas
    about: dict[str, Any]


def kernel_distance(
    x: Any,
    y: Any,
    *,
    kernel: KernelChoice,
    x_weights: Any = None,
    y_weights: Any = None,
    x_vectors: Any = None,
    y_vectors: Any = None,
    normalize: bool = True,
    method: Method = "auto",
    eps: float = 0.01,
    delta: float = 0.01,
    n_frequencies: int | None = None,
    sizing: Sizing = "pilot",
    coreset_size: int | None = None,
    seed: int = 0,
    costs: Costs | None = None,
    **options: Unpack[Options],
) -> xr.Dataset:
    r"""Kernel distance of two weighted collections, with a promise of its error.

    .. math:: D^2 = \kappa(x, x) + \kappa(y, y) - 2\kappa(x, y), \quad
              \kappa(x, y) = \sum_{ij} \mu_i \nu_j K(x_i, y_j) \langle U_i, V_j \rangle

    With weights that sum to 1, as they do by default, D is the maximum mean discrepancy (MMD).
    Computes.

    Parameters
    ----------
    x, y
        Collections of n and m rows of equal width: arrays (NumPy, CuPy, Dask, Zarr, xarray), paths
        (Zarr, ``.npy``, Parquet), or shapes of `bigkd.shapes`, which bring weights and vectors.
    kernel
        A kernel of `bigkd.kernels`, or ``"median"`` for a Gaussian whose sigma is the median
        distance in a seeded sample of both.
    x_weights, y_weights
        Weights mu, nu, shape ``(n,)``; 1 unless given.
    x_vectors, y_vectors
        Directions U, V of length 1, shape ``(n, c)``, such as normals; both or neither.
    normalize
        Divide weights by their sum. Pass False for lengths, areas and signed weights.
    method
        ``"exact"``: every pair. ``"nufft"``: waves on a grid of frequencies, for up to three
        columns. ``"rff"``: random Fourier features. ``"coreset"``: every pair of random samples.
        ``"auto"``: the cheapest whose promise is expected to meet `eps`; the attribute
        ``method_reason`` says what the others would have cost.
    eps
        Error of the squared distance to aim at, in units of ``W**2``, W the larger total weight.
        Where sets are similar the squared distance is far below 1: see ``relative_promise``.
    delta
        Probability with which the promise of a random method may fail.
    n_frequencies
        Number of random frequencies, instead of the one that `sizing` gives.
    sizing
        How many random frequencies: ``"pilot"``, those after which the promise should be `eps`,
        judged on a sample; ``"value"``, those that suffice whatever the data (Hoeffding);
        ``"points"``, for all pairs of rows at once (Lemma 4.1); ``"domain"``, for all points of the
        bounding box.
    coreset_size
        Rows of each sample, instead of those that `eps` needs.
    seed
        Of every random choice.
    costs
        Costs of this machine for ``method="auto"``, from `measure_costs`; otherwise those of a
        common server, so that the choice is the same everywhere.
    **options
        How rows are read and the passes run: `bigkd.engine.Options`.

    Returns
    -------
    xarray.Dataset
        Scalars ``distance``, ``distance_squared``, ``kappa_xx``, ``kappa_yy``, ``kappa_xy``;
        ``promise``, the bound of the error of the squared distance, also as ``relative_promise``
        and as ``distance_lower`` and ``distance_upper``; ``standard_error`` over random
        frequencies. ``negative`` tells that the squared distance is below 0, which a kernel that is
        not positive definite can do, and rounding: the distance is then given as 0, its square as
        it is. Attributes record every choice; ``promise_kind`` is ``rounding``, ``deterministic``,
        or ``probabilistic`` (broken with probability `delta`).

    Raises
    ------
    ShapeError, EmptyInputError, InputError
        If the collections, weights or vectors do not fit together, weights are all zero, a method
        does not know the kernel, or an argument is out of range.
    DataError, StoreError
        If rows are not finite, a weight is negative and `normalize`, or a path cannot be read.
    MemoryPlanError, ClusterError
        As `bigkd.finc.modes`.

    Notes
    -----
    Cost of a row: ``exact`` as many kernel values as there are rows; ``rff`` ``d r`` multiply-adds
    and as many sines and cosines as twice its frequencies; ``nufft`` one transform of finufft, in
    two passes, since the bounding box comes first. Sums are float64, whatever the rows are.

    References
    ----------
    .. [1] S. Joshi, R. V. Kommaraju, J. M. Phillips, S. Venkatasubramanian, "Comparing
       Distributions and Shapes using the Kernel Distance", SoCG 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd import distance, kernels
    >>> x = np.zeros((1, 2))
    >>> y = np.array([[3.0, 4.0]])
    >>> found = distance.kernel_distance(x, y, kernel=kernels.Gaussian(5.0), method="exact")
    >>> round(float(found["distance_squared"]), 6)  # 2 - 2 exp(-1/2)
    0.786939
    """
    question = Question(
        method=method,
        eps=eps,
        delta=delta,
        n_frequencies=n_frequencies,
        sizing=sizing,
        coreset_size=coreset_size,
        normalize=normalize,
        seed=seed,
    )
    given = {"x": Given(x, x_weights, x_vectors), "y": Given(y, y_weights, y_vectors)}
    return distance_dataset(*_find(given, kernel, question, costs, options))


def unbiased_mmd2(
    x: Any,
    y: Any,
    *,
    kernel: KernelChoice,
    x_weights: Any = None,
    y_weights: Any = None,
    method: Method = "auto",
    eps: float = 0.01,
    delta: float = 0.01,
    n_frequencies: int | None = None,
    sizing: Sizing = "pilot",
    coreset_size: int | None = None,
    seed: int = 0,
    costs: Costs | None = None,
    **options: Unpack[Options],
) -> xr.Dataset:
    r"""Squared MMD without the bias of finite collections: the U-statistic.

    .. math:: \frac{\sum_{i \ne j} \mu_i \mu_j K(x_i, x_j)}{(\sum \mu)^2 - \sum \mu^2}
              + \frac{\sum_{i \ne j} \nu_i \nu_j K(y_i, y_j)}{(\sum \nu)^2 - \sum \nu^2}
              - 2 \frac{\sum_{ij} \mu_i \nu_j K(x_i, y_j)}{\sum \mu \sum \nu}

    Its mean over collections drawn from one source is 0, so about half of them give a negative
    number; it is returned as it is. Computes.

    Parameters
    ----------
    x, y, kernel, x_weights, y_weights, method, eps, delta
        As for `kernel_distance`; at least two rows of positive weight each.
    n_frequencies, sizing, coreset_size, seed, costs, **options
        As for `kernel_distance`.

    Returns
    -------
    xarray.Dataset
        Scalars ``mmd2``, ``mmd2_biased``, the ``promise`` of the former as a number of these rows,
        and its ``standard_error`` over random frequencies; attributes as for `kernel_distance`.

    Raises
    ------
    InputError
        If a collection has less than two rows of positive weight.
    BigkdError
        As `kernel_distance`.

    References
    ----------
    .. [1] A. Gretton et al., "A Kernel Two-Sample Test", JMLR 2012, equation 3.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd import distance, kernels
    >>> found = distance.unbiased_mmd2(
    ...     np.zeros((2, 1)), np.array([[1.0], [-1.0]]), kernel=kernels.Polynomial((0.0, 1.0)))
    >>> float(found["mmd2"])
    -1.0
    """
    question = Question(
        method=method,
        eps=eps,
        delta=delta,
        n_frequencies=n_frequencies,
        sizing=sizing,
        coreset_size=coreset_size,
        seed=seed,
    )
    given = {"x": Given(x, x_weights), "y": Given(y, y_weights)}
    found = _find(given, kernel, question, costs, options)
    for name, about in zip(("x", "y"), found.known, strict=True):
        if about.squares >= 1.0 - 1e-12:
            raise InputError(
                f"{name} has less than two rows of positive weight; an unbiased estimate needs "
                f"two. Use kernel_distance."
            )
    return unbiased_dataset(*found)


def _find(
    collections: Mapping[str, Given],
    kernel: KernelChoice,
    question: Question,
    costs: Costs | None,
    options: Mapping[str, Any],
) -> _Found:
    """The kernel sums of both collections, and all that a result tells of them."""
    with opened(collections, kernel, question, options) as begun:
        setting, method, why = begun.setting, str(question.method), "as asked"
        if costs is not None and not isinstance(costs, Costs):
            raise InputError(f"costs must be those of measure_costs(); got {type(costs).__name__}.")
        if method == "auto":
            if wants_extents(setting):
                setting = replace(setting, known=setting.measured())
            best = cheapest(setting, costs or Costs())
            method, why = best.method, best.why
        measured, kappas = _METHODS[method](setting)
    return _Found(setting, measured, kappas, {**begun.about, "method_reason": why})
