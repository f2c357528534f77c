"""Shadows that a subspace leaves out: pictures under many lights, by PCA and by MMD-PCA.

The experiment of the paper's Tables 2 and 3 on pictures whose truth without shadows is known; the
pixels of the Yale B faces, which the paper has, are not to be had. Two sets stand in for them:

Surfaces: three heads and a rabbit, rendered under the 64 lights of Yale B with the shadows that
they cast and with those that they are in, and without any (see `lit_surfaces`).
Faces: real photos (the ORL set), ten of each person, under no other light than that of the studio.
Shadows are painted over them: what an egg in the place of the head would have turned from 16 of the
lights keeps a tenth of its brightness. The truth is the photo. Shadows are not real there, and ten
poses of a face are not one.

The pictures of one surface, or of one person, are projected on k = 1 and k = 5 components. Prints
the RMSE against the truth (white is 1) in pixels that are in shadow and in lit ones; and the angle
of the first component to the surface under even light (its albedo), to that lit from the camera,
and to the mean of the pictures.

What comes out: with k = 5 all methods are nearly the same, and what is dark stays dark, as five
components are enough to draw most shadows. With k = 1 Gauss removes more shadow, as the paper says:
it is nearer to the surface under even light, and nearer to the photos in the shadows of all faces,
there by less than half a percent. It does so because in units of 0 to 1 no two pictures are far
apart: H is near 1, and the component within a degree of the mean of the pictures. In units of 0 to
255 each picture is alone, and Gauss is PCA. Where the truth is how the surface is shaded by the
given light, PCA is nearer.

Writes pages with pictures to ``examples/out/faces_in_shadow`` (or ``--out``).

Takes about 20 seconds on two cores. Needs Pillow and trimesh:
``pip install 'bigkd[images,meshes]'``. See `photo_data`.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from lit_surfaces import VIEWS, Lit, directions, render
from photo_data import faces

from bigkd import mmdpca
from bigkd.io.images import as_pictures, write_sheet

METHODS = {
    "PCA": {"kernel": mmdpca.HigherMoments((0.0, 1.0))},
    "Gauss": {"kernel": "gauss", "a": 1.0},
    "Gauss 25": {"kernel": "gauss", "a": 25.0},
}
SIZES = (1, 5)
DARK = 0.1
# Lights of a page: from ahead, from above, and further and further from the side.
SHOWN = (0, 3, 12, 17, 19, 23, 28, 34, 60, 63)


class Outcome(NamedTuple):
    """What the example found."""

    surfaces: xr.Dataset
    """``rmse`` over ``surface``, ``k``, ``by`` and ``pixel``; ``angle``, degrees, over
    ``surface``, ``by`` and ``to``; ``share`` of pixels over ``surface`` and ``pixel``;
    ``alone``, degrees between Gauss and PCA in units of 0 to 255, over ``surface``."""

    faces: xr.Dataset
    """``rmse`` over ``person``, ``k``, ``by`` and ``pixel``; ``plain``, of the pictures as they
    are, over ``person`` and ``pixel``."""

    pages: list[Path]


def projected(pictures: xr.DataArray, found: xr.Dataset) -> list[np.ndarray]:
    """On as many of the components as `SIZES` says."""
    scores = mmdpca.project(pictures, found).compute()
    first = [slice(k) for k in SIZES]
    return [mmdpca.reconstruct(scores.isel(k=k), found.isel(k=k)).values for k in first]


def all_projected(pictures: xr.DataArray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """First component of each method, and projections ``(k, method, *pictures.shape)``."""
    found = {
        name: mmdpca.fit(pictures, k=max(SIZES), mmd=False, **options)
        for name, options in METHODS.items()
    }
    parts = np.array([projected(pictures, one) for one in found.values()])
    first = {name: one["component"].values[0] for name, one in found.items()}
    return first, parts.swapaxes(0, 1)


def rmse(found: np.ndarray, truth: np.ndarray, where: Sequence[np.ndarray]) -> np.ndarray:
    """Of pictures in the last three axes, over the pixels of each mask, which come last."""
    squared = (found - truth) ** 2
    return np.sqrt(np.stack([squared[..., mask].mean(axis=-1) for mask in where], axis=-1))


def angle(one: np.ndarray, other: np.ndarray) -> float:
    """Between two pictures, as vectors, up to sign; degrees."""
    both = np.stack([one, other])
    both = both[:, np.isfinite(both).all(axis=0)].astype(np.float64)
    first, second = both / np.linalg.norm(both, axis=1, keepdims=True)
    nearer = second * np.sign(first @ second)
    return float(np.rad2deg(2 * np.arcsin(np.linalg.norm(first - nearer) / 2)))


def compare_surface(lit: Lit) -> tuple[xr.Dataset, np.ndarray]:
    """Measures of one surface, and the projections of its pictures."""
    pictures = xr.DataArray(lit.images, dims=("light", "y", "x"))
    first, parts = all_projected(pictures)
    lit_pixels = np.isfinite(lit.truth) & ~lit.shadow
    where = {"cast": lit.shadow & (lit.truth > 0), "attached": lit.truth <= 0, "lit": lit_pixels}
    goals = {"albedo": lit.albedo, "camera": lit.front, "mean": lit.images.mean(axis=0)}
    bright = mmdpca.fit(255 * pictures, k=1, kernel="gauss")["component"].values[0]
    table = xr.Dataset(
        {
            "rmse": (("k", "by", "pixel"), rmse(parts, lit.truth, list(where.values()))),
            "angle": (
                ("by", "to"),
                [[angle(one, goal) for goal in goals.values()] for one in first.values()],
            ),
            "share": (
                "pixel",
                [one.sum() / np.isfinite(lit.truth).sum() for one in where.values()],
            ),
            "alone": angle(bright, first["PCA"]),
        },
        {"k": list(SIZES), "by": list(METHODS), "pixel": list(where), "to": list(goals)},
    )
    return table, parts


def egg_in_light(shape: tuple[int, int]) -> np.ndarray:
    """How much of its brightness each pixel keeps under 16 lights; ``(light, y, x)``."""
    y, x = (np.linspace(-1, 1, 2 * n + 1)[1::2] for n in shape)
    x, y = np.meshgrid(0.85 * x, -0.85 * y)
    normals = np.stack([x, y, np.sqrt(np.maximum(0.05, 1 - x**2 - y**2))])
    turned = np.tensordot(directions()[::4], normals, axes=1)
    return DARK + (1 - DARK) / (1 + np.exp(-25 * turned))


def compare_person(photos: np.ndarray) -> tuple[xr.Dataset, np.ndarray, np.ndarray]:
    """Measures of the photos of one person, these in shadow, and their projections."""
    kept = egg_in_light(photos.shape[1:])
    shaded = (photos[:, None] * kept).reshape(-1, *photos.shape[1:]).astype(np.float32) / 255
    truth = np.repeat(photos, len(kept), axis=0) / 255
    dark = np.tile(kept < 0.5, (len(photos), 1, 1))
    _, parts = all_projected(xr.DataArray(shaded, dims=("picture", "y", "x")))
    where = [dark, ~dark]
    table = xr.Dataset(
        {
            "rmse": (("k", "by", "pixel"), rmse(parts, truth, where)),
            "plain": ("pixel", rmse(shaded, truth, where)),
        },
        {"k": list(SIZES), "by": list(METHODS), "pixel": ["shadow", "lit"]},
    )
    return table, shaded, parts


def sheet(
    path: Path, shape: tuple[int, int], blocks: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]
) -> Path:
    """A page: for each name its pictures, their truth, projections, and differences.

    Pictures and truth are ``(n, y, x)``, projections ``(k, method, n, y, x)``.
    """
    lines, captions = [], []
    for name, (pictures, truth, parts) in blocks.items():
        strips = {"in shadow": pictures, "truth, negative is black": truth}
        for at, k in enumerate(SIZES):
            pca, gauss = parts[at, :2]
            strips |= {
                f"PCA, k = {k}": pca,
                f"Gauss, k = {k}": gauss,
                f"picture - Gauss, k = {k}, 0 is grey": pictures - gauss + 0.5,
                f"Gauss - PCA, k = {k}, four times, 0 is grey": 4 * (gauss - pca) + 0.5,
            }
        lines += [list(strip.reshape(len(strip), -1)) for strip in strips.values()]
        captions += [f"{name}: {what}" for what in strips]
    return write_sheet(path, as_pictures(lines, shape, (0.0, 1.0)), captions, title="In shadow")


def report(outcome: Outcome) -> None:
    surfaces, people, pages = outcome
    share = surfaces["share"].mean("surface")
    print(
        "Surfaces: RMSE in pixels of cast shadow "
        f"({float(share[0]):.0%} of them), attached shadow ({float(share[1]):.0%}), and light;\n"
        "angle of the first component to the surface evenly lit, lit from the camera, and to the "
        "mean picture\n"
        "surface          method    k = 1: cast  attached  lit    k = 5: cast  attached  lit    "
        "even  camera  mean\n" + "-" * 104
    )
    for name in surfaces["surface"].values:
        for method in METHODS:
            one = surfaces.sel(surface=name, by=method)
            errors = [f"{a:.3f}  {b:.3f}     {c:.3f}" for a, b, c in one["rmse"].values]
            even, camera, mean = one["angle"].values
            print(
                f"{name:15s}  {method:8s}         {errors[0]}         {errors[1]}   "
                f"{even:4.1f}   {camera:4.1f}  {mean:4.1f}"
            )
    print(
        f"In units of 0 to 255, Gauss and PCA are {float(surfaces['alone'].max()):.1e} degrees "
        "apart at most.\n\n"
        f"Faces: mean RMSE of {people.sizes['person']} people; in shadow, how many are nearer to "
        "the truth than by PCA\n"
        "method      k = 1: shadow  lit     nearer    k = 5: shadow  lit     nearer\n" + "-" * 73
    )
    mean = people.mean("person")
    nearer = (people["rmse"] < people["rmse"].sel(by="PCA")).mean("person")
    for method in METHODS:
        cells = [
            f"{float(mean['rmse'].sel(by=method, k=k, pixel='shadow')):.4f}  "
            f"{float(mean['rmse'].sel(by=method, k=k, pixel='lit')):.4f}   "
            f"{float(nearer.sel(by=method, k=k, pixel='shadow')):4.0%}  "
            for k in SIZES
        ]
        print(f"{method:10s}         " + "           ".join(cells))
    print(f"as they are        {float(mean['plain'][0]):.4f}  {float(mean['plain'][1]):.4f}")
    print(f"\nPictures in {', '.join(map(str, pages))}")


def main(arguments: Sequence[str] | None = None) -> Outcome:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out/faces_in_shadow")
    parser.add_argument("--side", type=int, default=128, help="of the surfaces' pictures, pixels")
    parser.add_argument("--people", type=int, default=20, help="whose faces, 40 at most")
    options = parser.parse_args(arguments)

    tables, blocks = [], {}
    for name in VIEWS:
        lit = render(name, options.side)
        table, parts = compare_surface(lit)
        tables.append(table)
        shown = list(SHOWN)
        blocks[name] = (lit.images[shown], lit.truth[shown], parts[:, :, shown])
    surfaces = xr.concat(tables, xr.Variable("surface", list(VIEWS)))
    pages = [sheet(options.out / "surfaces.html", (options.side,) * 2, blocks)]

    tables, blocks = [], {}
    people = faces()[: options.people]
    for number, photos in enumerate(people):
        table, shaded, parts = compare_person(photos)
        tables.append(table)
        if number < 4:
            shown = [*range(8), 80, 83]  # one photo under eight lights, another under two
            truth = np.repeat(photos, len(shaded) // len(photos), axis=0)[shown] / 255
            blocks[f"person {number + 1}"] = (shaded[shown], truth, parts[:, :, shown])
    pages.append(sheet(options.out / "faces.html", people.shape[2:], blocks))
    outcome = Outcome(surfaces, xr.concat(tables, "person"), pages)
    report(outcome)
    return outcome


if __name__ == "__main__":
    main()
