"""Segments and triangles in bulk: their measures, directions, sizes and halves."""

from itertools import combinations
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from bigkd.errors import DataError, EmptyInputError, InputError, MemoryPlanError

Floats = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]

Degenerate = Literal["raise", "drop"]

_FLAT = 8 * float(np.finfo(np.float64).eps)
"""Height of a triangle, over its longest edge, that may be rounding."""


class Elements(NamedTuple):
    """Flat pieces of a curve or a surface."""

    corner: Floats
    """Shape ``(n, 2, d)`` for segments, ``(n, 3, 3)`` for triangles."""

    measure: Floats
    """Length or area, shape ``(n,)``."""

    vector: Floats
    """Tangent or normal, or what stands for it, shape ``(n, c)``; zero where the measure is."""


def segments(corner: Floats) -> Elements:
    """Segments from ``corner[:, 0]`` to ``corner[:, 1]``."""
    return Elements(corner, *_length_and_direction(corner[:, 1] - corner[:, 0]))


def triangles(corner: Floats) -> Elements:
    """Triangles, with the normal that sees their corners counterclockwise."""
    edges = corner[:, 1:] - corner[:, :1]
    size = _or_one(np.abs(edges).max(axis=(1, 2), initial=0.0))
    edges = edges / size[:, None, None]
    twice, unit = _length_and_direction(np.cross(edges[:, 0], edges[:, 1]), least=_FLAT)
    return Elements(corner, 0.5 * twice * size * size, unit)


def usable(elements: Elements, degenerate: Degenerate, name: str) -> Elements:
    """The elements that have a direction; the others are an error, or dropped.

    Raises
    ------
    DataError
        If an element called `name` has no direction and `degenerate` is ``"raise"``.
    EmptyInputError
        If none is left.
    """
    if degenerate not in get_args(Degenerate):
        raise InputError(f'degenerate must be "raise" or "drop"; got {degenerate!r}.')
    bad = np.flatnonzero(~(elements.measure > 0))
    if bad.size and degenerate == "raise":
        raise DataError(
            f"{name} {bad[0]} has no extent and so no direction: its corners are "
            f"{elements.corner[bad[0]].tolist()}. There are {bad.size} such among "
            f'{elements.measure.size}; pass degenerate="drop" to leave them out.'
        )
    if bad.size == elements.measure.size:
        raise EmptyInputError(f"a shape needs a {name} that has an extent; none of these has.")
    return (
        Elements(*(np.delete(array, bad, axis=0) for array in elements)) if bad.size else elements
    )


def centres(corner: Floats) -> Floats:
    """Midpoints or centroids, shape ``(n, d)``."""
    first = corner[:, 0]
    return np.asarray(first + (corner - first[:, None]).sum(axis=1) / corner.shape[1])


def reaches(corner: Floats) -> Floats:
    """Distance from the centre of each element to its furthest point, which is a corner."""
    return np.asarray(np.sqrt(_squared_radii(corner).max(axis=1, initial=0.0)))


def mean_square_distance(corner: Floats, measure: Floats) -> float:
    """Mean squared distance of the points of a shape from the centres of their elements.

    Over a simplex with k corners it is the sum of their squared distances over k (k + 1).
    """
    k = corner.shape[1]
    inside = _squared_radii(corner).sum(axis=1) / (k * (k + 1))
    return float((measure / measure.sum()) @ inside)


def halved(elements: Elements, *, max_distance: float, max_elements: int) -> Elements:
    """Elements cut at the middle of their longest edge until none reaches further.

    Pieces of an element stay together and keep its direction; their measures add up to its own.

    Raises
    ------
    MemoryPlanError
        If there would be more than `max_elements`.
    """
    _refuse_too_many(_fewest(elements, max_distance), max_distance, max_elements)
    done: list[tuple[Floats, Floats, Integers]] = []
    corner, measure, parent = elements.corner, elements.measure, np.arange(elements.measure.size)
    n_done = 0
    while measure.size:
        far = reaches(corner) > max_distance
        done.append((corner[~far], measure[~far], parent[~far]))
        n_done += len(parent) - int(far.sum())
        corner = _halves(corner[far])
        measure = np.repeat(0.5 * measure[far], 2)
        parent = np.repeat(parent[far], 2)
        _refuse_too_many(n_done + parent.size, max_distance, max_elements)
    corner, measure, parent = (np.concatenate(arrays) for arrays in zip(*done, strict=True))
    order = np.argsort(parent, kind="stable")
    return Elements(corner[order], measure[order], elements.vector[parent[order]])


def _halves(corner: Floats) -> Floats:
    """Both halves of each element, one after the other, shape ``(2 n, k, d)``."""
    edges = np.array(list(combinations(range(corner.shape[1]), 2)))
    length = ((corner[:, edges[:, 0]] - corner[:, edges[:, 1]]) ** 2).sum(axis=2)
    start, stop = edges[length.argmax(axis=1)].T
    at = np.arange(len(corner))
    middle = corner[at, start] + 0.5 * (corner[at, stop] - corner[at, start])
    both = np.repeat(corner, 2, axis=0)
    both[2 * at, stop] = middle
    both[2 * at + 1, start] = middle
    return both


def _fewest(elements: Elements, max_distance: float) -> float:
    """As many pieces at least: none of them measures more than a regular one."""
    regular = 2.0 * max_distance
    if elements.corner.shape[1] == 3:
        regular = 0.75 * np.sqrt(3.0) * max_distance * max_distance
    return float(np.sum(elements.measure / regular))


def _refuse_too_many(n: float, max_distance: float, max_elements: int) -> None:
    if n > max_elements:
        raise MemoryPlanError(
            f"pieces that reach no further than {max_distance:.6g} would be {n:.3g} or more; "
            f"max_elements is {max_elements}. Ask for less, or pass a larger max_elements."
        )


def _squared_radii(corner: Floats) -> Floats:
    return np.asarray(((corner - centres(corner)[:, None]) ** 2).sum(axis=2))


def _length_and_direction(vector: Floats, least: float = 0.0) -> tuple[Floats, Floats]:
    """Lengths and unit vectors, both zero where the length is at most `least`."""
    size = _or_one(np.abs(vector).max(axis=1, initial=0.0))  # squares stay in range
    scaled = vector / size[:, None]
    norm = np.sqrt((scaled * scaled).sum(axis=1))
    length = np.where(norm * size > least, norm * size, 0.0)
    return length, np.where(length > 0, 1.0, 0.0)[:, None] * scaled / _or_one(norm)[:, None]


def _or_one(values: Floats) -> Floats:
    return np.where(values > 0, values, 1.0)
