"""Surfaces under many lights, with and without their shadows; a renderer, nothing else.

A surface is seen from afar (orthographic), is matt (Lambert), and has one far light at a time, of
the 64 directions of the Yale B faces, the outermost of which stand behind the surface and leave
most of it black. Brightness is albedo times the cosine between normal and light. A point is in
shadow if it is turned from the light (attached) or if the surface is between (cast): what a light
meets first is found as what the camera sees is, by sorting the points of the surface into pixels.

Surfaces: of CGAL's demos; fetched, kept and checked as in `data`; with CGAL, LGPL and GPL.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from data import package_file
from shape_data import CGAL

from bigkd.io.meshes import read_mesh

HEADS = replace(
    CGAL,
    folder="cgal-heads",
    files={
        "mannequin-devil.off": "9424b7132b58766984051fb7757543e88972f91fe7e9565d4e5b715b204f74a5",
        "lion-head.off": "cf159eeb12a3f3f345e57448693e9f0d115f3f6f38fd1d4519b336cede849289",
        "head.off": "75aecfdbf9c0386dd839f5bf0322fb5a889ed7efd31d040f125e383041b4b919",
        "bunny00.off": CGAL.files["bunny00.off"],
    },
)
# Which way the camera looks, and which way is up.
VIEWS = {
    "mannequin-devil": ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "lion-head": ((0.0, 0.0, -1.0), (0.0, 1.0, 0.0)),
    "head": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
    "bunny00": ((0.0, 0.0, -1.0), (0.0, 1.0, 0.0)),
}

# Azimuth and elevation, degrees. Those to the side come from the left, too.
MIDDLE = ((0, 0), (0, 20), (0, 45), (0, 90), (0, -20), (0, -35))
SIDE = (
    (5, 10), (5, -10), (10, 0), (10, -20), (15, 20), (20, 10), (20, -10), (20, -40), (25, 0),
    (35, 15), (35, 40), (35, 65), (35, -20), (50, 0), (50, -40), (60, 20), (60, -20), (70, 0),
    (70, 45), (70, -35), (85, 20), (85, -20), (95, 0), (110, 15), (110, 40), (110, 65), (110, -20),
    (120, 0), (130, 20),
)  # fmt: skip

# Points of the surface to a side of a pixel, and how far a shadow is from what casts it, in pixels.
FINENESS = 1.0
OFFSET = 1.5


class Lit(NamedTuple):
    """A surface under lights. Brightness 1 is white turned to the light."""

    images: np.ndarray
    """Shape ``(light, y, x)``, float32, with shadows, in steps of 1/255; NaN off the surface."""

    truth: np.ndarray
    """The same without shadows: albedo times cosine, negative where turned from the light."""

    shadow: np.ndarray
    """Shape ``(light, y, x)``, bool, attached or cast; False off the surface."""

    front: np.ndarray
    """Shape ``(y, x)``, lit from the camera."""

    albedo: np.ndarray
    """Shape ``(y, x)``."""


class Points(NamedTuple):
    """Points of a surface."""

    places: np.ndarray
    """Shape ``(n, 3)``; x to the right, y up, z to the camera, pixels, the middle at 0."""

    normals: np.ndarray
    """Shape ``(n, 3)``, of length 1."""


def directions() -> np.ndarray:
    """The 64 lights, shape ``(64, 3)``: unit vectors to them; x to the right, z to the camera."""
    azimuth, elevation = np.deg2rad(
        [*MIDDLE, *SIDE, *((-azimuth, elevation) for azimuth, elevation in SIDE)]
    ).T
    return np.stack(
        [
            np.cos(elevation) * np.sin(azimuth),
            np.sin(elevation),
            np.cos(elevation) * np.cos(azimuth),
        ],
        axis=1,
    )


def render(name: str, side: int, *, fill: float = 0.95) -> Lit:
    """One of the surfaces in `VIEWS` under all lights, in pictures of `side` by `side` pixels.

    Cost: about 1 s at 128 pixels.
    """
    points = sampled(*placed(name, fill * side))
    first = nearest(points.places, side)
    seen = first >= 0
    places, normals = points.places[first[seen]], points.normals[first[seen]]
    normals = np.where(normals[:, 2:] < 0, -normals, normals)
    albedo = painted(places / side)
    lights = directions()
    cosines = normals @ lights.T
    shadow = (cosines <= 0) | np.stack(
        [hidden(points.places, places + OFFSET * normals, light) for light in lights], axis=1
    )
    truth = albedo[:, None] * cosines
    lit = np.round(255 * np.where(shadow, 0.0, truth)) / 255

    def spread(values: np.ndarray, fill: float | bool) -> np.ndarray:
        full = np.full((side, side, *values.shape[1:]), fill, values.dtype)
        full[seen] = values
        return np.ascontiguousarray(np.moveaxis(full, range(2), range(-2, 0)))

    return Lit(
        spread(lit.astype(np.float32), np.nan),
        spread(truth, np.nan),
        spread(shadow, False),
        spread(albedo * normals[:, 2], np.nan),
        spread(albedo, np.nan),
    )


def placed(name: str, size: float) -> tuple[np.ndarray, np.ndarray]:
    """Vertices as the camera sees them, and triangles; the longer side has so many pixels."""
    vertices, faces = read_mesh(package_file(HEADS, f"{name}.off"))
    forward, up = np.array(VIEWS[name])
    vertices = vertices @ np.stack([np.cross(forward, up), up, -forward]).T
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    return (vertices - (low + high) / 2) * (size / (high - low)[:2].max()), faces


def sampled(vertices: np.ndarray, faces: np.ndarray) -> Points:
    """Points all over a surface, and normals between those of the vertices."""
    corners = vertices[faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(vertices)
    np.add.at(normals, faces, across[:, None, :])
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    parts = np.maximum(1, np.ceil(FINENESS * longest)).astype(int)
    places, turned = [], []
    for n in np.unique(parts):
        weights = barycentric(n)
        chosen = faces[parts == n]
        places.append(np.einsum("pc,fcd->fpd", weights, vertices[chosen]).reshape(-1, 3))
        turned.append(np.einsum("pc,fcd->fpd", weights, normals[chosen]).reshape(-1, 3))
    normal = np.concatenate(turned)
    return Points(np.concatenate(places), normal / np.linalg.norm(normal, axis=1, keepdims=True))


def barycentric(n: int) -> np.ndarray:
    """The middles of the ``n**2`` triangles that a triangle is cut into, shape ``(n**2, 3)``."""
    one, other = np.divmod(np.arange(n * n), n)
    mirrored = one + other >= n
    one, other = (one + 1 / 3) / n, (other + 1 / 3) / n
    one, other = np.where(mirrored, 1 - one, one), np.where(mirrored, 1 - other, other)
    return np.stack([one, other, 1 - one - other], axis=1)


def nearest(places: np.ndarray, side: int) -> np.ndarray:
    """Which point is nearest to the camera in each pixel ``(y, x)``; -1 where there is none."""
    pixel = pixels(places, side)
    order = np.argsort(places[:, 2], kind="stable")
    first = np.full(side * side, -1)
    first[pixel[order]] = order
    return first.reshape(side, side)


def pixels(places: np.ndarray, side: int) -> np.ndarray:
    """The number of the pixel that each point is in."""
    column = np.clip(np.floor(places[:, 0] + side / 2), 0, side - 1)
    row = np.clip(np.floor(side / 2 - places[:, 1]), 0, side - 1)
    return (row * side + column).astype(int)


def hidden(places: np.ndarray, asked: np.ndarray, light: np.ndarray) -> np.ndarray:
    """Whether any of `places` is between the points `asked` and the light."""
    across = np.linalg.svd(light[None])[2][1:]
    axes = np.stack([*across, light]).T
    side = int(2 * np.abs(places).max() * np.sqrt(3)) + 4
    depth = np.full(side * side, -np.inf)
    turned = places @ axes
    np.maximum.at(depth, pixels(turned, side), turned[:, 2])
    asked = asked @ axes
    return depth[pixels(asked, side)] > asked[:, 2] + OFFSET


def painted(places: np.ndarray) -> np.ndarray:
    """Albedo at points of a surface of about size 1: broad stripes, as of a tiger, 0.35 to 0.95."""
    x, y, z = places.T
    return 0.65 + 0.3 * np.tanh(3 * np.sin(40 * y + 6 * np.sin(9 * x) + 5 * z))
