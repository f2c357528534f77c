"""`matrix`: the distances of many collections from one another, in one pass over each."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
import xarray as xr

from bigkd.distance.collections import Measured
from bigkd.distance.estimates import Kappas, single
from bigkd.distance.methods import (
    choose_grid,
    count_modes,
    embedded,
    exact,
    features_of,
    grid_sums,
    rounding_of,
    sampled_kappas,
)
from bigkd.distance.opening import Given, opened
from bigkd.distance.question import KernelChoice, Question
from bigkd.distance.results import kernel_attrs
from bigkd.distance.setting import Setting
from bigkd.distance.sizing import count_frequencies
from bigkd.engine import Options
from bigkd.errors import InputError
from bigkd.kernels import inner_product, squared_distance
from bigkd.kernels.grids import supports
from bigkd.schema import DISTANCES, dataset


class _Pairs(NamedTuple):
    """What is known of every collection, and the kernel sums of every two of them."""

    known: list[Measured]
    kappas: dict[tuple[int, int], Kappas]
    attrs: dict[str, Any]


def matrix(
    collections: Mapping[str, Any],
    *,
    kernel: KernelChoice,
    weights: Mapping[str, Any] | None = None,
    normalize: bool = True,
    method: Literal["auto", "exact", "rff", "nufft"] = "auto",
    eps: float = 0.01,
    delta: float = 0.01,
    n_frequencies: int | None = None,
    seed: int = 0,
    **options: Unpack[Options],
) -> xr.Dataset:
    """Kernel distances of all pairs of collections. Computes.

    Parameters
    ----------
    collections
        Collections of rows of equal width, or shapes, by name; two or more.
    kernel
        As for `kernel_distance`; ``"median"`` looks at samples of all.
    weights
        Weights of some of the collections, by name.
    normalize
        Divide weights by their sum.
    method
        ``"nufft"`` and ``"rff"`` read each collection once (``"nufft"`` a second time for the
        bounding box); ``"exact"`` visits all pairs of rows of all pairs of collections. ``"auto"``:
        nufft where the kernel and the width allow it, else rff, else exact.
    eps, delta
        Error of a squared distance to aim at in units of ``W**2``, and the probability with which
        the promise of any one pair may fail.
    n_frequencies
        Number of random frequencies of ``"rff"``; by default 2000.
    seed
        Of every random choice.
    **options
        How rows are read and the passes run: `bigkd.engine.Options`.

    Returns
    -------
    xarray.Dataset
        Over ``x`` and ``y``, both labelled by name: ``distance``, ``distance_squared``, ``promise``
        (of each pair by itself), ``standard_error`` and ``kappa``; ``n_rows``.

    Raises
    ------
    InputError
        If there are less than two collections, or `weights` names another.
    BigkdError
        As `kernel_distance`.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd import distance, kernels
    >>> sets = {name: np.full((3, 2), at) for name, at in (("a", 0.0), ("b", 0.0), ("c", 9.0))}
    >>> found = distance.matrix(sets, kernel=kernels.Gaussian(1.0))
    >>> found["distance"].sel(x="a").values.round(3)
    array([0.   , 0.   , 1.414])
    """
    for what, given in (("collections", collections), ("weights", weights or {})):
        if not isinstance(given, Mapping):
            raise InputError(
                f"{what} must be a mapping by name, such as {{'a': a, 'b': b}}; got "
                f"{type(given).__name__}."
            )
    names = list(collections)
    beside = dict(weights or {})
    _check(names, beside, method)
    question = Question(
        eps=eps,
        delta=delta,
        n_frequencies=2_000 if n_frequencies is None else n_frequencies,
        normalize=normalize,
        seed=seed,
    )
    opening = {name: Given(data, beside.get(name)) for name, data in collections.items()}
    with opened(opening, kernel, question, options) as (setting, about):
        known = setting
        if method == "auto":
            known, method = _with_method(setting)
        pairs = {"exact": _exact, "rff": _waves, "nufft": _grid}[method](known)
    attrs = {
        "method": method,
        **pairs.attrs,
        **about,
        **kernel_attrs(setting),
        "W": max(about.total for about in pairs.known),
        "promise_kind": next(iter(pairs.kappas.values())).kind,
        "eps": eps,
        "delta": delta,
        "normalize": int(normalize),
        "nonfinite": setting.session.settings.nonfinite,
        "seed": seed,
    }
    return _dataset(names, pairs, delta, attrs)


def _check(names: list[str], weights: Mapping[str, Any], method: object) -> None:
    if len(names) < 2:
        raise InputError(f"collections must be two or more, by name; got {len(names)}.")
    unknown = [name for name in weights if name not in names]
    if unknown:
        raise InputError(f"weights are given for {unknown}; the collections are {names}.")
    if method not in ("auto", "exact", "rff", "nufft"):
        raise InputError(f"method must be 'auto', 'exact', 'rff' or 'nufft'; got {method!r}.")


def _with_method(setting: Setting) -> tuple[Setting, Literal["exact", "rff", "nufft"]]:
    """The method, and what was found out to choose it."""
    if supports(setting.kernel, setting.width):
        setting = replace(setting, known=setting.measured())
        if math.isfinite(count_modes(setting, setting.measured())):
            return setting, "nufft"
    return setting, "rff" if setting.kernel.has_spectrum else "exact"


def _places(n: int) -> list[tuple[int, int]]:
    """Every two of `n` collections, and each with itself."""
    return [(one, other) for one in range(n) for other in range(one, n)]


def _exact(setting: Setting) -> _Pairs:
    known, error = setting.measured(), rounding_of(setting)
    sums = exact(setting, known)
    kappas = {
        (one, other): single(
            sums[one][0], sums[other][0], sums[one][other - one], error=error, kind="rounding"
        )
        for one, other in _places(len(known))
    }
    return _Pairs(known, kappas, {})


def _waves(setting: Setting) -> _Pairs:
    count, _ = count_frequencies(setting)
    known, functions = embedded(setting, features_of(setting, count))
    kappas = {
        (one, other): sampled_kappas(functions[one], functions[other])
        for one, other in _places(len(known))
    }
    return _Pairs(known, kappas, {"n_frequencies": count})


def _grid(setting: Setting) -> _Pairs:
    known = setting.measured()
    grid = choose_grid(setting, known)
    sums = grid_sums(setting, grid, known)
    own = [inner_product(grid, one, one) for one in sums]
    kappas = {
        (one, other): single(
            own[one],
            own[other],
            inner_product(grid, sums[one], sums[other]),
            difference=squared_distance(grid, sums[one], sums[other]),
            error=grid.error,
            kind="deterministic",
        )
        for one, other in _places(len(known))
    }
    return _Pairs(known, kappas, {"n_modes": grid.n_modes})


def _dataset(names: list[str], pairs: _Pairs, delta: float, attrs: Mapping[str, Any]) -> xr.Dataset:
    n = len(names)
    values = {
        name: np.zeros((n, n))
        for name in ("distance_squared", "promise", "standard_error", "kappa")
    }
    for (one, other), kappas in pairs.kappas.items():
        values["kappa"][one, other] = values["kappa"][other, one] = np.mean(kappas.xy)
        if one == other:
            continue
        answer = kappas.squared_distance(pairs.known[one], pairs.known[other], delta=delta)
        for name, value in (
            ("distance_squared", answer.value),
            ("promise", answer.promise),
            ("standard_error", answer.standard_error),
        ):
            values[name][one, other] = values[name][other, one] = value
    return dataset(
        DISTANCES,
        {
            "distance": np.sqrt(np.maximum(values["distance_squared"], 0.0)),
            **values,
            "n_rows": [about.n for about in pairs.known],
        },
        attrs=attrs,
        coords={"x": names, "y": names},
    )
