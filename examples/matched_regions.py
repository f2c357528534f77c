"""Where in a second view is what DID matched? Views of a wall, and of photos turned and moved.

Of two pictures f and g, `did.match` tells which part of f is hardest to find in g, and where it was
found: functions h on f and q on g (Figures 1 and 6 of the DID paper). If it works, h and q light up
the same object. Here the truth is known. Twenty patches of a painted wall seen from the front are
searched in a photo of it from the side, through the homography between both. And twenty patches
of photos are searched in others that were turned by up to 40 degrees, scaled by up to 1.28 and
moved. Every second view is moved by a fifth of its side, so that the middle is no answer.

For each, |h| is carried over into the second view and compared with |q|: their correlation, and how
far their brightest points are apart, in sides of the view. Chance is q of any other pair in place
of its own. Nearly all regions of moved photos are found. Of the wall, whose photos differ in light
and perspective and which has much the same grey all over, a third to a half are, depending on the
seed; by chance, one of twenty is.

Prints medians and the share of pairs that are less than a tenth apart, and writes a picture for
each pair to ``examples/out/matched_regions`` (or ``--out``): f, f lit up by h, g, g lit up by q.

Takes about 15 seconds on two cores. Needs Pillow: ``pip install 'bigkd[images]'``. Photos:
scikit-image's and OpenCV's; see `photo_data`.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from photo_data import graffiti, opencv_photos, photos
from PIL import Image
from scipy import ndimage

from bigkd import did

SIZE = 100
SIDE = 150.0
SHIFT = 0.2
LAM = 1e-3

SCENES = (
    "astronaut", "chelsea", "coffee", "motorcycle_left", "aloeL", "baboon", "board", "butterfly",
    "fruits", "home", "leuvenA", "rubberwhale1", "smarties", "squirrel_cls", "starry_night",
    "stuff",
)  # fmt: skip


class Scene(NamedTuple):
    """Two pictures, and the homography that takes ``(x, y, 1)`` of the first to the second."""

    name: str
    first: np.ndarray
    second: np.ndarray
    homography: np.ndarray


class Pair(NamedTuple):
    """Two views of one place."""

    name: str
    f: np.ndarray
    g: np.ndarray
    origin: np.ndarray
    """Where each point of g is in f, in pixels of f, shape ``(2, y, x)``."""


class Outcome(NamedTuple):
    """What the example found."""

    matches: dict[str, xr.Dataset]
    """Of either kind of pair, ``correlation`` and ``apart`` over ``h`` and ``q``, numbers of pairs:
    the diagonal holds matches, all else is chance."""

    pictures: list[Path]


def carried(homography: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points of one picture in the other."""
    x, y, scale = np.tensordot(homography, [x, y, np.ones_like(x)], axes=1)
    return x / scale, y / scale


