"""Rows and pairs that are stored, by toy functions against NumPy."""

from dataclasses import dataclass
from pathlib import Path

import array_api_strict
import dask.array as da
import numpy as np
import pyarrow.parquet
import pytest
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st

from bigkd.config import BLOCK_BYTES, MEGABYTE
from bigkd.engine import tiles
from bigkd.engine.options import settings_of
from bigkd.engine.tasks import Job
from bigkd.errors import DataError, InputError, MemoryPlanError, ShapeError
from bigkd.io import open_rows
from tests.engine.helpers import generated, unreadable
from tests.engine.toys import (
    Log,
    Powers,
    Products,
    X,
    Y,
    notes,
    powers,
    products,
    read,
    store_pairs,
    store_rows,
)


def opened(x, kind, tmp_path):
    if kind == "dask":
        return open_rows(da.from_array(x, chunks=((7, 1, 2, 23, len(x) - 33), (2, 1))), name="x")
    if kind == "parquet":
        table = pyarrow.table({str(at): x[:, at] for at in range(3)})
        pyarrow.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=9)
        return open_rows(tmp_path / "x.parquet", name="x", columns=("0", "1", "2"))
    if kind == "npy":
        np.save(tmp_path / "x.npy", x)
        return open_rows(tmp_path / "x.npy", name="x")
    if kind == "strict":
        return open_rows(array_api_strict.asarray(x), name="x", block_rows=7)
    if kind == "zarr":
        zarr.create_array(tmp_path / "x.zarr", data=x, chunks=(9, 3))
        return open_rows(tmp_path / "x.zarr", name="x")
    return open_rows(x, name="x", block_rows=7)


@pytest.mark.parametrize("kind", ["strict", "parquet", "npy"])
@pytest.mark.usefixtures("small_tiles")
def test_store__takes_rows_from_anywhere(kind, tmp_path):
    source = opened(X, kind, tmp_path)
    np.testing.assert_array_equal(read(store_rows(source, tmp_path / "rows")), powers(X))
    found = store_pairs(source, source, tmp_path / "pairs")
    np.testing.assert_allclose(found["d"], products(X, X), rtol=1e-14, atol=1e-14)


@pytest.mark.usefixtures("small_tiles")
def test_store_rows__can_be_opened_as_rows_before_and_after(tmp_path):
    array = store_rows(open_rows(X, name="x"), tmp_path / "kept")
    before = open_rows(array.data_path, name="rows").read(0)
    array.finish(xr.Dataset(), kind="rows")
    after = open_rows(tmp_path / "kept", name="rows").read(0)
    for found in (before, after):
        np.testing.assert_array_equal(found, powers(X).reshape(50, 6))


@pytest.mark.parametrize("scheduler", ["sync", "threads", "cluster"])
@pytest.mark.parametrize("kind", ["numpy", "dask", "zarr"])
@pytest.mark.usefixtures("small_tiles")
def test_store_rows__is_the_function_of_each_row(kind, scheduler, tmp_path, request):
    if scheduler == "cluster":
        scheduler = request.getfixturevalue("cluster")
    array = store_rows(opened(X, kind, tmp_path), tmp_path / "kept", scheduler=scheduler)
    np.testing.assert_array_equal(read(array), powers(X))
    assert array.grid == (5, 1, 1)
    assert zarr.open_array(array.data_path, mode="r").chunks == (5, 2, 3)


@pytest.mark.parametrize("scheduler", ["sync", "threads", "cluster"])
@pytest.mark.parametrize("kind", ["numpy", "dask", "zarr"])
@pytest.mark.usefixtures("small_tiles")
def test_store_pairs__is_the_function_of_each_pair(kind, scheduler, tmp_path, request):
    if scheduler == "cluster":
        scheduler = request.getfixturevalue("cluster")
    left, right = opened(X, kind, tmp_path), open_rows(Y, name="y")
    found = store_pairs(left, right, tmp_path / "kept", scheduler=scheduler)
    np.testing.assert_allclose(found["d"], products(X, Y), rtol=1e-14, atol=1e-15)
    assert found["d"].dims == ("kind", "a", "b")
    assert found["d"].data.numblocks == (1, 13, 6)
    here = store_pairs(open_rows(X, name="x"), right, tmp_path / "here")
    assert found["d"].values.tobytes() == here["d"].values.tobytes()


