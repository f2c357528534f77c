import re

import array_api_strict
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st

from bigkd.engine import Settings, collect_rows, open_session
from bigkd.engine.stripes import Stripe
from bigkd.engine.tasks import Job, run_stripe
from bigkd.errors import DataError, EmptyInputError
from bigkd.io import open_rows
from bigkd.protocols import Rows
from bigkd.summaries import Mean
from tests.engine.helpers import Census, assert_same_bits, everything, flat, generated, reduce

WIDTH = 3


def whole(n_rows, dtype="float32", seed=0):
    """Rows of small whole numbers: every sum of them is exact."""
    made = np.random.default_rng(seed).integers(-9, 9, (n_rows, WIDTH))
    return made.astype(dtype)


def as_zarr(rows, path):
    array = zarr.create_array(path / "x", shape=rows.shape, chunks=(5, 2), dtype=rows.dtype)
    array[:] = rows
    return array


def as_zarr_path(rows, path):
    as_zarr(rows, path)
    return path / "x"


def as_npy(rows, path):
    np.save(path / "x.npy", rows)
    return path / "x.npy"


def as_memmap(rows, path):
    return np.load(as_npy(rows, path), mmap_mode="r")


def as_dask(rows, path):
    del path
    return da.from_array(rows, chunks=(9, 2))


def as_dataarray(rows, path):
    del path
    return xr.DataArray(rows, dims=("row", "feature")).chunk(row=8)


KINDS = {
    "numpy": lambda rows, _: rows,
    "strict": lambda rows, _: array_api_strict.asarray(rows),
    "zarr": as_zarr,
    "zarr path": as_zarr_path,
    "npy": as_npy,
    "memmap": as_memmap,
    "dask": as_dask,
    "xarray": as_dataarray,
}


def bare_loop(summary, source, first_row=0):
    """What reduce means: one state, one block after the other."""
    state = None
    for block in range(source.n_blocks):
        values = np.asarray(source.read(block))
        first = source.first_index(block) + first_row
        rows = Rows(values, np.arange(first, first + len(values)))
        state = summary.update(summary.init(values) if state is None else state, rows)
    return state


@pytest.fixture(params=KINDS)
def opened(request, tmp_path):
    return open_rows(KINDS[request.param](whole(53), tmp_path), name="x", block_rows=7)


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
@pytest.mark.usefixtures("small_stripes")
def test_reduce__equals_a_bare_loop(opened, scheduler):
    strict = "strict" in type(opened.like()).__module__
    summary = Mean(width=WIDTH) if strict else everything(WIDTH)
    found = reduce(summary, opened, scheduler=scheduler, first_row=100)
    source = open_rows(whole(53), name="x", block_rows=7)
    assert_same_bits(found.state, bare_loop(summary, source, first_row=100))
    assert (int(found.tally.rows), int(found.tally.dropped)) == (53, 0)


def test_reduce__makes_more_than_one_task_of_each_kind(opened, small_stripes):
    del small_stripes
    with open_session(Settings(scheduler="sync")) as session:
        session.reduce(Mean(width=WIDTH), opened, label="pass")
    (plan,) = session.plans
    assert plan.n_tasks == plan.n_blocks > 5


@pytest.mark.usefixtures("small_stripes")
def test_reduce__gives_the_same_bits_on_sync_and_threads():
    source = generated(1_000, 7)
    one, other = (reduce(everything(3), source, scheduler=name) for name in ("sync", "threads"))
    assert_same_bits(one, other)


@given(block=st.integers(1, 400))
def test_reduce__is_chunk_invariant_within_rounding(block):
    rows = np.random.default_rng(0).normal(size=(300, 3)) + 1e3
    (mean, moment, top), tally = reduce(everything(3), open_rows(rows, name="x", block_rows=block))
    np.testing.assert_allclose(mean.total, rows.sum(axis=0), rtol=1e-13)
    np.testing.assert_allclose(moment.outer, rows.T @ rows, rtol=1e-13)
    assert list(top.index[0]) == list(np.argsort(-rows[:, 0])[:4])
    assert int(tally.rows) == 300


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool", "float16", "float64", ">f4"])
@pytest.mark.usefixtures("small_stripes")
def test_reduce__takes_rows_of_any_real_type(dtype):
    rows = whole(40).astype(dtype)
    found = reduce(everything(3), open_rows(rows, name="x", block_rows=7)).state
    wide = rows.astype(np.float64)
    np.testing.assert_array_equal(found[0].total, wide.sum(axis=0))
    np.testing.assert_array_equal(found[1].outer, wide.T @ wide)


@pytest.mark.parametrize(
    ("dtype", "huge"), [("float32", 1e38), ("float64", 1e308), ("float16", 6e4)]
)
def test_reduce__takes_finite_rows_whose_sum_overflows(dtype, huge):
    rows = np.full((40, 3), huge, dtype=dtype)
    rows[20:] *= -1
    source = open_rows(rows, name="x", block_rows=40)
    found = reduce(Census(), source, nonfinite="drop")
    assert (int(found.tally.rows), int(found.tally.dropped)) == (40, 0)


