"""Patterns of climate by MMD-PCA, and by empirical orthogonal functions (EOFs), which are PCA.

Three fields, by area: the surface of the Pacific in 50 winters (ENSO; land is NaN), the height of
500 hPa over the North Atlantic in 65 winters, and the temperature of the air over North America in
240 years of a climate model.

As they are: the EOFs are those of a singular value decomposition by NumPy, weighted by the root of
the cosine of latitude, as others do it; `mmdpca` finds the same with the kernel that is PCA. (By
area the first EOF of ENSO has 49 % of the variance, without weights the 46 % that are published.)
How like them are the components of Gauss? What is told of El Nino by the first of each?

Broken records: 6 % of the times are errors, normal ones in each cell, of some standard deviations
of the field; or, as a mistake that happens, one cell of theirs is in other units. How much of the
first pattern is left, as its correlation with the EOF of the whole record?

What comes out: of good data Gauss finds the first two EOFs again (0.99 and more), so that PCA is as
good. Bad times spoil an EOF when their variance exceeds its own, and the component of Gauss later,
at errors 1.5 times (50 winters) to more than twice (240 years) as large: for such a time counts
with itself only, and a good one with all that are like it, too, which are the more the longer the
record. Larger errors spoil both, as Gauss, too, counts a time with itself by the square of its
norm. One cell in other units is like that: it spoils either pattern of the short records, PCA's
more. Whole fields in Celsius instead of Kelvin leave 0.93 by both, which looks better than it is:
so like to a constant is the pattern of the warming.

Writes maps to ``examples/out/climate_patterns`` (or ``--out``).

Takes about 15 seconds on two cores. Needs h5netcdf and Pillow:
``pip install h5netcdf h5py pillow``. See `field_data`.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from field_data import air_temperature, geopotential, sst_anomalies

from bigkd import mmdpca
from bigkd.io.images import write_sheet

METHODS = {
    "PCA": {"kernel": mmdpca.HigherMoments((0.0, 1.0))},
    "Gauss": {"kernel": "gauss", "a": 1.0},
}
K = 3
MAP = ("latitude", "longitude")
BAD = 0.06
ERRORS = (2.0, 4.0, 6.0, 8.0, 16.0, 32.0)
NINO_34 = {"latitude": slice(-5, 5), "longitude": slice(190, 240)}
# What a cell shows too much that is in other units.
FAHRENHEIT, CELSIUS, DECAMETRES = 52.0, -273.15, -4950.0
BLUE, RED, LAND = (30, 70, 160), (180, 40, 30), (150, 150, 150)


class Outcome(NamedTuple):
    """What the example found."""

    agreement: xr.Dataset
    """Over ``field`` and ``k``: ``share`` of the variance of each EOF; ``pca`` and ``gauss``, the
    correlation of patterns with the EOFs; ``plain``, the share without weights."""

    nino: dict[str, float]
    """Correlation of the first scores with the temperature of the sea at El Nino's place."""

    broken: xr.DataArray
    """Correlation with the first EOF of the good record, over ``field``, ``by``, ``error`` and
    ``seed``."""

    mistakes: xr.DataArray
    """The same over ``mistake``, ``by`` and ``seed``."""

    found: dict[str, xr.Dataset]
    """Components of Gauss."""

    page: Path


def fields() -> dict[str, xr.DataArray]:
    """Anomalies, by the standard deviation of each field over area and time; float64."""
    kept = {
        "ENSO sea surface": sst_anomalies(),
        "DJF 500 hPa height": geopotential(),
        "A1B air temperature": air_temperature("A1B"),
    }
    return {name: in_units(field.astype(np.float64)) for name, field in kept.items()}


def in_units(field: xr.DataArray) -> xr.DataArray:
    latitude = field["latitude"].astype(np.float64)
    anomaly = (field - field.mean("time")).assign_coords(latitude=latitude)
    std = np.sqrt((anomaly**2).weighted(area(field)).mean())
    return (anomaly / std).assign_attrs(std=float(std), units=f"{float(std):.3g} {field.units}")


def area(field: xr.DataArray) -> xr.DataArray:
    return np.cos(np.deg2rad(field["latitude"].astype(np.float64))).clip(0.0)