@pytest.mark.usefixtures("small_tiles")
def test_store_pairs__of_few_and_many_cuts_the_many(tmp_path):
    one = open_rows(X[:1], name="one")
    found = store_pairs(one, open_rows(X, name="x"), tmp_path / "kept")
    assert found["d"].chunks == ((2,), (1,), (16, 16, 16, 2))


@pytest.mark.parametrize("most", [1, 2, 4, 7])
@pytest.mark.usefixtures("small_tiles")
def test_tiles__grow_before_there_are_too_many(most, tmp_path, monkeypatch):
    monkeypatch.setattr(tiles, "MOST_TILES", most)
    log = Log(tmp_path / "log")
    array = store_rows(open_rows(X, name="x"), tmp_path / "rows", Powers(cost=160, log=log))
    assert array.grid[0] <= most
    assert sorted(notes(log)) == sorted(f"{at}:{at + 5}" for at in range(0, 50, 5))
    np.testing.assert_array_equal(read(array), powers(X))
    left, right = open_rows(X, name="x"), open_rows(Y, name="y")
    found = store_pairs(left, right, tmp_path / "pairs", Products(cost=100, log=log))
    assert np.prod(found["d"].data.numblocks) <= most
    assert len(notes(log)) == 13 * 6  # parts are as small as before
    np.testing.assert_allclose(found["d"], products(X, Y), rtol=1e-14, atol=1e-15)


