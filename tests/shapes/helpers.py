"""Kernel distances of shapes by definition, and shapes to try."""

import numpy as np
import trimesh

from bigkd import shapes


def kappa(x, y, kernel):
    """Sum over all pairs of weights, kernel and inner products of directions."""
    inner = x["vector"].values @ y["vector"].values.T
    values = kernel(x["point"].values, y["point"].values)
    return float(x["weight"].values @ (inner * values) @ y["weight"].values)


def distance_squared(x, y, kernel):
    return kappa(x, x, kernel) + kappa(y, y, kernel) - 2.0 * kappa(x, y, kernel)


def circle(radius, n, **options):
    angle = 2.0 * np.pi * np.arange(n) / n
    vertices = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return shapes.polyline(vertices, closed=True, **options)


def sphere(radius, level, **options):
    """20 * 4**level triangles, normals outward."""
    mesh = trimesh.creation.icosphere(subdivisions=level, radius=radius)
    return shapes.triangle_mesh(mesh.vertices, mesh.faces, **options)


def crooked(seed, d=3, n=7):
    """Vertices of a crooked curve a few units long."""
    return np.random.default_rng(seed).normal(size=(n, d))


TETRAHEDRON = (
    np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 1.5, 0.0], [0.0, 0.0, 1.0]]),
    np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]),
)
"""Vertices and faces, normals outward."""
