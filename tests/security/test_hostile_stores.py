"""Stores from others: nothing of them is run, nothing outside is touched, and memory holds."""

import json
import os
import pickle
import shutil
import tracemalloc
from contextlib import suppress

import numcodecs
import numpy as np
import pytest
import xarray as xr
import zarr

from bigkd.errors import BigkdError, DataError, EmptyInputError, InputError, StoreError
from bigkd.io import (
    TiledArray,
    append_run,
    is_store,
    load_array,
    load_dataset,
    load_history,
    open_labelled,
    open_rows,
    open_tiled,
    remove_store,
    save_dataset,
    save_state,
)
from bigkd.io.bounds import require_small_frames
from tests.security.hostile import KIND, edit, sign, small, stored

ENORMOUS = 10**18


class Canary:
    """Unpickled, it leaves a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


@pytest.fixture(autouse=True)
def little_memory():
    """Whatever is tried takes little memory."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


def test_helpers__leave_a_store_that_is_whole(tmp_path):
    xr.testing.assert_identical(load_dataset(sign(stored(tmp_path / "x")), kind=KIND), small())


@pytest.mark.parametrize("name", ["../secret.zarr/x", "..", "/etc", "x/../../secret.zarr/x"])
def test_manifest__that_names_other_places_is_refused(tmp_path, name):
    stored(tmp_path / "secret.zarr")
    path = sign(stored(tmp_path / "x"), lambda m: m["metadata"].update({name: ""}))
    with pytest.raises(StoreError, match="corrupted"):
        load_dataset(path, kind=KIND)
    assert not is_store(path)


@pytest.mark.parametrize("tiled", ["../secret.zarr/x", "..", "", 7, None, ["x"]])
def test_tiles__that_are_elsewhere_are_refused(tmp_path, tiled):
    stored(tmp_path / "secret.zarr")
    path = sign(stored(tmp_path / "x"), lambda m: m.update(tiled=tiled, token="[]"))
    for read in (open_tiled, load_dataset):
        with pytest.raises(StoreError):
            read(path, kind=KIND)


def test_dataset__with_what_its_manifest_does_not_name_is_refused(tmp_path):
    """So that no codec of it is ever run."""
    path = stored(tmp_path / "x")
    (path / "notes.txt").write_text("of the user's; harmless")
    assert is_store(path)
    group = zarr.open_group(path, mode="a", use_consolidated=False)
    group.create_array("evil", shape=(2,), dtype="f8", compressors=[zarr.codecs.BloscCodec()])
    with pytest.raises(StoreError, match="evil is not in its manifest"):
        load_dataset(sign(path), kind=KIND)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("kind"),
        lambda m: m.update(kind=None),
        lambda m: m.update(variables=None),
        lambda m: m.update(variables={"x": 1}),
        lambda m: m.update(metadata=[]),
        lambda m: m.update(metadata={}),
        lambda m: m.update(format="1"),
        lambda m: m.update(version={"a": []}),
    ],
)
def test_manifest__of_other_types_is_refused_or_harmless(tmp_path, change):
    path = sign_anyhow(stored(tmp_path / "x"), change)
    with suppress(StoreError):
        xr.testing.assert_identical(load_dataset(path, kind=KIND), small())


def sign_anyhow(path, change):
    """As `sign`, where the manifest may be nonsense."""
    edit(path / "zarr.json", lambda d: change(d["attributes"]["bigkd_manifest"]))
    try:
        return sign(path)
    except (AttributeError, TypeError, KeyError):
        return path


SHAPES = {
    "rows": {"shape": [ENORMOUS]},
    "rows of one chunk": {"shape": [10**11], "chunk": [10**11]},
    "a chunk": {"chunk": [10**11]},
}


@pytest.mark.parametrize("case", SHAPES)
def test_dataset__that_claims_absurd_shapes_is_refused(tmp_path, case):
    path = stored(tmp_path / "x")

    def grow(document):
        document["shape"] = SHAPES[case].get("shape", document["shape"])
        grid = document["chunk_grid"]["configuration"]
        grid["chunk_shape"] = SHAPES[case].get("chunk", grid["chunk_shape"])

    edit(path / "x" / "zarr.json", grow)
    with pytest.raises(StoreError, match=r"x says that it takes .* bytes, and"):
        load_dataset(sign(path), kind=KIND)


BOMBS = {
    "of a size": lambda codec: codec.encode(np.zeros(10**7, np.uint8)),
    "of no size": lambda codec: b"\x28\xb5\x2f\xfd\x00" + codec.encode(np.zeros(9, np.uint8))[5:],
}


