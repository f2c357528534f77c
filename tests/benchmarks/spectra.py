"""Eigenvalues: Lanczos beside a dense solver, KEN and its null, the choice of r, comparisons."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg

from bigkd import finc
from bigkd.finc.features import FeatureChoice, resolve
from bigkd.finc.ken import gram_spectrum
from bigkd.finc.spec import FincSpec
from bigkd.io import open_rows
from bigkd.kernels import FourierFeatures, Gaussian
from bigkd.linalg import indefinite_spectrum, top_eigenpairs
from bigkd.protocols import Rows
from tests.benchmarks.measure import Line, Sizes, bandwidth, fourier, mixture, seconds
from tests.benchmarks.passes import blocks, spec_of


def lanczos(sizes: Sizes) -> list[Line]:
    """Top ten eigenpairs of a difference of second moments beside all of them."""
    features = fourier(sizes)
    n_rows = min(sizes.rows, 8_000)
    own, other = (
        features(mixture(n_rows, sizes.width, modes, seed=at))
        for at, modes in enumerate((range(15), range(5, 20)))
    )
    difference = ((own.T @ own - other.T @ other) / n_rows).astype(np.float64)
    k, found = min(10, difference.shape[0]), {}

    def keep(name: str, values: Any) -> None:
        found[name] = np.asarray(values)

    best = seconds(
        {
            "lanczos": lambda: keep("lanczos", top_eigenpairs(difference, k)[0]),
            "dense": lambda: keep("dense", scipy.linalg.eigh(difference)[0][::-1][:k]),
        },
        sizes.turns,
    )
    off = np.abs(found["lanczos"] / found["dense"] - 1.0).max()
    size = difference.shape[0]
    name = f"top {k} of {size} x {size}"
    return [
        Line(name=f"{name}: Lanczos / eigh", value=best["lanczos"], against=best["dense"]),
        Line(name=f"{name}: relative difference", value=float(off), unit="", goal="<= 1e-8"),
    ]


def ken(sizes: Sizes) -> list[Line]:
    """The exact method: its factor, its modes, its null."""
    half = sizes.sample // 2
    kernel = Gaussian(bandwidth(sizes.width))
    test = mixture(half, sizes.width, range(15), seed=0).astype(np.float64)
    reference = mixture(half, sizes.width, range(5, 20), seed=1).astype(np.float64)
    spectrum = gram_spectrum(kernel, test, reference, rho=1.0)
    gram = kernel(test, test)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (sizes.draws, 2 * half))
    few = signs[:5]
    best = seconds(
        {
            "factor": lambda: gram_spectrum(kernel, test, reference, rho=1.0),
            "top": lambda: spectrum.top(10),
            "null": lambda: spectrum.null(sizes.draws, seed=0),
            "one by one": lambda: [spectrum.factored.top(draw, 1) for draw in few],
            "pivoted": lambda: indefinite_spectrum(gram),
            "cholesky": lambda: scipy.linalg.cholesky(gram, lower=True),
        },
        sizes.turns,
    )
    exact = np.asarray([spectrum.factored.top(draw, 1)[0][0] for draw in few])
    off = np.abs(spectrum.factored.largest(few) / exact - 1.0).max()
    one_by_one = best["one by one"] * sizes.draws / len(few)
    return [
        Line(name=f"KEN, {2 * half} rows: kernel and factor", value=best["factor"]),
        Line(name="KEN: top 10 / kernel and factor", value=best["top"], against=best["factor"]),
        Line(
            name=f"KEN: null of {sizes.draws} draws / one by one",
            value=best["null"],
            against=one_by_one,
            goal="< 3 s",
        ),
        Line(name="KEN: null, relative difference", value=float(off), unit="", goal="<= 1e-4"),
        Line(
            name=f"pivoted Cholesky / Cholesky, {half} rows",
            value=best["pivoted"],
            against=best["cholesky"],
        ),
    ]


def choice(sizes: Sizes) -> list[Line]:
    """Choosing the number of frequencies from a sample, beside a pass over the rows."""
    spec = spec_of(sizes)
    rows = [mixture(sizes.rows, sizes.width, modes, seed=0) for modes in (range(15), range(5, 20))]
    sources = [open_rows(part, name=f"set {at}") for at, part in enumerate(rows)]
    kernel = Gaussian(bandwidth(sizes.width))
    one = next(blocks(rows[0], sizes.block))
    state = spec.summary.init(rows[0])
    best = seconds(
        {
            "r": lambda: resolve(FeatureChoice(kernel=kernel), sources),
            "both": lambda: resolve(FeatureChoice(), sources),
            "pass": lambda: spec.summary.update(state, one),
        },
        sizes.turns,
    )
    both = 2 * best["pass"] * sizes.rows / one.values.shape[0]
    name = f"/ two passes of {sizes.rows} rows"
    return [
        Line(name=f"n_frequencies='auto' {name}", value=best["r"], against=both),
        Line(name=f"kernel='auto', too {name}", value=best["both"], against=both),
    ]


def comparisons(sizes: Sizes) -> list[Line]:
    """Five sets: all comparisons beside the passes they come from; and new rows."""
    features = fourier(sizes)
    n_rows = max(sizes.rows // 2, 20)
    sets = {
        f"set {at}": mixture(n_rows, sizes.width, range(3 * at, 3 * at + 8), seed=at)
        for at in range(5)
    }
    whole = mixture(sizes.rows, sizes.width, range(20), seed=9)
    more = mixture(max(sizes.rows // 10, 2), sizes.width, range(20), seed=10)
    made: dict[str, Any] = {}

    def summarize(name: str, rows: Any) -> None:
        made[name] = finc.summarize(rows, features=features, scheduler="sync", name=name)

    def five() -> None:
        for name, rows in sets.items():
            summarize(name, rows)

    five()
    summarize("whole", whole)
    named = {name: made[name] for name in sets}
    best = seconds(
        {
            "passes": five,
            "compare": lambda: finc.compare_many(named, n_draws=sizes.draws),
            "whole": lambda: summarize("whole", whole),
            "more": lambda: finc.add_rows(made["whole"], more, scheduler="sync"),
        },
        max(1, sizes.turns - 1),
    )
    return [
        Line(
            name=f"20 pairs + 5 mixtures / 5 passes of {n_rows} rows",
            value=best["compare"],
            against=best["passes"],
        ),
        Line(name="one comparison", value=best["compare"] / 25),
        Line(
            name=f"add_rows of {more.shape[0]} / pass of {sizes.rows}",
            value=best["more"],
            against=best["whole"],
            goal="about 0.1",
        ),
    ]


def accuracy(sizes: Sizes) -> list[Line]:
    """Relative error of the top ten eigenvalues against KEN's, by r, sampling and dtype."""
    half = sizes.sample // 2
    kernel = Gaussian(bandwidth(sizes.width))
    pair = [
        mixture(half, sizes.width, modes, seed=at)
        for at, modes in enumerate((range(15), range(5, 20)))
    ]
    k = 10
    truth = gram_spectrum(kernel, *(part.astype(np.float64) for part in pair), rho=1.0).top(k)[0]
    lines = []
    ladder = [r for r in (125, 250, 500, 1_000, 2_000, 4_000) if r <= 2 * sizes.r] or [sizes.r]
    for r in ladder:
        for sampling in ("iid", "orthogonal"):
            errors = [
                _error(_spectrum(sizes, pair, kernel, r, sampling, seed), truth)
                for seed in range(sizes.seeds)
            ]
            lines.append(
                Line(
                    name=f"error of the top {k}, r = {r}, {sampling}",
                    value=100 * float(np.sqrt(np.mean(np.square(errors)))),
                    unit="%",
                )
            )
    costs = {r: _row_cost(sizes, pair[0], r) for r in ladder}
    lines += [
        Line(name=f"cost of a row, r = {r}", value=cost, unit="us", against=costs[ladder[-1]])
        for r, cost in costs.items()
    ]
    r = min(1_000, sizes.r)
    single, double = (
        _spectrum(sizes, [part.astype(dtype) for part in pair], kernel, r, "iid", 0)
        for dtype in (np.float32, np.float64)
    )
    off = float(np.abs(single / double - 1.0).max())
    return [*lines, Line(name=f"float32 rows against float64, r = {r}", value=off, unit="")]


