import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bigkd.backends import namespace, to_host
from bigkd.kernels import Polynomial
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
from bigkd.testing import check_pair_laws, check_summary_laws, no_compute

WIDTH = 3


class WholeFeatures:
    """Whole numbers in, whole numbers out; many ties."""

    width = WIDTH
    n_features = 4

    def __call__(self, x):
        xp = namespace(x)
        x = xp.astype(x, xp.float64)
        return xp.stack([x[:, 0] + x[:, 1], x[:, 1] * x[:, 2], x[:, 0] * 0.0, -x[:, 2]], axis=1)


WHOLE_KERNEL = Polynomial((1, 2))


def whole_kernel(x, y):
    return x @ y.T + 1.0


SUMMARIES = {
    "mean": Mean(width=WIDTH),
    "second moment": SecondMoment(width=WIDTH),
    "groups": GroupedSecondMoment(width=WIDTH, n_groups=3, seed=5),
    "extent": Extent(width=WIDTH),
    "embedding": MeanEmbedding(features=WholeFeatures()),
    "embeddings of groups": MeanEmbedding(features=WholeFeatures(), n_groups=2, n_dealt=3, seed=1),
    "top": TopRows(scores=WholeFeatures(), n_top=3, work_features=4),
    "cross moment": CrossMoment(features=WholeFeatures(), tile_rows=2),
    "mapped": Mapped(features=WholeFeatures(), summary=SecondMoment(width=4)),
    "joined": Joined(
        summaries=(
            Mapped(features=WholeFeatures(), summary=Mean(width=4)),
            GroupedSecondMoment(width=WIDTH, n_groups=2, seed=0),
            TopRows(scores=WholeFeatures(), n_top=2, work_features=4),
        )
    ),
}


@st.composite
def whole_blocks(draw, count):
    """Consecutive blocks of one collection, some empty, all with weights or none."""
    dtype = draw(st.sampled_from(["float64", "float32", "int64", "uint8", "int32"]))
    weighted = draw(st.booleans())
    sizes = draw(st.lists(st.integers(0, 6), min_size=count, max_size=count + 2))
    first = draw(st.sampled_from([0, 7, 2**40]))
    blocks = []
    for size in sizes:
        values = draw(hnp.arrays(dtype, (size, WIDTH), elements=st.integers(0, 3)))
        weights = draw(hnp.arrays("float64", size, elements=st.integers(0, 4)))
        index = np.arange(first, first + size)
        blocks.append((values, index, weights if weighted else None))
        first += size
    return blocks


def rows_of(put, blocks):
    return [Rows(*(None if part is None else put(part) for part in block)) for block in blocks]


@pytest.mark.parametrize("name", SUMMARIES)
@settings(max_examples=20)
@given(blocks=whole_blocks(3))
def test_summaries__keep_their_laws(put, name, blocks):
    check_summary_laws(SUMMARIES[name], rows_of(put, blocks))


@settings(max_examples=20)
@given(blocks=whole_blocks(4))
def test_pair_summaries__keep_their_laws(put, blocks):
    blocks = [(values.astype("f8"), *rest) for values, *rest in blocks]
    rows = rows_of(put, blocks)
    check_pair_laws(KernelSum(kernel=whole_kernel), rows[:2], rows[2:])
    check_pair_laws(PairMoment(width=WIDTH, kernel=WHOLE_KERNEL), rows[:2], rows[2:])


class Forgets(Mean):
    def update(self, state, rows):
        return super().update(self.init(rows.values), rows)


class WritesOnMerge(SecondMoment):
    def merge(self, left, right):
        left.outer[...] += right.outer
        return left._replace(weight=left.weight + right.weight)


class WritesToRows(Mean):
    def update(self, state, rows):
        rows.values[...] = 0.0
        return state


class DropsRight(Mean):
    def merge(self, left, right):
        return left


class Inexact(Mean):
    exact = False


@pytest.mark.parametrize("wrong", [Forgets, WritesOnMerge, WritesToRows, DropsRight, Inexact])
def test_check_summary_laws__finds(wrong):
    generator = np.random.default_rng(0)
    blocks = [
        Rows(generator.integers(0, 9, (4, WIDTH)).astype("f8"), np.arange(4) + 4 * at)
        for at in range(3)
    ]
    with pytest.raises(AssertionError):
        check_summary_laws(wrong(width=WIDTH), blocks)


class ForgetsMirror(KernelSum):
    def update(self, state, left, right, *, mirrored, diagonal):
        return super().update(state, left, right, mirrored=False, diagonal=diagonal)


class MirrorsAll(KernelSum):
    def update(self, state, left, right, *, mirrored, diagonal):
        return super().update(state, left, right, mirrored=True, diagonal=diagonal)


@pytest.mark.parametrize("wrong", [ForgetsMirror, MirrorsAll])
def test_check_pair_laws__finds(wrong):
    blocks = [Rows(np.ones((3, WIDTH)), np.arange(3) + 3 * at) for at in range(4)]
    check_pair_laws(KernelSum(kernel=whole_kernel), blocks[:2], blocks[2:])
    with pytest.raises(AssertionError):
        check_pair_laws(wrong(kernel=whole_kernel), blocks[:2], blocks[2:])


def test_no_compute__refuses():
    dask_array = pytest.importorskip("dask.array")
    lazy = dask_array.ones(3)
    with no_compute(), pytest.raises(AssertionError, match="only be built"):
        lazy.compute()
    assert to_host(lazy.compute()).tolist() == [1.0, 1.0, 1.0]
