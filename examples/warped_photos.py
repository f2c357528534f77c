"""Does DID see through a deformation? Photos that are warped, or turned, against other photos.

The experiments of the DID paper (Figures 2 to 4) on 23 colour photos, of 100 x 100 points. The
root mean square of the difference (RMSE, in units of the standard deviation of colours) stands
beside each value of DID: it is what one would compare pictures with otherwise.

Warps: each photo is warped six times at each of six temperatures T, and compared with its warps
and with the other 22 photos. As long as warps are smooth (T up to 0.01; beyond, more and more of
them fold) DID should hardly move, while RMSE grows to what it is between two photos.
Turns: the middle of nine photos is turned by eight angles, and compared with that and with twelve
patches from elsewhere in the same photo. One is a circuit board, where elsewhere is like here.
Lambda: DID should not fall as lambda grows, nor should DID over lambda rise.

Prints a table of each, and writes a page with warps and their values to
``examples/out/warped_photos`` (or ``--out``).

Takes about 20 seconds on two cores. Needs Pillow: ``pip install 'bigkd[images]'``. Photos:
scikit-image's and OpenCV's; see `photo_data`.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from photo_data import opencv_photos, photos
from PIL import Image
from scipy import ndimage

from bigkd import did
from bigkd.io.images import html_page

SIZE = 100
TEMPERATURES = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
LAM = 1e-4
LAMS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
COLOUR_STD = 0.225 * 255

SECOND_VIEWS = ("motorcycle_right", "aloeR", "leuvenB", "rubberwhale2")
SCENES = (
    "astronaut", "coffee", "motorcycle_left", "aloeL", "baboon", "board", "fruits", "butterfly",
    "stuff",
)  # fmt: skip
ANGLES = np.arange(15, 360, 45)
N_PATCHES = 12
FADING = ("astronaut", "coffee", "baboon", "fruits", "home")


class Warps(NamedTuple):
    """Photos against their warps and each other; each value of a photo f stands first."""

    warped: xr.Dataset
    """``did`` and ``rmse`` over ``photo``, ``temperature`` and ``warp``."""

    others: xr.Dataset
    """``did`` and ``rmse`` over ``photo`` and ``other``; NaN of a photo and itself."""

    def medians(self, name: str) -> xr.DataArray:
        """Over ``temperature``."""
        return self.warped[name].median(("photo", "warp"))

    def nearer(self, name: str, hottest: float) -> xr.DataArray:
        """For each photo, whether all warps up to a temperature are nearer than other photos."""
        warped = self.warped[name].sel(temperature=slice(None, hottest))
        return warped.max(("temperature", "warp")) < self.others[name].min("other")


class Outcome(NamedTuple):
    """What the example found."""

    warps: Warps
    turns: xr.Dataset
    """Median of random patches over the worst of turned ones, over ``photo``: ``did`` over
    ``setting``, and ``rmse``."""

    fading: xr.DataArray
    """DID over ``photo``, ``temperature``, and ``lam``."""

    page: Path


def pictures() -> dict[str, np.ndarray]:
    """The photos in colour, one view of each scene, and no photo of players on a field."""
    kept = {**photos(), **opencv_photos()}
    return {name: one for name, one in kept.items() if name not in (*SECOND_VIEWS, "messi5")}


def middle(photo: np.ndarray, side: int) -> np.ndarray:
    top, left = ((n - side) // 2 for n in photo.shape[:2])
    return photo[top : top + side, left : left + side]


def resized(photo: np.ndarray, shortest: int) -> np.ndarray:
    """The photo, smaller, with its shorter side as given."""
    share = shortest / min(photo.shape[:2])
    if share >= 1.0:
        return photo
    height, width = (round(share * n) for n in photo.shape[:2])
    return np.array(Image.fromarray(photo).resize((width, height), Image.Resampling.LANCZOS))


def rmse(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Over all axes of a picture; `f` and `g` broadcast."""
    gap = (f.astype(np.float32) - g) / COLOUR_STD
    return np.sqrt((gap**2).mean(axis=(-3, -2, -1)))


