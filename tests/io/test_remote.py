"""Object stores: an S3 server on this machine. Nothing but the environment says where it is."""

import http.server
import itertools
import pickle
import threading
from functools import partial

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.storage import FsspecStore

from bigkd import did
from bigkd.errors import DataError, InputError, StoreError
from bigkd.io import (
    TiledArray,
    append_run,
    is_store,
    load_dataset,
    load_state,
    open_labelled,
    open_rows,
    open_tiled,
    remove_store,
    save_dataset,
    save_state,
    stored_names,
)

s3fs = pytest.importorskip("s3fs", reason="needs s3fs, the extra [s3]")
# Threads and sockets of aiohttp and moto outlive a test.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::DeprecationWarning:botocore",
)

X = np.arange(60.0).reshape(20, 3)


def small():
    return xr.Dataset({"x": (("row", "column"), X), "t": ("row", ["a"] * 20)}, attrs={"k": 1.5})


def test_rows__of_an_object_store(bucket):
    array = zarr.create_array(f"{bucket}/rows", shape=X.shape, dtype=X.dtype, chunks=(5, 3))
    array[:] = X
    source = pickle.loads(pickle.dumps(open_rows(f"{bucket}/rows", name="rows", block_rows=5)))
    blocks = [source.read(at) for at in range(source.n_blocks)]
    np.testing.assert_array_equal(np.concatenate(blocks), X)
    before = source.identity()
    assert open_rows(f"{bucket}/rows", name="rows", block_rows=5).identity() == before
    array[6, 0] = -1.0
    assert open_rows(f"{bucket}/rows", name="rows", block_rows=5).identity() != before
    s3fs.S3FileSystem().rm("bigkd/rows/c/2/0")
    with pytest.raises(DataError, match="begins at row 10"):
        open_rows(f"{bucket}/rows", name="rows")
    assert open_rows(f"{bucket}/rows", name="rows", missing="skip").skipped == 5


def test_rows__that_are_not_there(bucket):
    with pytest.raises(StoreError, match="rows: s3://bigkd/nowhere is not a collection"):
        open_rows(f"{bucket}/nowhere", name="rows")
    with pytest.raises(StoreError, match="rows: s3://no-such-bucket/x"):
        open_rows("s3://no-such-bucket/x", name="rows")


def test_datasets__on_an_object_store(bucket):
    target = f"{bucket}/results/one.zarr"
    with pytest.raises(StoreError, match=r"holds no bigkd store"):
        load_dataset(target, kind="thing")
    save_dataset(small(), target, kind="thing")
    xr.testing.assert_identical(load_dataset(target, kind="thing"), small())
    with pytest.raises(InputError, match="overwrite=True"):
        save_dataset(small(), target, kind="thing")
    save_dataset(small().assign(x=-small().x), target, kind="thing", overwrite=True)
    np.testing.assert_array_equal(load_dataset(target, kind="thing").x, -X)
    assert is_store(target)
    with s3fs.S3FileSystem().open("bigkd/results/one.zarr/x/c/0/0", "wb") as file:
        file.write(b"?")
    with pytest.raises(StoreError, match="corrupted"):
        load_dataset(target, kind="thing")


def test_datasets__never_replace_other_objects(bucket):
    zarr.create_array(f"{bucket}/foreign", shape=X.shape, dtype=X.dtype)[:] = X
    with s3fs.S3FileSystem().open("bigkd/folder/thesis.txt", "wb") as file:
        file.write(b"all my work")
    for name in ("foreign", "folder"):
        with pytest.raises(InputError, match="not written by bigkd"):
            save_dataset(small(), f"{bucket}/{name}", kind="thing", overwrite=True)
    assert s3fs.S3FileSystem().cat("bigkd/folder/thesis.txt") == b"all my work"


def test_states__on_an_object_store(bucket):
    target = f"{bucket}/checkpoint/token/00000.zarr"
    for value in (1.0, 2.0):
        save_state(target, (np.full(3, value),), token="t")
        (found,) = load_state(target, (np.zeros(3),), token="t")
        np.testing.assert_array_equal(found, np.full(3, value))


