"""``method="ken"``: the exact spectrum, with the rows and the kernel matrix in memory."""

from typing import Any

import numpy as np
import psutil
import threadpoolctl
import xarray as xr
from dask.utils import parse_bytes

from bigkd.backends import to_host
from bigkd.engine import Settings, collect_rows
from bigkd.finc.features import FeatureChoice, exact_kernel
from bigkd.finc.ken import GramSpectrum, gram_spectrum, require_small
from bigkd.finc.noise import Null, Vector
from bigkd.finc.spectrum import Choices, without_diagonal
from bigkd.io import Source
from bigkd.schema import MODES, dataset


def exact_modes(
    test: Source,
    reference: Source,
    *,
    choice: FeatureChoice,
    choices: Choices,
    settings: Settings,
    n_top: int,
) -> xr.Dataset:
    """Modes by KEN; what `bigkd.finc.modes` returns, without vectors in a feature space."""
    sources = (test, reference)
    limit = settings.memory_limit
    available = psutil.virtual_memory().available if limit is None else int(parse_bytes(limit))
    require_small(test.n_rows + reference.n_rows, choices.rho, available)
    kernel, about = exact_kernel(choice, sources)
    rows = [collect_rows(source, settings.nonfinite) for source in sources]
    with threadpoolctl.threadpool_limits(limits=1):
        values = [to_host(part.values).astype(np.float64) for part in rows]
        spectrum = gram_spectrum(kernel, *values, rho=choices.rho)
        variables = _variables(spectrum, choices, choice.seed)
    scores = variables.pop("scores")
    attrs: dict[str, Any] = {"method": "ken", **about, "rho": choices.rho, "alpha": choices.alpha}
    attrs |= {"n_draws": choices.n_draws, "seed": choice.seed, "nonfinite": settings.nonfinite}
    for source, part in zip(sources, rows, strict=True):
        attrs[f"n_rows_{source.name}"] = part.values.shape[0]
        attrs[f"n_dropped_{source.name}"] = source.n_rows - part.values.shape[0]
        attrs[f"n_skipped_{source.name}"] = source.skipped
    if n_top > 0:
        for source, part, score in zip(sources, rows, scores, strict=True):
            index, top = _top(score, to_host(part.index), n_top)
            variables[f"top_index_{source.name}"] = index
            variables[f"top_score_{source.name}"] = top
        variables["heterogeneity"] = _heterogeneity(scores[0], values[0], n_top)
    return dataset(MODES, variables, attrs=attrs, coords={"mode": np.arange(choices.n_modes)})


def _variables(spectrum: GramSpectrum, choices: Choices, seed: int) -> dict[str, Any]:
    eigenvalue, vectors = spectrum.top(choices.n_modes)
    test, reference = spectrum.scores(vectors)
    signs = np.where(test.mean(axis=0) < 0.0, -1.0, 1.0)
    test, reference = test * signs, reference * signs
    null = Null(spectrum.null(choices.n_draws, seed=seed))
    p_value = null.p_values(eigenvalue)
    return {
        "eigenvalue": eigenvalue,
        "standard_error": np.hypot(_error(test), choices.rho * _error(reference)),
        "p_value": p_value,
        "significant": p_value <= choices.alpha,
        "frequency_test": (test**2).mean(axis=0),
        "frequency_reference": (reference**2).mean(axis=0),
        "noise_level": null.level(choices.alpha),
        **_mmd2(spectrum),
        "scores": (test, reference),
    }


def _error(scores: Vector) -> Vector:
    """Standard error of the mean square, over rows; NaN for a single row."""
    n_rows = scores.shape[0]
    if n_rows < 2:
        return np.full(scores.shape[1], np.nan)
    return np.asarray((scores**2).std(axis=0, ddof=1) / np.sqrt(n_rows))


def _mmd2(spectrum: GramSpectrum) -> dict[str, float]:
    """Squared MMD, exactly: no features, so no error from them."""
    n, m = spectrum.n_test, spectrum.n_reference
    test = spectrum.factored.factor[:n].sum(axis=0) / np.sqrt(n)
    reference = spectrum.factored.factor[n:].sum(axis=0) / np.sqrt(m * spectrum.rho)
    within = without_diagonal(float(test @ test), n)
    across = without_diagonal(float(reference @ reference), m)
    return {
        "mmd2": float((test - reference) @ (test - reference)),
        "mmd2_unbiased": within + across - 2.0 * float(test @ reference),
        "mmd2_standard_error": 0.0,
    }


def _top(scores: Vector, index: Any, n_top: int) -> tuple[Any, Vector]:
    """Row numbers and scores of the best rows of each mode; -1 and NaN past the last row."""
    order = np.argsort(-scores, axis=0, kind="stable")[:n_top].T
    missing = ((0, 0), (0, n_top - order.shape[1]))
    best = np.take_along_axis(scores.T, order, axis=1)
    return (
        np.pad(index[order], missing, constant_values=-1),
        np.pad(best, missing, constant_values=np.nan),
    )


def _heterogeneity(scores: Vector, rows: Vector, n_top: int) -> Vector:
    order = np.argsort(-scores, axis=0, kind="stable")[:n_top].T
    return np.asarray([rows[best].var(axis=0).sum() for best in order])
