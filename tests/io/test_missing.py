import contextlib
import itertools
import shutil

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.codecs import ZstdCodec

from bigkd.errors import BigkdError, DataError, EmptyInputError, StoreError
from bigkd.io import open_rows

N, D = 23, 6
X = np.arange(1.0, 1 + N * D).reshape(N, D)


def store(path, *, array=X, chunks=(4, 6), shards=None, zarr_format=3, checked=True):
    compressors = {"compressors": [ZstdCodec(checksum=True)]} if checked else {}
    stored = zarr.create_array(
        path, shape=array.shape, dtype=array.dtype, chunks=chunks, shards=shards, fill_value=-1,
        zarr_format=zarr_format, **(compressors if zarr_format == 3 else {}),
    )  # fmt: skip
    stored[:] = array
    return path


def chunk(path, *at):
    v3 = path / "c" / "/".join(map(str, at))
    return v3 if v3.exists() else path / ".".join(map(str, at))


LAYOUTS = {
    "chunks": {},
    "chunks of zarr 2": {"zarr_format": 2},
    "chunked columns": {"chunks": (4, 4)},
    "shards": {"chunks": (2, 3), "shards": (4, 6)},
    "sharded columns": {"chunks": (2, 2), "shards": (4, 4)},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_missing_chunks__raise_names_the_first(tmp_path, layout):
    path = store(tmp_path / "x", **LAYOUTS[layout])
    last = 1 if "columns" in layout else 0
    chunk(path, 2, last).unlink()
    chunk(path, 4, 0).unlink()
    with pytest.raises(DataError, match=rf"rows: 2 of .* \(2, {last}\).*begins at row 8") as caught:
        open_rows(path, name="rows")
    assert "missing='skip'" in str(caught.value)
    assert "-1.0" in str(caught.value)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("block_rows", [None, 3, 4, 9, 100])
def test_missing_chunks__skip_keeps_row_numbers(tmp_path, layout, block_rows):
    path = store(tmp_path / "x", **LAYOUTS[layout])
    chunk(path, 0, 0).unlink()
    chunk(path, 3, 0).unlink()
    chunk(path, 5, 1 if "columns" in layout else 0).unlink()
    left = [*range(4, 12), *range(16, 20)]
    source = open_rows(path, name="rows", missing="skip", block_rows=block_rows)
    assert (source.n_rows, source.skipped) == (12, 11)
    numbers = []
    for at in range(source.n_blocks):
        rows = source.read(at)
        numbers += range(source.first_index(at), source.first_index(at) + len(rows))
        np.testing.assert_array_equal(rows, X[numbers[-len(rows) :]])
    assert numbers == left
    for start, stop in itertools.combinations(range(13), 2):
        np.testing.assert_array_equal(source.take(start, stop), X[left[start:stop]])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_missing_chunks__fill(tmp_path, layout):
    path = store(tmp_path / "x", **LAYOUTS[layout])
    chunk(path, 1, 0).unlink()
    source = open_rows(path, name="rows", missing="fill")
    expected = X.copy()
    expected[4:8, : 4 if "columns" in layout else D] = -1
    np.testing.assert_array_equal(source.take(0, N), expected)
    assert source.skipped == 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_missing_chunks__include_empty_files(tmp_path, layout):
    path = store(tmp_path / "x", **LAYOUTS[layout])
    chunk(path, 2, 0).write_bytes(b"")
    with pytest.raises(DataError, match="begins at row 8"):
        open_rows(path, name="rows")
    assert open_rows(path, name="rows", missing="skip").skipped == 4


def test_missing_chunks__all_of_them(tmp_path):
    path = store(tmp_path / "x")
    shutil.rmtree(path / "c")
    with pytest.raises(DataError, match="6 of 6 chunks"):
        open_rows(path, name="rows")
    with pytest.raises(EmptyInputError, match="after 23 rows were skipped"):
        open_rows(path, name="rows", missing="skip")


@settings(max_examples=40)
@given(
    n=st.integers(1, 20),
    chunks=st.tuples(st.integers(1, 4), st.integers(1, 6)),
    per_shard=st.sampled_from([None, (1, 2), (2, 1), (2, 2), (3, 2)]),
    block_rows=st.none() | st.integers(1, 25),
    data=st.data(),
)
def test_missing_chunks__are_found_in_any_grid(n, chunks, per_shard, block_rows, data):
    shards = per_shard and tuple(a * b for a, b in zip(chunks, per_shard, strict=True))
    memory = zarr.storage.MemoryStore()
    array = zarr.create_array(
        memory, name="x", shape=(n, D), dtype="f8", chunks=chunks, shards=shards, fill_value=-1
    )
    array[:] = X[:n]
    grid = shards or chunks
    places = list(itertools.product(range(-(-n // grid[0])), range(-(-D // grid[1]))))
    gone = sorted(data.draw(st.sets(st.sampled_from(places), max_size=4)))
    for at in gone:
        del memory._store_dict["x/c/" + "/".join(map(str, at))]
    left = [row for row in range(n) if row // grid[0] not in {at[0] for at in gone}]
    if gone:
        first = rf"{len(gone)} of {len(places)}.*\({gone[0][0]}, {gone[0][1]}\)"
        with pytest.raises(DataError, match=first):
            open_rows(array, name="rows")
    if not left:
        return
    source = open_rows(array, name="rows", missing="skip", block_rows=block_rows)
    np.testing.assert_array_equal(source.take(0, len(left)), X[left])
    assert source.skipped == n - len(left)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_damaged_chunk__names_collection_and_rows(tmp_path, layout, damage):
    path = store(tmp_path / "x", **LAYOUTS[layout])
    file = chunk(path, 2, 0)
    content = bytearray(file.read_bytes())
    if damage == "flip" and layout == "chunks of zarr 2":
        content[:4] = b"\0\0\0\0"  # no checksum there: only a broken header is noticed
    elif damage == "flip":
        content[len(content) // 3] ^= 8
    file.write_bytes(content if damage == "flip" else content[:-9])
    source = open_rows(path, name="my rows", block_rows=4)
    np.testing.assert_array_equal(source.read(1), X[4:8])
    with pytest.raises(DataError, match=r"my rows: rows 8 to 11 cannot be read \(.*damaged"):
        source.read(2)


def test_damaged_chunk__is_named_by_its_row_in_the_store(tmp_path):
    path = store(tmp_path / "x")
    chunk(path, 0, 0).unlink()
    chunk(path, 2, 0).write_bytes(b"nonsense")
    source = open_rows(path, name="rows", missing="skip", block_rows=4)
    with pytest.raises(DataError, match="rows 8 to 11 cannot"):
        source.read(1)


def test_damaged_metadata__of_any_byte_is_a_clear_error(tmp_path):
    path = store(tmp_path / "x")
    whole = (path / "zarr.json").read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        (path / "zarr.json").write_bytes(damaged)
        with contextlib.suppress(BigkdError):  # and nothing else
            open_rows(path, name="rows").take(0, 3)


def test_pickled_elements__are_refused(tmp_path):
    path = store(tmp_path / "x", zarr_format=2)
    document = path / ".zarray"
    text = document.read_text()
    assert '"filters": null' in text
    document.write_text(text.replace('"filters": null', '"filters": [{"id": "pickle"}]'))
    with pytest.raises(StoreError, match="pickle"):
        open_rows(path, name="rows")
