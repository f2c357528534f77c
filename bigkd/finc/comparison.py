"""Comparisons of stored summaries: no rows are touched."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import threadpoolctl
import xarray as xr

from bigkd.errors import InputError
from bigkd.finc.spec import FincSpec, FincState
from bigkd.finc.spectrum import Choices, decompose, mmd2, pool
from bigkd.finc.stored import load_summary, open_summary
from bigkd.linalg import eigenvalues
from bigkd.schema import COMPARISON, ENTROPIES, MODES, dataset
from bigkd.summaries import GroupedMomentState, MeanState, SecondMomentState

OTHERS = "others"


def modes_from(
    test: xr.Dataset | str | Path,
    reference: xr.Dataset | str | Path,
    *,
    rho: float = 1.0,
    n_modes: int = 10,
    alpha: float = 0.01,
    n_draws: int = 199,
) -> xr.Dataset:
    """Modes of one stored summary against another.

    Parameters
    ----------
    test, reference
        From `bigkd.finc.summarize`, or paths of stored ones; made with the same features.
    rho, n_modes, alpha, n_draws
        As for `bigkd.finc.modes`.

    Returns
    -------
    xarray.Dataset
        As of `bigkd.finc.modes`, without the top rows: score rows with `bigkd.finc.score` to see
        them.

    Raises
    ------
    InputError
        If the summaries were made with different features, or an argument is out of range.
    StoreError
        If a stored summary cannot be read.
    """
    choices = Choices(rho=rho, n_modes=n_modes, alpha=alpha, n_draws=n_draws)
    own, other = _open(test), _open(reference)
    spec, state = open_summary(own)
    spec_other, state_other = open_summary(other)
    spec.require_equal(spec_other)
    attrs = {
        "test": own.attrs["name"],
        "reference": other.attrs["name"],
        **_rows("test", own.attrs),
        **_rows("reference", other.attrs),
    }
    return modes_dataset(spec, state, state_other, choices, attrs)


def modes_dataset(
    spec: FincSpec,
    test: FincState,
    reference: FincState,
    choices: Choices,
    attrs: Mapping[str, Any],
) -> xr.Dataset:
    """All of a comparison that follows from two states."""
    spectrum = decompose(spec, test, reference, choices)
    values = {
        **spectrum.variables(choices.alpha),
        "noise_level": spectrum.noise.null.level(choices.alpha),
        "mode_vector": spectrum.vectors.T,
        "fourier_frequency": spec.features.frequencies,
        **mmd2(spec, test, reference),
    }
    return dataset(
        MODES,
        values,
        coords={"mode": np.arange(choices.n_modes)},
        attrs={"method": "finc", **spec.attrs(), **_choices(choices), **attrs},
    )


def compare_many(
    summaries: Mapping[str, xr.Dataset | str | Path],
    *,
    rho: float = 1.0,
    n_modes: int = 10,
    alpha: float = 0.01,
    n_draws: int = 199,
    mixture: Literal["rows", "equal"] = "rows",
) -> xr.Dataset:
    """Compare every ordered pair of stored summaries, and each with the mixture of the others.

    Parameters
    ----------
    summaries
        By name, from `bigkd.finc.summarize`, or paths; all made with the same features.
    rho, n_modes, alpha, n_draws
        As for `bigkd.finc.modes`.
    mixture
        What the reference ``"others"`` is: every row of the others counts once (``"rows"``), or
        every other set counts the same whatever its size (``"equal"``).

    Returns
    -------
    xarray.Dataset
        Variables of `bigkd.finc.modes` that are numbers of a mode, over ``(test, reference,
        mode)``, and the squared MMD over ``(test, reference)``; NaN where a set would meet itself.
        The last reference is ``"others"``.

    Raises
    ------
    InputError
        If there are fewer than two summaries, one is called ``"others"``, or their features differ.
    StoreError
        If a stored summary cannot be read.

    Notes
    -----
    Cost: one pass over each set when it was summarised, and here one small dense problem a pair.
    """
    choices = Choices(rho=rho, n_modes=n_modes, alpha=alpha, n_draws=n_draws)
    if len(summaries) < 2:
        raise InputError(f"compare_many needs at least two summaries; got {len(summaries)}.")
    if OTHERS in summaries:
        raise InputError(f"{OTHERS!r} names the mixture of the others; rename that summary.")
    if mixture not in ("rows", "equal"):
        raise InputError(f"mixture must be 'rows' or 'equal'; got {mixture!r}.")
    names = list(summaries)
    opened = {name: open_summary(_open(summary)) for name, summary in summaries.items()}
    spec = opened[names[0]][0]
    for other, _ in opened.values():
        spec.require_equal(other)
    states = {name: state for name, (_, state) in opened.items()}
    found = {
        (test, reference): _numbers(spec, states[test], against, choices)
        for test in names
        for reference, against in _references(test, states, mixture)
    }
    values: dict[str, Any] = {
        variable: _grid(found, names, variable) for variable in next(iter(found.values()))
    }
    values["n_rows"] = [int(states[name].mean.count) for name in names]
    return dataset(
        COMPARISON,
        values,
        coords={
            "test": names,
            "reference": [*names, OTHERS],
            "mode": np.arange(choices.n_modes),
        },
        attrs={"method": "finc", **spec.attrs(), **_choices(choices), "mixture": mixture},
    )


def entropies(summary: xr.Dataset | str | Path) -> xr.Dataset:
    """Kernel entropies of a stored summary: how many modes a collection has, effectively.

    Parameters
    ----------
    summary
        From `bigkd.finc.summarize`, or a path.

    Returns
    -------
    xarray.Dataset
        Scalars ``vendi = exp(entropy_1)`` with ``entropy_1 = -sum_i l_i log l_i``, and ``rke =
        exp(entropy_2)`` with ``entropy_2 = -log sum_i l_i^2``, over the eigenvalues l of the second
        moment of the features: plug-in estimates, both between 1 and the number of features.

    Raises
    ------
    StoreError
        If a stored summary cannot be read.

    Notes
    -----
    Cost: all eigenvalues of a matrix of ``2 r`` rows.

    References
    ----------
    .. [1] D. Friedman, A. B. Dieng, "The Vendi Score", TMLR 2023.
    .. [2] M. Jalali, C. T. Li, F. Farnia, "An Information-Theoretic Evaluation of Generative Models
       in Learning Multi-modal Distributions", NeurIPS 2023.
    """
    opened = _open(summary)
    spec, state = open_summary(opened)
    with threadpoolctl.threadpool_limits(limits=1):
        spectrum = eigenvalues(np.asarray(state.moment.outer) / float(state.moment.weight))
    positive = spectrum[spectrum > 0.0]
    first = float(-np.sum(positive * np.log(positive)))
    second = float(-np.log(np.sum(spectrum**2)))
    values = {
        "vendi": np.exp(first),
        "rke": np.exp(second),
        "entropy_1": first,
        "entropy_2": second,
    }
    attrs = {**spec.attrs(), "name": opened.attrs["name"], "n_rows": opened.attrs["n_rows"]}
    return dataset(ENTROPIES, values, attrs=attrs)


def _open(summary: xr.Dataset | str | Path) -> xr.Dataset:
    return load_summary(summary) if isinstance(summary, str | Path) else summary


def _rows(role: str, attrs: Mapping[str, Any]) -> dict[str, int]:
    return {f"{key}_{role}": int(attrs[key]) for key in ("n_rows", "n_dropped", "n_skipped")}


def _choices(choices: Choices) -> dict[str, Any]:
    return {"rho": choices.rho, "alpha": choices.alpha, "n_draws": choices.n_draws}


def _references(
    test: str, states: Mapping[str, FincState], mixture: str
) -> list[tuple[str, FincState]]:
    """Every other set by name, and the mixture of them all."""
    others = {name: state for name, state in states.items() if name != test}
    parts = list(others.values())
    if mixture == "equal":
        parts = [_normalised(state) for state in parts]
    return [*others.items(), (OTHERS, pool(parts))]


def _normalised(state: FincState) -> FincState:
    """The state with a total weight of one row; noise groups keep their relative sizes."""
    weight = float(state.moment.weight)
    moment, mean, groups = state
    return FincState(
        SecondMomentState(moment.weight / weight, moment.outer / weight),
        MeanState(mean.count, mean.weight / weight, mean.total / weight),
        GroupedMomentState(groups.weight / weight, groups.outer / weight),
    )


def _numbers(
    spec: FincSpec, test: FincState, reference: FincState, choices: Choices
) -> dict[str, Any]:
    spectrum = decompose(spec, test, reference, choices)
    return {**spectrum.variables(choices.alpha), **mmd2(spec, test, reference)}


def _grid(
    found: Mapping[tuple[str, str], Mapping[str, Any]], names: list[str], variable: str
) -> np.ndarray[Any, Any]:
    """The variable of every pair; NaN, or False, on the diagonal."""
    sample = np.asarray(next(iter(found.values()))[variable])
    fill: Any = False if sample.dtype == bool else np.nan
    grid = np.full((len(names), len(names) + 1, *sample.shape), fill, dtype=sample.dtype)
    for (test, reference), numbers in found.items():
        at = len(names) if reference == OTHERS else names.index(reference)
        grid[names.index(test), at] = numbers[variable]
    return grid
