"""Which animals look alike? Surfaces of CGAL's animals under the kernel distance.

Each surface is put to a common measure: its centre of area at the origin, its area 1, its head
towards x. Nothing else is matched, and no two meshes have a vertex in common. One animal is there
twice: an elephant of 5,558 triangles, and the same smoothed into 88,928. Whatever is compared
should find these two nearest to each other, and much nearer than to any other animal. As currents,
surfaces are vector fields of normals, which cancel where two sheets, such as those of an ear, face
away from each other and are closer than the kernel is wide. As varifolds normals have no sign, and
nothing cancels.

Prints, for either, the distance of each animal from the elephant of 5,558 triangles and which other
animal is nearest to it. Distances are over the norm of that elephant: 0 is the same surface, and
1.4 about what surfaces have that share no place. Triangles that are too large for the kernel are
cut up first, and what putting points in place of the surfaces may change is printed as well.

Takes about ten seconds on two cores. Needs trimesh: ``pip install 'bigkd[meshes]'``. Meshes: CGAL's
demo data in Debian's package ``libcgal-demo``; see `shape_data`.
"""

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from shape_data import mesh

from bigkd import distance, kernels, shapes
from bigkd.io.meshes import read_mesh

ANIMALS = {
    "elephant": 0,
    "refined_elephant": 0,
    "camel": 90,
    "cow": 0,
    "bull": 180,
    "bear": 90,
    "triceratops": 0,
    "diplodocus": 0,
    "bunny00": 180,
}
"""Degrees to turn them about the vertical axis, y, so that they look towards x."""

SIGMA = 0.1
"""Length of the kernel, where the area is 1: a leg is about as thick, a body three times."""


EPS = 1e-7
"""Error of the squared distance, which is 1e-5 between the elephants."""


class Outcome(NamedTuple):
    """What the example found."""

    current: xr.Dataset
    """Of `bigkd.distance.matrix`, normals having a sign."""

    varifold: xr.Dataset
    """The same, normals having none."""

    error: xr.DataArray
    """What points in place of surfaces may change in a distance."""


def animal(name: str, *, kernel: kernels.Gaussian) -> xr.Dataset:
    """The surface of an animal as a current: centred, of area 1, and looking towards x."""
    vertices, faces = read_mesh(mesh(name))
    surface = shapes.triangle_mesh(vertices, faces)
    area = surface.attrs["total_measure"]
    centre = surface["weight"].values @ surface["point"].values / area
    angle = np.deg2rad(ANIMALS[name])
    cosine, sine = np.cos(angle), np.sin(angle)
    turn = np.array([[cosine, 0.0, sine], [0.0, 1.0, 0.0], [-sine, 0.0, cosine]])
    placed = (vertices - centre) @ turn.T / np.sqrt(area)
    return shapes.grid(shapes.triangle_mesh(placed, faces), kernel=kernel, eps=0.05)


def errors(animals: dict[str, xr.Dataset], kernel: kernels.Gaussian) -> xr.DataArray:
    """What points in place of surfaces may change in the distance of any two."""
    table = [
        [float(shapes.discretisation_error(one, other, kernel=kernel)["distance"])
         for other in animals.values()]
        for one in animals.values()
    ]  # fmt: skip
    names = list(animals)
    return xr.DataArray(table, dims=("x", "y"), coords={"x": names, "y": names})


def in_norms(found: xr.Dataset, values: xr.DataArray | None = None) -> xr.DataArray:
    """Distances, or other `values`, over the norm of the elephant."""
    norm = np.sqrt(found["kappa"].sel(x="elephant", y="elephant"))
    return (found["distance"] if values is None else values) / norm


def nearest(found: xr.Dataset) -> xr.DataArray:
    """The animal that is nearest to each, other than itself."""
    apart = found["distance"].where(found["x"] != found["y"], np.inf)
    return found["y"][apart.argmin("y")].drop_vars("y")


def report(outcome: Outcome, sizes: dict[str, int]) -> None:
    kinds = {"current": outcome.current, "varifold": outcome.varifold}
    print(
        "                            as currents                as varifolds\n"
        "animal            elements  distance  nearest          distance  nearest\n"
        "----------------  --------  --------  ---------------- --------  ----------------"
    )
    for name, size in sizes.items():
        parts = [
            f"{float(in_norms(found).sel(x='elephant', y=name)):8.4f}  "
            f"{nearest(found).sel(x=name).item():16s}"
            for found in kinds.values()
        ]
        print(f"{name:16s}  {size:8,d}  {' '.join(parts)}".rstrip())
    print()
    for kind, found in kinds.items():
        error = in_norms(found, outcome.error)
        print(
            f"As {kind}s, points in place of surfaces change the distance of the elephants by "
            f"{float(error.sel(x='elephant', y='refined_elephant')):.4f} at most, and any by "
            f"{float(error.max()):.4f}."
        )


def main(arguments: Sequence[str] | None = None) -> Outcome:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sigma", type=float, default=SIGMA, help="length of the Gaussian kernel")
    kernel = kernels.Gaussian(parser.parse_args(arguments).sigma)

    animals = {name: animal(name, kernel=kernel) for name in ANIMALS}
    current, varifold = (
        distance.matrix(collections, kernel=kernel, normalize=False, method="nufft", eps=EPS)
        for collections in (
            animals,
            {name: shapes.varifold(shape) for name, shape in animals.items()},
        )
    )
    outcome = Outcome(current, varifold, errors(animals, kernel))
    report(outcome, {name: shape.sizes["element"] for name, shape in animals.items()})
    return outcome


if __name__ == "__main__":
    main()
