"""The FINC pass beside the machine's BLAS, the engine beside a bare loop, and naive ways."""

import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg
import zarr

from bigkd.engine import Settings, open_session
from bigkd.finc.spec import FincSpec
from bigkd.io import Source, open_rows
from bigkd.protocols import Rows
from tests.benchmarks.measure import Line, Sizes, fourier, mixture, seconds, times


def spec_of(sizes: Sizes) -> FincSpec:
    return FincSpec(features=fourier(sizes), kernel=None, sampling="given", seed=0)


def blocks(rows: np.ndarray[Any, Any], size: int) -> Iterator[Rows]:
    for start in range(0, rows.shape[0], size):
        part = rows[start : start + size]
        yield Rows(part, np.arange(start, start + part.shape[0]))


def finc_pass(sizes: Sizes) -> list[Line]:
    """The pass, and its parts, beside sgemm and ssyrk of the same shapes; microseconds a row."""
    spec, rows = spec_of(sizes), mixture(sizes.rows, sizes.width, range(20), seed=0)
    weights = np.ascontiguousarray(spec.features.frequencies.T, dtype=np.float32)
    one = rows[: sizes.block]
    phi = spec.features(one)
    moment, mean, groups = spec.summary.summary.summaries
    tile = Rows(phi, np.arange(phi.shape[0]))
    state = list(spec.summary.init(rows))
    square = np.zeros((phi.shape[1], phi.shape[1]), dtype=np.float32, order="F")
    angle = np.empty((one.shape[0], spec.r), dtype=np.float32)

    def update(at: int, summary: Any) -> Callable[[], None]:
        def run() -> None:
            state[at] = summary.update(state[at], tile)

        return run

    def whole() -> None:
        found = spec.summary.init(rows)
        for block in blocks(rows, sizes.block):
            found = spec.summary.update(found, block)

    parts = {
        "sgemm": lambda: np.matmul(one, weights, out=angle),
        "ssyrk numpy": lambda: phi.T @ phi,
        "ssyrk scipy": lambda: scipy.linalg.blas.ssyrk(
            1.0, phi.T, beta=1.0, c=square, overwrite_c=1
        ),
        "pass": lambda: spec.summary.update(tuple(state), Rows(one, tile.index)),
        "features": lambda: spec.features(one),
        "moment": update(0, moment),
        "mean": update(1, mean),
        "groups": update(2, groups),
    }
    best = {name: 1e6 * at / one.shape[0] for name, at in seconds(parts, 2 * sizes.turns).items()}
    long = 1e6 * seconds({"pass": whole}, sizes.turns)["pass"] / sizes.rows
    syrk = min(best["ssyrk numpy"], best["ssyrk scipy"])
    ceiling = best["sgemm"] + syrk
    unit = "us/row"
    return [
        Line(
            name=f"ceiling (sgemm + ssyrk) / pass, {sizes.rows} rows",
            value=ceiling,
            unit=unit,
            against=long,
            goal=">= 0.85",
        ),
        Line(name="ceiling / pass, one block", value=ceiling, unit=unit, against=best["pass"]),
        Line(name="- features / sgemm", value=best["features"], unit=unit, against=best["sgemm"]),
        Line(name="- second moment / ssyrk", value=best["moment"], unit=unit, against=syrk),
        Line(name="- mean / pass", value=best["mean"], unit=unit, against=best["pass"]),
        Line(name="- noise groups / pass", value=best["groups"], unit=unit, against=best["pass"]),
        Line(
            name="ssyrk: scipy, beta=1 / numpy Z.T @ Z",
            value=best["ssyrk scipy"],
            unit=unit,
            against=best["ssyrk numpy"],
        ),
    ]


def engine(sizes: Sizes) -> list[Line]:
    """`Session.reduce` beside a loop over the same blocks, from a Zarr store and from memory."""
    spec, rows = spec_of(sizes), mixture(sizes.rows, sizes.width, range(20), seed=0)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        chunks = (max(1, sizes.block // 8), sizes.width)
        zarr.create_array(f"{folder}/rows.zarr", data=rows, chunks=chunks)
        for kind, given in (("zarr", f"{folder}/rows.zarr"), ("memory", rows)):
            source = open_rows(given, name=kind)
            both = {"engine": _through(spec, source), "loop": _bare(spec, source)}
            took = times(both, 2 * sizes.turns)
            for at, clock in enumerate(("CPU", "wall")):
                lines.append(
                    Line(
                        name=f"reduce / bare loop, {kind}, {clock}",
                        value=took["engine"][at],
                        against=took["loop"][at],
                        goal="<= 1.05",
                    )
                )
    return lines


def _through(spec: FincSpec, source: Source) -> Callable[[], Any]:
    def run() -> Any:
        with open_session(Settings(scheduler="sync")) as session:
            return session.reduce(spec.summary, source, label="benchmark")

    return run


def _bare(spec: FincSpec, source: Source) -> Callable[[], Any]:
    def run() -> Any:
        state = spec.summary.init(source.like())
        for block in range(source.n_blocks):
            values = source.read(block)
            index = np.arange(source.bounds[block], source.bounds[block + 1])
            state = spec.summary.update(state, Rows(values, index))
        return state

    return run


def naive(sizes: Sizes) -> list[Line]:
    """For orientation: second moments by summed outer products, and by a general product."""
    r = max(4, sizes.r // 8)
    features = spec_of(sizes).features.head(r)
    phi = features(mixture(min(sizes.rows, 2_048), sizes.width, range(20), seed=0))
    few, other = phi[:64], phi.copy()
    best = seconds(
        {
            "outer": lambda: (few[:, :, None] * few[:, None, :]).sum(axis=0),
            "gemm": lambda: phi.T @ other,
            "syrk": lambda: phi.T @ phi,
        },
        sizes.turns,
    )
    rows = {"outer": few.shape[0], "gemm": phi.shape[0], "syrk": phi.shape[0]}
    cost = {name: 1e6 * took / rows[name] for name, took in best.items()}
    return [
        Line(
            name=f"second moment, r = {r}: {name} / symmetric product",
            value=cost[key],
            unit="us/row",
            against=cost["syrk"],
        )
        for key, name in (("outer", "sum of outer products"), ("gemm", "general product"))
    ]
