import sys

import numpy as np
import pytest
import trimesh

from bigkd import shapes
from bigkd.errors import DataError, InputError, MissingDependencyError, StoreError
from bigkd.io.meshes import FORMATS, read_mesh

VERTICES = np.array(
    [[x, y, z] for x in (0.0, 1.0) for y in (0.0, 2.0) for z in (0.0, 3.0)], dtype="f8"
)
QUADS = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
FACES = np.array([quad[:3] for quad in QUADS] + [[q[0], q[2], q[3]] for q in QUADS])


def lines(*parts):
    return "\n".join(" ".join(map(str, part)) for part in parts) + "\n"


def written(folder, suffix):
    path = folder / f"box.{suffix}"
    trimesh.Trimesh(VERTICES, FACES, process=False).export(path)
    return path


@pytest.mark.parametrize("suffix", [*FORMATS, "OFF", "Ply"])
def test_read_mesh__reads_what_trimesh_writes(tmp_path, suffix):
    path = written(tmp_path, suffix.lower()).rename(tmp_path / f"Box.{suffix}")
    vertices, faces = read_mesh(path)
    np.testing.assert_allclose(vertices[faces], VERTICES[FACES], atol=1e-6)


@pytest.mark.parametrize("suffix", ["off", "obj"])
def test_read_mesh__keeps_vertices_and_faces_as_they_stand(tmp_path, suffix):
    vertices, faces = read_mesh(str(written(tmp_path, suffix)))
    np.testing.assert_array_equal(vertices, VERTICES)
    np.testing.assert_array_equal(faces, FACES)


def test_read_mesh__cuts_polygons(tmp_path):
    off = tmp_path / "box.off"
    off.write_text("OFF\n" + lines([8, 6, 0], *VERTICES, *([4, *quad] for quad in QUADS)))
    obj = tmp_path / "box.obj"
    corners = (["f", *(at + 1 for at in quad)] for quad in QUADS)
    obj.write_text("mtllib none.mtl\n" + lines(*(["v", *row] for row in VERTICES), *corners))
    for path in (off, obj):
        box = shapes.read_mesh(path)
        assert box.sizes["element"] == 12
        assert box.attrs["total_measure"] == pytest.approx(2 * (2 + 3 + 6))
        assert box.attrs["closed"]
        assert box.attrs["oriented"]
        assert box.attrs["source"] == path.name


@pytest.mark.parametrize("suffix", FORMATS)
def test_read_mesh__gives_a_closed_oriented_surface(tmp_path, suffix):
    box = shapes.read_mesh(written(tmp_path, suffix), orientation="varifold")
    assert box.attrs["closed"]
    assert box.attrs["oriented"]
    assert box.sizes["component"] == 6


def test_read_mesh__no_such_file(tmp_path):
    with pytest.raises(StoreError, match=r"none\.off does not exist"):
        read_mesh(tmp_path / "none.off")


@pytest.mark.parametrize("name", ["box.stp", "box", "box.npy"])
def test_read_mesh__unknown_suffix(tmp_path, name):
    (tmp_path / name).write_text("")
    with pytest.raises(InputError, match="must end in off, obj, ply, stl; got 'box"):
        read_mesh(tmp_path / name)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("content", [b"", b"nonsense\n1 2 3\n", bytes(range(256))])
def test_read_mesh__what_is_no_mesh(tmp_path, suffix, content):
    path = tmp_path / f"broken.{suffix}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"broken\.{suffix} (could not be read|has no faces)"):
        read_mesh(path)


@pytest.mark.parametrize("suffix", ["off", "ply"])
def test_read_mesh__cut_off_in_the_middle(tmp_path, suffix):
    path = written(tmp_path, suffix)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError):
        shapes.read_mesh(path)


def test_read_mesh__points_have_no_faces(tmp_path):
    trimesh.PointCloud(VERTICES).export(tmp_path / "points.ply")
    with pytest.raises(DataError, match="has no faces"):
        read_mesh(tmp_path / "points.ply")


def test_read_mesh__says_which_extra_is_missing(tmp_path, monkeypatch):
    path = written(tmp_path, "off")
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'bigkd\[meshes\]'"):
        read_mesh(path)