def read(picture: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Colours in [0, 1] between pixels; NaN outside."""
    channels = np.moveaxis(picture / 255.0, 2, 0)
    return np.stack(
        [ndimage.map_coordinates(one, [y, x], order=1, cval=np.nan) for one in channels], axis=-1
    )


def view(scene: Scene, rng: np.random.Generator, *, turn: float) -> Pair:
    """A random patch, and a view of it in the second picture, moved, scaled and turned.

    Without scaling, the second view is as much larger as the homography makes the patch.
    """
    height, width = scene.first.shape[:2]
    centre = rng.uniform((0, 0), (width, height))
    zoom, angle = np.exp(rng.uniform(-0.25, 0.25)), np.deg2rad(rng.uniform(-turn, turn))
    towards = rng.uniform(0.0, 2.0 * np.pi)
    v, u = np.meshgrid(*[(np.arange(SIZE) + 0.5) / SIZE - 0.5] * 2, indexing="ij")
    f = read(scene.first, centre[0] + SIDE * u, centre[1] + SIDE * v)

    corner = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # the centre, and a pixel aside
    x, y = carried(scene.homography, centre[0] + corner[0], centre[1] + corner[1])
    growth = np.sqrt(abs((x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0])))
    u, v = u + SHIFT * np.cos(towards), v + SHIFT * np.sin(towards)
    side = SIDE * growth * zoom
    x = x[0] + side * (np.cos(angle) * u - np.sin(angle) * v)
    y = y[0] + side * (np.sin(angle) * u + np.cos(angle) * v)
    g = read(scene.second, x, y)
    back = np.stack(carried(np.linalg.inv(scene.homography), x, y)[::-1])
    origin = ((back - centre[::-1, None, None]) / SIDE + 0.5) * SIZE - 0.5
    return Pair(scene.name, f, g, origin)


def pairs(
    scenes: Sequence[Scene], number: int, rng: np.random.Generator, *, turn: float
) -> Iterator[Pair]:
    """Pairs of views that both lie inside their pictures, of each scene in turn."""
    for at in range(number):
        pair = view(scenes[at % len(scenes)], rng, turn=turn)
        while np.isnan(pair.f).any() or np.isnan(pair.g).any():
            pair = view(scenes[at % len(scenes)], rng, turn=turn)
        yield pair


def wall() -> list[Scene]:
    return [Scene("wall", *graffiti())]


def moved_photos() -> list[Scene]:
    every = {**photos(), **opencv_photos()}
    scenes = []
    for name in SCENES:
        photo = every[name]
        share = 2 * SIDE / min(photo.shape[:2])
        size = [round(share * n) for n in photo.shape[1::-1]]
        small = np.array(Image.fromarray(photo).resize(size, Image.Resampling.LANCZOS))
        scenes.append(Scene(name, small, small, np.eye(3)))
    return scenes


def brightest(light: np.ndarray) -> np.ndarray:
    return np.array(np.unravel_index(light.argmax(), light.shape))


def compared(found: Sequence[xr.Dataset], views: Sequence[Pair]) -> xr.Dataset:
    """|h| of each pair carried over to g, and |q| of every pair."""
    at_q = [np.abs(one["q"].values) for one in found]
    at_h = [
        ndimage.map_coordinates(np.abs(one["h"].values), pair.origin, order=1)
        for one, pair in zip(found, views, strict=True)
    ]
    correlation = [[np.corrcoef(h.ravel(), q.ravel())[0, 1] for q in at_q] for h in at_h]
    apart = [[np.linalg.norm(brightest(h) - brightest(q)) / SIZE for q in at_q] for h in at_h]
    return xr.Dataset(
        {"correlation": (("h", "q"), correlation), "apart": (("h", "q"), apart)},
        {"name": ("h", [pair.name for pair in views])},
    )


def of_pairs(values: xr.DataArray) -> np.ndarray:
    return np.diagonal(values.values)


def of_chance(values: xr.DataArray) -> np.ndarray:
    return values.values[~np.eye(values.sizes["h"], dtype=bool)]


def report(matches: dict[str, xr.Dataset]) -> None:
    print(
        "              correlation, median    apart, median      apart < 0.1\n"
        "              of pairs   by chance   pairs   chance    pairs   chance\n"
        "-----------   --------   ---------   -----   ------    -----   ------"
    )
    for kind, one in matches.items():
        near, far = of_pairs(one["apart"]), of_chance(one["apart"])
        print(
            f"{kind:11s}   {np.median(of_pairs(one['correlation'])):8.2f}   "
            f"{np.median(of_chance(one['correlation'])):9.2f}   "
            f"{np.median(near):5.2f}   {np.median(far):6.2f}    "
            f"{(near < 0.1).mean():5.2f}   {(far < 0.1).mean():6.2f}"
        )


def main(arguments: Sequence[str] | None = None) -> Outcome:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out/matched_regions")
    parser.add_argument("--pairs", type=int, default=20, help="of the wall, and of photos")
    parser.add_argument("--lam", type=float, default=LAM, help="at the unit scale")
    parser.add_argument("--seed", type=int, default=0, help="of the places and of the views")
    options = parser.parse_args(arguments)

    matches, drawn = {}, []
    for kind, scenes, turn in (("wall", wall(), 0.0), ("photos", moved_photos(), 40.0)):
        rng = np.random.default_rng(options.seed)
        views = list(pairs(scenes, options.pairs, rng, turn=turn))
        found = [did.match(pair.f, pair.g, lam=options.lam, scale="unit") for pair in views]
        matches[kind] = compared(found, views)
        for at, (one, pair) in enumerate(zip(found, views, strict=True)):
            path = options.out / f"{kind}-{at:02d}.png"
            drawn.append(did.match_sheet(path, pair.f, pair.g, one["h"], one["q"]))
    report(matches)
    print(f"\nA picture of each pair in {options.out}")
    return Outcome(matches, drawn)


if __name__ == "__main__":
    main()
