"""`fit`: the subspace that explains a distribution."""

from typing import Any, Unpack

import numpy as np
import threadpoolctl
import xarray as xr

from bigkd.engine import Options, open_session, settings_of
from bigkd.errors import InputError
from bigkd.kernels._rows import positive_integer
from bigkd.linalg import Matrix
from bigkd.mmdpca.few_rows import fit_few
from bigkd.mmdpca.found import Found
from bigkd.mmdpca.kernels import KernelChoice, Tempered
from bigkd.mmdpca.layout import Features, Opened, feature_weights, open_data
from bigkd.mmdpca.many_rows import fit_many
from bigkd.mmdpca.setting import (
    METHODS,
    N_FREQUENCIES,
    N_LANDMARKS,
    N_POINTS,
    Method,
    Question,
    choose_method,
)
from bigkd.mmdpca.subspace import oriented
from bigkd.schema import SUBSPACE, dataset


def fit(
    X: Any,
    *,
    k: int,
    kernel: KernelChoice = "gauss",
    a: float = 1.0,
    center: bool = False,
    weights: Any = None,
    method: Method = "auto",
    n_landmarks: int = N_LANDMARKS,
    n_frequencies: int = N_FREQUENCIES,
    n_directions: int | None = None,
    n_points: int = N_POINTS,
    mmd: bool = True,
    seed: int = 0,
    **options: Unpack[Options],
) -> xr.Dataset:
    r"""Subspace on which the projected rows are nearest to the rows, by MMD. Computes.

    .. math:: H_f = \frac{1}{N^2} \sum_{ij} x_i x_j^T H(x_i, x_j)

    of the kernel :math:`K(x, y) = (x \cdot y) H(x, y)`; the components are its leading eigenvectors
    (Algorithm 2 of [1]_). Where H falls with the distance, a row counts for the more, the more
    others are near it. Single outliers then count little beside the pairs of all others, though
    each still counts with itself, by its squared length; copies of one outlier are near each other,
    and count more than they do in PCA.

    Parameters
    ----------
    X
        Rows (samples) in any form that `bigkd.io.open_rows` takes: arrays of numbers, ``(n, y, x,
        channel)`` of pictures, paths; or an `xarray.DataArray` or Dataset of any dimensions, of
        which ``dim`` (one called ``sample``, or else the first) counts samples and all others are
        features. Features that are NaN in every row, such as land, are left out.
    k
        Number of components; at most the rank of the rows.
    kernel
        With n the number of features, ``"gauss"``: :math:`H = \exp(-a|x-y|^2/n)`; ``"laplace"``:
        :math:`\exp(-a|x-y|/\sqrt n)`; ``"poisson"``: :math:`(1 + a|x-y|^2/n)^{-(n+1)/2}`, which for
        more than some tens of features is PCA; ``"kurtosis"``: :math:`K = \sum_{i=1}^4
        (x \cdot y/n)^i`; `HigherMoments`; or H itself, a radial or polynomial kernel of
        `bigkd.kernels` in the units of the data.
    a
        Scale of the first three, positive, in the units of the data: the mean of
        :math:`|x-y|^2/n` over pairs decides what is near. Where `a` times that is large H falls to
        0 between all rows, and this is PCA; where it is small H is 1, and the first component is
        the mean row. The paper's pictures have values from 0 to 1.
    center
        Take the mean row from every row first. The paper does not: its subspaces hold the origin.
    weights
        How much each feature counts: None, ``"coslat"`` (cosine of the coordinate lat or latitude,
        in degrees), or an array over features, labelled or of their shape; not negative. The inner
        product is :math:`\sum_j w_j x_j y_j`, w scaled to a mean of 1.
    method
        ``"gram"``, few long rows: their inner products from a pass over columns; exact. ``"pairs"``
        sums over pairs of rows in tiles; exact, ``2 n N**2`` multiply-adds. ``"nystrom"``: features
        from landmarks, ``"moments"``: monomials, exact where they are those of all features, both
        after a sketch of PCA that the argument of the kernel is compressed to; ``"features"``:
        random Fourier features. ``"auto"`` sees shapes and the kernel: ``gram`` for up to 4000 rows
        that are no more than the features, ``pairs`` for up to 3e11 multiply-adds, else ``moments``
        where there are such, else ``nystrom``.
    n_landmarks, n_frequencies
        Landmarks of ``nystrom`` (no more than 256 MB of them, except that there are two for each of
        `n_directions`), random frequencies of ``features``.
    n_directions
        Directions of PCA that the kernel's argument is compressed to, at least `k`. By default
        ``k + 30`` for ``nystrom``; for ``moments`` all, where that makes no more than 2000
        monomials, or else 16, and fewer where their sums would take more than 512 MB.
    n_points
        Rows drawn at random, longer ones sooner, with which all others are paired where pairs are
        too many: to measure MMDs, and what a method leaves out.
    mmd
        Whether to measure the MMDs and bounds; without, they are left out, and so are shares (NaN)
        where the trace is not known. Exact methods then save a pass.
    seed
        Of every random choice.
    **options
        How rows are read and passes run: see `bigkd.engine.Options`. Under ``nonfinite="drop"``
        rows with NaN where others have numbers are left out and counted.

    Returns
    -------
    xarray.Dataset
        ``component`` over ``k`` (1 is the first) and the dimensions of the features, with their
        coordinates: orthonormal in the inner product above, in which ``score = sum(weight * x *
        component)``; NaN for features left out. ``eigenvalue``, ``explained_share`` of the trace;
        ``mean`` where centred, ``weight`` where weighted. ``mmd2`` between rows and projections,
        ``mmd2_pca`` of PCA's subspace, to which ``pca_sine`` is the sine of the largest angle, with
        ``mmd2_standard_error`` where pairs were sampled; ``mmd2_lower``: no distribution in k
        dimensions comes nearer (Theorem 9; where the method is not exact, less three standard
        errors and what ``subspace_error`` may hide); ``mmd2_upper``: of ``mmd2`` for polynomials
        (Theorem 10); for Gauss of the least there is, reached by projected rows of weight
        :math:`\exp(-a|r|^2/n)` (Theorem 11 before its last estimates). ``subspace_error`` estimates
        the sine of the largest angle to the exact subspace: twice the angle by which what the
        method leaves out would turn it, as seen with the rows drawn; rounding for exact methods.
        Every choice is in the attributes.

    Raises
    ------
    InputError
        If an argument cannot be used, or `k` exceeds the rank.
    DataError
        If a row is not finite and that is not allowed.
    ShapeError, EmptyInputError, StoreError, MemoryPlanError, ClusterError
        As every pass does.

    Notes
    -----
    ``gram``: ``n N**2 / 2`` multiply-adds in two passes and one decomposition of ``N x N``; memory
    some matrices of ``N**2``. ``nystrom`` and ``moments``: ``n`` times a few hundred multiply-adds
    a row in three passes; memory about a thousand numbers a feature, however many rows.

    ``explained_share`` is of H_f, not of the variance: for ``HigherMoments((0, 1))``, which is PCA,
    eigenvalues are the squares of those of the second moments.

    References
    ----------
    .. [1] R. Takhanov, "Reducing the dimensionality of data using tempered distributions".

    Examples
    --------
    >>> import numpy as np
    >>> line = np.outer(np.linspace(-1, 1, 20), [3.0, 4.0])
    >>> found = fit(line, k=1)
    >>> abs(found["component"].values).round(6)
    array([[0.6, 0.8]])
    """
    question = _question(
        k=k, kernel=kernel, a=a, center=center, method=method, n_landmarks=n_landmarks,
        n_frequencies=n_frequencies, n_directions=n_directions, n_points=n_points, mmd=mmd,
        seed=seed,
    )  # fmt: skip
    settings = settings_of(options)
    opened = open_data(X, options)
    own = feature_weights(weights, opened.features)
    source = opened.source
    _require_fewer(question.k, source.n_rows, source.width)
    chosen_method = choose_method(question, source.n_rows, source.width)
    with open_session(settings) as session, threadpoolctl.threadpool_limits(limits=1):
        how: dict[str, Any] = {"weights": own, "nonfinite": settings.nonfinite}
        if chosen_method == "gram":
            found, beside = fit_few(session, source, question, **how)
        else:
            found, beside = fit_many(session, source, question, chosen_method, **how)
    told = weights if isinstance(weights, str) else "none" if weights is None else "given"
    about = {"weights": told, "nonfinite": settings.nonfinite}
    return _result(found, beside, opened, question, own, about)


