"""`two_sample_test`: whether the difference of two collections is real."""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias, Unpack

import numpy as np
import threadpoolctl
import xarray as xr

from bigkd.backends import rng, to_host
from bigkd.distance.collections import Measured, measured
from bigkd.distance.methods import features_of
from bigkd.distance.opening import Given, opened
from bigkd.distance.question import KernelChoice, Question
from bigkd.distance.results import collection_attrs, kernel_attrs
from bigkd.distance.setting import Setting
from bigkd.engine import Options, collect_rows
from bigkd.errors import DataError, InputError
from bigkd.schema import TWO_SAMPLE, dataset
from bigkd.summaries import Extent, Joined, MeanEmbedding
from bigkd.summaries.embeddings import mass_of

Matrix: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

_STREAM = 0x7065726D  # keeps these numbers apart from other uses of a seed
_BATCH = 256
_FEWEST_GROUPS = 16
MOST_PAIRED = 4_000


class _Pool(NamedTuple):
    """What is permuted: rows, or groups of them."""

    weight: Matrix  # (N,)
    scale: float  # rounding of the squares is far below 1e-13 of it
    n_first: int  # how many belong to x
    squared: Callable[[Matrix], Matrix]  # squared norm of sums, for coefficients (N, k)


def two_sample_test(
    x: Any,
    y: Any,
    *,
    kernel: KernelChoice = "median",
    x_weights: Any = None,
    y_weights: Any = None,
    method: Literal["auto", "features", "exact"] = "auto",
    n_permutations: int = 999,
    n_frequencies: int = 500,
    n_groups: int = 256,
    alpha: float = 0.05,
    seed: int = 0,
    **options: Unpack[Options],
) -> xr.Dataset:
    """Permutation test of whether two collections come from one source. Computes.

    Parameters
    ----------
    x, y
        Collections of n and m rows of equal width, as for `kernel_distance`.
    kernel
        A kernel of `bigkd.kernels`, or ``"median"`` for a Gaussian of the median distance.
    x_weights, y_weights
        Weights of rows, not negative; 1 unless given.
    method
        ``"exact"`` permutes rows and needs every pair of them: up to 4000 rows together.
        ``"features"`` permutes the mean features of random groups of rows: one pass, any n.
        ``"auto"``: exact up to 2000 rows together, if they carry no weights.
    n_permutations
        Random permutations; the smallest p-value is ``1 / (n_permutations + 1)``.
    n_frequencies
        Number r of random Fourier frequencies of ``"features"``. The p-value is valid for any; more
        of them see finer differences.
    n_groups
        Groups of both collections together, of equal expected size; at least 64.
    alpha
        Level for ``rejected`` and ``null_quantile``.
    seed
        Of frequencies, groups and permutations.
    **options
        How rows are read and the passes run: `bigkd.engine.Options`.

    Returns
    -------
    xarray.Dataset
        Scalars ``p_value``, ``statistic`` (the squared MMD, V-statistic, of the rows that were
        permuted), ``null_mean``, ``null_std``, ``null_quantile`` and ``rejected``.

    Raises
    ------
    InputError
        If an argument is out of range, the kernel has no random features, or ``"exact"`` is asked
        for too many rows.
    BigkdError
        As `kernel_distance`.

    Notes
    -----
    ``p = (1 + #{permuted >= observed}) / (1 + n_permutations)``, so that under the null hypothesis
    ``P(p <= a) <= a``. Rows are dealt to groups by a hash of their number: neighbours in a sorted
    collection fall into different groups. Groups of both collections have the same expected size,
    so that under the null hypothesis they can be exchanged. If one collection is much larger, so
    many of its groups are left out that no more than `n_groups` remain; the smaller one decides the
    power. Rows that depend on each other, such as frames of a film, make p-values too small.

    With weights the question is whether the weighted distributions are equal. Groups are then sized
    by the effective number of rows, ``(sum w)^2 / sum w^2``, which takes one more pass, and the
    p-value is approximate: with a few weights far above all others it can be half of what it should
    be. ``"exact"`` exchanges rows together with their weights, which is right only if both
    collections got their weights in the same way.

    Cost of a row: ``d r`` multiply-adds, r sines and cosines. Memory of a task: ``16 r n_groups``
    bytes.

    References
    ----------
    .. [1] A. Gretton et al., "A Kernel Two-Sample Test", JMLR 2012.
    .. [2] B. Phipson, G. Smyth, "Permutation P-values Should Never Be Zero", 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd import distance
    >>> rows = np.random.default_rng(0).normal(size=(400, 2))
    >>> float(distance.two_sample_test(rows[:200], rows[200:] + 1.0)["p_value"])
    0.001
    """
    _check(method, n_permutations, n_frequencies, n_groups, alpha)
    question = Question(n_frequencies=n_frequencies, seed=seed)
    given = {"x": Given(x, x_weights), "y": Given(y, y_weights)}
    with opened(given, kernel, question, options) as (setting, about):
        _refuse_vectors(setting)
        n_rows = sum(source.n_rows for source in setting.sources)
        weighted = any(source.weights is not None for source in setting.sources)
        if method == "auto":
            few = n_rows <= MOST_PAIRED // 2
            method = "exact" if few and not weighted else "features"
        make = _rows_pool if method == "exact" else _groups_pool
        pool, known, more = make(setting, n_groups)
    with threadpoolctl.threadpool_limits(limits=1):
        found = _permuted(pool, n_permutations, alpha, seed)
    attrs = {
        "method": method,
        **more,
        **about,
        **kernel_attrs(setting),
        **collection_attrs(("x", "y"), known),
        "n_permutations": n_permutations,
        "alpha": alpha,
        "nonfinite": setting.session.settings.nonfinite,
        "seed": seed,
    }
    return dataset(TWO_SAMPLE, found, attrs=attrs)


