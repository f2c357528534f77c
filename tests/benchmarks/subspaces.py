"""MMD-PCA beside its exact form, the products it is made of, PCA elsewhere; few long rows; streams.

Memory is measured in a process of its own:

    python -m tests.benchmarks.subspaces --rows 1000000 --width 512
"""

import argparse
import importlib
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import dask.array as da
import numpy as np
import scipy.sparse.linalg
import threadpoolctl
from dask import config

from bigkd import mmdpca
from bigkd.backends import rng
from bigkd.engine import Session
from bigkd.io import Source
from bigkd.io.sources import even_bounds
from bigkd.mmdpca.compressed import CompressedFeatures, Sketch
from bigkd.mmdpca.measures import PointMeasure
from bigkd.mmdpca.residual import Residual
from bigkd.summaries import Joined
from tests.benchmarks.distances import resident
from tests.benchmarks.measure import FULL, Line, Sizes, seconds

ROOT = Path(__file__).parents[2]
BLOCK = 8_192
K = 10
Matrix = np.ndarray[Any, Any]


def standardised(n_rows: int, width: int, power: float = 1.0) -> Matrix:
    """Normal rows of falling variances, rotated; each column of mean 0 and variance 1."""
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((n_rows, width), dtype=np.float32)
    rows *= np.arange(1, width + 1, dtype=np.float32) ** -power
    rows = rows @ np.linalg.qr(generator.standard_normal((width, width), dtype=np.float32))[0]
    rows -= rows.mean(axis=0)
    return rows / rows.std(axis=0)


def sine(one: Any, other: Any) -> float:
    """Sine of the largest angle between two spans of orthonormal rows."""
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    return float(np.linalg.norm(one - one @ other.T @ other, 2))


def top(symmetric: Matrix, k: int) -> Matrix:
    return scipy.sparse.linalg.eigsh(symmetric.astype(np.float64), k)[1].T


def sklearn_pca(rows: Matrix, name: str, **options: Any) -> Callable[[], Any] | None:
    if importlib.util.find_spec("sklearn") is None:
        return None
    estimator = getattr(importlib.import_module("sklearn.decomposition"), name)
    return lambda: estimator(n_components=K, **options).fit(rows)


def compressed(rows: Matrix, n_power_iter: int) -> Callable[[], Any]:
    chunked = da.from_array(rows, chunks=(min(BLOCK, len(rows)), rows.shape[1]))

    def run() -> Any:
        with config.set(scheduler="sync"):
            return da.linalg.svd_compressed(chunked, K, n_power_iter=n_power_iter, seed=0)[
                2
            ].compute()

    return run


def peers(rows: Matrix) -> dict[str, Callable[[], Any]]:
    """PCA elsewhere; without what is not installed."""
    asked = {
        "PCA, covariance_eigh": sklearn_pca(rows, "PCA", svd_solver="covariance_eigh"),
        "PCA, randomized": sklearn_pca(rows, "PCA", svd_solver="randomized", random_state=0),
        "IncrementalPCA": sklearn_pca(rows, "IncrementalPCA", batch_size=min(BLOCK, len(rows))),
        "svd_compressed": compressed(rows, 0),
        "svd_compressed, 4 power iterations": compressed(rows, 4),
        "second moment and eigsh": lambda: top(rows.T @ rows, K),
    }
    return {name: run for name, run in asked.items() if run is not None}


