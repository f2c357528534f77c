from collections import Counter

import field_data
import numpy as np
import pytest

SHAPES = {
    "GunPoint": (50, 150, 150, 1),
    "ArrowHead": (36, 175, 251, 1),
    "ItalyPowerDemand": (67, 1029, 24, 1),
    "BasicMotions": (40, 40, 100, 6),
    "OSULeaf": (200, 242, 427, 1),
}
LABELS = {
    "GunPoint": ({"1": 24, "2": 26}, {"1": 76, "2": 74}),
    "ArrowHead": ({"0": 12, "1": 12, "2": 12}, {"0": 69, "1": 53, "2": 53}),
    "ItalyPowerDemand": ({"1": 34, "2": 33}, {"1": 513, "2": 516}),
    "BasicMotions": (dict.fromkeys(("Standing", "Running", "Walking", "Badminton"), 10),) * 2,
    "OSULeaf": (
        {"1": 34, "2": 29, "3": 33, "4": 53, "5": 36, "6": 15},
        {"1": 32, "2": 55, "3": 42, "4": 44, "5": 46, "6": 23},
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_series__are_labelled(fetch, name):
    train, train_labels, test, test_labels = fetch(lambda: field_data.series(name))
    n_train, n_test, *shape = SHAPES[name]
    assert train.shape == (n_train, *shape)
    assert test.shape == (n_test, *shape)
    assert train.dtype == test.dtype == "float64"
    assert (Counter(train_labels.tolist()), Counter(test_labels.tolist())) == LABELS[name]


@pytest.mark.parametrize("name", ["GunPoint", "ArrowHead", "ItalyPowerDemand", "OSULeaf"])
def test_series__of_one_variable_have_mean_0_and_variance_1(fetch, name):
    train, _, test, _ = fetch(lambda: field_data.series(name))
    for part in (train, test):
        np.testing.assert_allclose(part.mean(axis=1), 0.0, atol=1e-6)
        np.testing.assert_allclose(part.std(axis=1, ddof=1), 1.0, atol=1e-5)


def test_series__of_motions_vary_least_in_those_who_stand(fetch):
    train, labels, _, _ = fetch(lambda: field_data.series("BasicMotions"))
    spread = train.std(axis=1).mean(axis=1)
    by_label = {label: spread[labels == label].mean() for label in set(labels.tolist())}
    assert min(by_label, key=by_label.get) == "Standing"


def test_air_temperature__of_the_scenarios_parts_in_2000(fetch):
    warm, mild = (
        fetch(lambda name=name: field_data.air_temperature(name)) for name in ("A1B", "E1")
    )
    assert warm.dims == ("time", "latitude", "longitude")
    assert warm.shape == mild.shape == (240, 37, 49)
    assert warm.dtype == mild.dtype == "float32"
    for field in (warm, mild):
        np.testing.assert_array_equal(field["time"].dt.year, np.arange(1860, 2100))
        np.testing.assert_array_equal(field["time"].dt.month, 6)
        np.testing.assert_array_equal(field["latitude"], np.linspace(15, 60, 37))
        np.testing.assert_array_equal(field["longitude"], np.linspace(225, 315, 49))
        assert field.attrs == {"units": "K"}
    differs = (warm != mild).any(("latitude", "longitude"))
    assert not differs.sel(time=slice("1860", "1999")).any()
    assert differs.sel(time=slice("2000", "2099")).all()
    last = {"time": slice("2090", "2099")}
    assert float((warm - mild).sel(last).mean()) == pytest.approx(2.67, abs=0.01)
    assert warm.values.mean(dtype=np.float64) == pytest.approx(286.47763, abs=1e-4)
    assert mild.values.mean(dtype=np.float64) == pytest.approx(286.03580, abs=1e-4)
    for field in (warm, mild):
        assert 240 < float(field.min()) < float(field.max()) < 320
        assert (field.mean(("time", "longitude")).diff("latitude") < 0).all()


def test_winds__have_a_jet_in_the_subtropics_of_winter(fetch):
    winds = fetch(field_data.winds)
    assert dict(winds.sizes) == {"time": 12, "latitude": 73, "longitude": 144}
    assert winds["u"].dtype == winds["v"].dtype == "float32"
    np.testing.assert_array_equal(winds["time"], np.arange(1, 13))
    np.testing.assert_array_equal(winds["latitude"], np.linspace(90, -90, 73))
    np.testing.assert_array_equal(winds["longitude"], np.arange(144) * 2.5)
    assert winds["u"].attrs == winds["v"].attrs == {"units": "m/s"}
    around = winds.mean("longitude")
    jet = around["u"].idxmax("latitude")
    assert 25 <= jet.sel(time=1) <= 40
    assert -40 <= jet.sel(time=7) <= -25
    assert around["v"].std() < 0.1 * around["u"].std()


def test_sst_anomalies__show_el_nino(fetch):
    sst = fetch(field_data.sst_anomalies)
    assert sst.dims == ("time", "latitude", "longitude")
    assert sst.shape == (50, 18, 30)
    assert sst.dtype == "float64"
    assert sst.isnull().sum("time").isin([0, 50]).all()
    assert int(sst.isnull().sum()) == 50 * 90
    pacific = sst.sel(latitude=slice(-5, 5), longitude=slice(190, 240))
    index = pacific.mean(("latitude", "longitude"))
    by_warmth = index["time"].dt.year.values[np.argsort(index.values)]
    assert {1983, 1998} < set(by_warmth[-3:].tolist())
    assert {1974, 1989} < set(by_warmth[:3].tolist())


def test_geopotential__falls_to_one_height_at_the_pole(fetch):
    height = fetch(field_data.geopotential)
    assert height.dims == ("time", "latitude", "longitude")
    assert height.shape == (65, 29, 49)
    assert height.dtype == "float64"
    np.testing.assert_array_equal(height["time"].dt.year, np.arange(1948, 2013))
    winter = np.array(["1947-12-01", "1948-03-01"], dtype="datetime64[ns]")
    assert height["time"].values[0] == winter[0] + (winter[1] - winter[0]) / 2
    pole = height.sel(latitude=90)
    np.testing.assert_array_equal(pole, pole.isel(longitude=0).broadcast_like(pole))
    assert float(height.sel(latitude=20).mean() - pole.mean()) > 500