VALUES = np.arange(70.0).reshape(2, 7, 5)
TILES = [(0, at, 0) for at in range(2)]


def in_tiles(path, token="one"):
    return TiledArray(
        path=path, name="d", dims=("lam", "a", "b"), shape=(2, 7, 5), tile=(2, 4, 5),
        chunk=(2, 4, 5), token=token,
    )  # fmt: skip


def fill(array, values=VALUES, **options):
    """Write what is not finished; positions of it."""
    before = array.begin(**options)
    missing = [at for at in TILES if at not in before or not array.is_whole(at, before[at])]
    for at in missing:
        array.write(at, [values[array.region(at)]])
    return missing


def finish(array):
    array.finish(xr.Dataset(coords={"a": list("abcdefg")}), kind="things")


def test_tiles__on_an_object_store(bucket):
    target = f"{bucket}/tiles/x.zarr"
    array = in_tiles(target)
    assert fill(array) == TILES
    assert not is_store(target)  # where a reader looks, but not whole yet
    for read in (open_tiled, load_dataset):
        with pytest.raises(StoreError, match="not finished"):
            read(target, kind="things")
    s3fs.S3FileSystem().rm("bigkd/tiles/x.zarr/d/c/0/1/0")
    assert fill(in_tiles(target)) == [(0, 1, 0)]
    finish(array)
    np.testing.assert_array_equal(open_tiled(target, kind="things")["d"].sel(a="c"), VALUES[:, 2])
    with xr.open_zarr(target) as plain:
        np.testing.assert_array_equal(plain["d"], VALUES)
    with pytest.raises(InputError, match="overwrite=True"):
        in_tiles(target, "two").begin()
    fill(in_tiles(target, "two"), -VALUES, overwrite=True)
    assert not is_store(target)
    finish(in_tiles(target, "two"))
    np.testing.assert_array_equal(open_tiled(target, kind="things")["d"], -VALUES)
    s3fs.S3FileSystem().rm("bigkd/tiles/x.zarr/d/c/0/1/0")
    with pytest.raises(StoreError, match="1 chunks are missing"):
        open_tiled(target, kind="things")


def test_tiles__never_replace_other_objects(bucket):
    with s3fs.S3FileSystem().open("bigkd/others/thesis.txt", "wb") as file:
        file.write(b"all my work")
    with pytest.raises(InputError, match="not written by bigkd"):
        in_tiles(f"{bucket}/others").begin(overwrite=True)
    assert s3fs.S3FileSystem().cat("bigkd/others/thesis.txt") == b"all my work"


class KilledError(Exception):
    """The process is gone."""


