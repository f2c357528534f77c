"""Real curves and surfaces for the examples; fetched, kept and checked as in `data`.

=================  ======================  =====================================================
`mesh`             Debian                  surfaces of CGAL's demos; with CGAL, LGPL and GPL
`cells`            PyPI ``geomstats``      650 outlines of cells with labels; MIT
=================  ======================  =====================================================
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from data import Package, package_file


class Cells(NamedTuple):
    """Outlines of mouse cancer cells, what they were treated with, and their cell line."""

    outlines: list[np.ndarray]
    """Shape ``(n, 2)`` each, of closed curves."""

    treatments: list[str]
    """``control``, ``cytd`` or ``jasp``."""

    lines: list[str]
    """``dlm8`` or ``dunn``."""


CGAL = Package(
    client="apt-get",
    name="libcgal-demo",
    folder="cgal",
    archive="usr/share/doc/libcgal-dev/data.tar.gz",
    within="data/meshes",
    files={
        "elephant.off": "be4e1ea68f5f840a3d2ada69d828222e76a57d9e25b21e19a9deacd3f2328e02",
        "refined_elephant.off": "a170eed4ef33ef412a72b824d791f69ea59ee5f5a7c12dc1ae9077b6eb030650",
        "camel.off": "9ac960a9fee27e6fcc6baaa2340260834625084ee20f4a97194212404e650a22",
        "cow.off": "1c5a25c3047fc6b14dd0c962d3562b1796671422ab4634f9d46f9f23814cd54a",
        "bull.off": "5c7b9631f8c278c12b30c0eea0b72da871504674516daf7d7eaaf5fa4154224a",
        "bear.off": "058f6ce62635e5f86958adea9706a8dca3ebe4fae76a0d32b8318d107d40bda6",
        "triceratops.off": "0fb444933884486a09eb4329a832f15ab792590f2a5bb75385d157e654ddbf5c",
        "diplodocus.off": "661fdac29eca4b205e354da112b3cbfd08dcfae07df989234b71421e62521c96",
        "bunny00.off": "ab651cb04955c161efaeb079035a1e5e1f0e0d1f816a2df67beaea68f393ff2b",
    },
)
CELLS = Package(
    client="pip",
    name="geomstats==2.8.0",
    folder="cells",
    within="geomstats/datasets/data/cells",
    files={
        "cells.txt": "76d7ead0f619a93d9c6b026f6e1eada81b5fbc8f54c45f3a48c71babc2dc3918",
        "treatments.txt": "3144c1415cc82f74844bfbb23bee70e1e9908ba49e754788c9c3f20b4e67b329",
        "cell_lines.txt": "cfae6e57367ac429d969627ae3eb539b7e464b95e900360a194da779c5b43ffa",
    },
)


def mesh(name: str) -> Path:
    """The OFF file of one of the surfaces in `CGAL`."""
    return package_file(CGAL, f"{name}.off")


def cells() -> Cells:
    """The outlines of 650 cells, of 20 to 1759 points, in the order of their files."""
    blocks = package_file(CELLS, "cells.txt").read_text(encoding="utf-8").split("\n\n")
    treatments, lines = (
        package_file(CELLS, f"{name}.txt").read_text(encoding="utf-8").split()
        for name in ("treatments", "cell_lines")
    )
    outlines = [np.array(block.split(), dtype=np.float64).reshape(-1, 2) for block in blocks]
    return Cells([outline for outline in outlines if len(outline)], treatments, lines)
