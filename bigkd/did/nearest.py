"""`nearest`: the data of a collection that are nearest to a query, in one pass over it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import xarray as xr

from bigkd.backends import namespace, to_host
from bigkd.did.choice import Choice, DidOptions, Scale, split_options, strength_of
from bigkd.did.layout import Opened, open_data, open_datum
from bigkd.did.maps import REFERENCE, SEARCHED, ImageMaps
from bigkd.did.pairs import PairMeasure, run_length
from bigkd.did.setting import choose, settings_with
from bigkd.engine import collect_rows, open_session
from bigkd.errors import InputError
from bigkd.kernels._rows import tiles
from bigkd.linalg import Factors, factored
from bigkd.protocols import Array, Footprint
from bigkd.schema import NEAREST, dataset
from bigkd.summaries import TopRows


@dataclass(frozen=True, kw_only=True)
class QueryScores:
    """Minus the dissimilarity of each datum from each query; nothing is kept of a datum.

    Attributes
    ----------
    maps
        The map of a datum.
    reference
        Factors of the queries' maps.
    measure
        What makes a number of a pair.
    """

    maps: ImageMaps
    reference: Factors
    measure: PairMeasure

    @property
    def width(self) -> int:
        """Numbers of one datum."""
        return self.maps.width

    @property
    def n_features(self) -> int:
        """Number of queries."""
        return int(self.reference.strength.shape[0])

    def __call__(self, x: Array) -> Array:
        """Scores, shape ``(n, n_features)``; minus infinity where there is no dissimilarity."""
        xp = namespace(x)
        step = run_length(self.maps, 1)
        parts = []
        for run in tiles(x.shape[0], step):
            maps = self.maps(x[run, :], (SEARCHED,))
            found = self.measure(self.reference, factored(maps[:, 0, ...])).value[0, ...]
            parts.append(xp.where(xp.isnan(found), -xp.inf, -found).T)
        return xp.concat(parts, axis=0)


@dataclass(frozen=True, kw_only=True)
class NearestRows(TopRows):
    """The rows of largest score, of scores that are maps and small problems."""

    scores: QueryScores

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """The best rows, and what one run of data needs."""
        maps, n_queries = self.scores.maps, self.scores.n_features
        step, (m_y, m_x) = run_length(maps, 1), maps.shape
        state = n_queries * self.n_top * 16
        return Footprint(
            state=state,
            scratch=3 * state
            + maps.scratch(1)
            + 4 * step * m_y * m_x * 8
            + self.scores.measure.scratch(maps.shape, n_queries, step),
            row_cost=maps.row_cost(1) + n_queries * self.scores.measure.cost(maps.shape),
        )


def nearest(
    query: Any,
    collection: Any,
    k: int = 10,
    *,
    lam: Any = 1e-2,
    relative: bool = False,
    scale: Scale = "paper",
    **options: Unpack[DidOptions],
) -> xr.Dataset:
    """The k data of a collection that are nearest to each query. Computes: one pass.

    Parameters
    ----------
    query
        The reference f, masked: one datum, or several along the axis that counts the collection's.
        Few: each is compared with all.
    collection
        Data g to be searched, in any form that rows come in (`bigkd.io.open_rows`), or as an
        `xarray.DataArray` ``(sample, y, x, channel)``, ``(sample, time, variable)``, or of any
        grid.
    k
        How many; all, if there are fewer.
    lam
        One number, or ``"rate"``; see `dissimilarity`.
    relative, scale
        As for `dissimilarity`.
    **options
        How data are represented (`bigkd.did.Representation`), read, and the pass runs
        (`bigkd.engine.Options`).

    Returns
    -------
    xarray.Dataset
        Over ``query`` and ``rank``: ``index``, numbers of data in the collection as stored, nearest
        first, of equal ones the smaller number; ``dissimilarity``; ``name`` where data have labels,
        and labels along ``query`` where the queries have some.

    Raises
    ------
    BigkdError
        As `dissimilarity`.
    MemoryPlanError, ClusterError
        As every function with passes.

    Notes
    -----
    Each datum is read and mapped once, and its map is gone before the next. Memory does not grow
    with the collection.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd import did
    >>> t = np.linspace(0, 1, 50)
    >>> heights = np.arange(1.0, 9.0)[:, None]
    >>> bumps = heights * np.exp(-((t - 0.5) ** 2) / 0.02)
    >>> moved = 5.0 * np.exp(-((t - 0.45) ** 2) / 0.03)
    >>> did.nearest(moved, bumps, k=1, dims=("time",))["index"].values
    array([[4]])
    """
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
        raise InputError(f"k must be a whole number of at least 1; got {k!r}.")
    choice, others = split_options(options)
    searched = open_data(
        collection, others, name="collection", dims=choice.dims, value_dim=choice.value_dim
    )
    queries = _open_queries(query, others, searched, choice)
    strength = strength_of(lam, relative=relative, scale=scale, n_points=searched.layout.n_points)
    if len(strength.lams) != 1:
        raise InputError(f"lam must be one number to rank by; got {lam!r}.")
    with open_session(settings_with(others, choice)) as session:
        setting = choose([searched, queries], ("collection", "query"), choice)
        kept = choice.nan == "zero_weight"  # no query is dropped: each has a place
        rows = collect_rows(queries.source, "keep" if kept else "raise").values
        scores = QueryScores(
            maps=setting.maps,
            reference=factored(setting.maps(rows, (REFERENCE,))[:, 0, ...]),
            measure=PairMeasure.of(strength, setting.maps),
        )
        summary = NearestRows(
            scores=scores,
            n_top=min(int(k), searched.source.n_rows),
            work_features=1,
            keep_rows=False,
        )
        reduced = session.reduce(summary, searched.source, label="searching collection")
    index, score = to_host(reduced.state.index), to_host(reduced.state.score)
    found = np.isfinite(score)
    result = dataset(
        NEAREST,
        {
            "index": np.where(found, index, -1),
            "dissimilarity": np.where(found, -score, np.nan),
        },
        attrs={
            **setting.attrs,
            **strength.attrs,
            "lam": strength.lams[0],
            "n_data": int(reduced.tally.rows),
            "n_dropped": int(reduced.tally.dropped),
        },
    )
    return _with_names(result, searched.names, queries.names)


def _open_queries(
    query: Any, options: Mapping[str, Any], searched: Opened, choice: Choice
) -> Opened:
    """One query, or several."""
    axes = len(searched.source.row_shape)
    single = getattr(query, "ndim", None) == axes
    if isinstance(query, xr.Dataset):
        single = max((part.ndim for part in query.data_vars.values()), default=0) < axes
    how: dict[str, Any] = {"dims": choice.dims, "value_dim": choice.value_dim}
    if single:
        return open_datum(query, name="query", like=searched.layout, **how)
    return open_data(query, options, name="query", like=searched.layout, **how)


def _with_names(result: xr.Dataset, names: Any, queries: Any) -> xr.Dataset:
    if queries is not None:
        result = result.assign_coords(query=queries)
    if names is None:
        return result
    index = result["index"].values
    named = xr.DataArray(names[np.maximum(index, 0)], dims=("query", "rank"))
    if (index < 0).any():
        text = named.dtype.kind in "UO"
        named = named.where(index >= 0, "") if text else named.where(index >= 0)
    return result.assign_coords(name=named)
