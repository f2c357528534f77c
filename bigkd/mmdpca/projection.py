"""`project` rows on components, and `reconstruct` them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Unpack

import dask.array as da
import numpy as np
import xarray as xr

from bigkd.backends import compute_dtype, device, namespace, to_host
from bigkd.config import HELD_BYTES
from bigkd.engine import Options, Session, Settings, map_rows, open_session, settings_of
from bigkd.errors import DataError, InputError, ShapeError
from bigkd.io import Source
from bigkd.io.columns import columns_of
from bigkd.io.sources import stored_rows
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
    """

    vectors: Matrix = field(repr=False)
    kept: Matrix = field(repr=False)
    mean: Matrix | None = field(default=None, repr=False)

    def __call__(self, x: Array) -> Array:
        """Scores, shape ``(n, k)``, of rows of shape ``(n, width)``, in the precision of those.

        NaN or infinite for rows that are not finite in features that count.
        """
        xp, on = namespace(x), device(x)
        dtype = compute_dtype(xp, x.dtype)
        at = None if self.kept.all() else np.flatnonzero(self.kept)
        own = self.vectors if at is None else self.vectors[at]
        vectors = xp.asarray(own, dtype=dtype, device=on)
        places = None if at is None else xp.asarray(at, device=on)
        mean = self.mean if self.mean is None or at is None else self.mean[at]
        parts = []
        for rows in tiles(x.shape[0], max(1, _TILE_ELEMENTS // x.shape[1])):
            some = x[rows, :] if at is None else xp.take(x[rows, :], places, axis=1)
            parts.append(_less(some, mean) @ vectors)
        return xp.astype(xp.concat(parts), xp.float64)


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
        index, mean = to_host(rows.index), self.projection.mean
        good = np.flatnonzero(self.projection.kept[index])
        for part in tiles(len(good), max(1, _TILE_ELEMENTS // self.n_rows)):
            at = index[good[part]]
            values = xp.take(rows.values, xp.asarray(good[part], device=on), axis=0)
            values = _less(values, None if mean is None else mean[at, None])
            own = xp.asarray(self.projection.vectors[at], dtype=values.dtype, device=on)
            state += values.T @ own
        return state

    def merge(self, left: Array, right: Array) -> Array:
        """Sum."""
        return left + right

    def finalize(self, state: Array) -> Array:
        """Scores, shape ``(n_rows, k)``; NaN for rows that are not finite."""
        return state

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """The scores and a product, and copies of a part of the block."""
        del itemsize
        k = self.projection.vectors.shape[1]
        n_tile = min(n_rows, max(1, _TILE_ELEMENTS // self.n_rows))
        return Footprint(
            state=8 * self.n_rows * k,
            scratch=24 * n_tile * (self.n_rows + k) + 8 * self.n_rows * k + 9 * n_rows,
            row_cost=self.n_rows * k,
        )


def _less(values: Array, mean: Matrix | None) -> Array:
    """`values` in the precision of computation, less `mean`: that is taken off in float64."""
    xp = namespace(values)
    if mean is not None:
        wide = xp.astype(values, xp.float64, copy=False)
        lean = wide - xp.asarray(mean, dtype=xp.float64, device=device(values))
        return xp.astype(lean, compute_dtype(xp, values.dtype), copy=False)
    return xp.astype(values, compute_dtype(xp, values.dtype), copy=False)


def project(X: Any, fit: xr.Dataset, **options: Unpack[Options]) -> xr.DataArray:
    """Coordinates of rows along the components of a fit.

    Parameters
    ----------
    X
        Rows, those of the fit or others, as `bigkd.mmdpca.fit` takes them, with the same features:
        of the same names, in any order, or without names. What the fit left out may hold anything.
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
    scores = _scores(opened.source, projection_of(fit), settings)
    meaning = SCORE["score"]
    found = xr.DataArray(
        scores,
        dims=(opened.sample_dim, "k"),
        coords=opened.labels,
        name="score",
        attrs={"long_name": meaning.long_name, "units": meaning.units},
    )
    return found.assign_coords(k=fit["k"].values)


def reconstruct(scores: xr.DataArray, fit: xr.Dataset) -> xr.DataArray:
    """Rows of the subspace with given coordinates.

    Parameters
    ----------
    scores
        From `project`; of any dimensions besides ``k``, whose labels tell the components: some of
        them, in any order.
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
    component = _of_scores(scores, fit["component"])
    again = xr.dot(scores.drop_vars("k", errors="ignore"), component, dim="k")
    if "mean" in fit.data_vars:
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
    if "k" not in fit["component"].dims:
        raise InputError(
            f"the components of fit must be over 'k'; got {fit['component'].dims}. Choose some as "
            f"fit.isel(k=[0]), with brackets."
        )


def _of_scores(scores: xr.DataArray, component: xr.DataArray) -> xr.DataArray:
    """The components that scores are of, without labels."""
    both = [dim for dim in scores.dims if dim != "k" and dim in component.dims]
    if both:
        raise InputError(
            f"scores and the components of fit both have the dimension {both[0]!r}; rename that of "
            f"scores, as scores.rename({both[0]}='sample_')."
        )
    if "k" in scores.coords and "k" in component.coords:
        unknown = set(scores["k"].values.tolist()) - set(component["k"].values.tolist())
        if unknown:
            raise InputError(
                f"scores has components that fit has not: k={sorted(unknown)}; pass the scores "
                f"that project gave for this fit."
            )
        component = component.sel(k=scores["k"].values)
    elif scores.sizes["k"] != component.sizes["k"]:
        raise ShapeError(
            f"scores has {scores.sizes['k']} components and fit {component.sizes['k']}; pass the "
            f"scores that project gave for this fit."
        )
    return component.drop_vars("k", errors="ignore")


def open_like(X: Any, fit: xr.Dataset, options: Any) -> Opened:
    """Rows with the features of a fit."""
    require_fit(fit)
    component = fit["component"].isel(k=0, drop=True)
    axes = tuple(map(str, component.dims))
    opened = open_data(X, options, dim=fit.attrs.get("dim"), axes=axes)
    require_features(opened.features, component)
    return opened


def projection_of(fit: xr.Dataset) -> Projection:
    """What takes rows to scores."""
    component = fit["component"].transpose("k", ...)
    vectors = component.values.reshape(component.sizes["k"], -1).T
    kept = np.isfinite(vectors).all(axis=1)
    vectors = np.where(kept[:, None], vectors, 0.0)
    weights = flat(fit, "weight")
    if weights is not None:
        vectors = vectors * np.where(kept, weights, 0.0)[:, None]
    return Projection(vectors=vectors, kept=kept, mean=flat(fit, "mean"))


def flat(fit: xr.Dataset, name: str) -> Matrix | None:
    """A variable over the features, shape ``(n,)``; None where the fit has none."""
    if name not in fit.data_vars:
        return None
    axes = fit["component"].isel(k=0, drop=True).dims
    return np.asarray(fit[name].transpose(*axes).values.reshape(-1))


def in_memory(scores: xr.DataArray, options: Options) -> xr.DataArray:
    """Scores that `project` gave, computed where passes run, if they are not yet."""
    if scores.chunks is None:
        return scores
    with open_session(settings_of(options)) as session:
        return scores.copy(data=session.compute(scores.data, label="projecting"))


def scores_of(session: Session, source: Source, projection: Projection) -> Matrix:
    """Scores of all rows, computed; of those that are not finite as the session's settings say."""
    scores = _scores(source, projection, session.settings)
    if isinstance(scores, da.Array):
        scores = session.compute(scores, label="projections")
    return np.asarray(scores)


def _scores(source: Source, projection: Projection, settings: Settings) -> Any:
    if source.largest_block * source.row_bytes > HELD_BYTES:
        columns = columns_of(source)
        if columns is not None:
            return _by_columns(source, columns, projection, settings)
    scores = map_rows(
        projection,
        source,
        width=projection.vectors.shape[1],
        dtype=np.dtype(np.float64),
        nonfinite="keep",
    )
    firsts = tuple(source.first_index(block) for block in range(source.n_blocks))
    about = {"called": source.name, "nonfinite": settings.nonfinite, "firsts": firsts}
    return da.map_blocks(_checked_block, scores, **about, dtype=scores.dtype, meta=scores._meta)


def _checked_block(
    scores: Any,
    *,
    called: str,
    nonfinite: str,
    firsts: tuple[int, ...],
    block_id: tuple[int, ...] = (0, 0),
) -> Any:
    first = firsts[block_id[0]]
    return _checked(scores, range(first, first + scores.shape[0]), called, nonfinite)


def _checked(scores: Array, index: Sequence[int], called: str, nonfinite: str) -> Array:
    """Scores of the rows `index`: NaN for those that are not finite, or an error."""
    xp = namespace(scores)
    finite = xp.all(xp.isfinite(scores), axis=1)
    if bool(xp.all(finite)):
        return scores
    if nonfinite == "raise":
        bad = to_host(~finite).nonzero()[0]
        raise DataError(
            f"{called}: row {index[int(bad[0])]} is not finite in features that the fit knows, the "
            f"first of {len(bad)} in its block. Pass nonfinite='drop' for NaN scores of such rows, "
            f"or mend the data."
        )
    return xp.where(finite[:, None], scores, xp.asarray(xp.nan, device=device(scores)))


def _by_columns(
    source: Source, columns: Source, projection: Projection, settings: Settings
) -> Matrix:
    kept = Settings(**{**settings.__dict__, "nonfinite": "keep"})
    summary = ColumnScores(projection=projection, n_rows=source.n_rows)
    with open_session(kept) as session:
        scores = to_host(session.reduce(summary, columns, label="projections").state)
    index = stored_rows(source).tolist()
    return np.asarray(_checked(scores, index, source.name, settings.nonfinite))
