"""Object stores: an S3 server on this machine. Nothing but the environment says where it is."""

import gc
import pickle

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.core.sync import sync

from bigkd.errors import DataError, InputError, StoreError
from bigkd.io import is_store, load_dataset, load_state, open_rows, save_dataset, save_state

moto_server = pytest.importorskip("moto.server", reason="needs moto[server]: an S3 server to test")
s3fs = pytest.importorskip("s3fs", reason="needs s3fs, the extra [s3]")
aiohttp = pytest.importorskip("aiohttp")
# Threads and sockets of aiohttp and moto outlive a test.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::DeprecationWarning:botocore",
)

X = np.arange(60.0).reshape(20, 3)


def _close_sessions():
    """Close what zarr's file systems leave open for the life of the process."""
    s3fs.S3FileSystem.clear_instance_cache()
    for found in gc.get_objects():
        if isinstance(found, aiohttp.ClientSession) and not found.closed:
            sync(found.close())


@pytest.fixture(scope="module")
def bucket():
    """URL of a bucket, reachable through the environment alone."""
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem().mkdir("bigkd")
        yield "s3://bigkd"
        _close_sessions()
    server.stop()


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