def _question(**given: Any) -> Question:
    for name in ("k", "n_landmarks", "n_frequencies", "n_points"):
        given[name] = positive_integer(name, given[name])
    given["seed"] = positive_integer("seed", given["seed"], least=0)
    if given["n_directions"] is not None:
        given["n_directions"] = positive_integer(
            "n_directions", given["n_directions"], least=given["k"]
        )
    for name in ("center", "mmd"):
        if not isinstance(given[name], bool | np.bool_):
            raise InputError(f"{name} must be True or False; got {given[name]!r}.")
        given[name] = bool(given[name])
    if given["method"] not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}; got {given['method']!r}.")
    return Question(**given)


def _require_fewer(k: int, n_rows: int, n_features: int) -> None:
    if k > min(n_rows, n_features):
        raise InputError(
            f"k={k} components were asked for, of {n_rows} rows of {n_features} features; pass k "
            f"of at most {min(n_rows, n_features)}."
        )


def _result(
    found: Found,
    beside: dict[str, Any],
    opened: Opened,
    question: Question,
    weights: Matrix | None,
    told: dict[str, str],
) -> xr.Dataset:
    chosen: Tempered = beside["chosen"]
    features, kept = opened.features, beside["kept"]
    vectors = np.where(kept[:, None], oriented(np.where(kept[:, None], found.vectors, 0.0)), np.nan)
    values = {"component": vectors.T, **found.variables(chosen)}
    if question.center:
        values["mean"] = np.where(kept, beside["mean"], np.nan)
    if weights is not None:
        values["weight"] = np.where(kept, weights * beside["share"], np.nan)
    measured = "none"
    if found.errors is not None:
        measured = "sample" if found.errors.any() else "exact"
    attrs = {
        **chosen.about,
        "k": question.k,
        "center": int(question.center),
        **told,
        "asked_method": question.method,
        "mmd": measured,
        "n_points": question.n_points if measured == "sample" else 0,
        "dim": opened.sample_dim,
        "n_features": int(kept.sum()),
        "n_features_left_out": int((~kept).sum()),
        "n_skipped": opened.source.skipped,
        "seed": question.seed,
        **found.about,
    }
    return _unstacked(dataset(SUBSPACE, values, attrs=attrs), features)


def _unstacked(flat: xr.Dataset, features: Features) -> xr.Dataset:
    """The result with the axes of the features in place of one."""
    out = xr.Dataset(coords=features.coords, attrs=flat.attrs)
    out = out.assign_coords(k=np.arange(1, flat.sizes["k"] + 1))
    for name, part in flat.data_vars.items():
        dims = tuple(dim for dim in part.dims if dim != "feature")
        values = part.values
        if "feature" in part.dims:
            dims, values = (*dims, *features.dims), features.unstacked(values)
        out[name] = (dims, values, part.attrs)
    return out