@pytest.mark.parametrize("name", ["x", "t"])
@pytest.mark.parametrize("bomb", BOMBS)
def test_dataset__whose_chunks_would_not_fit_is_refused(tmp_path, monkeypatch, bomb, name):
    path = stored(tmp_path / "x")
    content = BOMBS[bomb](numcodecs.Zstd(level=1))
    (path / name / "c" / "0").write_bytes(content)
    monkeypatch.setattr(
        "psutil.virtual_memory", lambda: type("Memory", (), {"available": 5 * 10**6})
    )
    with pytest.raises(StoreError, match=f"{name}/c/0 says that it takes"):
        load_dataset(path, kind=KIND)


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (b"\x20\xff", 255),
        (b"\x60\xff\xff", 65_791),
        (b"\xa0\x40\x42\x0f\x00", 1_000_000),
        (b"\x80\x58\x40\x42\x0f\x00", 1_000_000),
        (b"\xe1\x07\x40\x42\x0f\x00\x00\x00\x00\x00", 1_000_000),
    ],
)
def test_require_small_frames__reads_every_kind_of_header(monkeypatch, head, size):
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 100}))
    with pytest.raises(StoreError, match=f"x/c/0 says that it takes {size:,} bytes"):
        require_small_frames("somewhere", {"x/c/0": b"\x28\xb5\x2f\xfd" + head})


@pytest.mark.parametrize("bomb", BOMBS)
def test_history__whose_chunks_would_not_fit_is_refused(tmp_path, monkeypatch, bomb):
    append_run(tmp_path / "h.zarr", xr.Dataset({"x": 1.0}), run_id="a")
    content = BOMBS[bomb](numcodecs.Zstd(level=1))
    (tmp_path / "h.zarr" / "x" / "c" / "0").write_bytes(content)
    monkeypatch.setattr(
        "psutil.virtual_memory", lambda: type("Memory", (), {"available": 5 * 10**6})
    )
    with pytest.raises(StoreError, match="x/c/0 says that it takes"):
        load_history(tmp_path / "h.zarr")


def make_matrix(path):
    array = TiledArray(
        path=str(path), name="d", dims=("a", "b"), shape=(4, 5), tile=(2, 5), chunk=(1, 5),
        token="t",
    )  # fmt: skip
    array.begin()
    for at in ((0, 0), (1, 0)):
        array.write(at, [np.ones((2, 5))])
    array.finish(xr.Dataset(coords={"a": list("wxyz")}), kind=KIND)
    return KIND, "d"


def test_tiles__that_would_not_fit_are_refused(tmp_path, monkeypatch):
    kind, name = make_matrix(tmp_path / "m")
    chunk = next(path for path in (tmp_path / "m" / name).rglob("*") if "zarr.json" not in str(path)
                 and path.is_file())  # fmt: skip
    chunk.write_bytes(numcodecs.Zstd(level=1).encode(np.zeros(10**7, np.uint8)))
    monkeypatch.setattr(
        "psutil.virtual_memory", lambda: type("Memory", (), {"available": 5 * 10**6})
    )
    with pytest.raises(StoreError, match="says that it takes"):
        open_tiled(tmp_path / "m", kind=kind)[name].compute(scheduler="sync")


@pytest.mark.parametrize("tile", [[1, 1], "xy", [1], [[], []], {}, [-1, 5], [1, 0]])
def test_tiles__of_absurd_sizes_are_refused(tmp_path, tile):
    kind, name = make_matrix(tmp_path / "m")

    def change(manifest):
        token = json.loads(manifest["token"])
        token[4] = tile
        manifest["token"] = json.dumps(token)

    path = sign(tmp_path / "m", change)
    with pytest.raises(StoreError):
        open_tiled(path, kind=kind)[name].compute(scheduler="sync")


def pickled_array(path, canary, dtype, **codecs):
    zarr.create_array(path, shape=(4, 3), chunks=(4, 3), dtype="f8", zarr_format=2)
    about = {"dtype": dtype, "fill_value": "" if dtype == "|O" else 0.0, **codecs}
    edit(path / ".zarray", lambda document: document.update(about))
    edit_attributes = {"_ARRAY_DIMENSIONS": ["r", "c"]}
    (path / ".zattrs").write_text(json.dumps(edit_attributes))
    (path / "0.0").write_bytes(pickle.dumps(Canary(canary)))


PICKLES = {
    "compressor": ("<f8", {"compressor": {"id": "pickle"}, "filters": None}),
    "filter": ("<f8", {"compressor": None, "filters": [{"id": "pickle"}]}),
    "objects": ("|O", {"compressor": {"id": "pickle"}, "filters": [{"id": "vlen-utf8"}]}),
    "objects filtered": (
        "|O",
        {"compressor": None, "filters": [{"id": "vlen-utf8"}, {"id": "pickle"}]},
    ),
}