def compare_warps(
    photo: dict[str, np.ndarray], n_warps: int, seed: int
) -> tuple[Warps, np.ndarray]:
    """Photos against warps and each other; and the warps, ``(temperature, warp, photo, ...)``."""
    names, plain = list(photo), np.stack(list(photo.values()))
    warped = np.stack(
        [
            [did.warp(plain, temperature, seed=seed * n_warps + at) for at in range(n_warps)]
            for temperature in TEMPERATURES
        ]
    )
    searched = np.concatenate([plain, warped.reshape(-1, *plain.shape[1:])])
    found = did.matrix(plain, searched, lam=LAM, scale="unit")["dissimilarity"].values[0]
    n = len(names)
    own = found[:, n:].reshape(n, len(TEMPERATURES), n_warps, n)
    dims = ("photo", "temperature", "warp")
    apart = np.where(np.eye(n, dtype=bool), np.nan, 1.0)
    warps = Warps(
        xr.Dataset(
            {
                "did": (dims, own[np.arange(n), :, :, np.arange(n)]),
                "rmse": (dims, np.moveaxis(rmse(warped, plain), 2, 0)),
            },
            {"photo": names, "temperature": list(TEMPERATURES)},
        ),
        xr.Dataset(
            {
                "did": (("photo", "other"), apart * found[:, :n]),
                "rmse": (("photo", "other"), apart * rmse(plain[:, None], plain)),
            },
            {"photo": names, "other": names},
        ),
    )
    return warps, warped


