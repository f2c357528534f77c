import itertools
import pickle

import array_api_strict
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

from bigkd.backends import to_host
from bigkd.errors import DataError
from bigkd.io import columns, open_rows
from bigkd.io.columns import columns_of
from bigkd.io.row_files import RowFiles
from bigkd.io.sources import stored_rows
from bigkd.protocols import Rows

SHAPE = (7, 6, 10, 3)
KEPT = (0, 2, 3, 6)


def numbers(shape=SHAPE, dtype="float32"):
    return np.random.default_rng(0).integers(1, 200, shape).astype(dtype)


def stored(folder, x, chunks, shards=None):
    array = zarr.create_array(
        store=str(folder / "x.zarr"), shape=x.shape, dtype=x.dtype, chunks=chunks, shards=shards
    )
    array[...] = x
    return array


def saved(folder, x):
    np.save(folder / "x.npy", x)
    return folder / "x.npy"


def mapped(folder, x):
    made = np.memmap(folder / "x.raw", x.dtype, "w+", shape=x.shape)
    made[...] = x
    made.flush()
    return np.memmap(folder / "x.raw", x.dtype, "r", shape=x.shape)


def labelled(x):
    return xr.DataArray(x, dims=("time", "y", "x", "c"))


KINDS = {
    "numpy": lambda folder, x: x,
    "transposed": lambda folder, x: x.T.copy().T,
    "strict": lambda folder, x: array_api_strict.asarray(x),
    "npy": saved,
    "memmap": mapped,
    "dask": lambda folder, x: da.from_array(x, chunks=(3, 4, 5, 3)),
    "xarray": lambda folder, x: labelled(x),
    "xarray of dask": lambda folder, x: labelled(x).chunk(time=3, y=2),
    "zarr": lambda folder, x: stored(folder, x, (7, 2, 5, 1)),
    "sharded": lambda folder, x: stored(folder, x, (2, 2, 5, 3), shards=(4, 4, 10, 3)),
    "frames": lambda folder, x: stored(folder, x, (1, 6, 10, 3)),
}  # fmt: skip


def opened(kind, folder, x):
    return KINDS[kind](folder, x)