@pytest.fixture(params=["memory", "bucket"])
def sampled(request):
    """Where stores are made, and of how many steps one is tried: HTTP takes long."""
    if request.param == "memory":
        return "memory://tiles", 1
    return request.getfixturevalue("bucket"), 5


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [False, True])
def test_tiles__of_a_killed_call_are_taken_up_again(sampled, replaced, monkeypatch):
    """A call that ends before its n-th write or deletion, for every n."""
    root, step = sampled
    for number in itertools.count(step // 2, step):
        target = f"{root}/killed/{replaced}/{number}.zarr"
        if replaced:
            fill(in_tiles(target, "before"), -VALUES)
            finish(in_tiles(target, "before"))
        with monkeypatch.context() as patch:
            left = iter(range(number))
            for name in ("set", "delete", "delete_dir"):
                patch.setattr(FsspecStore, name, until(left, getattr(FsspecStore, name)))
            try:
                fill(in_tiles(target), overwrite=replaced)
                finish(in_tiles(target))
                died = False
            except KilledError:
                died = True
        if is_store(target):
            found = open_tiled(target, kind="things")["d"].values
            assert np.array_equal(found, VALUES) or (replaced and np.array_equal(found, -VALUES))
        if died:
            fill(in_tiles(target), overwrite=replaced)
            finish(in_tiles(target))
        np.testing.assert_array_equal(open_tiled(target, kind="things")["d"], VALUES)
        if not died:
            break
    assert number > 20


def until(left, function):
    def counted(*args, **kwargs):
        if next(left, None) is None:
            raise KilledError
        return function(*args, **kwargs)

    return counted


def test_stores__are_removed(bucket):
    save_dataset(small(), f"{bucket}/removed/x.zarr", kind="thing")
    save_dataset(small(), f"{bucket}/removed/y.zarr", kind="thing")
    remove_store(f"{bucket}/removed/x.zarr")
    remove_store(f"{bucket}/removed/nothing")
    assert s3fs.S3FileSystem().ls("bigkd/removed", refresh=True) == ["bigkd/removed/y.zarr"]


def test_states__damaged_on_an_object_store_are_replaced(bucket):
    target = f"{bucket}/checkpoint/damaged.zarr"
    save_state(target, (np.ones(3),), token="t")
    with s3fs.S3FileSystem().open("bigkd/checkpoint/damaged.zarr/zarr.json", "wb") as file:
        file.write(b"{}")
    save_state(target, (np.ones(3),), token="t")
    assert is_store(target)


def test_stores__are_written_where_an_empty_key_marks_a_folder(bucket):
    s3fs.S3FileSystem().call_s3("put_object", Bucket="bigkd", Key="marked/x.zarr/", Body=b"")
    s3fs.S3FileSystem().call_s3("put_object", Bucket="bigkd", Key="marked/h.zarr/", Body=b"")
    s3fs.S3FileSystem().call_s3("put_object", Bucket="bigkd", Key="marked/h.zarr/x/", Body=b"")
    target = f"{bucket}/marked/x.zarr"
    save_dataset(small(), target, kind="thing")
    assert is_store(target)
    with pytest.raises(InputError, match="exists already"):
        save_dataset(small(), target, kind="thing")
    assert append_run(f"{bucket}/marked/h.zarr", xr.Dataset({"x": 1.0}), run_id="a")


def test_matrix__on_an_object_store(bucket):
    series = np.random.default_rng(0).normal(size=(6, 40))
    options = {"dims": ("time",), "scheduler": "sync", "x_landmarks": 5, "y_landmarks": 6}
    here = did.matrix(series, **options)
    there = did.matrix(series, output=f"{bucket}/matrix.zarr", **options)
    xr.testing.assert_identical(there.load(), here)
    kept = did.matrix(series, checkpoint=f"{bucket}/kept", **options)
    xr.testing.assert_identical(kept, here)
    found = s3fs.S3FileSystem().find("bigkd")
    assert not [name for name in found if "scratch" in name or name.startswith("bigkd/kept")]


def test_labelled_data__are_seen_to_change(bucket):
    url = f"{bucket}/labelled.zarr"
    fields = xr.Dataset({"x": (("time", "lat"), X)})

    def identity():
        return open_rows(open_labelled(url, name="x", variable="v"), name="x").identity()

    fields.to_zarr(url, zarr_format=3, consolidated=False)
    before = identity()
    assert identity() == before
    (fields + 1).to_zarr(url, mode="w", zarr_format=3, consolidated=False)
    assert identity() != before


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def served(tmp_path):
    """A folder, and its URL at a plain server, which lists names only."""
    handler = partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield tmp_path, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_rows__of_a_server_that_tells_no_times_are_seen_to_change(served):
    folder, url = served
    array = zarr.create_array(str(folder / "x.zarr"), data=X, chunks=(5, 3))

    def identities():
        return open_rows(f"{url}/x.zarr", name="x", block_rows=5, missing="fill").block_identities()

    before = identities()
    assert identities() == before
    array[7] = 5.0
    assert [one == other for one, other in zip(identities(), before, strict=True)] == [
        True, False, True, True,
    ]  # fmt: skip


def test_stored_names__are_listed_anew(bucket):
    folder = f"{bucket}/listed"
    save_dataset(small(), f"{folder}/a.zarr", kind="test")
    assert stored_names(folder) == {"a.zarr"}
    other = s3fs.S3FileSystem(skip_instance_cache=True)  # as another process would
    other.rm("bigkd/listed/a.zarr", recursive=True)
    other.pipe_file("bigkd/listed/b.zarr/zarr.json", b"{}")
    assert stored_names(folder) == {"b.zarr"}
