"""Names, labels and units: what belongs to which row and feature, in and out."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr

from bigkd import errors, mmdpca
from tests.mmdpca import samples


def fit(x, k=2, **options):
    return mmdpca.fit(x, k=k, **{"scheduler": "sync", **options})


def project(x, found, **options):
    return mmdpca.project(x, found, **{"scheduler": "sync", **options})


def distance(x, found, **options):
    return mmdpca.mmd_to_projection(x, found, **{"scheduler": "sync", **options})


def field(n_time=12, *, seed=0, n=4):
    return xr.DataArray(
        samples.shifted(n_time, n * n, seed).reshape(n_time, n, n),
        dims=("time", "lat", "lon"),
        coords={"lat": np.linspace(-60.0, 60.0, n), "lon": np.linspace(0.0, 270.0, n)},
        name="sst",
    )


def turned(x):
    return x.transpose("time", "lon", "lat")


def test_transposed_features__are_put_in_the_order_of_the_fit(tmp_path):
    x = field()
    found = fit(x, weights="coslat", center=True)
    xr.testing.assert_equal(project(turned(x), found), project(x, found))
    xr.testing.assert_equal(distance(turned(x), found), distance(x, found))
    turned(x).to_dataset().to_zarr(tmp_path / "x.zarr", zarr_format=3, consolidated=False)
    xr.testing.assert_equal(project(str(tmp_path / "x.zarr"), found), project(x, found))


def test_rows__are_the_dimension_that_is_no_feature_of_the_fit():
    x = field()
    found = fit(x)
    other = x.rename(time="day").transpose("lat", "day", "lon")
    scores = project(other, found)
    assert scores.dims == ("day", "k")
    np.testing.assert_array_equal(scores, project(x, found))
    on_samples = x.rename(lat="sample")
    found = fit(on_samples, dim="time")
    assert project(on_samples.rename(time="day"), found).dims == ("day", "k")


def test_other_names_of_features__are_refused():
    x = field()
    found = fit(x)
    for measure in (project, distance):
        with pytest.raises(errors.InputError, match=r"features over \(y, x\).*over \(lat, lon\)"):
            measure(x.rename(lat="y", lon="x"), found)
    np.testing.assert_array_equal(project(x.values, found), project(x, found))
    np.testing.assert_array_equal(project(x, fit(x.values)), project(x.values, fit(x.values)))


def test_a_checkpoint__is_not_that_of_transposed_data(tmp_path):
    x = field()
    plain = x.drop_vars(("lat", "lon"))
    other = turned(plain).rename(lat="lon", lon="lat")
    for method in ("gram", "pairs"):
        fit(plain, method=method, checkpoint=tmp_path)
        own = fit(other, method=method, checkpoint=tmp_path)
        np.testing.assert_array_equal(own["component"], fit(other, method=method)["component"])


def test_scores_of_transposed_data__are_their_own_in_one_graph():
    x = field().drop_vars(("lat", "lon"))
    found = fit(x)
    other = turned(x).rename(lat="lon", lon="lat")
    both = (project(other, found) - project(x, found)).compute()
    alone = project(other, found).values - project(x, found).values
    assert np.abs(alone).max() > 0.1
    np.testing.assert_array_equal(both, alone)


@pytest.mark.parametrize("center", [False, True])
def test_reconstruct__takes_components_by_label(center):
    x = field()
    found = fit(x, k=3, center=center)
    scores = project(x, found)
    whole = mmdpca.reconstruct(scores, found)
    xr.testing.assert_allclose(mmdpca.reconstruct(scores.isel(k=[2, 0, 1]), found), whole)
    xr.testing.assert_allclose(mmdpca.reconstruct(scores, found.isel(k=[1, 2, 0])), whole)
    bare = scores.drop_vars("k")
    xr.testing.assert_equal(mmdpca.reconstruct(bare, found), whole)
    second = mmdpca.reconstruct(scores.sel(k=[2]), found)
    mean = found["mean"] if center else 0.0
    xr.testing.assert_allclose(second, (scores * found["component"]).sel(k=2, drop=True) + mean)


def test_reconstruct__refuses_other_components_and_clashes():
    x = field()
    found = fit(x, k=3)
    scores = project(x, found)
    with pytest.raises(errors.InputError, match=r"k=\[3\]"):
        mmdpca.reconstruct(scores, found.isel(k=[0, 1]))
    with pytest.raises(errors.ShapeError, match="2 components and fit 3"):
        mmdpca.reconstruct(scores.isel(k=[0, 1]).drop_vars("k"), found)
    with pytest.raises(errors.InputError, match=r"both have the dimension 'lat'"):
        mmdpca.reconstruct(scores.rename(time="lat"), found)


def test_one_component_without_its_axis__is_refused():
    x = field()
    found = fit(x)
    for measure in (project, distance):
        with pytest.raises(errors.InputError, match=r"over 'k'.*isel\(k=\[0\]\)"):
            measure(x, found.isel(k=0))
    one = project(x, found.isel(k=[1]))
    np.testing.assert_array_equal(one["k"], [2])
    np.testing.assert_allclose(one, project(x, found).sel(k=[2]))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_fit__stacks_the_variables_of_a_group(tmp_path, zarr_format):
    both = xr.Dataset({"u": field(), "v": 2 * field(seed=1)})
    both.to_zarr(tmp_path / "both.zarr", zarr_format=zarr_format, consolidated=False)
    found, wanted = fit(str(tmp_path / "both.zarr")), fit(both)
    assert found["component"].dims == ("k", "lat", "lon", "variable")
    xr.testing.assert_allclose(found, wanted)
    scores = project(str(tmp_path / "both.zarr"), wanted)
    np.testing.assert_allclose(scores, project(both, wanted))


@pytest.mark.parametrize("packed", [{"dtype": "i2", "scale_factor": 0.5}, {}])
def test_fit__of_a_path_sees_the_numbers_that_xarray_sees(tmp_path, packed):
    x = field().round()
    x[:, 1, 1] = np.nan
    encoding = {**packed, "_FillValue": -999}
    path = tmp_path / "x.zarr"
    x.to_dataset().to_zarr(path, encoding={"sst": encoding}, zarr_format=3, consolidated=False)
    for data in (str(path), str(path / "sst")):
        np.testing.assert_allclose(fit(data)["trace"], fit(x)["trace"])


@pytest.mark.parametrize("name", ["k", "trace", "mmd2", "weight", "mean", "score"])
def test_names_of_results__are_refused(name):
    x = field()
    for bad in (x.rename(lat=name), x.assign_coords({name: ("lat", np.arange(4.0))})):
        with pytest.raises(errors.InputError, match=rf"called '{name}'.*rename"):
            fit(bad)


def test_rows_named_k__are_refused():
    with pytest.raises(errors.InputError, match=r"called 'k'.*rename"):
        fit(field().rename(time="k"))


def test_labels_named_as_variables_of_a_fit__are_no_such():
    x = field()
    found = fit(x)
    extra = found.assign_coords(weight=("lat", np.arange(4.0)), mean=("lat", np.arange(4.0)))
    np.testing.assert_array_equal(project(x, extra), project(x, found))
    np.testing.assert_array_equal(mmdpca.reconstruct(project(x, found), extra).shape, x.shape)


def test_multi_index__comes_back():
    x = field()
    sea = x.stack(cell=("lat", "lon")).isel(cell=[0, 2, 3, 5, 7, 8, 11, 14])
    found = fit(sea, weights="coslat")
    assert found["component"].unstack("cell").dims == ("k", "lat", "lon")
    assert found["cell"].to_index().equals(sea["cell"].to_index())
    again = mmdpca.reconstruct(project(sea, found), found)
    assert again.unstack("cell").sizes["lat"] == 4
    with pytest.raises(errors.InputError, match="other coordinates along 'cell'"):
        project(sea.isel(cell=slice(None, None, -1)), found)


def test_multi_index_of_rows__comes_back():
    x = field().assign_coords(time=np.arange(12)).rename(time="day")
    both = xr.concat([x, x + 1], "member").assign_coords(member=[1, 2]).stack(s=("member", "day"))
    found = fit(both, dim="s")
    assert project(both, found).unstack("s").sizes == {"k": 2, "member": 2, "day": 12}


def test_coordinates__scalars_stay_out_and_others_come_along():
    x = field().assign_coords(
        level=500.0, area=(("lat", "lon"), np.ones((4, 4))), season=("time", np.arange(12) // 3)
    )
    found = fit(x)
    assert set(found.coords) == {"k", "lat", "lon", "area"}
    assert found["area"].dims == ("lat", "lon")
    assert set(project(x, found).coords) == {"k"}


def test_coslat__knows_latitudes_of_curved_grids():
    x = field()
    wanted = fit(x, weights="coslat")
    degrees = np.broadcast_to(x["lat"].values[:, None], (4, 4))
    for name in ("lat", "latitude"):
        curved = x.drop_vars(("lat", "lon")).rename(lat="y", lon="x")
        curved = curved.assign_coords({name: (("y", "x"), degrees)})
        found = fit(curved, weights="coslat")
        np.testing.assert_array_equal(found["weight"], wanted["weight"])
        assert found["component"].dims == ("k", "y", "x")
        assert found[name].dims == ("y", "x")
    with pytest.raises(errors.InputError, match="in degrees; 'lat' reaches 600"):
        fit(x.assign_coords(lat=x["lat"] * 10), weights="coslat")


def test_weights__may_be_lazy():
    x = field()
    w = np.linspace(0.0, 1.0, 16).reshape(4, 4)
    wanted = fit(x, weights=w)
    lazy = da.from_array(w, chunks=2)
    for weights in (lazy, xr.DataArray(lazy, dims=("lat", "lon"))):
        np.testing.assert_array_equal(fit(x, weights=weights)["weight"], wanted["weight"])
    with pytest.raises(errors.InputError, match="weights must be real numbers; got <U"):
        fit(x, weights=xr.DataArray(w.astype(str), dims=("lat", "lon")))


@pytest.mark.parametrize("kernel", [np.ones(2), None, [1.0]])
def test_kernel__refuses_what_is_none(kernel):
    for made in (fit, mmdpca.background):
        with pytest.raises(errors.InputError, match="kernel must be"):
            made(field(), k=2, kernel=kernel)


def test_a__is_refused_beside_kurtosis():
    with pytest.raises(errors.InputError, match=r"got a=2\.0 with kernel='kurtosis'"):
        fit(field(), kernel="kurtosis", a=2.0)
    with pytest.raises(errors.InputError, match="a goes with"):
        fit(field(), kernel="kurtosis", a=np.ones(2))


CHOICES = {
    "gram": {},
    "pairs": {"center": True, "weights": "coslat", "nonfinite": "drop"},
    "nystrom": {"n_points": 5},
    "moments": {"kernel": mmdpca.HigherMoments((1, 2))},
    "features": {"mmd": False},
}


@pytest.mark.parametrize("method", CHOICES)
def test_choices__are_told_and_survive_files(tmp_path, method):
    x = field(30, n=3)
    found = fit(x, method=method, **CHOICES[method])
    attrs = {name: found.attrs[name] for name in ("center", "weights", "nonfinite", "mmd")}
    measured = {"nystrom": "sample", "features": "none"}
    assert attrs == {
        "center": int(method == "pairs"),
        "weights": "coslat" if method == "pairs" else "none",
        "nonfinite": "drop" if method == "pairs" else "raise",
        "mmd": measured.get(method, "exact"),
    }
    assert found.attrs["asked_method"] == method
    assert fit(x, mmd=False).attrs["asked_method"] == "auto"
    assert (found.attrs["n_points"] > 0) == (attrs["mmd"] == "sample")
    found.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    found.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    stores = (("h5netcdf", "a.nc", {}), ("zarr", "a.zarr", {"consolidated": False}))
    for engine, name, how in stores:
        with xr.open_dataset(tmp_path / name, engine=engine, **how) as read:
            xr.testing.assert_equal(read, found)
            assert {key: read.attrs[key] for key in found.attrs} == found.attrs
            np.testing.assert_array_equal(project(x, read), project(x, found))
            xr.testing.assert_equal(distance(x, read), distance(x, found))


def far(n_rows, n=40):
    """float32 rows of spread 3 at an offset of 1e5, where one unit in the last place is 0.008."""
    return (3 * samples.decaying(n_rows, n) + 1e5).astype("f4")


def test_project__keeps_the_digits_of_centred_rows():
    x = far(300)
    found = fit(x, center=True)
    exact = (x.astype(float) - found["mean"].values) @ found["component"].values.T
    np.testing.assert_allclose(project(x, found), exact, atol=1e-6 * exact.std())


def test_project_by_columns__keeps_the_digits_of_centred_rows(monkeypatch):
    x = far(300)
    found = fit(x, center=True)
    exact = (x.astype(float) - found["mean"].values) @ found["component"].values.T
    monkeypatch.setattr("bigkd.mmdpca.projection.HELD_BYTES", 1000)
    monkeypatch.setattr("bigkd.mmdpca.projection._TILE_ELEMENTS", 3000)
    scores = project(x, found)
    assert scores.chunks is None
    np.testing.assert_allclose(scores, exact, atol=1e-6 * exact.std())


def test_distance__keeps_the_digits_of_few_centred_rows():
    x = far(30)
    found = fit(x, center=True)
    np.testing.assert_allclose(distance(x, found)["mmd2"], found["mmd2"], rtol=1e-4)
    np.testing.assert_allclose(
        distance(x[:20], found)["mmd2"], distance(x[:20].astype(float), found)["mmd2"], rtol=1e-4
    )


def gaps(n_rows, *, land=(3, 8), n=16):
    """Rows and a fit that leaves some features out."""
    x = samples.shifted(n_rows, n)
    dry = x.copy()
    dry[:, list(land)] = np.nan
    return x, dry


@pytest.mark.parametrize("n_rows", [10, 40])
@pytest.mark.parametrize("center", [False, True])
def test_features_that_the_fit_left_out__may_hold_anything(n_rows, center):
    x, dry = gaps(n_rows)
    found = fit(dry, center=center)
    some = x.copy()
    some[2, 3] = np.nan
    some[4, 8] = np.inf
    for data in (x, some):
        np.testing.assert_allclose(project(data, found), project(dry, found), rtol=1e-12)
        np.testing.assert_allclose(distance(data, found)["mmd2"], found["mmd2"], rtol=1e-9)


@pytest.mark.parametrize("n_rows", [10, 40])
@pytest.mark.parametrize("land", [(), (8,)])
def test_gaps_that_the_fit_does_not_know__are_refused_or_left_out(n_rows, land):
    x, dry = gaps(n_rows, land=land)
    found = fit(dry)
    x[5, 1] = np.nan
    for measure in (project, distance):
        with pytest.raises(errors.DataError, match=r"row 5\b"):
            measure(x, found).compute()
    scores = project(x, found, nonfinite="drop")
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(scores).any("k")), [5])
    kept = np.delete(x, 5, axis=0)
    np.testing.assert_allclose(
        distance(x, found, nonfinite="drop")["mmd2"], distance(kept, found)["mmd2"], rtol=1e-9
    )


@pytest.mark.parametrize("n_rows", [10, 40])
@pytest.mark.parametrize("land", [(), (8,)])
@pytest.mark.parametrize("center", [False, True])
def test_features_that_vanish__are_refused(n_rows, land, center):
    x, dry = gaps(n_rows, land=land)
    found = fit(dry, center=center)
    x[:, 1] = np.nan
    for measure in (project, distance):
        with pytest.raises(errors.DataError, match=r"row 0\b"):
            measure(x, found).compute()
    assert np.isnan(project(x, found, nonfinite="drop")).all()
    with pytest.raises(errors.EmptyInputError, match="finite"):
        distance(x, found, nonfinite="drop")


def test_the_row_that_is_not_finite__is_numbered_in_the_collection():
    x, dry = gaps(40)
    found = fit(dry)
    x[33, 1] = np.nan
    with pytest.raises(errors.DataError, match=r"X: row 33\b"):
        project(x, found, block_rows=10).compute()


def test_gram__ignores_gaps_in_features_without_weight():
    x = samples.shifted(10, 16)
    weights = np.ones(16)
    weights[4] = 0.0
    wanted = fit(x, weights=weights)
    x[2, 4] = np.nan
    for method in ("gram", "pairs"):
        found = fit(x, weights=weights, method=method)
        np.testing.assert_allclose(found["eigenvalue"], wanted["eigenvalue"], rtol=1e-9)