def eofs(
    field: xr.DataArray, weights: xr.DataArray | float = 1.0
) -> tuple[xr.DataArray, np.ndarray]:
    """Patterns in the units of the field, and their shares of variance; by NumPy alone."""
    root = np.sqrt(weights)
    weighted = (root * (field - field.mean("time"))).transpose("time", *MAP)
    rows = weighted.values.reshape(field.sizes["time"], -1)
    sea = np.isfinite(rows).all(axis=0)
    _, values, patterns = np.linalg.svd(rows[:, sea], full_matrices=False)
    maps = np.full((K, rows.shape[1]), np.nan)
    maps[:, sea] = patterns[:K]
    shape = [field.sizes[name] for name in MAP]
    drawn = xr.DataArray(maps.reshape(K, *shape), {name: field[name] for name in MAP}, ("k", *MAP))
    return drawn / xr.where(root > 0, root, np.nan), values**2 / np.sum(values**2)


def fitted(field: xr.DataArray, by: str, k: int = K) -> xr.Dataset:
    """Components by area."""
    return mmdpca.fit(
        field, k=k, dim="time", center=True, weights="coslat", mmd=False, **METHODS[by]
    )


def alike(one: xr.DataArray, other: xr.DataArray) -> xr.DataArray:
    """Correlation of patterns about 0, by area, up to sign."""
    weights = area(one)

    def product(f: xr.DataArray, g: xr.DataArray) -> xr.DataArray:
        return (f * g * weights).sum(MAP)

    return np.abs(product(one, other)) / np.sqrt(product(one, one) * product(other, other))


def compare(name: str, field: xr.DataArray) -> tuple[xr.Dataset, xr.DataArray, xr.Dataset]:
    """How like EOFs the components are; the EOFs; and what Gauss found."""
    patterns, shares = eofs(field, area(field))
    patterns = patterns.assign_coords(k=np.arange(1, K + 1))
    found = {by: fitted(field, by) for by in METHODS}
    table = xr.Dataset(
        {
            "share": ("k", shares[:K]),
            "plain": ("k", eofs(field)[1][:K]),
            **{by.lower(): alike(one["component"], patterns) for by, one in found.items()},
        }
    )
    return table.assign_coords(field=name), patterns, found["Gauss"]


def nino(field: xr.DataArray) -> dict[str, float]:
    """Correlation of first scores with the mean of El Nino's place."""
    index = field.sel(NINO_34).mean(MAP)
    scores = {by: mmdpca.project(field, fitted(field, by, 1)).isel(k=0) for by in METHODS}
    return {by: float(np.abs(xr.corr(one, index, "time"))) for by, one in scores.items()}


def broken(field: xr.DataArray, error: float, seed: int) -> xr.DataArray:
    """With errors in every cell at 6 % of the times."""
    rng = np.random.default_rng(seed)
    bad = rng.choice(field.sizes["time"], round(BAD * field.sizes["time"]), replace=False)
    noise = np.zeros(field.shape)
    noise[bad] = error * rng.standard_normal((len(bad), *field.shape[1:]))
    return field + noise


def one_cell(field: xr.DataArray, added: float, seed: int) -> xr.DataArray:
    """With something added in one cell, which is no land, at 6 % of the times."""
    rng = np.random.default_rng(seed)
    bad = rng.choice(field.sizes["time"], round(BAD * field.sizes["time"]), replace=False)
    inner = np.abs(field["latitude"].values) < 80
    y, x = rng.choice(np.argwhere(field.notnull().all("time").values & inner[:, None]))
    wrong = np.zeros(field.shape)
    wrong[bad, y, x] = added / field.attrs["std"]
    return field + wrong


def everywhere(field: xr.DataArray, added: float, seed: int) -> xr.DataArray:
    """With something added in all cells at 6 % of the times."""
    rng = np.random.default_rng(seed)
    bad = rng.choice(field.sizes["time"], round(BAD * field.sizes["time"]), replace=False)
    wrong = np.zeros((field.sizes["time"], 1, 1))
    wrong[bad] = added / field.attrs["std"]
    return field + wrong


def left(field: xr.DataArray, first: xr.DataArray) -> list[float]:
    """How like a pattern the first component of each method is."""
    return [float(alike(fitted(field, by, 1)["component"][0], first)) for by in METHODS]


def survive(
    field: dict[str, xr.DataArray], first: dict[str, xr.DataArray], seeds: range
) -> tuple[xr.DataArray, xr.DataArray]:
    """What is left of the first patterns in broken records, and after mistakes."""
    by = list(METHODS)
    table = [
        [[left(broken(one, error, seed), first[name]) for seed in seeds] for error in ERRORS]
        for name, one in field.items()
    ]
    sea, height, air = field
    mistakes = {
        "a cell in Fahrenheit, ENSO": (one_cell, sea, FAHRENHEIT),
        "a cell in decametres, height": (one_cell, height, DECAMETRES),
        "a cell in Celsius, A1B": (one_cell, air, CELSIUS),
        "all in Celsius, A1B": (everywhere, air, CELSIUS),
    }
    told = [
        [left(change(field[name], added, seed), first[name]) for seed in seeds]
        for change, name, added in mistakes.values()
    ]
    return (
        xr.DataArray(
            table,
            {"field": list(field), "error": list(ERRORS), "seed": list(seeds), "by": by},
            ("field", "error", "seed", "by"),
        ),
        xr.DataArray(
            told,
            {"mistake": list(mistakes), "seed": list(seeds), "by": by},
            ("mistake", "seed", "by"),
        ),
    )