def subspaces(sizes: Sizes) -> list[Line]:
    """The default beside every pair of rows, and beside PCA elsewhere."""
    n_rows, width = (sizes.rows // 2, 2000) if sizes is FULL else (sizes.rows, 32)
    found: dict[str, Any] = {}

    def fit(name: str, rows: Matrix, method: Any) -> None:
        found[name] = mmdpca.fit(rows, k=K, method=method, scheduler="sync")

    lines = []
    for power in (1.0, 0.5):
        rows = standardised(n_rows, width, power)
        exact = seconds({"exact": lambda r=rows: fit("exact", r, "pairs")}, 1)["exact"]
        ways = {"default": lambda r=rows: fit("default", r, "auto")}
        if power == 1.0:
            ways |= peers(rows)
        took = seconds(ways, max(1, sizes.turns - 1))
        own, truth = took.pop("default"), found["exact"]["component"].values
        about = f"{n_rows} x {width}, variances falling as 1/j^{2 * power:g}, k = {K}"
        off = sine(found["default"]["component"].values, truth)
        lines += [
            Line(name=f"{about}: default / every pair", value=own, against=exact, goal="<= 0.03"),
            Line(name="  sine to the exact subspace", value=off, unit="", goal="<= 0.005"),
            Line(
                name="  its estimate / the sine",
                value=float(found["default"]["subspace_error"]),
                against=max(off, 1e-16),
                unit="",
            ),
            Line(name="  sine of PCA's", value=sine(top(rows.T @ rows, K), truth), unit=""),
            *(Line(name=f"  default / {name}", value=own, against=at) for name, at in took.items()),
        ]
    return lines


def subspace_passes(sizes: Sizes) -> list[Line]:
    """Each pass of the default beside the matrix products it is made of, in blocks, by NumPy."""
    n_rows, width = (sizes.rows // 2, 2000) if sizes is FULL else (sizes.rows, 32)
    rows, passes = standardised(n_rows, width), {}
    reduce = Session.reduce

    def noted(session: Session, summary: Any, source: Source, *, label: str, **given: Any) -> Any:
        def run() -> None:
            passes[label] = summary.summary, reduce(session, summary, source, label=label, **given)

        took = seconds({label: run}, sizes.turns)[label]
        spent[label] = min(took, spent.get(label, took))
        return passes[label][1]

    spent: dict[str, float] = {}
    with mock.patch.object(Session, "reduce", noted):
        mmdpca.fit(rows, k=K, method="nystrom", scheduler="sync")
    lines, total, bound = [], 0.0, 0.0
    for label, (summary, _) in passes.items():
        shapes = products_of(summary, width)
        wide = rows.astype(np.float64) if summary_is_wide(summary) else rows
        least = sum(product_seconds(wide, *shape, sizes.turns) for shape in shapes)
        total, bound = total + spent[label], bound + least
        name = f"{label}, {n_rows} x {width}: pass / its products"
        lines.append(Line(name=name, value=spent[label], against=least, goal="<= 1.2"))
    name = "all passes / their products"
    return [*lines, Line(name=name, value=total, against=bound, goal="<= 1.2")]


def products_of(summary: Any, width: int) -> list[tuple[int, int]]:
    """Inner and outer width of the products with a block of rows that a pass cannot do without.

    Where the inner one is 0 the block is transposed, and its rows are summed over.
    """
    parts = summary.summaries if isinstance(summary, Joined) else (summary,)
    found = []
    for part in parts:
        features = getattr(part, "features", None)
        if isinstance(part, PointMeasure):  # the points are those of the residual
            found.append((width, sum(vectors.shape[1] for vectors in part.vectors)))
        elif isinstance(features, Sketch):
            found += [(width, features.n_features), (0, features.n_features)]
        elif isinstance(features, CompressedFeatures):
            expansion, m = features.expansion, features.expansion.y.shape[0]
            found += [(width, expansion.n_directions), (expansion.n_directions, m)]
            found.append((m, expansion.n_features))
            if isinstance(part, Residual):
                n_points = part.points.index.size
                found += [(width, n_points), (expansion.n_features, n_points)]
                found += [(n_points, part.vectors.shape[1]), (0, 2 * part.vectors.shape[1])]
            else:
                found.append((0, features.n_features))
    return found


def summary_is_wide(summary: Any) -> bool:
    """Whether a pass computes in float64, as the last one does, which measures."""
    parts = summary.summaries if isinstance(summary, Joined) else (summary,)
    return any(isinstance(part, Residual) for part in parts)


def product_seconds(rows: Matrix, inner: int, outer: int, turns: int) -> float:
    """CPU time of the products of all blocks, from that of one."""
    block = rows[:2048]
    left = block.T if inner == 0 else np.ones((len(block), inner), block.dtype)
    right = np.ones((left.shape[1], outer), block.dtype)
    run = {"product": lambda: [left @ right for _ in range(4)]}
    return seconds(run, 3 * turns)["product"] / 4 * len(rows) / len(block)


def film(n_frames: int, n_pixels: int) -> Matrix:
    """A background that darkens, blobs that move over it, and noise: bytes."""
    generator = np.random.default_rng(0)
    background = generator.integers(40, 200, n_pixels).astype(np.float32)
    frames = np.empty((n_frames, n_pixels), dtype=np.uint8)
    for at in range(n_frames):
        frame = background * np.float32(1 - 0.2 * np.sin(at / 30))
        start = at * n_pixels // n_frames
        frame[start : start + n_pixels // 20] = 220
        frame += generator.standard_normal(n_pixels, dtype=np.float32) * 4
        frames[at] = np.clip(frame, 0, 255)
    return frames


def few_long_rows(sizes: Sizes) -> list[Line]:
    """Frames of a film beside NumPy's own products of them, and beside sklearn's PCA."""
    n_frames, n_pixels = (300, 480_000) if sizes is FULL else (12, 400)
    frames, k = film(n_frames, n_pixels), 5

    def products(dtype: Any) -> Matrix:
        step = 1 << 14
        parts = [frames[:, at : at + step] for at in range(0, n_pixels, step)]
        gram = sum(part @ part.T for part in (part.astype(dtype) for part in parts))
        vectors = top(gram, k).astype(dtype)
        return np.concatenate([vectors @ part.astype(dtype) for part in parts], axis=1)

    took = seconds(
        {
            "fit": lambda: mmdpca.fit(frames, k=k, scheduler="sync"),
            "float32": lambda: products(np.float32),
            "float64": lambda: products(np.float64),
        },
        max(1, sizes.turns - 1),
    )
    about = f"{n_frames} frames of {n_pixels} pixels"
    lines = [
        Line(name=f"{about}: fit / products in {name}", value=took["fit"], against=took[name])
        for name in ("float32", "float64")
    ]
    part = frames[:, : n_pixels // 4]
    pca = sklearn_pca(part, "PCA", svd_solver="full")
    if pca is not None:
        took = seconds({"fit": lambda: mmdpca.fit(part, k=k, scheduler="sync"), "pca": pca}, 1)
        name = f"{n_frames} frames of {n_pixels // 4} pixels: fit / PCA, full"
        lines.append(Line(name=name, value=took["fit"], against=took["pca"]))
    return lines


@dataclass(frozen=True, kw_only=True)
class Falling(Source):
    """Normal rows of falling variances, made from their number when they are read."""

    def read_raw(self, start, stop):
        made = rng(0, start).standard_normal((stop - start, self.width), np.float32)
        return made * np.arange(1, self.width + 1, dtype=np.float32) ** -0.5 * self.width**0.5

    def content(self):
        return "generated, falling"


def falling(rows: int, width: int) -> Falling:
    bounds = even_bounds(rows, BLOCK)
    return Falling(name="rows", row_shape=(width,), dtype=np.dtype("f4"), bounds=bounds)


def streamed(rows: int, width: int) -> dict[str, float]:
    """One fit of generated rows."""
    mmdpca.fit(falling(64, width), k=1, scheduler="sync")
    before, cpu = resident("VmHWM"), time.process_time()
    with threadpoolctl.threadpool_limits(limits=1):
        found = mmdpca.fit(falling(rows, width), k=min(K, width), scheduler="sync")
    took = time.process_time() - cpu
    return {
        "seconds": took,
        "growth": max(0, resident("VmHWM") - before),
        "error": float(found["subspace_error"]),
    }


def apart(rows: int, width: int, *, alone: bool) -> dict[str, float]:
    """As `streamed`, in a process of its own if `alone`."""
    if not alone:
        return streamed(rows, width)
    command = [sys.executable, "-m", "tests.benchmarks.subspaces"]
    command += ["--rows", str(rows), "--width", str(width)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def subspace_streams(sizes: Sizes) -> list[Line]:
    """Rows a second, and growth of memory with ten times the rows."""
    n_rows, width = (1_000_000, 512) if sizes is FULL else (10 * sizes.rows, sizes.width)
    few, many = (apart(n, width, alone=sizes is FULL) for n in (n_rows // 10, n_rows))
    return [
        Line(
            name=f"{n_rows:.0e} x {width}, generated in blocks",
            value=n_rows / many["seconds"],
            unit="rows/s",
        ),
        Line(
            name="  peak memory above the start, against a tenth of the rows",
            value=(many["growth"] + 1) / 1e6,
            against=(few["growth"] + 1) / 1e6,
            unit="MB",
            goal="<= 1.05",
        ),
        Line(name="  estimated error of the subspace", value=many["error"], unit=""),
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--width", type=int, required=True)
    given = parser.parse_args()
    sys.stdout.write(json.dumps(streamed(given.rows, given.width)))


if __name__ == "__main__":
    main()
