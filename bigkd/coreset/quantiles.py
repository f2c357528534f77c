"""`sorted_1d`: the quantiles of numbers."""

from typing import Any, Unpack

import xarray as xr

from bigkd.coreset.results import about, by_row, coreset_dataset
from bigkd.engine import Options, open_session, open_source, settings_of
from bigkd.errors import ShapeError
from bigkd.kernels._rows import positive_integer
from bigkd.summaries import MergeReduce, QuantileReducer, levels_for

_OVERSAMPLED = 16


def sorted_1d(
    data: Any, size: int, *, weights: Any = None, **options: Unpack[Options]
) -> xr.Dataset:
    """At most `size` of many numbers, at their quantiles: the best for rows of width 1.

    Computes: one pass.

    Parameters
    ----------
    data
        Rows of width 1, shape ``(n, 1)``, in any form that `bigkd.io.open_rows` takes.
    size
        Points to return at most; a row of great weight takes the place of several. If no more rows
        than that have weight, all of them come back with their own weights.
    weights
        Number of each row, not negative; 1 unless given.
    **options
        How rows are read and the pass runs: see `bigkd.engine.Options`.

    Returns
    -------
    xarray.Dataset
        Over ``point``: ``index`` (row numbers, ascending), ``weight`` (multiples of
        ``total_weight / size``), ``rows``. Scalars: ``total_weight``; ``rank_error``, a promise:
        the share of weight up to any number differs by at most that between coreset and collection;
        ``density_error``, twice that: no kernel density of a kernel that falls with distance
        differs anywhere by more, over K(x, x) and with total weight 1.

    Raises
    ------
    ShapeError, EmptyInputError, InputError
        If rows are wider, the weights sum to zero, or an argument cannot be used.
    DataError, StoreError, MemoryPlanError, ClusterError
        As every pass does.

    Notes
    -----
    Sorted, every ``eps n``-th number is an eps-sample of ``1/eps`` points, and fewer cannot be one.
    Here pools of 16 `size` numbers are merged in a tree: the error is ``1/(2 size)``, and as much
    for every 16 levels of the tree, of which ``64 size 4**k`` rows have k + 1.

    Examples
    --------
    >>> import numpy as np
    >>> found = sorted_1d(np.arange(1000.0)[:, None], 4)
    >>> found["rows"].values.ravel()
    array([125., 373., 625., 874.])
    """
    size = positive_integer("size", size)
    settings = settings_of(options)
    source = open_source(data, options, name="data", weights=weights)
    if source.width != 1:
        raise ShapeError(
            f"sorted_1d needs rows of width 1; got width {source.width}. Pass one column as "
            f"x[:, [0]], or use thin."
        )
    pool = _OVERSAMPLED * size
    summary = MergeReduce(
        width=1,
        size=size,
        pool=pool,
        n_levels=levels_for(source.n_rows, pool),
        reducer=QuantileReducer(),
    )
    with open_session(settings) as session:
        reduced = session.reduce(summary, source, label="quantiles of data")
        attrs = about(source, reduced.tally, session)
    state = reduced.state
    thinned = summary.finalize(state)
    (points,) = by_row(thinned.points)
    mass = float(state.mass)
    error = thinned.error / mass
    values = {"total_weight": mass, "rank_error": error, "density_error": 2.0 * error}
    return coreset_dataset(points, values, {"method": "quantiles", "size": size, **attrs})
