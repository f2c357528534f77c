"""`sample`: rows drawn at random."""

from typing import Any, Unpack

import numpy as np
import xarray as xr

from bigkd.backends import rng, to_host
from bigkd.coreset.results import about, by_row, coreset_dataset
from bigkd.engine import Options, open_session, open_source, settings_of
from bigkd.errors import EmptyInputError
from bigkd.kernels._rows import positive_integer, probability
from bigkd.kernels.sample_promises import sample_promise
from bigkd.linalg import Places, independent_draws
from bigkd.summaries import Points, Reservoir, ReservoirState

_STREAM = 0x64726177  # keeps these numbers apart from other uses of the same seed


def sample(
    data: Any,
    size: int,
    *,
    weights: Any = None,
    replacement: bool | None = None,
    seed: int = 0,
    delta: float = 0.01,
    **options: Unpack[Options],
) -> xr.Dataset:
    r"""Random rows, drawn with probabilities proportional to their weights, in one pass.

    Parameters
    ----------
    data
        Rows in any form that `bigkd.io.open_rows` takes.
    size
        How many to draw. If no more rows than that have weight and they are drawn without
        replacement, all of them come back with their own weights.
    weights
        Number of each row, not negative; 1 unless given.
    replacement
        Whether a row may be drawn again. By default only where there are `weights`: then
        independent draws of weight ``W/size`` each are what the promise needs.
    seed
        Equal seeds give equal samples, whatever the blocks.
    delta
        Probability with which the promise may fail.
    **options
        How rows are read and the pass runs: see `bigkd.engine.Options`.

    Returns
    -------
    xarray.Dataset
        Over ``point``: ``index`` (row numbers, ascending, each once), ``count`` (how often it was
        drawn), ``weight``, ``rows``. Scalars: ``total_weight`` W, the sum of the weights; and
        ``distance_upper``: for any one kernel with K(x, x) <= 1 the kernel distance of sample and
        collection, each of total weight 1, exceeds it with probability at most `delta`.

    Raises
    ------
    EmptyInputError, InputError
        If the weights sum to zero, one is negative, or an argument cannot be used.
    ShapeError, DataError, StoreError, MemoryPlanError, ClusterError
        As every pass does.

    Notes
    -----
    Rows race: row i arrives at an exponential time of rate :math:`w_i`, a hash of its number, and
    the first ones are the successive draws without replacement. Independent draws follow from them
    exactly: each repeats one of those before it with the probability of their weight, else it is
    the next to arrive.

    The promise is :math:`(1 + \sqrt{2\ln(1/\delta)})/\sqrt m`, see
    `bigkd.kernels.sample_promises.sample_promise`; bounded differences hold without replacement,
    too. Weights without replacement are :math:`w_i/p_i` with :math:`p_i = 1 - e^{-w_i t}`, t the
    time of the first row that was too late, scaled to the sum W. They are uncorrelated with
    variances that sum to at most :math:`W^2/(m - 1)`, since t is Gamma distributed at least: so the
    promise is :math:`2/\sqrt{(m-1)\delta}`, by Chebyshev's inequality. Heavy rows keep nearly their
    own weight, so it is mostly the more accurate of the two, with the worse promise.

    Examples
    --------
    >>> import numpy as np
    >>> found = sample(np.arange(1000.0)[:, None], 10)
    >>> found.sizes["point"], float(found["weight"].sum())
    (10, 1000.0)
    """
    size, seed = positive_integer("size", size), positive_integer("seed", seed, least=0)
    delta = probability("delta", delta)
    settings = settings_of(options)
    source = open_source(data, options, name="data", weights=weights)
    again = source.weights is not None if replacement is None else bool(replacement)
    summary = Reservoir(width=source.width, size=size + 1, seed=seed)
    with open_session(settings) as session:
        reduced = session.reduce(summary, source, label="sample of data")
        attrs = about(source, reduced.tally, session)
    state: ReservoirState = reduced.state
    if not float(state.mass) > 0.0:
        raise EmptyInputError("the weights of data sum to zero; at least one must be positive.")
    points, counts, promise = _drawn(
        summary, state, size, delta, again=again, uniform=source.weights is None
    )
    points, counts = by_row(points, counts)
    values = {
        "count": counts,
        "total_weight": float(state.mass),
        "distance_upper": min(2.0, promise),
    }
    attrs |= {"size": size, "replacement": again, "seed": seed, "delta": delta}
    return coreset_dataset(points, values, {"method": "random sample", **attrs})


def _drawn(
    summary: Reservoir,
    state: ReservoirState,
    size: int,
    delta: float,
    *,
    again: bool,
    uniform: bool,
) -> tuple[Points, Places, float]:
    """Points drawn, how often, and the promise."""
    points = Points(*(to_host(part) for part in summary.finalize(state)))
    mass, count = float(state.mass), int(state.count)
    if again:
        generator = rng(summary.seed, _STREAM)
        counts = independent_draws(points.weights, mass, size, count, generator)
        some = counts > 0
        drawn = Points(points.values[some], points.index[some], counts[some] * (mass / size))
        return drawn, counts[some], sample_promise(size, delta)
    once = np.ones(min(size, count), dtype=np.int64)
    if count <= size:
        return points, once, 0.0
    first = Points(*(part[:size] for part in points))
    if uniform:
        return first._replace(weights=once * (mass / size)), once, sample_promise(size, delta)
    late = float(state.key[size])
    own = first.weights / -np.expm1(-first.weights * late)
    promise = 2.0 / np.sqrt((size - 1) * delta) if size > 1 else 2.0
    return first._replace(weights=own * (mass / own.sum())), once, float(promise)
