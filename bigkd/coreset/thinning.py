"""`thin`: rows chosen so that a kernel hardly tells them from all of them."""

import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, Unpack, get_args

import numpy as np
import threadpoolctl
import xarray as xr

from bigkd.backends import rng, to_host
from bigkd.coreset.measured import MEASURES, Measure, distance_to_full, exact_distance, ruler_for
from bigkd.coreset.results import about, by_row, coreset_dataset
from bigkd.engine import Options, open_session, open_source, settings_of
from bigkd.errors import InputError
from bigkd.kernels import Kernel, potential
from bigkd.kernels._rows import positive_integer, probability
from bigkd.linalg import equal_points, of_mass
from bigkd.summaries import (
    Joined,
    KernelReducer,
    LevelsState,
    MergeReduce,
    Points,
    Reservoir,
    ReservoirState,
    Reweighting,
    Selecting,
    Thinned,
    distance_bound,
    levels_for,
)

Reweight: TypeAlias = Literal["nonnegative", "mass", "equal"]

_STREAM = 0x7468696E  # keeps these numbers apart from other uses of the same seed
_LEAST_POOL = 256
_CANDIDATES = 8
_LEAST_CANDIDATES = 4096


def thin(
    data: Any,
    size: int,
    *,
    kernel: Kernel,
    weights: Any = None,
    selection: Selecting = "greedy",
    reweight: Reweight = "nonnegative",
    measure: Measure = "auto",
    n_frequencies: int = 1024,
    seed: int = 0,
    delta: float = 0.01,
    **options: Unpack[Options],
) -> xr.Dataset:
    r"""At most `size` weighted rows that a kernel hardly tells from all rows.

    Computes: one pass, and a cheap one before it where the distance is measured by a grid of
    frequencies. The best subset is NP-hard to find; this is approximately the best.

    Parameters
    ----------
    data
        Rows in any form that `bigkd.io.open_rows` takes.
    size
        Points to return at most. If no more rows than that have weight, all of them come back with
        their own weights.
    kernel
        Positive definite for the width of the rows.
    weights
        Number of each row, not negative; 1 unless given.
    selection
        ``"greedy"``: again and again the row where most is missing, and all weights solved for
        anew. ``"halving"``: of two neighbours one stays, with the weight of both, as kernel
        thinning has it.
    reweight
        ``"nonnegative"``: the best weights that are not negative. ``"mass"``: of any sign; for
        sums of smooth functions only, a few are negative. ``"equal"``: one weight for all; less
        accurate, for users that take rows without weights. Their sum is that of all rows.
    measure
        How the distance to all rows is measured. ``"fourier"``: by frequencies on a grid, with a
        deterministic promise; rows of width 1 to 3. ``"features"``: by random frequencies.
        ``"exact"``: by every pair of rows, which takes n**2 kernel values. ``"auto"``: the first of
        them that can be had, the last one up to 4096 rows; else ``"none"``.
    n_frequencies
        Of ``"features"``.
    seed
        Of every random choice.
    delta
        Probability with which the promise of ``"features"`` may fail.
    **options
        How rows are read and passes run: see `bigkd.engine.Options`.

    Returns
    -------
    xarray.Dataset
        Over ``point``: ``index`` (row numbers, ascending), ``weight``, ``rows``. Scalars:
        ``total_weight`` W; ``distance_to_full``, the kernel distance (MMD) of coreset and
        collection, each of total weight 1, ``distance_squared`` and its ``standard_error``, NaN if
        not measured; ``distance_upper``, the promise: the lesser of what the measurement promises
        and of the sum of what all reductions of the pass did, which is known. Its kind is in the
        attributes. No kernel density differs anywhere by more than the distance times the root of
        the largest K(x, x), and no mean of a function of norm 1.

    Raises
    ------
    InputError
        If the kernel is not positive definite, or an argument or a weight cannot be used.
    EmptyInputError
        If the weights sum to zero.
    ShapeError, DataError, StoreError, MemoryPlanError, ClusterError
        As every pass does.

    Notes
    -----
    Rows wait in a buffer of four times ``max(size, 256)`` (halving: twice as many) and are reduced
    to a quarter; four such pools become one. The error grows with the depth of that tree, by
    hardly more than the first step makes; memory does not depend on n. Cost of a row: 5
    ``max(size, 256)`` kernel values and, for greedy selection, half of its square multiply-adds.

    Equal weights are chosen in the end, from at least 4096 rows at random and what is left of the
    pools, so that they come nearest to the weighted pools; by exchanges from up to 16 starts.

    References
    ----------
    .. [1] S. Joshi, R. V. Kommaraju, J. M. Phillips, S. Venkatasubramanian, "Comparing
       Distributions and Shapes using the Kernel Distance", SoCG 2011, Theorem A.2.
    .. [2] R. Dwivedi, L. Mackey, "Kernel thinning", COLT 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd.kernels import Gaussian
    >>> rows = np.random.default_rng(0).normal(size=(5000, 2))
    >>> found = thin(rows, 50, kernel=Gaussian(1.0))
    >>> bool(found["distance_to_full"] < 0.01), float(found["weight"].sum())
    (True, 5000.0)
    """
    task = _Task(size=size, kernel=kernel, selection=selection, reweight=reweight, seed=seed)
    delta = probability("delta", delta)
    n_frequencies = positive_integer("n_frequencies", n_frequencies, least=2)
    if measure not in MEASURES:
        raise InputError(f"measure must be one of {', '.join(MEASURES)}; got {measure!r}.")
    settings = settings_of(options)
    source = open_source(data, options, name="data", weights=weights)
    task.require_definite(source.width)
    tree = task.tree(source.width, source.n_rows)
    with open_session(settings) as session:
        ruler = ruler_for(measure, kernel, source, session, n_frequencies, seed)
        parts: tuple[Any, ...] = (tree,)
        if reweight == "equal":
            parts += (task.reservoir(source.width),)
        if ruler.summary is not None:
            parts += (ruler.summary,)
        reduced = session.reduce(Joined(summaries=parts), source, label="coreset of data")
        states, attrs = reduced.state, about(source, reduced.tally, session)
        mass = float(states[0].mass)
        with threadpoolctl.threadpool_limits(limits=1):
            thinned = task.points(tree, states)
            found = distance_to_full(ruler, states[-1], thinned.points, mass, delta)
        if ruler.method == "exact":
            found = exact_distance(ruler, session, source, thinned.points)
    (points,) = by_row(thinned.points)
    if thinned.error > 0.0:  # else they are the rows' own
        points = points._replace(weights=of_mass(points.weights, mass))
    measured, proved = found["distance_upper"], thinned.error / mass
    found["distance_upper"] = float(np.fmin(measured, proved))
    random = ruler.method == "features" and measured < proved
    attrs = {
        "method": "coreset",
        **task.about,
        "measure": ruler.method,
        "promise_kind": "probabilistic" if random else "deterministic",
        "delta": delta,
        **ruler.about,
        **attrs,
    }
    return coreset_dataset(points, {"total_weight": mass, **found}, attrs)


