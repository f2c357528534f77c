import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bigkd import shapes
from bigkd.errors import InputError
from bigkd.kernels import Gaussian
from tests.shapes.helpers import TETRAHEDRON, circle, crooked, distance_squared, kappa

KERNEL = Gaussian(0.8)
SHAPES = [
    pytest.param(lambda **o: shapes.polyline(crooked(1), **o), id="curve"),
    pytest.param(lambda **o: circle(1.0, 30, **o), id="circle"),
    pytest.param(lambda **o: shapes.triangle_mesh(*TETRAHEDRON, **o), id="surface"),
]


@pytest.mark.parametrize("make", SHAPES)
def test_reverse__of_a_current_gives_four_kappa_exactly(make):
    shape = make()
    back = shapes.reverse(shape)
    own = kappa(shape, shape, KERNEL)
    assert own > 0
    assert kappa(back, back, KERNEL) == own
    assert kappa(shape, back, KERNEL) == -own
    assert distance_squared(shape, back, KERNEL) == 4 * own


@pytest.mark.parametrize("make", SHAPES)
def test_reverse__is_what_reversed_vertices_give(make):
    shape = make()
    back = shapes.reverse(shape)
    made = shapes.refine(back, max_distance=100.0)
    xr.testing.assert_identical(made["vector"], back["vector"])
    corner = back["corner"].values
    first, last = corner[:, 1] - corner[:, 0], corner[:, -1] - corner[:, 0]
    direction = first if corner.shape[1] == 2 else np.cross(first, last)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    np.testing.assert_allclose(direction, back["vector"].values, atol=1e-12)
    xr.testing.assert_identical(shapes.reverse(back), shape)


@pytest.mark.parametrize("make", SHAPES)
def test_reverse__leaves_a_varifold_alone(make):
    shape = make(orientation="varifold")
    xr.testing.assert_identical(shapes.reverse(shape), shape)
    other_way = shapes.varifold(shapes.reverse(make()))
    xr.testing.assert_identical(other_way["vector"], shape["vector"])


def test_reverse__does_not_change_its_argument():
    shape = circle(1.0, 5)
    copy = shape.copy(deep=True)
    shapes.reverse(shape)
    shapes.varifold(shape)
    xr.testing.assert_identical(shape, copy)


@pytest.mark.parametrize("make", SHAPES)
def test_varifold__is_what_the_option_makes(make):
    xr.testing.assert_identical(
        shapes.varifold(make()).drop_attrs(), make(orientation="varifold").drop_attrs()
    )
    assert shapes.varifold(make()).attrs == make(orientation="varifold").attrs
    xr.testing.assert_identical(shapes.varifold(shapes.varifold(make())), shapes.varifold(make()))


@given(edges=hnp.arrays("f8", st.tuples(st.integers(2, 6), st.integers(1, 5)),
                        elements=st.integers(-5, 5)))  # fmt: skip
def test_varifold__inner_products_are_squares(edges):
    edges = edges[np.any(edges != 0, axis=1)]
    curves = [np.stack([np.zeros_like(edge), edge]) for edge in edges]
    if not curves:
        return
    current = shapes.polyline(curves)
    squares = (current["vector"].values @ current["vector"].values.T) ** 2
    vector = shapes.varifold(current)["vector"].values
    d = edges.shape[1]
    assert vector.shape[1] == d * (d + 1) // 2
    np.testing.assert_allclose(vector @ vector.T, squares, atol=1e-14)


@pytest.mark.parametrize("orientation", ["current", "varifold"])
def test_distance__is_the_same_after_a_rigid_motion(orientation):
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    rotation *= np.sign(np.linalg.det(rotation))  # not a mirror, which turns normals round
    vertices, faces = TETRAHEDRON
    moved = vertices @ rotation.T + [3.0, -2.0, 5.0]
    larger = 1.2 * vertices + 0.1
    moved_larger = larger @ rotation.T + [3.0, -2.0, 5.0]
    before, after = (
        distance_squared(
            *(shapes.triangle_mesh(v, faces, orientation=orientation) for v in pair), KERNEL
        )
        for pair in ((vertices, larger), (moved, moved_larger))
    )
    assert after == pytest.approx(before, rel=1e-12)


def test_points__have_no_orientation():
    points = shapes.point_set(np.eye(3))
    with pytest.raises(InputError, match="cannot be reversed"):
        shapes.reverse(points)
    with pytest.raises(InputError, match="cannot be a varifold"):
        shapes.varifold(points)


@pytest.mark.parametrize("other", [None, np.eye(3), xr.Dataset({"point": ("x", [1.0])})])
def test_reverse__takes_shapes_only(other):
    with pytest.raises(InputError, match="must be a shape"):
        shapes.reverse(other)
