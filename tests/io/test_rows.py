import pickle

import array_api_strict
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from bigkd.backends import to_host
from bigkd.errors import DataError, EmptyInputError, InputError, ShapeError, StoreError
from bigkd.io import open_rows
from bigkd.testing import no_compute

N, D = 23, 5
X = np.random.default_rng(0).normal(0, 1, (N, D)).astype("f4")
IMAGES = np.random.default_rng(0).integers(0, 255, (N, 4, 3, 2)).astype("u1")


def save_npy(path, array, version):
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, version=version)
    return path


def save_zarr(path, array=X, **options):
    options = {"chunks": (4, *array.shape[1:]), **options}
    stored = zarr.create_array(path, shape=array.shape, dtype=array.dtype, **options)
    stored[:] = array
    return path


def memmap(path, array, **options):
    order = "F" if array.flags.f_contiguous else "C"
    mapped = np.memmap(
        path, dtype=array.dtype, mode="w+", shape=array.shape, order=order, **options
    )
    mapped[:] = array
    mapped.flush()
    return np.memmap(path, dtype=array.dtype, mode="r", shape=array.shape, order=order, **options)


def group(path, **arrays):
    root = zarr.create_group(path)
    for name, array in arrays.items():
        root.create_array(name, data=array)
    return path


def xarray_store(path):
    ds = xr.Dataset({"x": (("row", "column"), X)})
    ds.chunk(row=4).to_zarr(path, zarr_format=3, consolidated=False)
    return path


