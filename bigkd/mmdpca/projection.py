"""`project` rows on components, and `reconstruct` them."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Unpack

import dask.array as da
import numpy as np
import xarray as xr

from bigkd.backends import compute_dtype, device, namespace, to_host
from bigkd.config import HELD_BYTES
from bigkd.engine import Options, Settings, map_rows, open_session, settings_of
from bigkd.errors import DataError, InputError, ShapeError
from bigkd.io import Source
from bigkd.io.columns import columns_of
from bigkd.kernels._rows import tiles
from bigkd.linalg import Matrix
from bigkd.mmdpca.layout import Opened, open_data, require_features
from bigkd.protocols import Array, Footprint, Rows
from bigkd.schema import SCORE

_TILE_ELEMENTS = 2**22  # numbers that are cast and multiplied at once


@dataclass(frozen=True, kw_only=True, eq=False)
class Projection:
    """What takes rows to scores.

    Attributes
    ----------
    vectors
        Components times weights, shape ``(n, k)``; zero for features left out.
    kept
        Features that count, shape ``(n,)``, bool.
    mean
        Shape ``(n,)``; None for nothing.
    nonfinite
        Whether rows with NaN are refused, or get NaN.
    """

    vectors: Matrix = field(repr=False)
    kept: Matrix = field(repr=False)
    mean: Matrix | None = field(default=None, repr=False)
    nonfinite: str = "raise"

    @property
    def of_mean(self) -> Matrix:
        """Scores of the mean row, shape ``(k,)``."""
        if self.mean is None:
            return np.zeros(self.vectors.shape[1])
        return np.asarray(self.mean[self.kept] @ self.vectors[self.kept])

    def __call__(self, x: Array) -> Array:
        """Scores, shape ``(n, k)``, of rows of shape ``(n, width)``, in the precision of those.

        Raises
        ------
        DataError
            If one is not finite and that is not allowed.
        """
        xp, on = namespace(x), device(x)
        dtype = compute_dtype(xp, x.dtype)
        at = None if self.kept.all() else np.flatnonzero(self.kept)
        own = self.vectors if at is None else self.vectors[at]
        vectors = xp.asarray(own, dtype=dtype, device=on)
        places = None if at is None else xp.asarray(at, device=on)
        parts = []
        for rows in tiles(x.shape[0], max(1, _TILE_ELEMENTS // x.shape[1])):
            some = x[rows, :] if at is None else xp.take(x[rows, :], places, axis=1)
            parts.append(xp.astype(some, dtype, copy=False) @ vectors)
        scores = xp.astype(xp.concat(parts), xp.float64)
        finite = xp.all(xp.isfinite(scores), axis=1)
        if self.nonfinite == "raise" and not bool(xp.all(finite)):
            raise DataError(
                f"X: {int(xp.sum(~finite))} of {x.shape[0]} rows of a block are not finite in "
                f"features that the fit knows. Pass nonfinite='drop' for NaN scores of such rows."
            )
        return scores - xp.asarray(self.of_mean, device=on)


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnScores:
    """Scores of all rows at once, from blocks of columns: ``X V``."""

    projection: Projection
    n_rows: int
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> Array:
        """Zeros, shape ``(n_rows, k)``."""
        xp = namespace(like)
        shape = (self.n_rows, self.projection.vectors.shape[1])
        return xp.zeros(shape, dtype=xp.float64, device=device(like))

    def update(self, state: Array, rows: Rows) -> Array:
        """State after some features, too; adds into `state`."""
        xp, on = namespace(rows.values), device(rows.values)
        index = to_host(rows.index)
        good = np.flatnonzero(self.projection.kept[index])
        values = xp.take(rows.values, xp.asarray(good, device=on), axis=0)
        values = xp.astype(values, compute_dtype(xp, values.dtype), copy=False)
        own = xp.asarray(self.projection.vectors[index[good]], dtype=values.dtype, device=on)
        state += values.T @ own
        return state

    def merge(self, left: Array, right: Array) -> Array:
        """Sum."""
        return left + right

    def finalize(self, state: Array) -> Array:
        """Scores, shape ``(n_rows, k)``; NaN for rows that are not finite."""
        return state

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """The scores, and copies of the block."""
        k = self.projection.vectors.shape[1]
        return Footprint(
            state=8 * self.n_rows * k,
            scratch=2 * n_rows * (self.n_rows + k) * (4 if itemsize <= 4 else 8),
            row_cost=self.n_rows * k,
        )


def project(X: Any, fit: xr.Dataset, **options: Unpack[Options]) -> xr.DataArray:
    """Coordinates of rows along the components of a fit.

    Parameters
    ----------
    X
        Rows, those of the fit or others, with the same features; as `bigkd.mmdpca.fit` takes them.
    fit
        What `bigkd.mmdpca.fit` returned.
    **options
        See `bigkd.engine.Options`; how the pass runs matters only where it computes. Under
        ``nonfinite="drop"`` rows that are not finite get NaN.

    Returns
    -------
    xarray.DataArray
        ``score`` over the dimension of the samples, with their labels, and ``k``, float64: the sum
        of ``weight * (x - mean) * component``. Lazy, blocks of rows its chunks: write it with
        ``.to_zarr``, or take ``.compute()``. Computed at once, from one pass over columns, where a
        store is chunked so that blocks of rows would be larger than 256 MB.

    Raises
    ------
    InputError, ShapeError
        If `fit` is no such result, or the features are others.
    DataError
        If a row is not finite and that is not allowed; once it is computed.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd import mmdpca
    >>> line = np.outer(np.linspace(-1, 1, 5), [3.0, 4.0])
    >>> abs(mmdpca.project(line, mmdpca.fit(line, k=1))).values.ravel()
    array([5. , 2.5, 0. , 2.5, 5. ])
    """
    settings = settings_of(options)
    opened = open_like(X, fit, options)
    projection = projection_of(fit, opened, settings)
    scores = _scores(opened.source, projection, settings)
    dims = (opened.sample_dim, "k")
    coords = {"k": fit["k"].values}
    if opened.labels is not None:
        coords[opened.sample_dim] = opened.labels
    meaning = SCORE["score"]
    attrs = {"long_name": meaning.long_name, "units": meaning.units}
    return xr.DataArray(scores, dims=dims, coords=coords, name="score", attrs=attrs)


def reconstruct(scores: xr.DataArray, fit: xr.Dataset) -> xr.DataArray:
    """Rows of the subspace with given coordinates.

    Parameters
    ----------
    scores
        From `project`; of any dimensions besides ``k``.
    fit
        What `bigkd.mmdpca.fit` returned.

    Returns
    -------
    xarray.DataArray
        ``reconstruction``: the sum of ``score * component``, plus the mean where the fit was
        centred; in the units of the data. Lazy where `scores` are, as many numbers as the data:
        write it with ``.to_zarr``. NaN for features that were left out.

    Raises
    ------
    InputError
        If `fit` is no such result, or `scores` are not over its components.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd import mmdpca
    >>> line = np.outer(np.linspace(-1, 1, 5), [3.0, 4.0])
    >>> found = mmdpca.fit(line, k=1)
    >>> again = mmdpca.reconstruct(mmdpca.project(line, found), found)
    >>> bool(np.allclose(again, line))
    True
    """
    require_fit(fit)
    if not isinstance(scores, xr.DataArray) or "k" not in scores.dims:
        raise InputError(
            f"scores must be an xarray.DataArray over 'k', from project; got "
            f"{getattr(scores, 'dims', type(scores).__name__)}."
        )
    if scores.sizes["k"] != fit.sizes["k"]:
        raise ShapeError(
            f"scores has {scores.sizes['k']} components and fit {fit.sizes['k']}; pass the scores "
            f"that project gave for this fit."
        )
    component = fit["component"].drop_vars("k", errors="ignore")
    again = xr.dot(scores.drop_vars("k", errors="ignore"), component, dim="k")
    if "mean" in fit:
        again = again + fit["mean"]
    again.attrs = {"long_name": "projection of the row on the components", "units": "units of x"}
    renamed: xr.DataArray = again.rename("reconstruction")
    return renamed


def require_fit(fit: Any) -> None:
    """Refuse what is no result of `bigkd.mmdpca.fit`."""
    if not isinstance(fit, xr.Dataset) or "component" not in fit or "kernel" not in fit.attrs:
        raise InputError(
            f"fit must be the Dataset that bigkd.mmdpca.fit returned; got {type(fit).__name__}"
            + (f" with {', '.join(map(str, fit))}." if isinstance(fit, xr.Dataset) else ".")
        )


def open_like(X: Any, fit: xr.Dataset, options: Any) -> Opened:
    """Rows with the features of a fit."""
    require_fit(fit)
    dim = fit.attrs.get("dim")
    named = isinstance(X, xr.DataArray | xr.Dataset) and dim in X.dims
    chosen = {"dim": dim} if named and options.get("dim") is None else {}
    opened = open_data(X, {**options, **chosen})
    component = fit["component"].isel(k=0, drop=True)
    require_features(opened.features, component)
    return opened


def projection_of(fit: xr.Dataset, opened: Opened, settings: Settings) -> Projection:
    """What takes rows to scores."""
    n = opened.features.size
    vectors = fit["component"].values.reshape(-1, n).T
    kept = np.isfinite(vectors).all(axis=1)
    vectors = np.where(kept[:, None], vectors, 0.0)
    if "weight" in fit:
        vectors = vectors * np.where(kept, fit["weight"].values.reshape(n), 0.0)[:, None]
    mean = fit["mean"].values.reshape(n) if "mean" in fit else None
    return Projection(vectors=vectors, kept=kept, mean=mean, nonfinite=settings.nonfinite)


def scores_of(source: Source, projection: Projection, settings: Settings) -> Matrix:
    """Scores of all rows, computed."""
    scores = _scores(source, projection, settings)
    return np.asarray(scores.compute() if isinstance(scores, da.Array) else scores)


def _scores(source: Source, projection: Projection, settings: Settings) -> Any:
    if source.largest_block * source.row_bytes > HELD_BYTES:
        columns = columns_of(source)
        if columns is not None:
            return _by_columns(source, columns, projection, settings)
    return map_rows(
        projection,
        source,
        width=projection.vectors.shape[1],
        dtype=np.dtype(np.float64),
        nonfinite="keep",
    )


def _by_columns(
    source: Source, columns: Source, projection: Projection, settings: Settings
) -> Matrix:
    kept = Settings(**{**settings.__dict__, "nonfinite": "keep"})
    summary = ColumnScores(projection=projection, n_rows=source.n_rows)
    with open_session(kept) as session:
        scores = to_host(session.reduce(summary, columns, label="projections").state)
    bad = ~np.isfinite(scores).all(axis=1)
    if settings.nonfinite == "raise" and bad.any():
        raise DataError(
            f"X: row {int(np.flatnonzero(bad)[0])} is not finite, the first of {int(bad.sum())}. "
            f"Pass nonfinite='drop' for NaN scores of such rows."
        )
    return np.asarray(np.where(bad[:, None], np.nan, scores - projection.of_mean))