@given(
    n=st.integers(1, 10**6), width=st.integers(1, 10**6), cost=st.integers(0, 10**12),
)  # fmt: skip
def test_tiles__of_rows_are_few_and_read_little(n, width, cost):
    source = unreadable(n, n, width=width)
    function = Powers(width=width, cost=cost)
    job = Job(function, source, "raise", 0, None)
    tiling = tiles.row_tiling(function, source, "x", job=job, token="t", label="x")
    array, even = tiling.array, tiling.jobs[0].source
    assert array.grid[0] <= tiles.MOST_TILES
    assert array.tile[0] % array.chunk[0] == 0 or array.grid[0] == 1
    assert even.bounds[1] % array.chunk[0] == 0 or even.n_blocks == 1
    rows = max(1, tiles.CHUNK_BYTES // (16 * width))
    assert array.chunk[0] <= rows
    assert even.bounds[1] * even.row_bytes <= max(BLOCK_BYTES, even.row_bytes)
    assert even.bounds[1] * cost <= max(tiles.TILE_WORK, cost)


@given(
    sizes=st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)),
    width=st.integers(1, 10**6), cost=st.integers(0, 10**12),
)  # fmt: skip
def test_tiles__of_pairs_are_few_and_read_little(sizes, width, cost):
    sources = [unreadable(n, n, width=width) for n in sizes]
    jobs = [Job(Products(cost=cost), source, "raise", 0, None) for source in sources]
    tiling = tiles.pair_tiling(
        Products(cost=cost), sources, "x", jobs=jobs, token="t", label="x", name="d",
        dims=("k", "a", "b"),
    )  # fmt: skip
    assert np.prod(tiling.array.grid) <= tiles.MOST_TILES
    parts = [job.source for job in tiling.jobs]
    for part, n, tile, per in zip(
        parts, sizes, tiling.array.tile[1:], tiling.per_tile, strict=True
    ):
        assert part.bounds[1] * part.row_bytes <= max(tiles.PART_BYTES, part.row_bytes)
        assert tile == min(n, per * part.bounds[1])
    pairs = parts[0].bounds[1] * parts[1].bounds[1]
    assert pairs <= max(1, tiles.PART_BYTES // 16)
    assert pairs * cost <= max(cost, tiles.TILE_WORK)


def test_store__refuses_rows_that_are_not_there(tmp_path):
    stored = zarr.create_array(tmp_path / "x", shape=(20, 3), chunks=(5, 3), dtype="f8")
    stored[:10] = 1.0
    source = open_rows(stored, name="x", missing="skip")
    with pytest.raises(InputError, match=r"x: 10 rows do not exist.*missing='fill'"):
        store_rows(source, tmp_path / "kept")
    with pytest.raises(InputError, match=r"10 rows do not exist"):
        store_pairs(open_rows(Y, name="y"), source, tmp_path / "kept")


def test_store__refuses_to_drop_rows(tmp_path):
    source = open_rows(X, name="x")
    for store, given_ in ((store_rows, [source]), (store_pairs, [source, source])):
        with pytest.raises(InputError, match="nonfinite='drop' would leave rows out"):
            store(*given_, tmp_path / "kept", nonfinite="drop")
    assert list(tmp_path.iterdir()) == []


def test_store__tells_which_row_is_not_finite(tmp_path):
    x = X.copy()
    x[11] = np.nan
    with pytest.raises(DataError, match="x: row 11 "):
        store_rows(open_rows(x, name="x"), tmp_path / "kept")


@pytest.mark.usefixtures("small_tiles")
def test_store__keeps_what_is_not_finite_for_those_who_ask(tmp_path):
    x = X.copy()
    x[10:20] = np.nan  # a whole tile
    source = open_rows(x, name="x")
    np.testing.assert_array_equal(
        read(store_rows(source, tmp_path / "rows", nonfinite="keep")), powers(x)
    )
    found = store_pairs(source, open_rows(Y, name="y"), tmp_path / "pairs", nonfinite="keep")
    np.testing.assert_allclose(found["d"], products(x, Y), rtol=1e-14, atol=1e-15)


def test_options__do_not_let_users_keep_what_is_not_finite():
    with pytest.raises(InputError, match="'raise' or 'drop'; got 'keep'"):
        settings_of({"nonfinite": "keep"})


def test_memory__is_refused_before_anything_is_read(tmp_path):
    source = unreadable(1000, 100)
    with pytest.raises(MemoryPlanError, match=r"rows: one task needs.*fewer landmarks"):
        store_rows(source, tmp_path / "kept", memory_limit="1 MB")
    with pytest.raises(MemoryPlanError, match="give each worker thread at least"):
        store_pairs(source, source, tmp_path / "kept", memory_limit="1 MB")
    assert list(tmp_path.iterdir()) == []


def test_memory__of_a_store_counts_its_chunks(tmp_path):
    plans = []
    for chunk in (100, 30_000):
        path = tmp_path / str(chunk)
        zarr.create_array(path, shape=(30_000, 100), chunks=(chunk, 100), dtype="f8")
        source = open_rows(path, name="x", missing="fill", block_rows=chunk)
        job = Job(Powers(width=100, cost=10**9), source, "raise", 0, None)
        tiling = tiles.row_tiling(job.summary, source, "x", job=job, token="t", label="x")
        plans.append(tiling.plan.task_bytes)
    assert plans[1] - plans[0] > 3 * 23 * MEGABYTE


@dataclass(frozen=True, kw_only=True)
class Wrong(Powers):
    def __call__(self, rows):
        return super().__call__(rows)[:1]


def test_store_rows__tells_a_wrong_shape(tmp_path):
    with pytest.raises(ShapeError, match=r"Wrong made numbers of shape \(1, 2, 3\) where \(50,"):
        store_rows(open_rows(X, name="x"), tmp_path / "kept", Wrong())


def test_store__never_overwrites_what_others_wrote(tmp_path):
    source = open_rows(X, name="x")
    for name in ("kept", ".other.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.txt").write_text("all my work")
    for name in ("kept", "other"):
        with pytest.raises(InputError, match="not written by bigkd"):
            store_rows(source, tmp_path / name)
        with pytest.raises(InputError, match="not written by bigkd"):
            store_pairs(source, source, tmp_path / name, overwrite=True)
    assert len(list(tmp_path.glob("*/thesis.txt"))) == 2


def test_store_pairs__replaces_its_own_only_if_told_to(tmp_path):
    x, y = open_rows(X, name="x"), open_rows(Y, name="y")
    store_pairs(x, y, tmp_path / "kept")
    with pytest.raises(InputError, match="overwrite=True"):
        store_pairs(y, x, tmp_path / "kept")
    found = store_pairs(y, x, tmp_path / "kept", overwrite=True)
    np.testing.assert_allclose(found["d"], products(Y, X), rtol=1e-14, atol=1e-15)


def test_store__finds_relative_paths_from_other_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    array = store_rows(open_rows(X, name="x"), "kept")
    assert Path(array.path) == tmp_path / "kept"


@pytest.mark.usefixtures("small_tiles")
def test_store_rows__reads_a_tile_at_once(tmp_path):
    source = generated(100, 33, log=tmp_path / "reads")
    store_rows(source, tmp_path / "kept")
    assert sorted(source.reads()) == list(range(0, 100, 10))
