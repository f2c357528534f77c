"""Landmarks: the few positions and values that kernels are projected on (Nyström points)."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.linalg

from bigkd.backends import rng
from bigkd.did.layout import product_grid
from bigkd.errors import InputError
from bigkd.kernels import Kernel
from bigkd.linalg import Matrix

LandmarkChoice: TypeAlias = "int | str | Any | None"

KINDS = ("grid", "random", "data")
_STREAM = 0x6C616E64  # keeps these numbers apart from other uses of a seed
_CANDIDATES = 3_000


class Landmarks(NamedTuple):
    """Landmarks, and how they came about."""

    points: Matrix
    """Shape ``(M, d)``."""

    axes: tuple[Matrix, ...] | None
    """Numbers along each axis, where the landmarks are their product."""

    about: str
    """Such as ``"grid of 10 x 10"``."""


class Wanted(NamedTuple):
    """A choice, taken apart."""

    kind: str
    number: int


def wanted(name: str, choice: LandmarkChoice, default: Wanted) -> Wanted | Matrix:
    """`choice` taken apart: a number is a grid of so many on each axis; an array stays as it is.

    Raises
    ------
    InputError
        If it is none of the choices.
    """
    if choice is None:
        return default
    if isinstance(choice, int | np.integer) and not isinstance(choice, bool):
        choice = f"grid:{choice}"
    if isinstance(choice, str):
        kind, _, count = choice.partition(":")
        if kind in KINDS and (count.isdigit() and int(count) >= 1):
            return Wanted(kind, int(count))
    elif hasattr(choice, "shape"):
        points = np.asarray(choice, dtype=np.float64)
        if points.ndim == 2 and points.size and np.isfinite(points).all():
            return points
        raise InputError(
            f"{name} as an array must have shape (number, dimensions) and finite numbers; got "
            f"shape {points.shape}."
        )
    raise InputError(
        f"{name} must be a whole number (of grid points on each axis), 'grid:8', 'random:500', "
        f"'data:500', or an array of points; got {choice!r}."
    )


def of_positions(
    choice: LandmarkChoice, axes: Sequence[Matrix], kernel: Kernel, *, seed: int
) -> Landmarks:
    """Landmarks among positions: by default 10 on each of two axes, 20 on one, 5 on each of more.

    A grid reaches from end to end of the domain; ``data`` are positions of the grid of the data,
    each chosen where those before leave most of the kernel unexplained.
    """
    d = len(axes)
    chosen = wanted("x_landmarks", choice, Wanted("grid", {1: 20, 2: 10}.get(d, 5)))
    low, high = (np.asarray([edge(axis) for axis in axes]) for edge in (np.min, np.max))
    if isinstance(chosen, np.ndarray):
        given = _given("x_landmarks", chosen, d)
        if not ((chosen >= low - 1e-9) & (chosen <= high + 1e-9)).all():
            raise InputError(
                f"x_landmarks must lie in the domain, which is {low[0]:g} to {high[0]:g} along "
                f"each axis whatever the coordinates are; got {chosen.min():g} to {chosen.max():g}."
            )
        return given
    positions = product_grid(axes) if chosen.kind == "data" else np.zeros((0, d))
    return _chosen(chosen, low, high, positions, kernel, seed=seed, stream=0)


def of_values(
    choice: LandmarkChoice,
    low: Matrix,
    high: Matrix,
    values: Sequence[Matrix],
    kernel: Kernel,
    *,
    seed: int,
) -> Landmarks:
    """Landmarks among values between `low` and `high`, in the kernel's units.

    By default a grid: 8 on each axis of three, 22 of two, 64 of one; 512 chosen from the data where
    a point has more values than three.
    """
    d = low.size
    grid = Wanted("grid", {1: 64, 2: 22}.get(d, 8))
    chosen = wanted("y_landmarks", choice, grid if d <= 3 else Wanted("data", 512))
    if isinstance(chosen, np.ndarray):
        return _given("y_landmarks", chosen, d)
    return _chosen(chosen, low, high, np.concatenate(values), kernel, seed=seed, stream=1)


def _given(name: str, points: Matrix, d: int) -> Landmarks:
    if points.shape[1] != d:
        raise InputError(f"{name} must have {d} columns; got shape {points.shape}.")
    return Landmarks(points, None, f"{points.shape[0]} given points")


def _chosen(
    choice: Wanted,
    low: Matrix,
    high: Matrix,
    candidates: Matrix,
    kernel: Kernel,
    *,
    seed: int,
    stream: int,
) -> Landmarks:
    kind, count = choice
    if kind == "grid":
        axes = tuple(
            np.linspace(a, b, count) if b > a and count > 1 else np.asarray([(a + b) / 2])
            for a, b in zip(low, high, strict=True)
        )
        size = " x ".join(str(axis.size) for axis in axes)
        return Landmarks(product_grid(axes), axes, f"grid of {size}")
    generator = rng(seed, _STREAM, stream)
    if kind == "random":
        points = low + (high - low) * generator.random((count, low.size))
        return Landmarks(points, None, f"{count} random points")
    points = _spread(candidates, count, kernel, generator)
    return Landmarks(points, None, f"{points.shape[0]} points of the data")


def _spread(
    candidates: Matrix, count: int, kernel: Kernel, generator: np.random.Generator
) -> Matrix:
    """Those of the candidates that a pivoted Cholesky factorisation of their Gram takes first."""
    unique = np.unique(candidates[np.isfinite(candidates).all(axis=1)], axis=0)
    most = max(_CANDIDATES, count)
    if unique.shape[0] > most:
        unique = unique[np.sort(generator.choice(unique.shape[0], most, replace=False))]
    gram = np.asfortranarray(kernel(unique, unique))
    _, pivots, rank, _ = scipy.linalg.lapack.dpstrf(gram, lower=1, tol=1e-10)
    return np.asarray(unique[pivots[: min(count, rank)] - 1])
