import json
import os
import shutil
import warnings

import numpy as np
import pytest
import xarray as xr
import zarr

from bigkd.errors import BigkdError, InputError, StoreError
from bigkd.io import is_store, load_dataset, open_rows, remove_store, save_dataset, store_kind

KIND = "thing"


def small():
    return xr.Dataset(
        {"x": (("row", "column"), np.arange(6.0).reshape(2, 3)), "n": ((), np.int64(7))},
        coords={"column": ["a", "b", "ü"]},
        attrs={"bandwidth": 2.5, "kernel": "gaussian"},
    )


def stored(path, dataset=None):
    save_dataset(small() if dataset is None else dataset, path, kind=KIND)
    return path


def files_of(path):
    return sorted(file for file in path.rglob("*") if file.is_file())


NUMBERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
VARIABLES = {
    **{dtype: np.arange(6).reshape(2, 3).astype(dtype) for dtype in NUMBERS},
    "big endian": np.arange(3, dtype=">f8"),
    "NaNs of either sign": np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0]),
    "scalar": np.asarray(3.5),
    "nothing": np.zeros((0, 3)),
    "zeros": np.zeros((4, 4)),
    "strided": np.arange(24.0).reshape(4, 6)[::2, ::3],
    "times": np.array(["2020-01-01T00:00:00.000000001", "NaT"], "M8[ns]"),
    "seconds": np.array(["2020-01-01", "1960-02-03"], "M8[s]"),
    "spans": np.array([1, -5], "m8[s]"),
    "text": np.array([["a", ""], ["bücher", "\n\U0001f600"]]),
    "one text": np.asarray("text"),
    "no text": np.zeros(0, "<U3"),
    "text of any length": np.array(["a", "bcd"], np.dtypes.StringDType()),
    "text as objects": np.array(["a", "bcd"], object),
}


@pytest.mark.parametrize("name", VARIABLES)
@pytest.mark.parametrize("as_coordinate", [False, True])
def test_save_dataset__brings_back(tmp_path, name, as_coordinate):
    values = VARIABLES[name]
    dims = tuple(f"d{axis}" for axis in range(values.ndim))
    dataset = xr.Dataset(attrs={"setting": 1.5, "list": [1, "b"], "nothing": None})
    attrs = {"long_name": "ü"} if values.dtype.kind in "mM" else {"units": "1", "long_name": "ü"}
    content = {"v": (dims, values, attrs)}
    dataset = dataset.assign_coords(content) if as_coordinate else dataset.assign(content)
    save_dataset(dataset, tmp_path / "x", kind=KIND)
    found = load_dataset(tmp_path / "x", kind=KIND)
    assert found.attrs == dataset.attrs
    assert ("v" in found.coords) == as_coordinate
    assert found["v"].dims == dims
    assert found["v"].attrs == attrs
    assert found["v"].shape == values.shape
    if values.dtype.kind in "OT":
        assert found["v"].dtype.kind == "U"
        assert found["v"].values.tolist() == values.tolist()
    else:
        assert found["v"].dtype.kind == values.dtype.kind
        assert found["v"].dtype.itemsize == values.dtype.itemsize or values.dtype.kind == "U"
        np.testing.assert_array_equal(found["v"].values, values)
    if name == "NaNs of either sign":
        np.testing.assert_array_equal(np.signbit(found["v"].values), np.signbit(values))


def test_save_dataset__brings_back_indexes_and_order(tmp_path):
    names = ["zebra", "apple", "mango", "b", "a"]
    dataset = xr.Dataset(
        {name: ("row", np.arange(2.0)) for name in names},
        coords={"row": ["p", "q"], "time": ("row", np.array(["2020", "2021"], "M8[ns]"))},
    )
    found = load_dataset(stored(tmp_path / "x", dataset), kind=KIND)
    xr.testing.assert_identical(found, dataset)
    assert list(found.data_vars) == names
    assert found.sel(row="q")["zebra"] == 1.0


def test_save_dataset__ignores_how_it_was_stored_before(tmp_path):
    dataset = small()
    dataset["x"].encoding = {"dtype": "i1", "scale_factor": 10.0, "_FillValue": 1, "chunks": (1, 1)}
    found = load_dataset(stored(tmp_path / "x", dataset), kind=KIND)
    xr.testing.assert_identical(found, small())


def test_save_dataset__refuses_python_objects(tmp_path):
    with pytest.raises(InputError, match="'x' holds Python objects of type dict"):
        stored(tmp_path / "x", xr.Dataset({"x": ("row", np.array([{}, "a"]))}))
    assert not list(tmp_path.iterdir())


