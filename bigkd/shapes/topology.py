"""Which edges of a mesh meet, and whether its faces agree on a side."""

from typing import NamedTuple

import numpy as np

from bigkd.shapes.elements import Floats, Integers


class Topology(NamedTuple):
    """How the faces of a mesh meet."""

    closed: int
    """Whether every edge belongs to exactly two faces."""

    oriented: int
    """Whether no two faces run along an edge in the same direction."""


def topology(vertices: Floats, faces: Integers) -> Topology:
    """Topology of triangles; vertices at the same place are one, as files such as STL need."""
    _, same = np.unique(vertices, axis=0, return_inverse=True)
    faces = same.reshape(-1)[faces]
    three = (faces != np.roll(faces, 1, axis=1)).all(axis=1)  # corners, not an edge or a point
    faces = faces[three]
    start, stop = faces.reshape(-1), np.roll(faces, -1, axis=1).reshape(-1)
    n = int(faces.max(initial=0)) + 1
    directed = np.unique(start * n + stop, return_counts=True)[1]
    shared = np.unique(np.minimum(start, stop) * n + np.maximum(start, stop), return_counts=True)[1]
    return Topology(closed=int((shared == 2).all()), oriented=int((directed == 1).all()))