def drawn(pattern: xr.DataArray, like: xr.DataArray) -> np.ndarray:
    """A map, north up, ``(y, x, 3)``; red has the sign of `like`, white is 0, grey is land."""
    sign = np.sign(float((pattern * like * area(like)).sum()))
    values = sign * pattern.sortby("latitude", ascending=False).transpose(*MAP).values
    zoom = max(1, 320 // values.shape[1])
    values = values.repeat(zoom, axis=0).repeat(zoom, axis=1)[..., None]
    share = np.clip(values / np.nanquantile(np.abs(values), 0.99), -1, 1)
    colour = 255 + np.abs(share) * (np.where(share > 0, RED, BLUE) - np.array(255.0))
    return np.where(np.isfinite(values), colour, LAND).astype(np.uint8)


def maps(
    path: Path,
    field: dict[str, xr.DataArray],
    first: dict[str, xr.DataArray],
    found: dict[str, xr.Dataset],
) -> Path:
    """A page: the first pattern by EOF and by Gauss, of good and of broken records."""
    lines, captions = [], []
    for name, one in field.items():
        error = 16.0 if one.sizes["time"] > 100 else 8.0
        spoilt = broken(one, error, 0)
        patterns = [
            first[name],
            found[name]["component"][0],
            *(fitted(spoilt, by, 1)["component"][0] for by in METHODS),
        ]
        lines.append([drawn(pattern, first[name]) for pattern in patterns])
        captions.append(
            f"{name}: first EOF, Gauss; the same with errors of {error:g} standard deviations at "
            f"{BAD:.0%} of the times"
        )
    return write_sheet(path, lines, captions, title="First patterns")


def report(outcome: Outcome) -> None:
    print(
        "field                  share of variance        PCA against EOFs         "
        "Gauss against EOFs"
    )
    for name in outcome.agreement["field"].values:
        one = outcome.agreement.sel(field=name)
        cells = ["  ".join(f"{value:.4f}" for value in one[v].values) for v in ("pca", "gauss")]
        share = "  ".join(f"{value:.3f}" for value in one["share"].values)
        print(f"{name:20s}   {share}   {cells[0]}   {cells[1]}")
    plain = float(outcome.agreement["plain"][0, 0])
    print(f"Without weights the first EOF of ENSO has {plain:.3f}.")
    told = ", ".join(f"{value:.4f} by {by}" for by, value in outcome.nino.items())
    print(f"El Nino's index and the first scores: correlation {told}\n")
    print(
        f"What is left of the first pattern, median of {outcome.broken.sizes['seed']} seeds\n"
        "errors, standard deviations     " + "".join(f"{error:7g}" for error in ERRORS)
    )
    middle = outcome.broken.median("seed")
    for name in outcome.broken["field"].values:
        for by in METHODS:
            line = middle.sel(field=name, by=by).values
            print(f"{name:20s}   {by:9s}" + "".join(f"{value:7.3f}" for value in line))
    print("\nmistake                         " + "".join(f"{by:>7s}" for by in METHODS))
    for name in outcome.mistakes["mistake"].values:
        line = outcome.mistakes.sel(mistake=name).median("seed").values
        print(f"{name:32s}" + "".join(f"{value:7.3f}" for value in line))
    print(f"\nMaps in {outcome.page}")


def main(arguments: Sequence[str] | None = None) -> Outcome:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out/climate_patterns")
    parser.add_argument("--seeds", type=int, default=3, help="how many draws of broken records")
    options = parser.parse_args(arguments)

    field = fields()
    tables, patterns, found = zip(*(compare(*item) for item in field.items()), strict=True)
    first = {name: one[0].drop_vars("k") for name, one in zip(field, patterns, strict=True)}
    gauss = dict(zip(field, found, strict=True))
    outcome = Outcome(
        xr.concat(tables, "field"),
        nino(field["ENSO sea surface"]),
        *survive(field, first, range(options.seeds)),
        gauss,
        maps(options.out / "maps.html", field, first, gauss),
    )
    report(outcome)
    return outcome


if __name__ == "__main__":
    main()