@dataclass(frozen=True, kw_only=True)
class _Task:
    """What is asked for, checked."""

    size: int
    kernel: Kernel
    selection: Selecting
    reweight: Reweight
    seed: int

    def __post_init__(self) -> None:
        positive_integer("size", self.size)
        positive_integer("seed", self.seed, least=0)
        if not isinstance(self.kernel, Kernel):
            raise InputError(
                f"kernel must be a kernel of bigkd.kernels, such as Gaussian(sigma); got "
                f"{self.kernel!r}. median_distance suggests a length."
            )
        for name, allowed in (("selection", Selecting), ("reweight", Reweight)):
            if getattr(self, name) not in get_args(allowed):
                choices = ", ".join(get_args(allowed))
                raise InputError(f"{name} must be one of {choices}; got {getattr(self, name)!r}.")

    @property
    def about(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel.name,
            "kernel_parameters": json.dumps(self.kernel.parameters),
            "size": self.size,
            "selection": self.selection,
            "reweight": self.reweight,
            "seed": self.seed,
        }

    def require_definite(self, width: int) -> None:
        """Refuse a kernel whose distances could be negative: there is nothing to bring near."""
        if not self.kernel.is_positive_definite(width):
            raise InputError(
                f"thin needs a positive definite kernel, and {self.kernel} is none for rows of "
                f"width {width}: its squared distances can be negative, so that the nearest subset "
                f"means nothing. Use sample, whose promise for level sets holds for any kernel, or "
                f"a Gaussian of about the same length."
            )

    def tree(self, width: int, n_rows: int) -> MergeReduce:
        twice = 2 if self.selection == "halving" else 1
        pool = twice * max(self.size, _LEAST_POOL)
        signed: Reweighting = "mass" if self.reweight == "mass" else "nonnegative"
        reducer = KernelReducer(kernel=self.kernel, selection=self.selection, reweight=signed)
        return MergeReduce(
            width=width,
            size=self.size,
            pool=pool,
            n_levels=levels_for(n_rows, pool),
            reducer=reducer,
            seed=self.seed,
        )

    def reservoir(self, width: int) -> Reservoir:
        size = max(_CANDIDATES * self.size, _LEAST_CANDIDATES)
        return Reservoir(width=width, size=size, seed=self.seed)

    def points(self, tree: MergeReduce, states: tuple[Any, ...]) -> Thinned:
        """The coreset, from what the pass left behind."""
        state: LevelsState = states[0]
        if self.reweight != "equal":
            return tree.finalize(state)
        pools = tree.gathered(state)
        drawn: ReservoirState = states[1]
        if int(drawn.count) <= self.size:
            return Thinned(pools, float(state.error))
        pool = Points(*(to_host(part) for part in pools))
        used = slice(0, min(int(drawn.count), drawn.index.shape[0]))
        index = np.concatenate([pool.index, to_host(drawn.index)[used]])
        index, first = np.unique(index, return_index=True)
        values = np.concatenate([pool.values, to_host(drawn.values)[used]])[first]
        rows, mass = values.astype(np.float64), float(state.mass)
        target = potential(self.kernel, rows, pool.values.astype(np.float64), pool.weights / mass)
        places, cost = equal_points(
            self.kernel,
            rows,
            np.asarray(target),
            self.kernel.diagonal(rows),
            self.size,
            rng(self.seed, _STREAM),
        )
        points = Points(values[places], index[places], np.full(self.size, mass / self.size))
        square = float(pool.weights @ np.asarray(target)[np.searchsorted(index, pool.index)])
        last = distance_bound(square / mass, cost)
        return Thinned(points, float(state.error) + mass * last)