def _check(
    method: str, n_permutations: int, n_frequencies: int, n_groups: int, alpha: float
) -> None:
    if method not in ("auto", "features", "exact"):
        raise InputError(f"method must be 'auto', 'features' or 'exact'; got {method!r}.")
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie between 0 and 1; got {alpha!r}.")
    wholes = (
        ("n_permutations", n_permutations, 1),
        ("n_frequencies", n_frequencies, 2),
        ("n_groups", n_groups, 4 * _FEWEST_GROUPS),
    )
    for name, value, least in wholes:
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InputError(f"{name} must be a whole number of at least {least}; got {value!r}.")


def _refuse_vectors(setting: Setting) -> None:
    if any(source.vectors is not None for source in setting.sources):
        raise InputError(
            "two_sample_test is of points; a shape with vectors has no permutations. Pass its "
            "points: x['point']."
        )


def _rows_pool(setting: Setting, n_groups: int) -> tuple[_Pool, list[Measured], dict[str, Any]]:
    """Every row by itself, and the kernel of every pair."""
    del n_groups
    n_rows = sum(source.n_rows for source in setting.sources)
    if n_rows > MOST_PAIRED:
        raise InputError(
            f"method='exact' holds every pair of the {n_rows} rows in memory; at most "
            f"{MOST_PAIRED} are allowed. Pass method='features'."
        )
    known = setting.measured()
    policy = setting.session.settings.nonfinite
    parts = [collect_rows(source, policy) for source in setting.sources]
    values = np.concatenate([to_host(part.values) for part in parts])
    values = values.astype(np.result_type(values.dtype, np.float32), copy=False)
    gram = setting.kernel(values, values).astype(np.float64)
    weight = np.concatenate([to_host(mass_of(part)) for part in parts])

    def squared(coefficients: Matrix) -> Matrix:
        own = coefficients * weight[:, None]
        return np.asarray(np.sum(own * (gram @ own), axis=0))

    scale = 4.0 * float(np.abs(gram).max())
    return _Pool(weight, scale, parts[0].values.shape[0], squared), known, {}


