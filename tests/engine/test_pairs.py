import itertools
from dataclasses import dataclass
from typing import NamedTuple

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigkd.config import HELD_BYTES, MAX_STRIPES
from bigkd.engine.ledger import open_ledger
from bigkd.engine.pairs import cut_pairs
from bigkd.errors import DataError, EmptyInputError
from bigkd.io import open_rows
from bigkd.kernels import Gaussian
from bigkd.protocols import Footprint
from bigkd.summaries import KernelSum
from tests.engine.helpers import assert_same_bits, generated, reduce_pairs, unreadable

GAUSSIAN = KernelSum(kernel=Gaussian(2.0))


def inner(x, y):
    return x @ y.T


INNER = KernelSum(kernel=inner)

sizes = st.lists(st.integers(1, 400), min_size=1, max_size=60)


def source(sizes):
    return unreadable(0, 1).__class__(
        name="x", row_shape=(2,), dtype=np.dtype("f4"), bounds=(0, *itertools.accumulate(sizes))
    )


def tiles(squares):
    """(left block, right block, mirrored, diagonal) of each tile that a square stands for."""
    for square in squares:
        for one in square.left.blocks:
            for other in square.right.blocks:
                if not square.diagonal or other >= one:
                    yield one, other


@given(sizes=sizes, row_cost=st.integers(0, 10**10))
def test_squares__of_one_collection_hold_each_unordered_pair_once(sizes, row_cost):
    squares = cut_pairs(source(sizes), None, row_cost=row_cost)
    expected = list(itertools.combinations_with_replacement(range(len(sizes)), 2))
    assert sorted(tiles(squares)) == expected
    assert all(square.mirrored != square.diagonal for square in squares)
    assert all(square.diagonal == (square.left == square.right) for square in squares)


@given(left=sizes, right=sizes, row_cost=st.integers(0, 10**10))
def test_squares__of_two_collections_hold_each_pair_once(left, right, row_cost):
    squares = cut_pairs(source(left), source(right), row_cost=row_cost)
    expected = list(itertools.product(range(len(left)), range(len(right))))
    assert sorted(tiles(squares)) == expected
    assert not any(square.mirrored or square.diagonal for square in squares)


def test_squares__hold_little_and_are_not_too_many():
    wide = generated(10**6, 1_000, width=768)
    for square in cut_pairs(wide, None, row_cost=1):
        for run in (square.left, square.right):
            assert len(run.blocks) * 1_000 * wide.row_bytes <= HELD_BYTES / 2 + 1_000 * 3_072
    assert len(cut_pairs(generated(10**6, 10), None, row_cost=10**9)) <= MAX_STRIPES


def rows(n, seed):
    return np.random.default_rng(seed).normal(size=(n, 3))


def opened(array, kind):
    if kind == "dask":
        return open_rows(da.from_array(array, chunks=(7, 2)), name="x")
    return open_rows(array, name="x", block_rows=7)


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
@pytest.mark.parametrize("kind", ["numpy", "dask"])
@pytest.mark.usefixtures("small_squares")
def test_reduce_pairs__of_one_collection_equals_every_pair(kind, scheduler):
    x = rows(65, 0)
    state, tally = reduce_pairs(GAUSSIAN, opened(x, kind), scheduler=scheduler)
    np.testing.assert_allclose(state.total, Gaussian(2.0)(x, x).sum(), rtol=1e-12)
    assert float(state.weight) == 65**2
    assert (int(tally.rows), int(tally.dropped)) == (65, 0)


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
@pytest.mark.parametrize("kinds", [("numpy", "dask"), ("dask", "numpy"), ("dask", "dask")])
@pytest.mark.usefixtures("small_squares")
def test_reduce_pairs__of_two_collections_equals_every_pair(kinds, scheduler):
    x, y = rows(65, 0), rows(41, 1)
    one, other = opened(x, kinds[0]), opened(y, kinds[1])
    state, tally = reduce_pairs(GAUSSIAN, one, other, scheduler=scheduler)
    np.testing.assert_allclose(state.total, Gaussian(2.0)(x, y).sum(), rtol=1e-12)
    assert float(state.weight) == 65 * 41
    assert (int(tally.rows), int(tally.dropped)) == (65 + 41, 0)