@pytest.mark.parametrize("case", PICKLES)
@pytest.mark.filterwarnings("ignore:The data type")
def test_rows__are_never_unpickled(tmp_path, case, monkeypatch):
    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_DECODE", True, raising=False)
    dtype, codecs = PICKLES[case]
    pickled_array(tmp_path / "rows", tmp_path / "ran", dtype, **codecs)
    zarr.create_group(tmp_path / "group", zarr_format=2).create_array(
        "rows", shape=(4, 3), dtype="f8"
    )
    shutil.copytree(tmp_path / "rows", tmp_path / "group" / "c")
    for read in (open_rows, load_array, open_labelled):
        for path in ("rows", "group"):
            with suppress(BigkdError, TypeError):
                found = read(tmp_path / path, name="rows")
                if hasattr(found, "read"):
                    found.read(0)
    assert not (tmp_path / "ran").exists()


def test_rows__of_pickled_files_are_refused(tmp_path):
    content = np.empty((2, 2), object)
    content[:] = [[Canary(tmp_path / "ran")] * 2] * 2
    np.save(tmp_path / "x.npy", content, allow_pickle=True)
    for read in (open_rows, load_array):
        with pytest.raises(StoreError):
            read(tmp_path / "x.npy", name="rows")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("missing", ["raise", "skip", "fill"])
@pytest.mark.parametrize(
    ("shape", "chunks"),
    [
        ((ENORMOUS, 3), (1, 3)),
        ((ENORMOUS, 3), (10**9, 3)),
        ((ENORMOUS, 0), (5, 1)),
        ((4, ENORMOUS), (1, 1)),
    ],
)
def test_rows__of_absurd_shapes_are_refused(tmp_path, shape, chunks, missing):
    zarr.create_array(tmp_path / "x", shape=shape, chunks=chunks, dtype="f4")
    with pytest.raises((DataError, EmptyInputError)):
        open_rows(tmp_path / "x", name="rows", missing=missing)


def test_array__of_absurd_shape_is_refused(tmp_path):
    zarr.create_array(tmp_path / "x", shape=(10**12,), chunks=(10**6,), dtype="f4")
    with pytest.raises(StoreError, match="says that it takes"):
        load_array(tmp_path / "x", name="rows")


@pytest.mark.parametrize("shape", [(2**32, 2**32), (ENORMOUS, 0), (ENORMOUS, 3)])
def test_npy__of_absurd_shapes_is_refused(tmp_path, shape):
    with (tmp_path / "x.npy").open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(file, header)
    with pytest.raises((StoreError, DataError, EmptyInputError)):
        open_rows(tmp_path / "x.npy", name="rows")


def test_stores__are_not_written_through_links(tmp_path):
    behind = stored(tmp_path / "behind")
    (tmp_path / "link").symlink_to(behind)
    with pytest.raises(InputError, match="is a symbolic link"):
        save_dataset(small(), tmp_path / "link", kind=KIND, overwrite=True)
    xr.testing.assert_identical(load_dataset(behind, kind=KIND), small())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["behind", "link"]


def test_states__replace_links_and_leave_what_is_behind(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "text").write_text("all my work")
    (tmp_path / "kept").mkdir()
    for number, behind in enumerate(("thesis", "nowhere", "thesis/text")):
        link = tmp_path / "kept" / f"{number}.zarr"
        link.symlink_to(tmp_path / behind)
        save_state(link, (np.ones(3),), token="t")
        assert is_store(link)
        assert not link.is_symlink()
    assert (tmp_path / "thesis" / "text").read_text() == "all my work"
    (tmp_path / "link").symlink_to(tmp_path / "thesis")
    remove_store(tmp_path / "link")
    assert (tmp_path / "thesis" / "text").read_text() == "all my work"
    assert not (tmp_path / "link").is_symlink()


def test_save_dataset__removes_only_its_own_leftovers(tmp_path):
    path = stored(tmp_path / "x")
    foreign = [".x.mine.old", ".x.0123456g.old", ".xy.01234567.old"]
    for name in foreign:
        stored(tmp_path / name)
    (tmp_path / ".x.00000000.old").mkdir()
    (tmp_path / ".x.00000000.old" / "thesis").write_text("all my work")
    stored(tmp_path / ".x.11111111.old")
    save_dataset(small(), path, kind=KIND, overwrite=True)
    left = {entry.name for entry in tmp_path.iterdir()}
    assert left == {"x", ".x.00000000.old", *foreign}
