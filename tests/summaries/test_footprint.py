import tracemalloc

import numpy as np
import pytest

from bigkd.finc.scores import ModeScores
from bigkd.io import open_rows
from bigkd.kernels import FourierFeatures, Gaussian
from bigkd.protocols import Rows
from bigkd.summaries import (
    CrossMoment,
    Extent,
    GroupedSecondMoment,
    Joined,
    KernelSum,
    Mapped,
    Mean,
    MeanEmbedding,
    PairMoment,
    SecondMoment,
    TopRows,
)

SLACK = 100_000  # NumPy's casting buffers, Python objects
SHAPES = [(300, 40), (18_000, 8), (2_000, 300)]


def nbytes(state):
    return sum(nbytes(p) if isinstance(p, tuple) else np.asarray(p).nbytes for p in state)


def peak(work):
    """Most bytes allocated at once while `work` runs, beyond what was there."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def summaries(width):
    features = FourierFeatures(Gaussian(5.0).frequencies(max(4, width // 2), width))
    vectors = np.ones((features.n_features, 6))
    mapped = Mapped(features=features, summary=SecondMoment(width=features.n_features))
    return {
        "mean": Mean(width=width),
        "second moment": SecondMoment(width=width),
        "groups": GroupedSecondMoment(width=width, n_groups=4, seed=0),
        "extent": Extent(width=width, kernel=Gaussian(5.0)),
        "embedding": MeanEmbedding(features=features),
        "embeddings of groups": MeanEmbedding(features=features, n_groups=3, n_dealt=4),
        "cross moment": CrossMoment(features=features),
        "mapped": mapped,
        "top": TopRows(
            scores=ModeScores(features, vectors), n_top=9, work_features=features.n_features
        ),
        "joined": Joined(summaries=(mapped, Mean(width=width))),
    }


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int32"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "width"), SHAPES)
def test_footprint__bounds_what_an_update_needs(n, width, weighted, dtype):
    values = np.random.default_rng(0).uniform(0, 9, (n, width)).astype(dtype)
    rows = Rows(values, np.arange(n), np.ones(n) if weighted else None)
    itemsize = open_rows(values, name="rows").itemsize
    for name, summary in summaries(width).items():
        few = Rows(*(part if part is None else part[:1] for part in rows))
        summary.update(summary.init(values), few)  # what is cached is no part of an update
        predicted = summary.footprint(n, itemsize)
        assert nbytes(summary.init(values)) <= predicted.state, name
        measured = peak(lambda s=summary: s.update(s.init(values), rows))
        assert measured <= predicted.state + predicted.scratch + SLACK, name
        narrow = dtype == "uint8"  # features are float32, sums of rows float64
        wide_enough = (5 if narrow else 3) * measured + 20 * SLACK
        assert predicted.state + predicted.scratch <= wide_enough, name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: KernelSum(kernel=lambda x, y: x @ y.T),
        lambda: PairMoment(width=20, kernel=Gaussian(5.0)),
    ],
)
def test_footprint__bounds_what_a_tile_of_pairs_needs(make, weighted, dtype):
    values = np.random.default_rng(0).normal(0, 1, (1500, 20)).astype(dtype)
    rows = Rows(values, np.arange(1500), np.ones(1500) if weighted else None)
    summary = make()
    predicted = summary.footprint(1500, 1500, values.dtype.itemsize)

    def work():
        summary.update(summary.init(values), rows, rows, mirrored=False, diagonal=True)

    measured = peak(work)
    assert measured <= predicted.state + predicted.scratch + SLACK
    assert predicted.state + predicted.scratch <= 3 * measured + SLACK


def test_footprint__counts_work():
    assert SecondMoment(width=10).footprint(7, 4).row_cost == 50
    mapped = summaries(16)["mapped"]
    assert mapped.footprint(7, 4).row_cost == 16 * 16 // 2 + 16 * 16 // 2
