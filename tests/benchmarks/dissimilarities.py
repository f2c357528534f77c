"""DID: maps of images against their ceiling, and a matrix of photos against one pair at a time."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
import scipy.spatial

from bigkd import did
from bigkd.backends import rng
from bigkd.did.choice import Choice
from bigkd.did.layout import open_data
from bigkd.did.setting import Setting, choose
from bigkd.kernels import KernelValues
from tests.benchmarks.measure import FULL, Line, Sizes, seconds, times

EXAMPLES = Path(__file__).parents[2] / "examples"
SIDE, N_IMAGES = 100, 100


def photos(sizes: Sizes, n: int, side: int) -> np.ndarray[Any, Any]:
    """Crops of photos, bytes; of noise at tiny sizes, which need no photos."""
    generator = rng(0)
    if sizes is not FULL:
        return generator.integers(0, 256, (n, side, side, 3), dtype=np.uint8)
    sys.path.append(str(EXAMPLES))
    photo_data = __import__("photo_data")
    whole = list({**photo_data.photos(), **photo_data.more_photos()}.values())
    crops = []
    for at in range(n):
        photo = whole[at % len(whole)][::3, ::3]
        top, left = (generator.integers(0, edge - side + 1) for edge in photo.shape[:2])
        crops.append(photo[top : top + side, left : left + side])
    return np.stack(crops)


def setting_of(images: np.ndarray[Any, Any], y_landmarks: int, dtype: Any) -> Setting:
    opened = open_data(images, {}, name="photos", dims=None, value_dim=None)
    return choose([opened], ("photos",), Choice(y_landmarks=y_landmarks, dtype=dtype))


def did_maps(sizes: Sizes) -> list[Line]:
    """Maps of one photo: of what their kernel values and products would take by themselves."""
    side, n = (SIDE, 8) if sizes is FULL else (12, 2)
    images = photos(sizes, n, side)
    rows, lines = images.reshape(n, -1), []
    for per_axis in (8, 16) if sizes is FULL else (3,):
        for dtype in ("float32", "float64"):
            maps = setting_of(images, per_axis, dtype).maps
            m_y, m_x = maps.shape
            kernel = KernelValues(maps.y_kernel, maps.y_landmarks[:512], dtype=dtype)
            points = np.zeros((512, 3)) + rng(1).normal(size=(512, 3))
            points = points.astype(dtype)
            left, right = np.ones((1024, 1024), dtype), np.ones((1024, 1024), dtype)
            wide, flat = np.ones((m_y, m_y)), np.ones((m_y, 2 * m_x))
            maps(rows[:1])
            took = seconds(
                {
                    "maps": lambda maps=maps: maps(rows),
                    "values": lambda kernel=kernel, points=points: kernel(points),
                    "product": lambda left=left, right=right: left @ right,
                    "white": lambda wide=wide, flat=flat: wide @ flat,
                },
                sizes.turns,
            )
            n_values = side**2 * m_y
            products = m_y * side * 20 * (side + 10)
            bound = (
                took["values"] * n_values / (512 * kernel.y.shape[0])
                + took["product"] * products / 1024**3
                + took["white"] / 2
            )
            lines.append(
                Line(
                    name=f"map of a photo, {side} x {side}, M_Y = {m_y}, {dtype}: ceiling over it",
                    value=1e3 * bound,
                    against=1e3 * took["maps"] / n,
                    unit="ms",
                    goal=">= 0.6",
                )
            )
    return lines


def as_published(f: Any, g: Any, y_landmarks: Any, lam: float) -> float:
    """One pair, as the authors' code goes about it: all of it for each pair, inverses in full."""
    side = f.shape[0]
    axis, few = np.linspace(-1, 1, side), np.linspace(-1, 1, 10)
    window = np.clip(np.blackman(side), 0, None)
    x = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    x_few = np.stack(np.meshgrid(few, few, indexing="ij"), -1).reshape(-1, 2)
    k_x = np.exp(-18 * _squared(x, x_few))
    r_x = np.linalg.cholesky(np.exp(-18 * _squared(x_few, x_few))).T
    r_y = np.linalg.cholesky(np.exp(-5 * np.sqrt(_squared(y_landmarks, y_landmarks)))).T
    maps = []
    for image, mask in ((f, np.outer(window, window).ravel()), (g, np.ones(side**2))):
        values = np.exp(-5 * np.sqrt(_squared(y_landmarks, image.reshape(-1, 3))))
        white = scipy.linalg.solve_triangular(r_y, values, trans="T", check_finite=False)
        maps.append(4 / side**2 * (white * mask) @ k_x @ np.linalg.inv(r_x))
    a, b = maps
    inner = np.linalg.inv(b @ b.T + lam * np.eye(len(b)))
    return float(lam * np.linalg.eigvalsh(a.T @ inner @ a)[-1])


def did_matrix(sizes: Sizes) -> list[Line]:
    """All pairs of photos, maps and all, against as many pairs one at a time."""
    side, n = (SIDE, N_IMAGES) if sizes is FULL else (12, 4)
    images, lines = photos(sizes, n, side), []
    for per_axis in (8, 16) if sizes is FULL else (3,):
        setting = setting_of(images, per_axis, None)
        landmarks = setting.maps.y_landmarks
        scaled = (images[:2] - setting.maps.mean) / setting.maps.std
        found = did.matrix(images[:2], lam=1e-2, y_landmarks=per_axis, scheduler="sync")
        one = as_published(scaled[0], scaled[1], landmarks, 1e-2)
        own = float(found["dissimilarity"][0, 0, 1])
        lines.append(
            Line(
                name=f"relative difference from it, M_Y = {len(landmarks)}, float32 maps",
                value=abs(own / one - 1),
                unit="",
                goal="<= 1e-5",
            )
        )
        pair = seconds(
            {"pair": lambda s=scaled, y=landmarks: as_published(s[0], s[1], y, 1e-2)}, 1
        )["pair"]
        for lams in ([1e-2], [1e-2, 1e-3, 1e-4, 1e-6]):
            took = times(
                {
                    "all": lambda lams=lams, k=per_axis: did.matrix(
                        images, lam=lams, y_landmarks=k, scheduler="sync"
                    )
                },
                max(1, sizes.turns - 1),
            )["all"]
            lines.append(
                Line(
                    name=f"{n}^2 photos, M_Y = {len(landmarks)}, {len(lams)} lambda: one pair at "
                    f"a time over it",
                    value=pair * n**2,
                    against=took[0],
                    goal=">= 500" if per_axis == 8 else ">= 1000",
                )
            )
    return lines


def _squared(x: Any, y: Any) -> Any:
    return scipy.spatial.distance.cdist(x, y, "sqeuclidean")