def test_stores__of_equal_datasets_are_equal(tmp_path):
    one, other = stored(tmp_path / "one"), stored(tmp_path / "other")
    assert [file.relative_to(one) for file in files_of(one)] == [
        file.relative_to(other) for file in files_of(other)
    ]
    for file in files_of(one):
        assert file.read_bytes() == (other / file.relative_to(one)).read_bytes()


def test_stores__open_with_xarray_without_a_warning(tmp_path):
    path = stored(tmp_path / "x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = xr.open_zarr(path).load()
    np.testing.assert_array_equal(found["x"], small()["x"])
    assert found["column"].values.tolist() == ["a", "b", "ü"]
    assert found.attrs["kernel"] == "gaussian"
    assert open_rows(path, name="rows").n_rows == 2


def test_load_dataset__refuses_or_survives_a_flipped_bit_in_any_byte(tmp_path):
    path = stored(tmp_path / "x")
    refused = survived = 0
    for file in files_of(path):
        whole = file.read_bytes()
        for at in range(len(whole)):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << (at * 5 % 8)
            file.write_bytes(damaged)
            try:
                found = load_dataset(path, kind=KIND)
            except StoreError:
                refused += 1
            else:
                xr.testing.assert_identical(found, small())
                survived += 1
        file.write_bytes(whole)
    xr.testing.assert_identical(load_dataset(path, kind=KIND), small())
    assert refused > 20 * survived


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.9])
def test_load_dataset__refuses_a_file_cut_short_or_missing(tmp_path, keep):
    path = stored(tmp_path / "x")
    for file in files_of(path):
        whole = file.read_bytes()
        file.write_bytes(whole[: int(keep * len(whole))])
        with pytest.raises(StoreError, match="x"):
            load_dataset(path, kind=KIND)
        file.unlink()
        with pytest.raises(StoreError, match="x"):
            load_dataset(path, kind=KIND)
        file.write_bytes(whole)


def test_load_dataset__refuses_swapped_chunks(tmp_path):
    dataset = xr.Dataset({"a": ("row", np.arange(4.0)), "b": ("row", np.arange(4.0)[::-1])})
    path = stored(tmp_path / "x", dataset)
    one, other = path / "a" / "c" / "0", path / "b" / "c" / "0"
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    with pytest.raises(StoreError, match=r"corrupted.*a, b does not match"):
        load_dataset(path, kind=KIND)


def test_load_dataset__refuses_swapped_or_added_variables(tmp_path):
    path = stored(tmp_path / "x")
    shutil.copytree(path / "n", path / "extra")
    with pytest.raises(StoreError, match=r"corrupted.*extra"):
        load_dataset(path, kind=KIND)
    shutil.rmtree(path / "extra")
    shutil.rmtree(path / "n")
    with pytest.raises(StoreError, match="corrupted"):
        load_dataset(path, kind=KIND)


def edited(path, change, *, name="zarr.json"):
    document = json.loads((path / name).read_text())
    change(document)
    (path / name).write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("zarr.json", lambda d: d["attributes"].update(bandwidth=2.0)),
        ("zarr.json", lambda d: d["attributes"].pop("kernel")),
        ("zarr.json", lambda d: d["attributes"]["bigkd_manifest"].update(version="9")),
        ("zarr.json", lambda d: d["attributes"]["bigkd_manifest"]["variables"].pop("x")),
        ("x/zarr.json", lambda d: d["attributes"].update(units="m")),
        ("x/zarr.json", lambda d: d.update(shape=[2**40, 3])),
        ("x/zarr.json", lambda d: d.update(dimension_names=["column", "row"])),
    ],
)
def test_load_dataset__refuses_changed_metadata(tmp_path, name, change):
    path = stored(tmp_path / "x")
    edited(path, change, name=name)
    with pytest.raises(StoreError, match=r"corrupted.*does not match|do not match"):
        load_dataset(path, kind=KIND)


def forged(path, codecs):
    """A store whose checksums are right, written by someone else."""
    manifests = pytest.importorskip("bigkd.io.manifests")
    edited(path, lambda d: d["codecs"].extend(codecs), name="x/zarr.json")
    digest = manifests.hashlib.sha256((path / "x/zarr.json").read_bytes()).hexdigest()

    def sign(document):
        manifest = document["attributes"]["bigkd_manifest"]
        manifest["metadata"]["x"] = digest
        manifest["checksum"] = manifests._document_checksum(document)

    edited(path, sign)
    return path


def test_load_dataset__refuses_codecs_that_bigkd_never_writes(tmp_path):
    path = forged(stored(tmp_path / "x"), [])
    xr.testing.assert_identical(load_dataset(path, kind=KIND), small())
    path = forged(path, [{"name": "numcodecs.pickle", "configuration": {}}])
    with pytest.raises(StoreError, match=r"x is stored with numcodecs\.pickle"):
        load_dataset(path, kind=KIND)


