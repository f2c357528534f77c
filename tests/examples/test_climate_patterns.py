import climate_patterns
import numpy as np
import pytest
import xarray as xr
from data import FetchError

SEA, HEIGHT, AIR = "ENSO sea surface", "DJF 500 hPa height", "A1B air temperature"


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    try:
        return climate_patterns.main(["--out", str(tmp_path_factory.mktemp("climate"))])
    except FetchError as error:
        pytest.skip(str(error))


def left(outcome, name, by, error):
    return float(outcome.broken.sel(field=name, by=by, error=error).median("seed"))


def test_climate_patterns__eofs_are_the_published(outcome):
    share = outcome.agreement["share"]
    assert float(outcome.agreement["plain"].sel(field=SEA, k=1)) == pytest.approx(0.46, abs=0.001)
    np.testing.assert_allclose(share.sel(field=SEA), [0.490, 0.129, 0.071], atol=0.001)
    np.testing.assert_allclose(share.sel(field=HEIGHT), [0.407, 0.180, 0.105], atol=0.001)
    np.testing.assert_allclose(share.sel(field=AIR), [0.880, 0.027, 0.023], atol=0.001)


def test_climate_patterns__pca_is_eofs(outcome):
    np.testing.assert_allclose(outcome.agreement["pca"], 1.0, atol=1e-6)


def test_climate_patterns__gauss_is_as_good_as_eofs(outcome):
    alike = outcome.agreement["gauss"]
    assert (alike.sel(k=1) > 0.995).all()
    assert (alike.sel(k=2) > 0.985).all()
    assert (alike.sel(k=3) > 0.97).all()
    assert outcome.nino["PCA"] == pytest.approx(0.982, abs=0.002)
    assert outcome.nino["Gauss"] == pytest.approx(0.98, abs=0.003)


def test_climate_patterns__are_maps_with_the_coordinates_of_the_field(outcome):
    fields = climate_patterns.fields()
    for name, found in outcome.found.items():
        component = found["component"]
        assert component.dims == ("k", "latitude", "longitude")
        for axis in climate_patterns.MAP:
            np.testing.assert_array_equal(component[axis], fields[name][axis])
    land = fields[SEA].isnull().all("time")
    assert land.sum() == 90
    np.testing.assert_array_equal(outcome.found[SEA]["component"].isnull().all("k"), land)
    weight = outcome.found[SEA]["weight"]
    np.testing.assert_array_equal(weight.isnull(), land)
    assert float(weight.mean()) == pytest.approx(1.0)
    row = weight.sel(latitude=2.5) / weight.sel(latitude=57.5)
    expected = np.cos(np.deg2rad(2.5)) / np.cos(np.deg2rad(57.5))
    np.testing.assert_allclose(row.dropna("longitude"), expected)


@pytest.mark.parametrize(("name", "error"), [(SEA, 6.0), (HEIGHT, 6.0), (AIR, 16.0)])
def test_climate_patterns__gauss_survives_what_spoils_eofs(outcome, name, error):
    assert left(outcome, name, "PCA", error) < 0.7
    assert left(outcome, name, "Gauss", error) > 0.93


def test_climate_patterns__gauss_survives_more_in_long_records(outcome):
    assert left(outcome, AIR, "PCA", 32.0) < 0.15
    assert left(outcome, AIR, "Gauss", 32.0) > 0.8


@pytest.mark.parametrize(("name", "error"), [(SEA, 16.0), (HEIGHT, 16.0)])
def test_climate_patterns__larger_errors_spoil_both(outcome, name, error):
    for by in climate_patterns.METHODS:
        assert left(outcome, name, by, error) < 0.3


def test_climate_patterns__small_errors_spoil_none(outcome):
    assert (outcome.broken.sel(error=2.0) > 0.97).all()


def test_climate_patterns__mistakes(outcome):
    middle = outcome.mistakes.median("seed")
    one = middle.sel(mistake="a cell in Fahrenheit, ENSO")
    assert one.sel(by="Gauss") > one.sel(by="PCA") + 0.2
    np.testing.assert_allclose(middle.sel(mistake="all in Celsius, A1B"), 0.93, atol=0.01)


def test_climate_patterns__writes_a_page(outcome):
    page = outcome.page.read_text(encoding="utf-8")
    assert page.count("<figure>") == 3


def test_alike__is_by_area_and_up_to_sign():
    latitude = xr.DataArray([0.0, 60.0], dims="latitude", coords={"latitude": [0.0, 60.0]})
    one = (0 * latitude + 1.0).expand_dims(longitude=[0.0, 1.0])
    other = xr.where(latitude > 0, 1.0, 0.0).expand_dims(longitude=[0.0, 1.0])
    assert float(climate_patterns.alike(one, other)) == pytest.approx(np.sqrt(1 / 3))
    assert float(climate_patterns.alike(one, -2 * one)) == pytest.approx(1.0)


def test_drawn__has_north_up_and_grey_land():
    values = np.array([[1.0, np.nan], [-1.0, 0.0]])
    pattern = xr.DataArray(
        values, {"latitude": [10.0, 20.0], "longitude": [0.0, 1.0]}, climate_patterns.MAP
    )
    picture = climate_patterns.drawn(pattern, pattern)
    middles = picture[80::160, 80::160]
    assert picture.shape == (320, 320, 3)
    np.testing.assert_array_equal(middles[0, 1], [255, 255, 255])
    np.testing.assert_array_equal(middles[1], [climate_patterns.RED, climate_patterns.LAND])
    np.testing.assert_array_equal(middles[0, 0], climate_patterns.BLUE)