KINDS = {
    "numpy": lambda p: X,
    "list of columns": lambda p: np.asfortranarray(X),
    "array-api-strict": lambda p: array_api_strict.asarray(X),
    "big endian": lambda p: X.astype(">f4"),
    "memmap": lambda p: memmap(p / "x", X),
    "memmap with an offset": lambda p: memmap(p / "x", X, offset=128),
    "memmap, Fortran order": lambda p: memmap(p / "x", np.asfortranarray(X)),
    "memmap, rows of a larger one": lambda p: memmap(p / "x", np.r_[X - 1, X, X + 1])[N : 2 * N],
    "memmap, every other row": lambda p: memmap(p / "x", np.repeat(X, 2, axis=0))[::2],
    "memmap, some columns": lambda p: memmap(p / "x", np.c_[X, X])[:, D:],
    "memmap, reversed": lambda p: memmap(p / "x", X[::-1].copy())[::-1],
    "memmap, reshaped": lambda p: memmap(p / "x", X.reshape(-1)).reshape(N, D),
    "npy 1": lambda p: save_npy(p / "x.npy", X, (1, 0)),
    "npy 2": lambda p: save_npy(p / "x.npy", X, (2, 0)),
    "npy 3": lambda p: save_npy(p / "x.npy", X, (3, 0)),
    "npy, big endian": lambda p: save_npy(p / "x.npy", X.astype(">f4"), (1, 0)),
    "npy, mapped": lambda p: np.load(save_npy(p / "x.npy", X, (1, 0)), mmap_mode="r"),
    "zarr 2": lambda p: save_zarr(p / "x", zarr_format=2),
    "zarr 3": lambda p: save_zarr(p / "x", zarr_format=3),
    "zarr, as text": lambda p: str(save_zarr(p / "x")),
    "zarr, as file URL": lambda p: f"file://{save_zarr(p / 'x')}",
    "zarr, big endian": lambda p: save_zarr(p / "x", X.astype(">f4"), zarr_format=2),
    "zarr, chunked columns": lambda p: save_zarr(p / "x", chunks=(4, 2)),
    "zarr, sharded": lambda p: save_zarr(p / "x", chunks=(2, 3), shards=(6, 6)),
    "zarr array": lambda p: zarr.open_array(save_zarr(p / "x"), mode="r"),
    "zarr group with one array": lambda p: group(p / "g", x=X, label=np.arange(N)),
    "zarr group, one of several": lambda p: group(p / "g", x=X, y=X + 1) / "x",
    "DataArray": lambda p: xr.DataArray(X, dims=("row", "column")),
    "DataArray of dask": lambda p: xr.DataArray(da.from_array(X, (7, 2))),
    "DataArray opened lazily": lambda p: xr.open_zarr(xarray_store(p / "x"), consolidated=False).x,
    "DataArray opened without dask": lambda p: (
        xr.open_zarr(xarray_store(p / "x"), consolidated=False, chunks=None).x
    ),
    "Dataset": lambda p: xr.Dataset({"x": (("row", "column"), X)}),
    "path of an xarray store": lambda p: xarray_store(p / "x"),
    "dask": lambda p: da.from_array(X, ((3, 9, 1, 10), (D,))),
    "dask, chunked columns": lambda p: da.from_array(X, (4, 2)),
    "dask, empty chunks": lambda p: da.from_array(X, ((0, 4, 0, 19, 0), (2, 3))),
    "dask, one empty chunk": lambda p: da.from_array(X, ((0, N), (D,))),
    "dask, big endian": lambda p: da.from_array(X.astype(">f4"), (4, D)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block_rows", [None, 1, 6, 100])
def test_open_rows__reads_the_same_rows(tmp_path, kind, block_rows):
    data = KINDS[kind](tmp_path)
    with no_compute():
        source = open_rows(data, name="rows", block_rows=block_rows)
    source = pickle.loads(pickle.dumps(source))
    assert (source.n_rows, source.width, source.row_shape) == (N, D, (D,))
    assert source.bounds[0] == 0
    assert source.bounds[-1] == N
    assert all(a < b for a, b in zip(source.bounds, source.bounds[1:], strict=False))
    blocks = [to_host(source.read(at)) for at in range(source.n_blocks)]
    assert [len(block) for block in blocks] == np.diff(source.bounds).tolist()
    np.testing.assert_array_equal(np.concatenate(blocks), X)
    assert all(block.dtype.isnative and block.dtype == "f4" for block in blocks)
    np.testing.assert_array_equal(to_host(source.take(3, 17)), X[3:17])
    assert source.largest_block == max(map(len, blocks))
    assert source.like().shape == (1, D)
    assert source.skipped == 0
    assert [source.first_index(at) for at in range(source.n_blocks)] == [*source.bounds[:-1]]


@settings(max_examples=30)
@given(
    n=st.integers(1, 20),
    chunk=st.integers(1, 9),
    columns=st.integers(1, 5),
    per_shard=st.integers(1, 3),
    block_rows=st.none() | st.integers(1, 25),
)
def test_zarr__blocks_are_consistent_for_any_chunking(n, chunk, columns, per_shard, block_rows):
    x = np.arange(n * D, dtype="f4").reshape(n, D)
    shards = None if per_shard == 1 else (chunk * per_shard, columns * per_shard)
    store = zarr.storage.MemoryStore()
    array = zarr.create_array(
        store, shape=x.shape, dtype=x.dtype, chunks=(chunk, columns), shards=shards, fill_value=-1
    )
    array[:] = x
    source = open_rows(array, name="rows", block_rows=block_rows)
    assert all(a < b for a, b in zip(source.bounds, source.bounds[1:], strict=False))
    blocks = [source.read(at) for at in range(source.n_blocks)]
    np.testing.assert_array_equal(np.concatenate(blocks), x)
    assert block_rows is None or source.largest_block <= block_rows


def test_zarr__blocks_follow_chunks_and_shards(tmp_path, monkeypatch):
    monkeypatch.setattr("bigkd.io.sources.BLOCK_BYTES", 9 * D * 4)
    monkeypatch.setattr("bigkd.io.zarr_rows.BLOCK_BYTES", 9 * D * 4)
    chunked = open_rows(save_zarr(tmp_path / "chunked"), name="rows")
    assert chunked.bounds == (0, 8, 16, 23)
    sharded = open_rows(save_zarr(tmp_path / "s", chunks=(2, D), shards=(6, D)), name="rows")
    assert sharded.bounds == (0, 6, 12, 18, 23)
    # a shard that is too large is read chunk by chunk
    large = open_rows(save_zarr(tmp_path / "l", chunks=(2, D), shards=(20, D)), name="rows")
    assert large.bounds == (0, 8, 16, 23)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: IMAGES,
        lambda p: save_npy(p / "x.npy", IMAGES, (1, 0)),
        lambda p: save_zarr(p / "x", IMAGES, chunks=(5, 2, 3, 1)),
        lambda p: da.from_array(IMAGES, (5, 2, 3, 1)),
        lambda p: xr.DataArray(IMAGES, dims=("n", "y", "x", "channel")),
    ],
)
def test_images__are_flattened(tmp_path, make):
    source = open_rows(make(tmp_path), name="images", block_rows=10)
    assert source.row_shape == (4, 3, 2)
    blocks = [source.read(at) for at in range(source.n_blocks)]
    np.testing.assert_array_equal(np.concatenate(blocks), IMAGES.reshape(N, 24))


def test_xarray__dim_names_the_rows():
    array = xr.DataArray(X.T, dims=("column", "row"))
    source = open_rows(array, name="rows", dim="row")
    np.testing.assert_array_equal(source.read(0), X)


def test_source__stays_as_it_was_opened():
    source = open_rows(X, name="one", block_rows=3)
    assert open_rows(source, name="two").bounds == source.bounds
    assert open_rows(source, name="two").name == "two"


def test_itemsize__counts_what_wide_integers_become():
    sizes = {"u1": 1, "i2": 2, "i4": 8, "u8": 8, "f2": 2, "f4": 4, ">f8": 8, "?": 1}
    assert {k: open_rows(X.astype(k), name="rows").itemsize for k in sizes} == sizes


