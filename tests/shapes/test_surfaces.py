import dask.array as da
import numpy as np
import pytest
import trimesh
import xarray as xr

from bigkd import shapes
from bigkd.errors import DataError, EmptyInputError, InputError, ShapeError
from bigkd.io import load_dataset, save_dataset
from bigkd.kernels import Gaussian
from tests.shapes.helpers import TETRAHEDRON, sphere

VERTICES, FACES = TETRAHEDRON


def test_triangle_mesh__has_centroids_normals_and_areas():
    surface = shapes.triangle_mesh(VERTICES, FACES[:1])
    np.testing.assert_allclose(surface["point"].values, [[2 / 3, 0.5, 0.0]])
    assert surface["weight"].values.tolist() == [1.5]
    assert surface["vector"].values.tolist() == [[0.0, 0.0, -1.0]]
    assert surface.attrs["reach"] == pytest.approx(np.hypot(4 / 3, 0.5))
    assert surface.attrs["mean_square_distance"] == pytest.approx((4 + 2.25 + 6.25) / 36)
    assert surface.attrs["form"] == "surface"


def test_triangle_mesh__agrees_with_trimesh():
    rows = np.random.default_rng(0)
    vertices, faces = rows.normal(size=(50, 3)), np.arange(48).reshape(16, 3)
    surface, other = shapes.triangle_mesh(vertices, faces), trimesh.Trimesh(vertices, faces)
    np.testing.assert_allclose(surface["point"], other.triangles_center, rtol=1e-13)
    np.testing.assert_allclose(surface["weight"], other.area_faces, rtol=1e-13)
    np.testing.assert_allclose(surface["vector"], other.face_normals, rtol=1e-12)


def test_triangle_mesh__area_vectors_of_a_closed_surface_cancel():
    ball = sphere(2.0, 3)
    assert ball.attrs["closed"]
    assert ball.attrs["oriented"]
    total = ball["weight"].values @ ball["vector"].values
    np.testing.assert_allclose(total / ball.attrs["total_measure"], 0.0, atol=1e-15)
    assert (ball["vector"].values * ball["point"].values).sum(axis=1).min() > 1.9  # outward


def flipped(faces, at):
    faces = faces.copy()
    faces[at] = faces[at, ::-1]
    return faces


@pytest.mark.parametrize(
    ("faces", "closed", "oriented"),
    [
        (FACES, True, True),
        (FACES[:3], False, True),
        (flipped(FACES, 1), True, False),
        (np.concatenate([FACES, FACES[:1]]), False, False),
        (np.concatenate([FACES, [[1, 1, 2]]]), True, True),
    ],
    ids=["closed", "hole", "one flipped", "one twice", "one an edge"],
)
def test_triangle_mesh__says_whether_it_is_closed_and_oriented(faces, closed, oriented):
    surface = shapes.triangle_mesh(VERTICES, faces, degenerate="drop")
    assert (surface.attrs["closed"], surface.attrs["oriented"]) == (closed, oriented)


def test_triangle_mesh__vertices_at_one_place_are_one():
    soup = VERTICES[FACES].reshape(-1, 3)
    surface = shapes.triangle_mesh(soup, np.arange(12).reshape(4, 3))
    assert surface.attrs["closed"]
    assert surface.attrs["oriented"]


@pytest.mark.parametrize(
    "put",
    [
        lambda x: x.tolist(),
        xr.DataArray,
        lambda x: da.from_array(x, chunks=2),
        lambda x: x.astype("u1") if x.dtype.kind == "i" else x.astype("f4"),
    ],
    ids=["lists", "xarray", "dask", "narrow"],
)
def test_triangle_mesh__takes_any_array(put):
    given = shapes.triangle_mesh(put(VERTICES), put(FACES))
    xr.testing.assert_identical(given, shapes.triangle_mesh(VERTICES, FACES))


def test_triangle_mesh__takes_arrays_of_any_namespace(put):
    given = shapes.triangle_mesh(put(VERTICES), put(FACES))
    xr.testing.assert_identical(given, shapes.triangle_mesh(VERTICES, FACES))


@pytest.mark.parametrize("scale", [1e-140, 1e-3, 1e140])
def test_triangle_mesh__keeps_its_digits_at_any_scale(scale):
    surface = shapes.triangle_mesh(VERTICES * scale, FACES)
    plain = shapes.triangle_mesh(VERTICES, FACES)
    np.testing.assert_allclose(surface["weight"], plain["weight"] * scale**2, rtol=1e-14)
    np.testing.assert_allclose(surface["vector"], plain["vector"], atol=1e-15)


@pytest.mark.parametrize(
    "third", [[2.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], ids=["end", "start", "between"]
)
def test_triangle_mesh__degenerate_triangle_is_named_or_dropped(third):
    vertices = np.concatenate([VERTICES, [third]])
    faces = np.concatenate([FACES[:2], [[0, 1, 4]]])
    with pytest.raises(DataError, match=r"triangle 2 has no extent.*1 such among 3"):
        shapes.triangle_mesh(vertices, faces)
    dropped = shapes.triangle_mesh(vertices, faces, degenerate="drop")
    assert dropped.attrs["n_dropped"] == 1
    assert dropped.sizes["element"] == 2


def test_triangle_mesh__rounding_is_not_an_area():
    direction = np.array([0.19, -0.52, -0.41]) / 7
    line = [0.3, 0.1, 0.7] + np.array([[0.0], [1.0], [3.0]]) * direction
    assert np.any(np.cross(line[1] - line[0], line[2] - line[0]))
    with pytest.raises(DataError, match="triangle 0 has no extent"):
        shapes.triangle_mesh(line, [[0, 1, 2]])


@pytest.mark.parametrize(
    ("vertices", "faces", "error", "match"),
    [
        (VERTICES[:, :2], FACES, ShapeError, r"must have shape \(n, 3\); got \(4, 2\)"),
        (VERTICES, [[0, 1, 2, 3]], ShapeError, r"faces must have shape \(m, 3\).*Cut polygons"),
        (VERTICES, [0, 1, 2], ShapeError, "faces must have shape"),
        (VERTICES, [[0, 1, 2], [0, 1]], ShapeError, "same width"),
        (VERTICES, np.zeros((0, 3), int), EmptyInputError, "faces is empty"),
        (np.zeros((0, 3)), FACES, EmptyInputError, "vertices is empty"),
        (VERTICES, FACES.astype(float), InputError, "must be integers.*float64"),
        (VERTICES, [[0, 1, 2], [1, 2, 4]], InputError, r"faces\[1\] is \[1, 2, 4\].*4 vertices"),
        (VERTICES, [[0, -1, 2]], InputError, r"faces\[0\] is \[0, -1, 2\]"),
        (np.where(VERTICES == 1.5, np.nan, VERTICES), FACES, DataError, "row 2 is"),
    ],
)
def test_triangle_mesh__bad_input(vertices, faces, error, match):
    with pytest.raises(error, match=match):
        shapes.triangle_mesh(vertices, faces)


@pytest.mark.parametrize("orientation", ["current", "varifold"])
def test_shapes__can_be_kept(tmp_path, orientation):
    surface = shapes.grid(
        shapes.triangle_mesh(VERTICES, FACES, orientation=orientation),
        kernel=Gaussian(1.0),
        eps=0.2,
    )
    save_dataset(surface, tmp_path / "surface.zarr", kind="shape")
    xr.testing.assert_identical(load_dataset(tmp_path / "surface.zarr", kind="shape"), surface)
    surface.drop_vars("corner").to_netcdf(tmp_path / "surface.nc", engine="scipy")
