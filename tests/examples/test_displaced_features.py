import importlib
import importlib.util

import displaced_features
import numpy as np
import pytest
import xarray as xr
from data import FetchError


@pytest.fixture(scope="module")
def outcome():
    try:
        return displaced_features.main([])
    except FetchError as error:
        pytest.skip(str(error))


def accuracy(outcome, name, distance, *, warped):
    return float(outcome.accuracy.sel(set=name, distance=distance, warped=warped))


def test_displaced_features__setting_is_chosen_without_test_series(outcome):
    chosen = outcome.chosen
    assert (chosen.length, chosen.lam) == (1.0, 0.01)
    assert chosen.width == 0.2
    assert chosen.accuracy == pytest.approx(0.858, abs=0.03)


@pytest.mark.parametrize(
    ("name", "euclidean", "dissimilarity"),
    [
        ("GunPoint", 0.913, 0.92),
        ("ArrowHead", 0.8, 0.61),
        ("ItalyPowerDemand", 0.955, 0.87),
        ("BasicMotions", 0.6, 1.0),
    ],
)
def test_displaced_features__accuracy_of_series(outcome, name, euclidean, dissimilarity):
    assert accuracy(outcome, name, "Euclidean", warped=False) == pytest.approx(euclidean, abs=1e-3)
    found = accuracy(outcome, name, "DID", warped=False)
    assert found == pytest.approx(dissimilarity, abs=0.03)


@pytest.mark.parametrize("name", displaced_features.SETS)
def test_displaced_features__warped_series_are_still_known(outcome, name):
    kept = accuracy(outcome, name, "DID", warped=True)
    assert kept > accuracy(outcome, name, "DID", warped=False) - 0.1
    lost = accuracy(outcome, name, "Euclidean", warped=True)
    assert lost < accuracy(outcome, name, "Euclidean", warped=False) - 0.15
    assert kept > lost


@pytest.mark.skipif(importlib.util.find_spec("dtaidistance") is None, reason="no dtaidistance")
def test_displaced_features__time_warping_is_that_of_the_literature(outcome):
    known = {"GunPoint": 0.907, "ArrowHead": 0.703, "ItalyPowerDemand": 0.95, "BasicMotions": 0.975}
    for name, value in known.items():
        assert accuracy(outcome, name, "DTW", warped=False) == pytest.approx(value, abs=0.01)


def test_displaced_features__show_that_a_library_is_missing(outcome, monkeypatch, capsys):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    assert displaced_features.time_warping() is None
    without = outcome.accuracy.where(outcome.accuracy["distance"] != "DTW")
    displaced_features.report(outcome._replace(accuracy=without))
    said = capsys.readouterr().out
    assert "DTW needs dtaidistance, which is not installed." in said
    assert "GunPoint                0.913      -  0.9" in said


def test_displaced_features__are_nearest_by_did(outcome):
    fields = outcome.fields
    assert (fields["nearest"].sel(distance="DID") >= 0.97).all()
    assert (fields["ratio"].sel(distance="DID") < 0.15).all()
    assert float(fields["nearest"].sel(field="winds", distance="RMSE")) == 0.0
    assert (fields["nearest"].sel(distance="RMSE") < 0.75).all()


def test_moved_field__moves_the_middle_and_nothing_at_the_border():
    latitude, longitude = np.linspace(60.0, 20.0, 41), np.linspace(100.0, 220.0, 61)
    y, x = np.meshgrid(latitude, longitude, indexing="ij")
    field = xr.DataArray(
        y + 1000.0 * x, {"latitude": latitude, "longitude": longitude}, ("latitude", "longitude")
    )
    land = (np.abs(x - 130) < 5) & (np.abs(y - 50) < 5)
    field = field.where(xr.DataArray(~land, dims=field.dims))
    moved = displaced_features.moved_field(field, 5.0, 10.0)
    np.testing.assert_array_equal(moved.isnull(), field.isnull())
    for edge in (
        {"latitude": [0, -1], "longitude": slice(None)},
        {"latitude": slice(None), "longitude": [0, -1]},
    ):
        np.testing.assert_allclose(moved.isel(edge), field.isel(edge))
    # What is read in the middle was 5 degrees further north and 10 further west.
    assert float(moved.sel(latitude=40.0, longitude=160.0)) == pytest.approx(45.0 + 150_000.0)