def _row_cost(sizes: Sizes, rows: np.ndarray[Any, Any], r: int) -> float:
    """Microseconds of a row in the pass with `r` frequencies."""
    spec = spec_of(replace(sizes, r=r))
    state, block = spec.summary.init(rows), Rows(rows, np.arange(rows.shape[0]))
    best = seconds({"pass": lambda: spec.summary.update(state, block)}, sizes.turns)
    return 1e6 * best["pass"] / rows.shape[0]


def _spectrum(
    sizes: Sizes, pair: list[Any], kernel: Gaussian, r: int, sampling: Any, seed: int
) -> np.ndarray[Any, Any]:
    frequencies = kernel.frequencies(r, sizes.width, seed=seed, sampling=sampling)
    spec = FincSpec(
        features=FourierFeatures(frequencies), kernel=kernel, sampling=sampling, seed=seed
    )
    means = []
    for rows in pair:
        state = spec.summary.update(spec.summary.init(rows), Rows(rows, np.arange(rows.shape[0])))
        means.append(state[0].outer / state[0].weight)
    return top_eigenpairs(means[0] - means[1], 10)[0]


def _error(values: np.ndarray[Any, Any], truth: np.ndarray[Any, Any]) -> float:
    return float(np.linalg.norm(values - truth) / np.linalg.norm(truth))