@pytest.mark.usefixtures("small_squares")
def test_reduce_pairs__gives_the_same_bits_on_sync_and_threads():
    found = [reduce_pairs(GAUSSIAN, generated(90, 7), scheduler=s) for s in ("sync", "threads")]
    assert_same_bits(*found)


@pytest.mark.usefixtures("small_squares")
def test_reduce_pairs__reads_a_block_once_for_each_square(tmp_path):
    counted = generated(100, 10, log=tmp_path / "reads")
    reduce_pairs(INNER, counted)
    # runs of 2 blocks: 5 runs, each in 5 squares, once in the square with itself
    assert sorted(counted.reads()) == sorted([start for start in range(0, 100, 10)] * 5)


class TileState(NamedTuple):
    seen: np.ndarray  # (n, n), how often each ordered pair of rows was seen


@dataclass(frozen=True)
class Tiles:
    """Counts the pairs of rows, by their numbers."""

    n: int
    exact: bool = True

    def init(self, like):
        del like
        return TileState(np.zeros((self.n, self.n), dtype=int))

    def update(self, state, left, right, *, mirrored, diagonal):
        seen = state.seen.copy()
        seen[np.ix_(left.index, right.index)] += 1
        if mirrored:
            seen[np.ix_(right.index, left.index)] += 1
        assert diagonal == (left.index[0] == right.index[0])
        return TileState(seen)

    def merge(self, left, right):
        return TileState(left.seen + right.seen)

    def footprint(self, n_left, n_right, itemsize):
        del n_left, n_right, itemsize
        return Footprint(state=8 * self.n**2, scratch=0, row_cost=64)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("n", [1, 6, 20, 61, 100])
@pytest.mark.usefixtures("small_squares")
def test_reduce_pairs__tells_tiles_what_they_stand_for(n, exact):
    state, _ = reduce_pairs(Tiles(n, exact), generated(n, 6))
    np.testing.assert_array_equal(state.seen, 1)


@pytest.mark.usefixtures("small_squares")
def test_reduce_pairs__never_shows_a_summary_no_rows():
    x = rows(60, 0)
    x[6:12] = np.nan
    state, tally = reduce_pairs(Tiles(60), open_rows(x, name="x", block_rows=6), nonfinite="drop")
    kept = np.isfinite(x[:, 0])
    np.testing.assert_array_equal(state.seen, np.outer(kept, kept))
    assert int(tally.dropped) == 6


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.usefixtures("small_squares")
def test_reduce_pairs__drops_and_counts(cross):
    x, y = rows(65, 0), rows(41, 1)
    x[[3, 50, 51]], y[7:14] = np.nan, np.inf  # a whole block of y
    kept_x, kept_y = np.delete(x, [3, 50, 51], axis=0), np.delete(y, range(7, 14), axis=0)
    other = opened(y, "numpy") if cross else None
    state, tally = reduce_pairs(GAUSSIAN, opened(x, "numpy"), other, nonfinite="drop")
    truth = Gaussian(2.0)(kept_x, kept_y if cross else kept_x)
    np.testing.assert_allclose(state.total, truth.sum(), rtol=1e-12)
    assert (int(tally.rows), int(tally.dropped)) == ((62 + 34, 10) if cross else (62, 3))


def test_reduce_pairs__refuses_what_is_not_finite():
    x = rows(20, 0)
    x[11] = np.nan
    with pytest.raises(DataError, match=r"row 11 \(row 4 of block 1\)"):
        reduce_pairs(GAUSSIAN, opened(x, "numpy"))
    with pytest.raises(EmptyInputError, match="none of its 20 rows"):
        reduce_pairs(GAUSSIAN, opened(np.full((20, 3), np.nan), "numpy"), nonfinite="drop")


@pytest.mark.parametrize("n_collections", [1, 2])
def test_reduce_pairs__counts_the_rows_of_each_collection_once(n_collections):
    with open_ledger() as ledger:
        reduce_pairs(GAUSSIAN, *(generated(60, 10, seed=at) for at in range(n_collections)))
    assert ledger.rows_read == 60 * n_collections