def read(source, block):
    if source.__class__.__name__ == "DaskSource":
        return np.asarray(source.array.blocks[block].compute())
    return to_host(source.read(block))


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 20 columns or so."""
    monkeypatch.setattr(columns, "BLOCK_BYTES", 7 * 4 * 20)
    monkeypatch.setattr(columns, "SLAB_BYTES", 7 * 4 * 80)
    monkeypatch.setattr(columns, "PIECE_BYTES", 4)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kept", [None, KEPT])
@pytest.mark.parametrize("kind", KINDS)
def test_columns_of__are_the_columns(tmp_path, kind, kept):
    x = numbers()
    source = open_rows(opened(kind, tmp_path, x), name="X")
    found = columns_of(source, kept=kept)
    expected = x.reshape(7, -1)[list(kept or range(7))].T
    assert found.name == "X"
    assert (found.n_rows, found.width) == expected.shape
    assert found.n_blocks > 1
    for block in range(found.n_blocks):
        assert found.first_index(block) == found.bounds[block]
        rows = expected[found.bounds[block] : found.bounds[block + 1]]
        np.testing.assert_array_equal(read(found, block), rows, strict=True)
    whole = to_host(found.take(13, 170))
    np.testing.assert_array_equal(whole, expected[13:170])
    assert to_host(found.like()).shape[1] == expected.shape[1]


@pytest.mark.parametrize("shape", [(5, 11), (5, 1, 40), (5, 3, 4, 5), (5, 60, 1)])
@pytest.mark.parametrize("limit", [20, 100])
def test_columns_of__any_shape(monkeypatch, tmp_path, shape, limit):
    monkeypatch.setattr(columns, "BLOCK_BYTES", limit)
    monkeypatch.setattr(columns, "SLAB_BYTES", 4 * limit)
    monkeypatch.setattr(columns, "MOST_READS", 10_000)
    x = numbers(shape, "uint8")
    for chunks in itertools.product(*({3, size} for size in shape)):
        folder = tmp_path / "-".join(map(str, chunks))
        array = stored(folder, x, tuple(map(min, chunks, shape)))
        for data in (array, x):
            found = columns_of(open_rows(data, name="X"))
            rows = [found.read(block) for block in range(found.n_blocks)]
            np.testing.assert_array_equal(np.concatenate(rows), x.reshape(5, -1).T)


class CountingStore(zarr.storage.MemoryStore):
    def __init__(self):
        super().__init__()
        self.gets = 0

    async def get(self, key, *args, **options):
        self.gets += "c/" in key
        return await super().get(key, *args, **options)


@pytest.mark.parametrize(
    ("chunks", "reads"),
    [
        ((7, 1, 10, 3), 1),
        ((2, 2, 5, 3), 1),
        ((7, 6, 2, 3), 6),
        ((7, 3, 2, 3), 3),
        ((1, 6, 10, 3), 6),
    ],
)
def test_columns_of__reads_each_chunk_as_often_as_it_says(monkeypatch, chunks, reads):
    monkeypatch.setattr(columns, "BLOCK_BYTES", 7 * 4 * 60)
    monkeypatch.setattr(columns, "SLAB_BYTES", 7 * 4 * 59)
    monkeypatch.setattr(columns, "MOST_READS", 6)
    x, store = numbers(), CountingStore()
    array = zarr.create_array(store=store, shape=x.shape, dtype=x.dtype, chunks=chunks)
    array[...] = x
    found = columns_of(open_rows(array, name="X"))
    assert found.n_reads == reads
    store.gets = 0
    for block in range(found.n_blocks):
        found.read(block)
    n_chunks = np.prod([-(-size // chunk) for size, chunk in zip(x.shape, chunks, strict=True)])
    assert store.gets == n_chunks * reads
    monkeypatch.setattr(columns, "MOST_READS", reads - 1)
    assert columns_of(open_rows(array, name="X")) is None


def test_columns_of__reads_a_piece_of_each_row_of_a_file(tmp_path):
    x = numbers((2000, 5000), "uint8")
    np.save(tmp_path / "x.npy", x)
    found = columns_of(open_rows(tmp_path / "x.npy", name="X"))
    assert found.largest_block == 5000  # 2000 pieces of 4 kB at least
    np.save(tmp_path / "x.npy", x[:1999])
    with pytest.raises(DataError, match="too early"):
        found.read(0)


def test_columns_of__a_dask_array_in_its_own_chunks(monkeypatch):
    monkeypatch.setattr(columns, "HELD_BYTES", 1000)
    x = numbers((5, 400))
    narrow = open_rows(da.from_array(x, chunks=(2, 50)), name="X")
    assert columns_of(narrow).n_rows == 400
    whole = open_rows(da.from_array(x, chunks=(2, 400)), name="X")
    assert columns_of(whole) is None


def test_columns_of__an_unchunked_field_as_it_is_stored(monkeypatch, tmp_path):
    monkeypatch.setattr(columns, "HELD_BYTES", 3000)
    monkeypatch.setattr(columns, "BLOCK_BYTES", 1500)
    x = numbers((6, 20, 30), "uint8")
    for name, chunks in (("frames", (1, 20, 30)), ("maps", (6, 5, 30))):
        field = xr.DataArray(x, dims=("time", "y", "x"))
        field.encoding["chunks"] = chunks
        field.to_dataset(name="field").to_zarr(tmp_path / name, consolidated=False)
    frames, maps = (
        xr.open_dataset(tmp_path / name, engine="zarr", consolidated=False, chunks=None)["field"]
        for name in ("frames", "maps")
    )
    assert columns_of(open_rows(frames, name="X")) is None
    for good in (maps, frames.load()):
        found = columns_of(open_rows(good, name="X"))
        assert found.n_blocks > 2
        rows = [read(found, block) for block in range(found.n_blocks)]
        np.testing.assert_array_equal(np.concatenate(rows), x.reshape(6, -1).T)


@pytest.mark.usefixtures("small_blocks")
def test_columns_of__follows_the_rows_that_exist(tmp_path):
    x = numbers((7, 200))
    array = stored(tmp_path, x, (2, 50))
    (tmp_path / "x.zarr" / "c" / "1" / "2").unlink()
    source = open_rows(array, name="X", missing="skip")
    assert stored_rows(source).tolist() == [0, 1, 4, 5, 6]
    found = columns_of(source)
    rows = np.concatenate([found.read(block) for block in range(found.n_blocks)])
    np.testing.assert_array_equal(rows, x[[0, 1, 4, 5, 6]].T)
    fewer = columns_of(source, kept=(1, 3)).read(0)
    np.testing.assert_array_equal(fewer, x[[1, 5], : fewer.shape[0]].T)


def test_columns_of__parquet_is_gathered_while_it_is_small(monkeypatch, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    x = numbers((9, 40))
    table = pa.table({"x": pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), 40)})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=4)
    source = open_rows(tmp_path / "x.parquet", name="X")
    monkeypatch.setattr(columns, "SLAB_BYTES", x.nbytes // 3)
    found = columns_of(source)
    assert found.n_reads == 3
    rows = np.concatenate([found.read(block) for block in range(3)])
    np.testing.assert_array_equal(rows, x.T)
    monkeypatch.setattr(columns, "SLAB_BYTES", x.nbytes // 6)
    assert columns_of(source) is None


@pytest.mark.parametrize("kind", KINDS)
def test_identity__follows_the_data(tmp_path, kind):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    x = numbers()
    source = open_rows(opened(kind, tmp_path / "a", x), name="X")
    same = open_rows(source, name="other name")
    changed = open_rows(opened(kind, tmp_path / "b", x + 1), name="X")
    one = columns_of(source)
    assert one.identity() == columns_of(same).identity()
    assert one.identity() != columns_of(changed).identity()
    assert one.identity() != columns_of(source, kept=KEPT).identity()
    assert one.identity() != source.identity()


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of__can_be_sent(tmp_path, kind):
    found = columns_of(open_rows(opened(kind, tmp_path, numbers()), name="X"))
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(read(again, 0), read(found, 0))


@pytest.mark.parametrize("kept", [None, KEPT])
def test_row_files__are_read_by_columns(tmp_path, put, kept):
    x = numbers()
    source = open_rows(x, name="X", block_rows=3)
    files = RowFiles(folder=str(tmp_path))
    state = files.init(x)
    for first in (0, 3, 6):
        part = put(x[first : first + 3].reshape(-1, 180))
        index = put(np.arange(first, first + part.shape[0]))
        state = files.update(state, Rows(part, index))
    assert files.finalize(files.merge(state, files.init(x))) == 7
    found = files.columns(source, kept=kept)
    expected = x.reshape(7, -1)[list(kept or range(7))].T
    np.testing.assert_array_equal(found.read(0), expected, strict=True)
    assert found.identity() == files.columns(source, kept=kept).identity()
    assert len(list(tmp_path.iterdir())) == 3