BAD = {
    "one dimension": (lambda p: np.ones(3), ShapeError, r"shape \(3,\).*x\[:, None\]"),
    "no dimension": (lambda p: np.ones(()), ShapeError, "two dimensions"),
    "no rows": (lambda p: np.ones((0, 3)), EmptyInputError, "0 rows"),
    "no columns": (lambda p: np.ones((3, 0)), EmptyInputError, "shape"),
    "no rows, dask": (lambda p: da.ones((0, 3)), EmptyInputError, "0 rows"),
    "no rows, zarr": (lambda p: save_zarr(p / "x", X[:0]), EmptyInputError, "0 rows"),
    "complex": (lambda p: np.ones((2, 2), "c8"), InputError, "complex64"),
    "objects": (lambda p: np.ones((2, 2), object), InputError, "object"),
    "text": (lambda p: np.array([["a"]]), InputError, "<U1"),
    "text of any length": (
        lambda p: np.array([["a"]], np.dtypes.StringDType()),
        InputError,
        "StringDType",
    ),
    "fields": (lambda p: np.zeros((2, 2), "f4,i4"), InputError, "f0"),
    "times": (lambda p: np.zeros((2, 2), "M8[s]"), InputError, "datetime64"),
    "long double": (lambda p: np.ones((2, 2), np.longdouble), InputError, "64 bits"),
    "masked": (lambda p: np.ma.masked_less(X, 0), InputError, "masked array.*filled"),
    "list": (lambda p: [[1.0]], InputError, r"got list.*numpy\.asarray"),
    "unknown rows": (
        lambda p: da.from_array(X, 4)[da.from_array(X[:, 0] > 0, 4)],
        ShapeError,
        "compute_chunk_sizes",
    ),
    "unknown columns": (
        lambda p: da.from_array(X, 4)[:, da.from_array(X[0] > 0, 4)],
        ShapeError,
        "compute_chunk_sizes",
    ),
    "several variables": (
        lambda p: xr.Dataset({"a": ("x", [1.0]), "b": ("x", [1.0])}),
        InputError,
        r"2 variables \(a, b\)",
    ),
    "path that does not exist": (lambda p: p / "nowhere", StoreError, "does not exist"),
    "folder": (lambda p: p, StoreError, "not a collection of rows"),
    "file": (lambda p: (p / "x.txt", (p / "x.txt").write_text("?"))[0], StoreError, "expected a Z"),
    "zarr column": (lambda p: save_zarr(p / "x", X[:, 0]), ShapeError, r"Use x\[:, None\]"),
    "zarr group with none": (lambda p: group(p / "g", a=X[:, 0]), InputError, "0 arrays.*none"),
    "zarr group with two": (lambda p: group(p / "g", a=X, b=X), InputError, r"\(a, b\).*/NAME"),
    "zarr text": (
        lambda p: group(p / "g", a=np.array([["a"]], np.dtypes.StringDType())),
        InputError,
        "StringDType",
    ),
    "npy of columns": (
        lambda p: save_npy(p / "x.npy", np.asfortranarray(X), (1, 0)),
        StoreError,
        "ascontiguousarray",
    ),
    "npy of objects": (
        lambda p: save_npy(p / "x.npy", np.array([[{}]]), (1, 0)),
        StoreError,
        "Python objects",
    ),
    "npy that is text": (
        lambda p: (p / "x.npy", (p / "x.npy").write_text("1 2"))[0],
        StoreError,
        r"cannot be read as a \.npy file",
    ),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.filterwarnings("ignore:The data type:zarr.errors.UnstableSpecificationWarning")
def test_open_rows__refuses(tmp_path, kind):
    make, error, message = BAD[kind]
    with pytest.raises(error, match=message) as caught:
        open_rows(make(tmp_path), name="my rows")
    assert "my rows" in str(caught.value)


@pytest.mark.parametrize("keep", [0, 4, 8, 60, 100, 200, -1])
def test_npy__truncated(tmp_path, keep):
    path = save_npy(tmp_path / "x.npy", X, (1, 0))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(StoreError, match=r"my rows: .*(truncated|cannot be read)"):
        open_rows(path, name="my rows")


def test_npy__cut_short_after_it_was_opened(tmp_path):
    path = save_npy(tmp_path / "x.npy", X, (1, 0))
    source = open_rows(path, name="my rows", block_rows=10)
    path.write_bytes(path.read_bytes()[:-30])
    np.testing.assert_array_equal(source.read(1), X[10:20])
    with pytest.raises(DataError, match=r"my rows: rows 20 to 22 cannot be read.*ends at row 21"):
        source.read(2)
    path.unlink()
    with pytest.raises(DataError, match="rows 0 to 9 cannot be read"):
        source.read(0)


@pytest.mark.parametrize(
    ("option", "value"), [("block_rows", 0), ("missing", "maybe"), ("dim", "nowhere")]
)
def test_open_rows__refuses_options(option, value):
    with pytest.raises(InputError, match=option):
        open_rows(xr.DataArray(X), name="rows", **{option: value})
