"""`modes`: two collections in, their differential modes out."""

from typing import Any, Literal, Unpack

import numpy as np
import xarray as xr

from bigkd.backends import to_host
from bigkd.engine import Options, Session, open_session, open_source, settings_of
from bigkd.errors import InputError
from bigkd.finc.comparison import modes_dataset
from bigkd.finc.exact import exact_modes
from bigkd.finc.features import FeatureChoice, FrequencyChoice, KernelChoice, resolve
from bigkd.finc.scores import ModeScores
from bigkd.finc.spec import FincSpec, state_of
from bigkd.finc.spectrum import Choices
from bigkd.io import Source
from bigkd.kernels import FourierFeatures, Sampling
from bigkd.schema import MODES, variables
from bigkd.summaries import TopRows, TopRowsState


def modes(
    test: Any,
    reference: Any,
    *,
    kernel: KernelChoice = "auto",
    n_frequencies: FrequencyChoice = "auto",
    rho: float = 1.0,
    n_modes: int = 10,
    features: FourierFeatures | None = None,
    method: Literal["finc", "ken"] = "finc",
    sampling: Sampling = "iid",
    frequency_tolerance: float = 0.01,
    n_top: int = 25,
    top_share: float = 1.0,
    alpha: float = 0.01,
    n_draws: int = 199,
    seed: int = 0,
    **options: Unpack[Options],
) -> xr.Dataset:
    """Modes that the test set has more of than the reference: FINC, Algorithm 1.

    Computes: one pass over each set, and a second one over each for the top rows.

    Parameters
    ----------
    test, reference
        Collections of n and m rows of equal width: arrays (NumPy, CuPy, Dask, Zarr, xarray) or
        paths (Zarr, ``.npy``, Parquet). The first axis counts rows, the others are flattened. Swap
        them for underrepresented modes.
    kernel
        A kernel of `bigkd.kernels`; ``"auto"`` for a Gaussian with the paper's variance rule on a
        seeded sample, ``"median"`` for one with the sample's median distance; a
        `bigkd.finc.ScaledRule` for a multiple of either, or for another kernel.
    n_frequencies
        Number r of random Fourier frequencies. ``"auto"``: the smallest, from 100 to 4000, whose
        expected relative error of the top eigenvalues is within `frequency_tolerance`, measured on
        a sample against the exact ones; reported as ``frequency_error``.
    rho
        How many times more frequent than in the reference a mode must be to count; not negative.
    n_modes
        How many modes are returned, significant or not.
    features
        A feature map with given frequencies, instead of `kernel` and `n_frequencies`.
    method
        ``"finc"``, or ``"ken"`` for the exact spectrum: memory ``32 (n + m)**2`` bytes.
    sampling
        Frequencies drawn ``"iid"``, or ``"orthogonal"``, which is more accurate for small widths.
    frequency_tolerance
        Relative error of the top eigenvalues that ``n_frequencies="auto"`` aims at.
    n_top
        Top rows reported for each mode and set; 0 saves the second pass.
    top_share
        Share of the rows among which the top rows are looked for, above 0; 1 for all. Less saves
        reading: it is always the same stripes of blocks, spread evenly over a set, at least one and
        as many as the share asks for. What was searched is told as ``n_searched_test`` and
        ``n_searched_reference``. ``method="ken"`` searches all.
    alpha
        Family-wise error allowed for `significant`: the probability that noise alone gives any
        significant mode.
    n_draws
        Noise spectra that p-values are counted from; the smallest p-value is ``1/(n_draws + 1)``.
    seed
        Of every random choice: frequencies, samples, noise.
    **options
        How rows are read and the passes run: `bigkd.engine.Options`.

    Returns
    -------
    xarray.Dataset
        Over ``mode``, largest first: ``eigenvalue`` (about p - rho q for a mode of frequency p in
        the test and q in the reference), its ``standard_error``, ``p_value`` and ``significant``,
        ``frequency_test`` and ``frequency_reference``, ``mode_vector`` over ``feature`` (all
        cosines, then all sines), the rows of largest score ``top_index_test``, ``top_score_test``
        over ``rank`` (and of the reference; -1 and NaN past the last row), and ``heterogeneity``.
        Scalars: ``noise_level``, ``mmd2`` and its companions. Attributes record every choice.

    Raises
    ------
    ShapeError, EmptyInputError, InputError
        If the sets do not fit together or an argument is out of range.
    DataError, StoreError
        If rows are not finite, chunks are missing, or a path cannot be read.
    MemoryPlanError
        Before any pass, if a task does not fit into a worker.
    ClusterError
        If the cluster stops answering.

    Notes
    -----
    Cost of a row: ``d r`` multiply-adds of projection, r sines and cosines, and ``2 r**2`` of the
    symmetric product; the second pass leaves out the last. Memory of a task for large r: about
    ``165 r**2`` bytes, ``230 r**2`` on a cluster, whatever n and m. Theorem 1 bounds the error of
    all eigenvalues together: ``sum_i (l_i - exact_i)**2 <= eps**2`` with probability 1 - delta for
    ``eps = (2(1 + rho))**1.5 * (log((m + n)/delta)/r)**0.25``.

    p-values compare each eigenvalue with the largest eigenvalues of sampling noise, estimated from
    random groups of rows, by Weyl's inequality; see `bigkd.finc.noise`. Standard errors are those
    of the eigenvalue for its mode, and leave out the randomness of the frequencies.

    References
    ----------
    .. [1] J. Zhang, M. Jalali, C. T. Li, F. Farnia, "Identification of Novel Modes in Generative
       Models via Fourier-based Differential Clustering", Algorithm 1 and Theorem 1.
    .. [2] J. Zhang, C. T. Li, F. Farnia, "An Interpretable Evaluation of Entropy-based Novelty of
       Generative Models" (KEN), Theorem 3.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd import finc, kernels
    >>> rng = np.random.default_rng(0)
    >>> shared = rng.normal(size=(800, 2))
    >>> test = np.concatenate([shared[:400], rng.normal(size=(100, 2)) + 20])
    >>> found = finc.modes(test, shared[400:], kernel=kernels.Gaussian(3.0), n_frequencies=200)
    >>> int(found["significant"].sum())
    1
    """
    choices = Choices(rho=rho, n_modes=n_modes, alpha=alpha, n_draws=n_draws)
    choice = FeatureChoice(
        kernel=kernel,
        n_frequencies=n_frequencies,
        features=features,
        sampling=sampling,
        frequency_tolerance=frequency_tolerance,
        seed=seed,
    )
    settings = settings_of(options)
    if n_top < 0:
        raise InputError(f"n_top must not be negative; got {n_top!r}.")
    if not 0 < top_share <= 1:
        raise InputError(f"top_share must be above 0 and at most 1; got {top_share!r}.")
    sources = [
        open_source(rows, options, name=name)
        for rows, name in ((test, "test"), (reference, "reference"))
    ]
    if method == "ken":
        return exact_modes(*sources, choice=choice, choices=choices, settings=settings, n_top=n_top)
    if method != "finc":
        raise InputError(f"method must be 'finc' or 'ken'; got {method!r}.")
    resolved = resolve(choice, sources, rho=rho, n_modes=n_modes)
    choices.require_features(resolved.spec.features.n_features)
    with open_session(settings) as session:
        found = _find(session, sources, resolved.spec, choices, resolved.attrs)
        if n_top == 0:
            return found
        return _searched(session, sources, resolved.spec, found, n_top, top_share)