def test_load_dataset__refuses_other_formats_kinds_and_stores(tmp_path):
    path = stored(tmp_path / "x")
    with pytest.raises(StoreError, match="holds 'thing'; expected 'modes'"):
        load_dataset(path, kind="modes")
    edited(path, lambda d: d["attributes"]["bigkd_manifest"].update(format=99))
    with pytest.raises(StoreError, match=r"format 99.*reads format 1"):
        load_dataset(path, kind=KIND)
    edited(path, lambda d: d["attributes"].pop("bigkd_manifest"))
    with pytest.raises(StoreError, match="not finished"):
        load_dataset(path, kind=KIND)
    for zarr_format in (2, 3):
        foreign = tmp_path / f"foreign{zarr_format}"
        zarr.create_group(foreign, zarr_format=zarr_format).create_array("x", data=np.ones((2, 2)))
        with pytest.raises(StoreError, match=f"foreign{zarr_format}"):
            load_dataset(foreign, kind=KIND)
    zarr.create_array(tmp_path / "array", shape=(2,), dtype="f4")
    (tmp_path / "file").write_text("?")
    for name in ("array", "file", "nowhere", "."):
        with pytest.raises(StoreError, match="store"):
            load_dataset(tmp_path / name, kind=KIND)
        assert not is_store(tmp_path / name)


def test_store_kind__and_is_store(tmp_path):
    path = stored(tmp_path / "x")
    assert is_store(path)
    assert store_kind(str(path)) == KIND
    remove_store(path)
    remove_store(path)
    assert not is_store(path)
    with pytest.raises(StoreError, match="holds no bigkd store"):
        store_kind(path)


def test_save_dataset__replaces_only_when_told(tmp_path):
    path = stored(tmp_path / "deep" / "er" / "x")
    with pytest.raises(InputError, match="overwrite=True"):
        save_dataset(small(), path, kind=KIND)
    save_dataset(small() + 1, path, kind=KIND, overwrite=True)
    assert load_dataset(path, kind=KIND)["n"] == 8
    assert [entry.name for entry in path.parent.iterdir()] == ["x"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_save_dataset__never_replaces_what_is_not_its_own(tmp_path, overwrite):
    zarr.create_array(tmp_path / "rows", shape=(2, 2), dtype="f4")[:] = 1.0
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").write_text("all my work")
    (tmp_path / "file").write_text("?")
    (tmp_path / "broken-link").symlink_to(tmp_path / "nowhere")
    before = files_of(tmp_path)
    for name in ("rows", "folder", "file", "broken-link"):
        with pytest.raises(InputError, match="not written by bigkd"):
            save_dataset(small(), tmp_path / name, kind=KIND, overwrite=overwrite)
    assert files_of(tmp_path) == before
    (tmp_path / "empty").mkdir()
    assert is_store(stored(tmp_path / "empty"))


@pytest.mark.parametrize("where", ["xarray", "consolidate", "manifest", "rename"])
def test_save_dataset__that_fails_keeps_the_old_store(tmp_path, monkeypatch, where):
    path = stored(tmp_path / "x")
    rename = os.rename

    def fail(*args, **kwargs):
        raise OSError("disk full")

    def fail_second(source, target):
        if str(source).endswith(".partial"):
            fail()
        rename(source, target)

    patches = {
        "xarray": (xr.Dataset, "to_zarr", fail),
        "consolidate": (zarr, "consolidate_metadata", fail),
        "manifest": (zarr, "open_group", fail),
        "rename": (os, "rename", fail_second),
    }
    with monkeypatch.context() as patched:
        patched.setattr(*patches[where])
        with pytest.raises(OSError, match="disk full"):
            save_dataset(small() + 1, path, kind=KIND, overwrite=True)
    xr.testing.assert_identical(load_dataset(path, kind=KIND), small())
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]


def test_save_dataset__a_reader_meets_no_unfinished_store(tmp_path, monkeypatch):
    seen = []

    def look(*args, **kwargs):
        seen.extend(is_store(entry) for entry in tmp_path.iterdir())

    monkeypatch.setattr(zarr, "consolidate_metadata", look)
    stored(tmp_path / "x")
    assert seen == [False]


def test_errors__are_of_one_family(tmp_path):
    with pytest.raises(BigkdError) as caught:
        load_dataset(tmp_path / "nowhere", kind=KIND)
    assert isinstance(caught.value, OSError)
    assert caught.value.exit_code == 4
