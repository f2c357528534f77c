"""Arrays written in tiles: whole or not at all, taken up wherever a call stopped."""

import itertools
import os
import shutil
from contextlib import suppress

import dask
import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.storage import LocalStore

from bigkd.errors import InputError, StoreError
from bigkd.io import TiledArray, is_store, load_dataset, open_tiled, save_dataset, tiled
from bigkd.io.manifests import MANIFEST

SHAPE = (2, 7, 5)
VALUES = np.arange(70.0).reshape(SHAPE)


def made(path, *, token="one", tile=(2, 3, 2), **options):
    return TiledArray(
        path=str(path), name="d", dims=("lam", "a", "b"), shape=SHAPE, tile=tile, chunk=tile,
        token=token, **options,
    )  # fmt: skip


def grid(array):
    return list(itertools.product(*map(range, array.grid)))


def beside(scale=1):
    return xr.Dataset(
        coords={"lam": [0.1, 1.0], "a": [f"image {at}" for at in range(7)]}, attrs={"scale": scale}
    )


def fill(array, values=VALUES, **options):
    """Write what is not finished; positions of it."""
    before = array.begin(**options)
    written = [at for at in grid(array) if at not in before or not array.is_whole(at, before[at])]
    for at in written:
        array.write(at, [values[array.region(at)]])
    return written


def finished(path, values=VALUES, **options):
    array = made(path, **options)
    fill(array, values, overwrite=True)
    array.finish(beside(), kind="things")
    return array


def assert_holds(path, values=VALUES):
    found = open_tiled(path, kind="things")
    np.testing.assert_array_equal(found["d"].values, values)


def files(path):
    return sorted(file for file in path.rglob("c/**/*") if file.is_file())


def test_tiled__is_labelled_and_whole(tmp_path):
    array = made(tmp_path / "x.zarr")
    assert fill(array) == grid(array)
    assert not (tmp_path / "x.zarr").exists()
    array.finish(beside(), kind="things", attrs={"units": "1"})
    found = open_tiled(tmp_path / "x.zarr", kind="things")
    expected = beside().assign(d=(("lam", "a", "b"), VALUES, {"units": "1"}))
    xr.testing.assert_identical(found.load(), expected)
    assert os.listdir(tmp_path) == ["x.zarr"]
    assert is_store(tmp_path / "x.zarr")


def test_tiled__is_read_lazily_tile_by_tile(tmp_path):
    finished(tmp_path / "x.zarr")
    with dask.config.set(scheduler="sync"):
        found = open_tiled(tmp_path / "x.zarr", kind="things")
        assert found["d"].chunks == ((2,), (3, 3, 1), (2, 2, 1))
        for file in files(tmp_path / "x.zarr" / "d")[1:]:
            file.unlink()
        np.testing.assert_array_equal(found["d"][:, :3, :2], VALUES[:, :3, :2])
        with pytest.raises(StoreError, match=r"corrupted \(tile \(0, \d, \d\) of d"):
            found["d"].compute()


def test_tiled__is_plain_zarr_to_others(tmp_path):
    finished(tmp_path / "x.zarr")
    with xr.open_zarr(tmp_path / "x.zarr") as found:
        assert found["d"].dims == ("lam", "a", "b")
        np.testing.assert_array_equal(found["d"].sel(a="image 6", lam=1.0), VALUES[1, 6])
        assert found.attrs["scale"] == 1
    assert set(zarr.open_group(tmp_path / "x.zarr", mode="r")) == {"a", "d", "lam", tiled.DIGESTS}


def test_tiled__of_rows_has_several_chunks_a_tile(tmp_path):
    values = np.random.default_rng(0).normal(size=(23, 4))
    array = TiledArray(
        path=str(tmp_path / "x"), name="rows", dims=("row", "axis_0"), shape=(23, 4), tile=(10, 4),
        chunk=(5, 4), token="t", compressed=False,
    )  # fmt: skip
    array.begin()
    for at in grid(array):
        own = values[array.region(at)]
        array.write(at, [own[start : start + 5] for start in range(0, len(own), 5)])
    digests = array.begin()
    assert all(array.is_whole(at, digest) for at, digest in digests.items())
    stored = zarr.open_array(array.data_path, mode="r")
    assert stored.chunks == (5, 4)
    np.testing.assert_array_equal(stored[:], values)
    array.finish(xr.Dataset(), kind="rows")
    np.testing.assert_array_equal(open_tiled(tmp_path / "x", kind="rows")["rows"], values)