def turned(photo: np.ndarray) -> np.ndarray:
    """The middle of a photo, and turned by each angle: a larger patch is turned, then cropped."""
    patch = middle(photo, 3 * SIZE // 2)
    turns = [ndimage.rotate(patch, angle, axes=(1, 0), reshape=False, order=1) for angle in ANGLES]
    return np.stack([middle(one, SIZE) for one in (patch, *turns)])


def elsewhere(photo: np.ndarray, seed: int) -> np.ndarray:
    """Random patches that do not touch the middle of a photo."""
    height, width = photo.shape[:2]
    rng = np.random.default_rng(seed)
    places = rng.integers(0, (height - SIZE + 1, width - SIZE + 1), (1000, 2))
    centre = (np.array([height, width]) - SIZE) // 2
    outside = places[np.abs(places - centre).max(axis=1) >= SIZE][:N_PATCHES]
    return np.stack([photo[top : top + SIZE, left : left + SIZE] for top, left in outside])


def compare_turns(seed: int) -> xr.Dataset:
    """How far patches from elsewhere are, over how far the worst turn is, for each photo."""
    every = pictures()
    scenes = [resized(every[name], 4 * SIZE) for name in SCENES]
    parts = np.stack([np.concatenate([turned(one), elsewhere(one, seed)]) for one in scenes])
    n, first = len(SCENES), 1 + len(ANGLES)
    at = np.arange(n)
    shares, labels = [], []
    for scale, lams in (("unit", [1e-4, 1e-2]), ("paper", [1e-4])):
        searched = parts[:, 1:].reshape(-1, *parts.shape[2:])
        found = did.matrix(parts[:, 0], searched, lam=lams, scale=scale)["dissimilarity"].values
        own = found.reshape(len(lams), n, n, -1)[:, at, at]
        shares += list(np.median(own[..., first - 1 :], axis=-1) / own[..., : first - 1].max(-1))
        labels += [f"{scale} {lam:.0e}" for lam in lams]
    apart = rmse(parts[:, :1], parts[:, 1:])
    return xr.Dataset(
        {
            "did": (("setting", "photo"), np.stack(shares)),
            "rmse": (
                "photo",
                np.median(apart[:, first - 1 :], axis=1) / apart[:, : first - 1].max(axis=1),
            ),
        },
        {"setting": labels, "photo": list(SCENES)},
    )


def compare_lambdas(photo: dict[str, np.ndarray], seed: int) -> xr.DataArray:
    """DID of five photos and one warp of each, at each temperature and lambda."""
    plain = np.stack([photo[name] for name in FADING])
    warped = np.concatenate([did.warp(plain, one, seed=seed) for one in TEMPERATURES])
    found = did.matrix(plain, warped, lam=LAMS, scale="unit")["dissimilarity"].values
    at = np.arange(len(FADING))
    own = found.reshape(len(LAMS), len(FADING), len(TEMPERATURES), len(FADING))[:, at, :, at]
    return xr.DataArray(
        own,
        {"photo": list(FADING), "lam": list(LAMS), "temperature": list(TEMPERATURES)},
        ("photo", "lam", "temperature"),
    )


def slope(fading: xr.DataArray, low: float, high: float) -> xr.DataArray:
    """How fast log DID grows in log lambda between two."""
    rise = np.log(fading.sel(lam=high) / fading.sel(lam=low))
    return rise / np.log(high / low)


def draw(path: Path, photo: dict[str, np.ndarray], warps: Warps, warped: np.ndarray) -> Path:
    """A page with a strip for each photo: as it is, and its first warp at each temperature."""
    strips, captions = [], []
    for at, (name, plain) in enumerate(photo.items()):
        strips.append([plain, *warped[:, 0, at]])
        one = warps.warped.sel(photo=name).isel(warp=0)
        told = [
            f"T = {float(t):g}: DID {float(d):.4f}, RMSE {float(e):.2f}"
            for t, d, e in zip(one["temperature"], one["did"], one["rmse"], strict=True)
        ]
        nearest = float(warps.others["did"].sel(photo=name).min())
        captions.append(f"{name}: {'; '.join(told)}. Nearest other photo: DID {nearest:.4f}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html_page(strips, captions, "Warped photos"), encoding="utf-8")
    return path


def report(outcome: Outcome) -> None:
    warps, turns, fading, page = outcome
    values = {name: warps.medians(name).values for name in ("did", "rmse")}
    print("T         " + "".join(f"{t:9g}" for t in TEMPERATURES) + "   other photos 5/50/95 %")
    for name, form in (("did", "9.5f"), ("rmse", "9.2f")):
        quantiles = np.nanquantile(warps.others[name], [0.05, 0.5, 0.95])
        print(
            f"{name.upper():10s}{''.join(format(one, form) for one in values[name])}   "
            + " / ".join(f"{one:.2g}" for one in quantiles)
        )
    n = warps.warped.sizes["photo"]
    counts = {name: int(warps.nearer(name, 0.1).sum()) for name in ("did", "rmse")}
    print(
        f"All warps up to T = 0.1 are nearer than every other photo: for {counts['did']} of {n} "
        f"photos by DID, for {counts['rmse']} by RMSE.\n\n"
        "Median of patches from elsewhere, over the worst of eight turns\n"
        f"{'photo':16s}  " + "  ".join(f"{one:>12s}" for one in [*turns["setting"].values, "RMSE"])
    )
    for name in turns["photo"].values:
        one = turns.sel(photo=name)
        print(
            f"{name:16s}  "
            + "  ".join(f"{share:12.3g}" for share in [*one["did"].values, float(one["rmse"])])
        )
    print("\nMedian DID over lambda, and how fast log DID grows in log lambda, 1e-4 to 1e-2")
    print("T         " + "".join(f"{lam:9.0e}" for lam in LAMS) + "    slope")
    for t in TEMPERATURES:
        one = fading.sel(temperature=t)
        print(
            f"{t:<10g}"
            + "".join(f"{value:9.2g}" for value in one.median("photo").values)
            + f"{float(slope(one, 1e-4, 1e-2).median()):9.2f}"
        )
    print(f"\nWarps and their values in {page}")


def main(arguments: Sequence[str] | None = None) -> Outcome:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out/warped_photos")
    parser.add_argument("--warps", type=int, default=6, help="of each photo and temperature")
    parser.add_argument("--seed", type=int, default=0, help="of the warps and patches")
    options = parser.parse_args(arguments)

    photo = {}
    for name, one in pictures().items():
        small = resized(one, SIZE)
        photo[name] = middle(small, SIZE)
    warps, warped = compare_warps(photo, options.warps, options.seed)
    outcome = Outcome(
        warps,
        compare_turns(options.seed),
        compare_lambdas(photo, options.seed),
        draw(options.out / "warps.html", photo, warps, warped),
    )
    report(outcome)
    return outcome


if __name__ == "__main__":
    main()