def _find(
    session: Session,
    sources: list[Source],
    spec: FincSpec,
    choices: Choices,
    about: dict[str, Any],
) -> xr.Dataset:
    own, other = (
        session.reduce(spec.summary, source, label=f"second moments of {source.name}")
        for source in sources
    )
    attrs: dict[str, Any] = {**about, "nonfinite": session.settings.nonfinite}
    for source, reduced in zip(sources, (own, other), strict=True):
        attrs |= {
            f"n_rows_{source.name}": int(reduced.tally.rows),
            f"n_dropped_{source.name}": int(reduced.tally.dropped),
            f"n_skipped_{source.name}": source.skipped,
        }
    return modes_dataset(spec, state_of(own), state_of(other), choices, attrs)


def _searched(
    session: Session,
    sources: list[Source],
    spec: FincSpec,
    found: xr.Dataset,
    n_top: int,
    share: float,
) -> xr.Dataset:
    """`found` with the top rows, looked for among a share of all."""
    scores = ModeScores(spec.features, found["mode_vector"].values.T)
    top = TopRows(scores=scores, n_top=n_top, work_features=spec.features.n_features)
    tops = [
        session.reduce(top, source, label=f"top rows of {source.name}", share=share)
        for source in sources
    ]
    n_searched = {
        f"n_searched_{source.name}": int(reduced.tally.rows)
        for source, reduced in zip(sources, tops, strict=True)
    }
    return with_top_rows(found, *(reduced.state for reduced in tops)).assign_attrs(n_searched)


def with_top_rows(found: xr.Dataset, test: TopRowsState, reference: TopRowsState) -> xr.Dataset:
    """`found` with the top rows of both sets, and the heterogeneity of each mode."""
    added: dict[str, Any] = {}
    for name, state in (("test", test), ("reference", reference)):
        index, score = to_host(state.index), to_host(state.score)
        added[f"top_index_{name}"] = index
        added[f"top_score_{name}"] = np.where(index < 0, np.nan, score)
    shown = zip(to_host(test.values), to_host(test.index), strict=True)
    added["heterogeneity"] = [_spread(rows[at >= 0]) for rows, at in shown]
    return found.assign(variables(MODES, added))


def _spread(rows: np.ndarray[Any, Any]) -> float:
    """Sum of the variances of all elements; NaN of no rows."""
    return float(rows.var(axis=0).sum()) if len(rows) else float("nan")