def test_tiled__keeps_tiles_of_nothing_but_nan(tmp_path):
    values = VALUES.copy()
    values[:, :3] = np.nan
    finished(tmp_path / "x.zarr", values)
    assert_holds(tmp_path / "x.zarr", values)
    array = made(tmp_path / "y.zarr")
    fill(array, values)
    assert fill(array, values) == [(0, 0, 0), (0, 0, 1), (0, 0, 2)]  # as if they were missing


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-3])


def empty(path):
    path.write_bytes(b"")


def remove(path):
    path.unlink()


def exchange(path):
    shutil.copy(path.with_name("1"), path)


HARM = [flip, truncate, empty, remove, exchange]


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("harm", HARM, ids=lambda harm: harm.__name__)
def test_resume__makes_damaged_tiles_again(harm, compressed, tmp_path):
    array = made(tmp_path / "x.zarr", compressed=compressed)
    fill(array)
    harm(tmp_path / ".x.zarr.partial" / "d" / "c" / "0" / "1" / "0")
    assert fill(array) == [(0, 1, 0)]
    array.finish(beside(), kind="things")
    assert_holds(tmp_path / "x.zarr")


@pytest.mark.parametrize("harm", [flip, truncate, empty, remove], ids=lambda harm: harm.__name__)
def test_resume__makes_tiles_of_damaged_digests_again(harm, tmp_path):
    array = made(tmp_path / "x.zarr")
    fill(array)
    harm(tmp_path / ".x.zarr.partial" / "tiles_done" / "c" / "0" / "1" / "0" / "0")
    assert fill(array) == [(0, 1, 0)]
    array.finish(beside(), kind="things")
    assert_holds(tmp_path / "x.zarr")


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("harm", [flip, truncate, empty, exchange], ids=lambda harm: harm.__name__)
def test_open_tiled__raises_on_reading_what_was_damaged(harm, compressed, tmp_path):
    finished(tmp_path / "x.zarr", compressed=compressed)
    found = open_tiled(tmp_path / "x.zarr", kind="things")
    harm(tmp_path / "x.zarr" / "d" / "c" / "0" / "1" / "0")
    with pytest.raises(StoreError, match=r"x.zarr is corrupted \(tile \(0, 1, 0\) of d"):
        found.load()


def lose_a_tile(path):
    (path / "d" / "c" / "0" / "2" / "1").unlink()


def change_a_label(path):
    flip(files(path / "a")[0])


def change_a_digest(path):
    flip(files(path / tiled.DIGESTS)[0])


def change_metadata(path):
    document = path / "d" / "zarr.json"
    document.write_text(document.read_text().replace('"zstd"', '"gzip"'))


@pytest.mark.parametrize(
    "harm", [lose_a_tile, change_a_label, change_a_digest, change_metadata],
    ids=lambda harm: harm.__name__,
)  # fmt: skip
def test_open_tiled__refuses_what_is_not_whole(harm, tmp_path):
    finished(tmp_path / "x.zarr")
    harm(tmp_path / "x.zarr")
    with pytest.raises(StoreError, match="corrupted"):
        open_tiled(tmp_path / "x.zarr", kind="things")


def test_open_tiled__refuses_other_stores(tmp_path):
    finished(tmp_path / "x.zarr")
    with pytest.raises(StoreError, match="expected 'modes' in tiles"):
        open_tiled(tmp_path / "x.zarr", kind="modes")
    save_dataset(beside(), tmp_path / "y.zarr", kind="things")
    with pytest.raises(StoreError, match="holds 'things'; expected 'things' in tiles"):
        open_tiled(tmp_path / "y.zarr", kind="things")
    with pytest.raises(StoreError, match="no bigkd store"):
        open_tiled(tmp_path / "z.zarr", kind="things")


def test_load_dataset__leaves_arrays_in_tiles_to_others(tmp_path):
    finished(tmp_path / "x.zarr")
    with pytest.raises(StoreError, match=r"holds d in tiles.*Open it, with xarray.open_zarr"):
        load_dataset(tmp_path / "x.zarr", kind="things")


def test_open_tiled__names_what_was_written_anew_otherwise(tmp_path):
    finished(tmp_path / "x.zarr")
    before = open_tiled(tmp_path / "x.zarr", kind="things")["d"].data.name
    assert open_tiled(tmp_path / "x.zarr", kind="things")["d"].data.name == before
    finished(tmp_path / "x.zarr", -VALUES)
    assert open_tiled(tmp_path / "x.zarr", kind="things")["d"].data.name != before


def test_finish__refuses_what_is_not_filled(tmp_path):
    array = made(tmp_path / "x.zarr")
    array.begin()
    array.write((0, 0, 0), [VALUES[:, :3, :2]])
    with pytest.raises(StoreError, match="8 tiles were not written"):
        array.finish(beside(), kind="things")


