import dask.array as da
import numpy as np
import pytest

from bigkd.errors import EmptyInputError
from bigkd.io import open_rows, sample_rows


def numbered(n, **options):
    return open_rows(np.arange(n, dtype="f8")[:, None], name="rows", **options)


def test_sample__is_equal_for_equal_seeds():
    source = numbered(1000, block_rows=10)
    one = sample_rows(source, 100, seed=3)
    np.testing.assert_array_equal(one, sample_rows(source, 100, seed=3))
    assert not np.array_equal(one, sample_rows(source, 100, seed=4))


@pytest.mark.parametrize("block_rows", [1, 7, 50, 1000])
@pytest.mark.parametrize("n_rows", [1, 60, 300, 999, 1000, 5000])
def test_sample__has_distinct_rows_and_enough(block_rows, n_rows):
    rows = sample_rows(numbered(1000, block_rows=block_rows), n_rows, seed=0)[:, 0]
    assert len(set(rows)) == len(rows)
    assert 0.9 * min(n_rows, 1000) <= len(rows) <= min(n_rows, 1000)
    assert set(rows) <= set(range(1000))


@pytest.mark.parametrize("block_rows", [1, 3, 90, 150])
def test_sample__gives_every_row_the_same_chance(block_rows):
    # 150 rows leave a short last block, whose rows must not be drawn more often
    n, draws, size = 400, 600, 40
    source = numbered(n, block_rows=block_rows)
    counts = np.zeros(n)
    for seed in range(draws):
        counts[sample_rows(source, size, seed=seed)[:, 0].astype(int)] += 1
    expected = draws * size / n
    groups = counts.reshape(40, 10).sum(axis=1)
    # each sum of ten counts is about binomial, or coarser where rows come in runs of ten
    assert np.all(np.abs(groups - 10 * expected) < 5 * np.sqrt(2 * 10 * expected))
    last = counts[-100:].sum()
    assert abs(last - 100 * expected) < 5 * np.sqrt(100 * expected)


def test_sample__of_unequal_blocks_gives_every_row_the_same_chance():
    sizes = (1, 3, 96) * 20
    x = da.from_array(np.arange(2000.0)[:, None], (sizes, (1,)))
    counts = np.zeros(2000)
    for seed in range(100):
        counts[sample_rows(open_rows(x, name="rows"), 100, seed=seed)[:, 0].astype(int)] += 1
    small = np.concatenate([np.arange(at, at + 4) for at in range(0, 2000, 100)])
    expected = counts.sum() * len(small) / 2000
    assert abs(counts[small].sum() - expected) < 5 * np.sqrt(2 * expected)


def test_sample__covers_sorted_collections_and_reads_little(monkeypatch):
    source = numbered(100_000, block_rows=100)
    read = []
    take = type(source).take
    monkeypatch.setattr(type(source), "take", lambda s, a, b: read.append(a) or take(s, a, b))
    rows = sample_rows(source, 800, seed=0)[:, 0]
    assert len(read) == 16
    counts, _ = np.histogram(rows, bins=16, range=(0, 100_000))
    assert counts.sum() == 800
    assert np.all(np.abs(counts - 50) <= 2)
    assert read == sorted(read)


def test_sample__leaves_out_rows_that_are_not_finite():
    x = np.arange(40.0).reshape(20, 2)
    x[3, 1], x[7, 0] = np.nan, np.inf
    rows = sample_rows(open_rows(x, name="rows"), 20, seed=0)
    np.testing.assert_array_equal(rows, np.delete(x, [3, 7], axis=0))
    with pytest.raises(EmptyInputError, match="rows: none of 5 sampled rows is finite"):
        sample_rows(open_rows(np.full((5, 2), np.nan), name="rows"), 9, seed=0)


def test_sample__is_float64_on_the_host(put):
    source = open_rows(put(np.ones((5, 2), "f4")), name="rows")
    rows = sample_rows(source, 3, seed=0)
    assert isinstance(rows, np.ndarray)
    assert rows.dtype == "f8"
