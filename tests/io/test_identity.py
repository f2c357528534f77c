import os
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

from bigkd.io import open_rows
from bigkd.io.status import folder_status

X = np.arange(60.0, dtype="f4").reshape(20, 3)


def store(path):
    array = zarr.create_array(path, shape=X.shape, dtype=X.dtype, chunks=(5, 3))
    array[:] = X
    return path


def npy(path):
    np.save(path, X)
    return path


def identity(data, **options):
    return open_rows(data, name="rows", **options).identity()


def later(path):
    """Give every file another time of change, as a copy or a second write would."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    for file in files:
        os.utime(file, ns=(1, 1))


FILES = {
    "npy": lambda p: npy(p / "x.npy"),
    "zarr": lambda p: store(p / "x"),
    "memmap": lambda p: np.load(npy(p / "x.npy"), mmap_mode="r"),
    "zarr array": lambda p: zarr.open_array(store(p / "x"), mode="r"),
    "parquet": lambda p: parquet(p / "x.parquet"),
    "xarray": lambda p: labelled(p / "x"),
}


def parquet(path):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"x": list(X)})
    pytest.importorskip("pyarrow.parquet").write_table(table, path)
    return path


def labelled(path):
    if not path.exists():
        xr.Dataset({"x": (("row", "column"), X)}).to_zarr(path, zarr_format=3, consolidated=False)
    return xr.open_zarr(path, consolidated=False)


@pytest.mark.parametrize("kind", FILES)
def test_identity__follows_files(tmp_path, kind):
    data = FILES[kind](tmp_path)
    before = identity(data)
    assert identity(data) == before
    later(next(tmp_path.iterdir()))
    assert identity(data) != before


@pytest.mark.parametrize("kind", ["npy", "zarr", "parquet"])
def test_identity__is_one_however_the_path_is_spelled(tmp_path, kind, monkeypatch):
    (tmp_path / "data").mkdir()
    path = FILES[kind](tmp_path / "data")
    (tmp_path / "link").symlink_to("data")
    monkeypatch.chdir(tmp_path)
    before = identity(path)
    for spelling in (
        f"link/{path.name}",
        f"data/../link/{path.name}",
        tmp_path / "link" / path.name,
    ):
        assert identity(spelling) == before
        names = [open_rows(one, name="rows").block_identities() for one in (path, spelling)]
        assert names[0] == names[1]


@pytest.mark.parametrize("kind", FILES)
def test_identity__follows_how_rows_are_cut(tmp_path, kind):
    data = FILES[kind](tmp_path)
    if kind in ("parquet", "xarray"):
        return
    # as many blocks, but other ones: states of one cut must never be merged with the other's
    assert identity(data, block_rows=10) != identity(data, block_rows=15)


def test_identity__of_arrays_is_their_content():
    assert identity(X) == identity(X.copy())
    assert identity(X) == identity(np.asfortranarray(X))
    changed = X.copy()
    changed[7, 1] += 1
    assert identity(X) != identity(changed)
    assert identity(X) != identity(X.view("i4"))
    assert identity(X, block_rows=10) != identity(X, block_rows=15)
    assert identity(X[None]) != identity(X[:, None])


@pytest.mark.parametrize("other", [np.zeros((20, 3, 2), "f4"), np.zeros((20, 2, 3), "i4")])
def test_block_identities__follow_shape_and_type_of_rows(tmp_path, other):
    found = []
    for rows in (np.zeros((20, 2, 3), "f4"), other):
        np.save(tmp_path / "x.npy", rows)
        later(tmp_path / "x.npy")
        found.append(open_rows(tmp_path / "x.npy", name="rows").block_identities())
    assert len(found[0]) == 1
    assert found[0] != found[1]


def test_identity__of_dask_from_where_nobody_tells_is_never_the_same(monkeypatch):
    monkeypatch.setattr("bigkd.io.sources.url_status", lambda _: None)
    source = replace(open_rows(da.from_array(X, 5), name="rows"), origin="http://host/x.zarr")
    assert source.identity() != source.identity()


def test_identity__of_dask_is_how_it_is_made():
    assert identity(da.from_array(X, 5)) == identity(da.from_array(X.copy(), 5))
    assert identity(da.from_array(X, 5)) != identity(da.from_array(X, 4))
    assert identity(da.from_array(X, 5)) != identity(da.from_array(X, 5) + 1)


def test_identity__of_a_file_depends_on_how_it_is_mapped(tmp_path):
    path = npy(tmp_path / "x.npy")
    maps = [
        np.memmap(path, dtype=dtype, mode="r", shape=(20, 3), offset=offset)
        for dtype, offset in (("f4", 128), ("i4", 128), ("f4", 124))
    ]
    assert len({identity(mapped) for mapped in maps}) == 3


def rewrite_chunk(path):
    zarr.open_array(path, mode="r+")[6, 0] = -1.0


def remove_chunk(path):
    (path / "c" / "1" / "0").unlink()


def move_metadata(path):
    zarr.open_array(path, mode="r+").attrs["note"] = "?"


@pytest.mark.parametrize("change", [rewrite_chunk, remove_chunk, move_metadata])
def test_identity__of_a_store_follows_any_change(tmp_path, change):
    path = store(tmp_path / "x")
    later(path)  # clocks of file systems are coarse: two writes may have one time
    before = identity(path, missing="fill")
    change(path)
    assert identity(path, missing="fill") != before


def test_identity__of_a_store_depends_on_what_missing_means(tmp_path):
    path = store(tmp_path / "x")
    assert identity(path, missing="fill") == identity(path, missing="skip")
    remove_chunk(path)
    assert identity(path, missing="fill") != identity(path, missing="skip")


def test_identity__of_stores_in_memory_is_their_content():
    def made(x):
        array = zarr.create_array(zarr.storage.MemoryStore(), shape=x.shape, dtype=x.dtype)
        array[:] = x
        return array

    assert identity(made(X)) == identity(made(X))
    assert identity(made(X)) != identity(made(X + 1))


def test_identity__is_the_same_in_another_process(tmp_path):
    makers = {
        "numpy": "np.arange(60.0, dtype='f4').reshape(20, 3)",
        "dask": "da.from_array(np.arange(60.0, dtype='f4').reshape(20, 3), 5)",
        "npy": f"{str(npy(tmp_path / 'x.npy'))!r}",
        "parquet": f"{str(parquet(tmp_path / 'x.parquet'))!r}",
        "zarr": f"{str(store(tmp_path / 'x'))!r}",
        "xarray": f"xr.open_zarr({str(tmp_path / 'y')!r}, consolidated=False)",
    }
    labelled(tmp_path / "y")
    printed = "\n".join(
        f"print(open_rows({maker}, name='rows').identity())" for maker in makers.values()
    )
    script = (
        "import numpy as np, dask.array as da, xarray as xr\nfrom bigkd.io import open_rows\n"
        + printed
    )
    run = partial(subprocess.run, capture_output=True, text=True, check=True)
    found = [run([sys.executable, "-c", script]).stdout.split() for _ in range(2)]
    assert found[0] == found[1]
    assert len(set(found[0])) == len(makers)


def test_block_identities__of_pictures_in_another_folder_differ(tmp_path):
    """Of equal names, sizes and times, as archives give them."""
    image = pytest.importorskip("PIL.Image")
    found = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        image.new("RGB", (4, 4), "red" if name == "one" else "blue").save(tmp_path / name / "0.bmp")
        later(tmp_path / name)
        found.append(open_rows(tmp_path / name, name="rows").block_identities())
    assert found[0] != found[1]


def test_identity__of_a_copy_elsewhere_differs(tmp_path):
    path = store(tmp_path / "x")
    shutil.copytree(path, tmp_path / "y")
    assert identity(path) != identity(tmp_path / "y")


def square(seed=0):
    values = np.random.default_rng(seed).random((6, 4, 4))
    return xr.DataArray(values, dims=("time", "lat", "lon"), name="x")


def opened(path):
    return xr.open_dataarray(path, engine="h5netcdf")


@pytest.mark.parametrize("where", ["memory", "file", "loaded"])
def test_identity__of_transposed_axes_differs(tmp_path, where):
    x = square()
    x.to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    data = x if where == "memory" else opened(tmp_path / "x.nc")
    if where == "loaded":
        data.load()
    turned = [data, data.transpose("time", "lon", "lat"), data.transpose("lat", "lon", "time")]
    renamed = [part.rename(dict(zip(part.dims, "abc", strict=True))) for part in turned]
    own = [identity(part, dim=part.dims[0]) for part in renamed]
    assert len(set(own)) == 3
    names = [open_rows(part, name="x").array.name for part in renamed]
    assert len(set(names)) == 3
    data.close()


def test_identity__of_data_arrays_in_memory_is_their_content():
    x = square()
    assert identity(x) == identity(x.copy(deep=True))
    assert identity(x) != identity(square(1))
    assert identity(x) != identity(x, block_rows=2)


def test_folder_status__follows_links_visits_each_folder_once_and_is_in_order(tmp_path):
    folder, elsewhere = tmp_path / "x", tmp_path / "elsewhere"
    for path in (folder / "a", folder / "b", elsewhere):
        path.mkdir(parents=True)
        for name in ("2", "10", "1"):
            (path / name).write_text(name)
    (folder / "a" / "up").symlink_to(folder)
    (folder / "c").symlink_to(elsewhere)
    (folder / "link").symlink_to(elsewhere / "10")
    os.utime(elsewhere / "10", ns=(1, 1))
    for root in (folder, Path(f"{folder}/")):
        found = folder_status(root)
        names = [f"{inside}/{name}" for inside in "abc" for name in ("1", "10", "2")]
        assert [name for name, *_ in found] == [*names, "link"]
        assert found[-1] == ("link", 2, 1)
        assert found[7] == ("c/10", 2, 1)


def test_identity__of_rows_in_linked_files_follows_the_files(tmp_path):
    store(tmp_path / "x")
    chunk, elsewhere = tmp_path / "x" / "c" / "1" / "0", tmp_path / "elsewhere"
    shutil.move(chunk, elsewhere)
    chunk.symlink_to(elsewhere)
    before = open_rows(tmp_path / "x", name="rows", block_rows=5).block_identities()
    later(elsewhere)
    after = open_rows(tmp_path / "x", name="rows", block_rows=5).block_identities()
    same = [one == other for one, other in zip(before, after, strict=True)]
    assert same == [True, False, True, True]


def test_block_identities__follow_the_place_and_the_metadata_of_a_store(tmp_path):
    def names(path):
        return open_rows(path, name="rows", block_rows=5).block_identities()

    path = store(tmp_path / "x")
    shutil.copytree(path, tmp_path / "y")
    assert [chunk for _, *chunk in folder_status(tmp_path / "y" / "c")] == [
        chunk for _, *chunk in folder_status(tmp_path / "x" / "c")
    ]
    before = names(path)
    assert not set(before) & set(names(tmp_path / "y"))
    about = tmp_path / "x" / "zarr.json"
    text = about.read_text().replace('"fill_value": 0.0', '"fill_value": 1.0')
    assert text != about.read_text()
    about.write_text(text)
    assert not set(before) & set(names(path))


def test_source__is_equal_whether_its_names_are_known_or_not(tmp_path):
    source = open_rows(npy(tmp_path / "x.npy"), name="rows")
    known = replace(source, known=tuple(source.block_identities()))
    assert known == source
    assert repr(known) == repr(source)
    assert known.identity() == source.identity()
