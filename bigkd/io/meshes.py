"""Surfaces in files. The only user of trimesh."""

from pathlib import Path
from typing import Any

import numpy as np

from bigkd.errors import DataError, InputError, StoreError
from bigkd.io.optional import require

FORMATS = ("off", "obj", "ply", "stl")


def read_mesh(path: str | Path) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Vertices ``(n, 3)`` and triangles ``(m, 3)`` as the file has them; polygons are cut up.

    Raises
    ------
    InputError
        If the name does not end in one of `FORMATS`.
    StoreError
        If there is no such file.
    DataError
        If the file cannot be read or has no faces.
    """
    path = Path(path)
    file_type = path.suffix.lower().removeprefix(".")
    if file_type not in FORMATS:
        raise InputError(f"a mesh file must end in {', '.join(FORMATS)}; got {path.name!r}.")
    if not path.is_file():
        raise StoreError(f"{path} does not exist (looked in {Path.cwd()}).")
    trimesh = require("trimesh", extra="meshes")
    try:
        with path.open("rb") as file:
            mesh = trimesh.load(file, file_type=file_type, process=False, force="mesh")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise DataError(f"{path} could not be read as {file_type.upper()}: {error}.") from error
    faces = np.asarray(getattr(mesh, "faces", ()))
    if len(faces) == 0:
        raise DataError(f"{path} has no faces: a surface needs triangles. Was it a point cloud?")
    return np.asarray(mesh.vertices, dtype=np.float64), faces
