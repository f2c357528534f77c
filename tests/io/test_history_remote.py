"""Histories in object stores, and with many writers at once."""

import itertools
import subprocess
import sys
from contextlib import suppress
from unittest.mock import Mock

import numpy as np
import pytest
import xarray as xr

from bigkd.errors import LockedError, StoreError
from bigkd.io import append_run, load_history
from bigkd.io.small_files import Bucket

fsspec = pytest.importorskip("fsspec")
# Threads and sockets of aiohttp and moto outlive a test.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::DeprecationWarning:botocore",
)

APPENDER = """
import sys
import xarray as xr
from bigkd.io import append_run

writer, paths = sys.argv[1], sys.argv[2:]
for number in range(4):
    for path in paths:
        append_run(path, xr.Dataset({"x": number}), run_id=f"{writer}-{number}")
"""


def one(x):
    return xr.Dataset({"x": x})


def numbers(path):
    """`x` of all runs, as `load_history` and as plain xarray find it."""
    with xr.open_zarr(path) as plain:
        found = plain["x"].values.tolist() if "x" in plain else []
    checked = load_history(path)
    assert found == (checked["x"].values.tolist() if "x" in checked else [])
    return found


def test_history__in_a_bucket(bucket):
    path = f"{bucket}/one/h.zarr"
    with pytest.raises(StoreError, match="holds no history"):
        load_history(path)
    assert append_run(path, one(1.0), run_id="a")
    assert append_run(path, one(2.0).assign(job="{}"), run_id="b")
    assert not append_run(path, one(3.0), run_id="a")
    assert numbers(path) == [1.0, 2.0]
    with xr.open_zarr(path) as plain:
        assert plain["job"].values.tolist() == ["", "{}"]
    files = Bucket(path)
    files.write({"x/c/0": b"?"})
    with pytest.raises(StoreError, match=r"x/c/0 cannot be decoded.*put into .*h.zarr.c.zarr"):
        append_run(path, one(3.0), run_id="c")
    assert numbers(f"{path}.c.zarr") == [3.0]
    with pytest.raises(StoreError, match="x/c/0 cannot be decoded"):
        load_history(path)


def test_history__in_a_bucket_that_is_not_there(bucket):
    with pytest.raises(StoreError, match=r"lock s3://no-such-bucket/h.zarr.lock cannot be made"):
        append_run("s3://no-such-bucket/h.zarr", one(1.0), run_id="a")
    with pytest.raises(StoreError, match="holds no history"):
        load_history("s3://no-such-bucket/h.zarr")


class OddError(Exception):
    """No OSError: what clients of object stores raise before they ask anybody."""


def test_bucket__raises_what_every_caller_expects(monkeypatch):
    files = Bucket("memory://odd")
    for name in ("cat_file", "find", "info", "pipe_file", "rm_file"):
        monkeypatch.setattr(files._fs, name, Mock(side_effect=OddError("not a valid URI")))
    calls = (
        lambda: files.read(["a"]),
        files.is_empty,
        lambda: files.version("a"),
        lambda: files.write({"a": b"1"}),
        lambda: files.delete("a"),
    )
    for call in calls:
        with pytest.raises(StoreError, match=r"memory://odd cannot be reached: OddError: not"):
            call()


def test_history__is_safe_from_a_writer_that_lost_its_lock(bucket, monkeypatch):
    """It was stopped before its first write, and goes on when others have appended."""
    path = f"{bucket}/lost/h.zarr"
    append_run(path, one(1.0), run_id="a")
    write, late = Bucket.write, []

    def paused(self, contents):
        if "x/c/0" in contents and not late:
            late.append(True)
            with fsspec.open(f"{path}.lock", "rb") as file:
                mine = file.read()
            fsspec.filesystem("s3").rm(f"{path}.lock")
            append_run(path, one(2.0), run_id="b")
            with fsspec.open(f"{path}.lock", "wb") as file:
                file.write(mine)
        return write(self, contents)

    monkeypatch.setattr(Bucket, "write", paused)
    with pytest.raises(LockedError, match="changed by another process"):
        append_run(path, one(3.0), run_id="c")
    assert numbers(path) == [1.0, 2.0]
    assert append_run(path, one(3.0), run_id="c")
    assert numbers(path) == [1.0, 2.0, 3.0]


class KilledError(Exception):
    """The process is gone."""


def test_history__of_a_killed_writer_goes_on(monkeypatch):
    """An append that ends before its n-th write, for every n; nothing is cleaned up."""
    for number in itertools.count():
        path = f"memory://killed/{number}/h.zarr"
        append_run(path, one(1.0), run_id="a")
        with monkeypatch.context() as patch:
            left = iter(range(number))

            def put(self, *args, put=Bucket.put, left=left):
                if next(left, None) is None:
                    raise KilledError
                return put(self, *args)

            patch.setattr(Bucket, "put", put)
            patch.setattr(Bucket, "delete", lambda self, key: None)
            with suppress(StoreError):
                append_run(path, one(2.0).assign(late="!"), run_id="b")
        assert numbers(path) in ([1.0], [1.0, 2.0])
        Bucket(f"memory://killed/{number}").delete("h.zarr.lock")
        append_run(path, one(2.0).assign(late="!"), run_id="b")
        assert numbers(path) == [1.0, 2.0]
        if next(left, None) is not None:
            break
    assert number > 8


def test_history__of_many_writers_has_all_runs(bucket, tmp_path):
    """Four processes, on a disk and in a bucket; a reader looks on."""
    path, url = str(tmp_path / "h.zarr"), f"{bucket}/many/h.zarr"
    command = [sys.executable, "-c", APPENDER]
    writers = [subprocess.Popen([*command, f"w{at}", path, url]) for at in range(4)]
    seen = 0
    while any(writer.poll() is None for writer in writers):
        if (tmp_path / "h.zarr" / "zarr.json").exists():
            with xr.open_zarr(path) as opened:
                plain = opened.load()
            assert plain.sizes.get("run", 0) >= seen
            seen = plain.sizes.get("run", 0)
            for run_id, x in zip(plain.get("run_id", []), plain.get("x", []), strict=True):
                assert str(run_id.values).endswith(f"-{int(x)}")
    assert [writer.returncode for writer in writers] == [0] * 4
    for place in (path, url):
        found = load_history(place)
        assert sorted(found["run_id"].values) == [f"w{at}-{k}" for at in range(4) for k in range(4)]
        for at in range(4):
            own = found["x"][np.char.startswith(found["run_id"].values, f"w{at}-")]
            np.testing.assert_array_equal(own, range(4))
    assert [inner.name for inner in tmp_path.iterdir()] == ["h.zarr"]
    assert not fsspec.filesystem("s3").exists(f"{url}.lock")