def spoilt(kind=np.nan):
    rows = whole(30)
    rows[[12, 13, 27], [0, 2, 1]] = kind
    return rows


@pytest.mark.parametrize("kind", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_reduce__names_the_first_row_that_is_not_finite(kind, scheduler):
    source = open_rows(spoilt(kind), name="rows", block_rows=10)
    message = (
        "rows: row 12 (row 2 of block 1) is not finite, the first of 2 in its block; expected "
        "finite numbers. Pass nonfinite='drop' to leave such rows out and count them, or mend the "
        "data."
    )
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        reduce(Mean(width=3), source, scheduler=scheduler)


def test_reduce__sees_infinities_that_cancel():
    rows = whole(10)
    rows[3, 0], rows[4, 0] = np.inf, -np.inf
    with pytest.raises(DataError, match="row 3"):
        reduce(Mean(width=3), open_rows(rows, name="x"))


@pytest.mark.parametrize("kind", ["numpy", "zarr", "dask"])
@pytest.mark.usefixtures("small_stripes")
def test_reduce__drops_and_counts_rows_and_keeps_row_numbers(kind, tmp_path):
    rows = spoilt()
    rows[29, 0] = 100.0
    source = open_rows(KINDS[kind](rows, tmp_path), name="x", block_rows=10)
    found = reduce(everything(3), source, nonfinite="drop", first_row=1_000)
    assert (int(found.tally.rows), int(found.tally.dropped)) == (27, 3)
    mean, _, top = found.state
    np.testing.assert_array_equal(mean.total, np.delete(rows, [12, 13, 27], axis=0).sum(axis=0))
    assert top.index[0, 0] == 1_029


def test_reduce__refuses_rows_of_which_none_is_left():
    rows = np.full((9, 3), np.nan)
    with pytest.raises(EmptyInputError, match="x: none of its 9 rows is finite"):
        reduce(Mean(width=3), open_rows(rows, name="x", block_rows=4), nonfinite="drop")


@pytest.mark.usefixtures("small_stripes")
def test_reduce__goes_on_where_a_whole_block_is_dropped():
    rows = whole(9)
    rows[:4] = np.nan
    found = reduce(everything(3), open_rows(rows, name="x", block_rows=4), nonfinite="drop")
    assert (int(found.tally.rows), int(found.tally.dropped)) == (5, 4)
    np.testing.assert_array_equal(found.state[0].total, rows[4:].sum(axis=0))


class NeverEmpty(Census):
    """A summary whose author did not think of no rows."""

    def update(self, state, rows):
        assert rows.values[0, 0] == rows.values[0, 0]
        return state


@pytest.mark.usefixtures("small_stripes")
def test_reduce__never_shows_a_summary_no_rows():
    rows = whole(9)
    rows[:4] = np.nan
    found = reduce(NeverEmpty(), open_rows(rows, name="x", block_rows=4), nonfinite="drop")
    assert int(found.tally.rows) == 5


def test_reduce__refuses_dask_blocks_that_are_not_what_they_promise():
    array = da.ones((20, 3), chunks=(10, 3)).map_blocks(lambda x: x[:8], dtype=float)
    with pytest.raises(DataError, match=r"block 0 has shape \(8, 3\) where \(10, 3\) was promised"):
        reduce(Mean(width=3), open_rows(array, name="x"))


def test_reduce__flattens_images_of_any_kind(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, (20, 4, 5, 3)).astype("uint8")
    total = images.reshape(20, -1).sum(axis=0)
    for kind in (images, da.from_array(images, chunks=(6, 2, 5, 3)), as_npy(images, tmp_path)):
        found = reduce(Mean(width=60), open_rows(kind, name="x", block_rows=7)).state
        np.testing.assert_array_equal(found.total, total)


def test_reduce__leaves_the_blocks_of_the_user_alone():
    rows = whole(50)
    rows.flags.writeable = False
    reduce(everything(3), open_rows(rows, name="x", block_rows=7), nonfinite="drop")


def test_stripe__that_goes_on_from_another_can_be_done_again():
    source, summary = open_rows(whole(40), name="x", block_rows=10), everything(3)
    job = Job(summary, source, "raise", 0, None)
    before = run_stripe(job, Stripe(0, 2))
    kept = [array.copy() for array in flat(before)]
    once, twice = (run_stripe(job, Stripe(2, 4), None, before) for _ in range(2))
    assert_same_bits(once, twice)
    assert_same_bits(tuple(flat(before)), tuple(kept))
    assert_same_bits(once, run_stripe(job, Stripe(0, 4)))


def test_collect_rows__gives_all_rows_with_their_numbers():
    rows = spoilt()
    found = collect_rows(open_rows(rows, name="x", block_rows=10), "drop")
    kept = np.delete(np.arange(30), [12, 13, 27])
    np.testing.assert_array_equal(found.index, kept)
    np.testing.assert_array_equal(found.values, rows[kept])
    with pytest.raises(EmptyInputError, match="none of its 2 rows"):
        collect_rows(open_rows(np.full((2, 2), np.inf), name="x"), "drop")
