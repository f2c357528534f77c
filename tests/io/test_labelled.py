"""Arrays that name their axes."""

import numpy as np
import pytest
import xarray as xr
import zarr

from bigkd.errors import DataError, InputError, StoreError
from bigkd.io import load_array, open_labelled


@pytest.fixture(params=[2, 3])
def store(tmp_path, request):
    """A group of two fields in time, bounds of the times, and a number."""
    generator = np.random.default_rng(0)
    fields = {name: (("time", "lat", "lon"), generator.random((4, 3, 5))) for name in "tp"}
    fields["bounds"] = ("time", "end"), np.zeros((4, 2))
    fields["crs"] = (), 1.0
    coords = {"lat": [-1.0, 0.0, 1.0], "time": np.arange(4).astype("datetime64[D]")}
    path = tmp_path / "fields.zarr"
    dataset = xr.Dataset(fields, coords=coords)
    dataset.chunk(time=2).to_zarr(path, zarr_format=request.param, consolidated=False)
    return path


def test_open_labelled__has_the_coordinates_and_reads_nothing(store):
    found = open_labelled(store / "t", name="x")
    wanted = xr.open_zarr(store, consolidated=False)["t"]
    xr.testing.assert_identical(found, wanted)
    assert found.chunks[0] == (2, 2)
    assert found.encoding["source"] == str(store)


def test_open_labelled__stacks_variables_in_the_order_of_their_names(store):
    found = open_labelled(store, name="x", variable="what")
    assert found.dims == ("time", "lat", "lon", "what")
    assert found["what"].values.tolist() == ["p", "t"]
    both = xr.open_zarr(store, consolidated=False)
    np.testing.assert_array_equal(found.sel(what="p"), both["p"])
    assert found.encoding["source"] == str(store)


def test_open_labelled__is_none_without_names(tmp_path):
    zarr.create_array(str(tmp_path / "plain.zarr"), data=np.zeros((4, 3)))
    group = zarr.open_group(str(tmp_path / "group.zarr"), mode="w")
    group.create_array("a", data=np.zeros((4, 3)))
    np.save(tmp_path / "a.npy", np.zeros((4, 3)))
    for name in ("plain.zarr", "group.zarr", "group.zarr/a", "a.npy", "nowhere", "."):
        assert open_labelled(tmp_path / name, name="x") is None


def test_open_labelled__notices_chunks_that_do_not_exist(tmp_path):
    path = tmp_path / "a.zarr"
    data = xr.Dataset({"a": (("x", "y"), np.arange(8.0).reshape(4, 2))})
    data.chunk(x=1).to_zarr(path, zarr_format=3, consolidated=False)
    (path / "a" / "c" / "2" / "0").unlink()
    with pytest.raises(DataError, match="x: 1 of 4 chunks"):
        open_labelled(path, name="x")
    assert int(open_labelled(path, name="x", missing="fill").isnull().sum()) == 2
    with pytest.raises(InputError, match="missing='fill'"):
        open_labelled(path, name="x", missing="skip")


def test_load_array__of_files_and_of_zarr(tmp_path):
    values = np.arange(5.0)
    np.save(tmp_path / "a.npy", values)
    zarr.create_array(str(tmp_path / "a.zarr"), data=values)
    for name in ("a.npy", "a.zarr"):
        np.testing.assert_array_equal(load_array(tmp_path / name, name="x"), values)


def test_load_array__refuses(tmp_path):
    (tmp_path / "text.npy").write_text("hello")
    np.save(tmp_path / "objects.npy", np.asarray([{}, None]))
    for name in ("text.npy", "objects.npy"):
        with pytest.raises(StoreError, match=f"x: .*{name} cannot be read as a .npy file"):
            load_array(tmp_path / name, name="x")
    with pytest.raises(StoreError, match=r"x: .*no.npy does not exist"):
        load_array(tmp_path / "no.npy", name="x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match=r"x: .*empty is not a collection of rows"):
        load_array(tmp_path / "empty", name="x")