@pytest.mark.parametrize("change", [{"token": "other"}, {"tile": (2, 4, 2)}], ids=str)
def test_begin__takes_up_only_what_is_the_same(change, tmp_path):
    fill(made(tmp_path / "x.zarr"))
    assert made(tmp_path / "x.zarr").begin() != {}
    assert made(tmp_path / "x.zarr", **change).begin() == {}
    assert made(tmp_path / "x.zarr").begin() == {}


def test_begin__leaves_what_others_wrote(tmp_path):
    for name in ("x.zarr", ".y.zarr.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.txt").write_text("all my work")
    (tmp_path / "file").write_text("more of it")
    for name in ("x.zarr", "y.zarr", "file"):
        with pytest.raises(InputError, match="not written by bigkd"):
            made(tmp_path / name).begin(overwrite=True)
    assert len(list(tmp_path.glob("*/thesis.txt"))) == 2


def test_begin__replaces_a_finished_store_only_if_told_to(tmp_path):
    finished(tmp_path / "x.zarr")
    with pytest.raises(InputError, match="overwrite=True"):
        made(tmp_path / "x.zarr", token="two").begin()
    array = made(tmp_path / "x.zarr", token="two")
    fill(array, -VALUES, overwrite=True)
    assert_holds(tmp_path / "x.zarr")
    array.finish(beside(), kind="things")
    assert_holds(tmp_path / "x.zarr", -VALUES)
    assert os.listdir(tmp_path) == ["x.zarr"]


@pytest.mark.parametrize("below", ["", "below"])
def test_begin__says_where_it_cannot_write(below, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises((StoreError, InputError), match="file"):
        made(tmp_path / "file" / below).begin()


def test_write__says_when_the_disk_is_full(tmp_path, monkeypatch):
    array = made(tmp_path / "x.zarr")
    array.begin()

    async def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LocalStore, "set", full)
    with pytest.raises(StoreError, match=r"No space left.*finished tiles are kept"):
        array.write((0, 0, 0), [VALUES[:, :3, :2]])


class KilledError(Exception):
    """The process is gone."""


class Life:
    """Ends before the write of a number, or the deletion, or the renaming."""

    def __init__(self, monkeypatch, writes):
        self.left = writes
        for owner, name in (
            (LocalStore, "set"), (LocalStore, "delete"), (LocalStore, "delete_dir"),
            (os, "rename"), (shutil, "rmtree"),
        ):  # fmt: skip
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, function):
        def counted(*args, **kwargs):
            if self.left == 0:
                raise KilledError
            self.left -= 1
            return function(*args, **kwargs)

        return counted


@pytest.mark.parametrize("replaced", [False, True])
def test_killed__at_any_moment_is_taken_up_again(replaced, tmp_path, monkeypatch):
    """Also: a result that is replaced is there, whole, until the new one is."""
    for writes in itertools.count():
        path = tmp_path / f"{writes}.zarr"
        if replaced:
            finished(path, -VALUES, token="before", tile=(2, 4, 5))
        array = made(path, tile=(2, 4, 5))
        with monkeypatch.context() as patch:
            life = Life(patch, writes)
            with suppress(KilledError):
                fill(array, overwrite=replaced)
                array.finish(beside(1), kind="things")
        new = is_store(path) and np.array_equal(open_tiled(path, kind="things")["d"], VALUES)
        if replaced and not new:
            between_renames = list(tmp_path.glob(f".{writes}.zarr.*.old"))
            assert_holds(path if path.exists() else between_renames[0], -VALUES)
        if not new:
            fill(array, overwrite=replaced)
            array.finish(beside(2), kind="things")
            assert open_tiled(path, kind="things").attrs["scale"] == 2
            assert list(tmp_path.glob(f".{writes}.zarr.*")) == []
        assert_holds(path)
        if life.left > 0:
            break
    assert writes > 25


def test_killed__loses_no_finished_tile(tmp_path, monkeypatch):
    """However late: while the result is put together, too."""
    for writes in itertools.count():
        path = tmp_path / f"{writes}.zarr"
        array = made(path, tile=(2, 4, 5))
        fill(array)
        with monkeypatch.context() as patch:
            life = Life(patch, writes)
            with suppress(KilledError):
                array.finish(beside(), kind="things")
        if life.left > 0:
            break
        if not path.exists():
            assert fill(array) == []
            array.finish(beside(), kind="things")
        assert_holds(path)


def test_unfinished__is_no_store_to_readers(tmp_path):
    array = made(tmp_path / "x.zarr")
    fill(array)
    assert not is_store(array.work_path)
    with pytest.raises(StoreError, match="not finished"):
        open_tiled(array.work_path, kind="things")
    assert MANIFEST not in zarr.open_group(array.work_path, mode="r").attrs
