import numpy as np
import pytest
import shape_data

from bigkd import shapes

FACES = {"elephant": 5558, "refined_elephant": 88928, "camel": 19536, "cow": 5804, "bear": 27648}


@pytest.mark.parametrize("name", FACES)
def test_mesh__is_a_closed_oriented_surface(fetch, name):
    surface = shapes.read_mesh(fetch(lambda: shape_data.mesh(name)))
    assert surface.sizes["element"] == FACES[name]
    assert surface.attrs["closed"]
    assert surface.attrs["oriented"]
    assert surface.attrs["source"] == f"{name}.off"


def test_cells__are_labelled_outlines(fetch):
    outlines, treatments, lines = fetch(shape_data.cells)
    assert len(outlines) == len(treatments) == len(lines) == 650
    assert (min(map(len, outlines)), max(map(len, outlines))) == (20, 1759)
    assert set(treatments) == {"control", "cytd", "jasp"}
    assert set(lines) == {"dlm8", "dunn"}
    curve = shapes.polyline(outlines[0], closed=True, degenerate="drop")
    assert curve.attrs["closed"]
    total = curve["weight"].values @ curve["vector"].values
    np.testing.assert_allclose(total, 0.0, atol=1e-9)
