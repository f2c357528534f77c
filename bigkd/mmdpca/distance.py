"""`mmd_to_projection`: how far rows are from their projections."""

import math
from dataclasses import replace
from typing import Any, Literal, TypeAlias, Unpack, get_args

import numpy as np
import threadpoolctl
import xarray as xr

from bigkd.engine import NonFinite, Options, Session, open_session, settings_of
from bigkd.errors import EmptyInputError, InputError
from bigkd.io import Source
from bigkd.kernels import Kernel
from bigkd.kernels._rows import positive_integer
from bigkd.linalg import Matrix
from bigkd.mmdpca.found import not_negative
from bigkd.mmdpca.kernels import stored_kernel, tempered
from bigkd.mmdpca.long_rows import LongRows, combined, gram_of
from bigkd.mmdpca.many import Many
from bigkd.mmdpca.measures import MMD2, TAIL, TRACE, gram_measure
from bigkd.mmdpca.points import draw_points, few_enough, measured
from bigkd.mmdpca.projection import Projection, flat, open_like, projection_of, scores_of
from bigkd.mmdpca.rows import Preparation
from bigkd.mmdpca.setting import MOST_ROWS, N_POINTS
from bigkd.schema import PROJECTION, dataset

Measuring: TypeAlias = Literal["auto", "exact", "sample"]


def mmd_to_projection(
    X: Any,
    fit: xr.Dataset,
    *,
    method: Measuring = "auto",
    n_points: int = N_POINTS,
    seed: int = 0,
    **options: Unpack[Options],
) -> xr.Dataset:
    r"""Squared MMD between rows and their projections on the components of a fit. Computes.

    .. math:: \frac{1}{N^2} \sum_{ij} K(x_i, x_j) - 2 K(x_i, P x_j) + K(P x_i, P x_j)

    Parameters
    ----------
    X
        Rows, those of the fit or others, with the same features; less its mean, if it was centred.
    fit
        From `bigkd.mmdpca.fit`: its components, weights and kernel.
    method
        ``"exact"``: all pairs, about ``2 n N**2`` multiply-adds. ``"sample"``: all rows with
        `n_points` of them, drawn at random. ``"auto"``: exact for up to 3e11 multiply-adds.
    n_points
        Rows that are drawn.
    seed
        Of the draw.
    **options
        See `bigkd.engine.Options`.

    Returns
    -------
    xarray.Dataset
        ``mmd2``, its root ``mmd``, and ``mmd2_standard_error``, over the draw: 0 where all pairs
        were summed. ``trace``, the mean of K over pairs, and ``left_out``, the mean of
        :math:`r_i \cdot r_j H(x_i, x_j)`, which is the sum of the eigenvalues that are no
        component's (Theorem 9's bound) where the components are exact for these rows.

    Raises
    ------
    InputError, ShapeError
        If `fit` is no such result, the features are others, or an argument cannot be used.
    DataError
        If a row is not finite and that is not allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd import mmdpca
    >>> rows = np.random.default_rng(0).standard_normal((50, 3)) * [3.0, 1.0, 0.0]
    >>> found = mmdpca.fit(rows, k=2)
    >>> round(float(mmdpca.mmd_to_projection(rows, found)["mmd2"]), 9)
    0.0
    """
    if method not in get_args(Measuring):
        raise InputError(f"method must be 'auto', 'exact' or 'sample'; got {method!r}.")
    n_points = positive_integer("n_points", n_points)
    seed = positive_integer("seed", seed, least=0)
    settings = settings_of(options)
    nonfinite: NonFinite = options.get("nonfinite", "raise")
    opened = open_like(X, fit, options)
    projection = projection_of(fit)
    kernel, a = stored_kernel(fit.attrs)
    chosen = tempered(kernel, a, int(projection.kept.sum())).kernel
    weights = flat(fit, "weight")
    with open_session(settings) as session, threadpoolctl.threadpool_limits(limits=1):
        source = opened.source
        if source.n_rows <= min(source.width, MOST_ROWS) and method != "sample":
            means = _of_few(session, source, nonfinite, projection, weights, chosen)
            errors, used = np.zeros_like(means), "exact"
        else:
            exact = method == "exact" or (
                method == "auto" and few_enough(source.n_rows, source.width)
            )
            many = _many(session, source, nonfinite, projection, weights)
            points = None if exact else draw_points(many, n_points, seed)
            with np.errstate(invalid="ignore"):  # means of no rows
                found = measured(many, chosen, (_basis(projection, weights),), points)
            means, errors = found[0][0], found[1][0]
            used = "exact" if exact else "sample"
    if not np.isfinite(means).all():
        raise EmptyInputError(
            f"{source.name}: no row is finite in all features that the fit knows; nothing is left."
        )
    mmd2 = not_negative(means[MMD2])
    values = {
        "mmd2": mmd2,
        "mmd2_standard_error": float(errors[MMD2]),
        "mmd": math.sqrt(mmd2),
        "trace": float(means[TRACE]),
        "left_out": float(means[TAIL]),
    }
    attrs = {"method": used, "n_points": n_points if used == "sample" else 0, "seed": seed}
    return dataset(PROJECTION, values, attrs={**attrs, "nonfinite": settings.nonfinite})


def _of_few(
    session: Session,
    source: Source,
    nonfinite: NonFinite,
    projection: Projection,
    weights: Matrix | None,
    kernel: Kernel,
) -> Matrix:
    """From the inner products of few long rows.

    Where m is taken off that is d away from their own mean, these are
    ``(x - m).(y - m) = centred + (x - m).d + (y - m).d - d.d``.
    """
    scale = np.where(projection.kept, 1.0 if weights is None else np.sqrt(weights), 0.0)
    scores = scores_of(session, source, projection)
    rows = gram_of(session, source, scale=scale, nonfinite=nonfinite)
    scores, gram = scores[_positions(rows)], rows.gram
    if projection.mean is not None and np.isfinite(scores).all():
        even = np.full((len(scores), 1), 1.0 / len(scores))
        off = combined(session, rows, even)[:, 0] - projection.mean
        off = np.where(projection.kept, off, 0.0)
        onto = replace(projection, vectors=(off * scale**2)[:, None])
        along = scores_of(session, source, onto)[_positions(rows)]
        gram = rows.centred + along + along.T - float(off @ (off * scale**2))
    return gram_measure(kernel, gram, rows.squared_distances, scores)


def _positions(rows: LongRows) -> Any:
    return slice(None) if rows.positions is None else list(rows.positions)


def _many(
    session: Session,
    source: Source,
    nonfinite: NonFinite,
    projection: Projection,
    weights: Matrix | None,
) -> Many:
    kept = None if projection.kept.all() else np.flatnonzero(projection.kept)

    def own(part: Matrix | None) -> Matrix | None:
        return part if part is None or kept is None else part[kept]

    scale = None if weights is None else np.sqrt(weights)
    preparation = Preparation(
        width=source.width,
        kept=kept,
        mean=own(projection.mean),
        scale=own(scale),
        nonfinite=nonfinite,
        name=source.name,
    )
    return Many(session=session, source=source, preparation=preparation)


def _basis(projection: Projection, weights: Matrix | None) -> Matrix:
    """Components of prepared rows: the projection's vectors hold the whole weight, these half."""
    vectors: Matrix = projection.vectors[projection.kept]
    if weights is None:
        return vectors
    found: Matrix = vectors / np.sqrt(weights[projection.kept])[:, None]
    return found