def _groups_pool(setting: Setting, n_groups: int) -> tuple[_Pool, list[Measured], dict[str, Any]]:
    """Random groups of rows, and the sums of their features."""
    features = features_of(setting, int(setting.question.n_frequencies or 0))
    sizes = _effective_sizes(setting)
    dealt = _deal(sizes, n_groups)
    extent = Extent(width=setting.width, kernel=setting.kernel)
    known, sums, weights = [], [], []
    for number, (source, (kept, of)) in enumerate(zip(setting.sources, dealt, strict=True)):
        seed = int(rng(setting.question.seed, _STREAM, 1 + number).integers(2**31))
        groups = MeanEmbedding(features=features, n_groups=kept, n_dealt=of, seed=seed)
        summary = Joined(summaries=(extent, groups))
        label = f"groups of {source.name}"
        reduced = setting.session.reduce(summary, source, label=label)
        known.append(measured(source, reduced, reduced.state[0], normalize=True))
        unit = sizes[number] / known[number].mass
        weights.append(unit * to_host(reduced.state[1].weight))
        sums.append(unit * to_host(reduced.state[1].total)[:, 0, :])
    features_by_group = np.concatenate(sums)

    def squared(coefficients: Matrix) -> Matrix:
        return np.asarray(np.sum((features_by_group.T @ coefficients) ** 2, axis=0))

    attrs: dict[str, Any] = {"n_frequencies": features.n_frequencies}
    for source, (kept, of) in zip(setting.sources, dealt, strict=True):
        attrs |= {f"n_groups_{source.name}": kept, f"n_groups_left_out_{source.name}": of - kept}
    return _Pool(np.concatenate(weights), 4.0, dealt[0][0], squared), known, attrs


def _effective_sizes(setting: Setting) -> list[float]:
    """Rows of each collection; of weighted or dropped ones as many as would scatter as much."""
    weighted = any(source.weights is not None for source in setting.sources)
    if not weighted and setting.session.settings.nonfinite == "raise":
        return [float(source.n_rows) for source in setting.sources]
    return [1.0 / about.squares for about in setting.measured()]


def _deal(sizes: list[float], n_groups: int) -> list[tuple[int, int]]:
    """Groups kept and dealt of each collection, so that all have about as many rows."""
    n_groups = min(n_groups, max(2, round(sum(sizes))))
    smaller = min(sizes)
    few = min(_FEWEST_GROUPS, round(smaller))
    own = max(round(n_groups * smaller / sum(sizes)), few, 1)
    rows = smaller / own
    dealt = [max(1, round(size / rows)) for size in sizes]
    return [(min(of, max(own, n_groups - own)), of) for of in dealt]


def _permuted(pool: _Pool, n_permutations: int, alpha: float, seed: int) -> dict[str, Any]:
    """The statistic, and where it stands among those of random divisions."""
    n, generator = pool.weight.shape[0], rng(seed, _STREAM, 0)
    observed = float(_statistics(pool, np.arange(n)[:, None])[0])
    null = np.empty(n_permutations)
    for start in range(0, n_permutations, _BATCH):
        count = min(_BATCH, n_permutations - start)
        orders = generator.permuted(np.tile(np.arange(n)[:, None], count), axis=0)
        null[start : start + count] = _statistics(pool, orders)
    if not (math.isfinite(observed) and np.isfinite(null).all()):
        raise DataError(
            "the statistic is not finite: kernel values or weighted features overflow. Divide rows "
            "and weights by their largest."
        )
    # Sums in another order may differ in the last digits: ties count as reached.
    slack = 1e-9 * abs(observed) + 1e-13 * pool.scale
    reached = np.count_nonzero(null >= observed - slack)
    p_value = (1 + reached) / (1 + n_permutations)
    rank = math.ceil((1.0 - alpha) * (n_permutations + 1)) - 1
    return {
        "p_value": p_value,
        "statistic": observed,
        "null_mean": null.mean(),
        "null_std": null.std(),
        "null_quantile": np.sort(null)[rank] if rank < n_permutations else math.inf,
        "rejected": p_value <= alpha,
    }


def _statistics(pool: _Pool, orders: np.ndarray[Any, Any]) -> Matrix:
    """Squared MMD of the first `n_first` of each order, shape (N, k), from the rest."""
    signs = np.empty(orders.shape)
    for row, sign in ((slice(0, pool.n_first), 1.0), (slice(pool.n_first, None), -1.0)):
        members = orders[row]
        masses = pool.weight[members].sum(axis=0)
        shares = np.divide(sign, masses, out=np.zeros_like(masses), where=masses > 0)
        np.put_along_axis(signs, members, np.broadcast_to(shares, members.shape), axis=0)
    return pool.squared(signs)
