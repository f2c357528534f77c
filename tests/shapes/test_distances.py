"""Shapes in `bigkd.distance`, whole and in parts."""

import numpy as np
import pytest

from bigkd import distance, shapes
from bigkd.errors import ShapeError
from bigkd.kernels import Gaussian
from tests.shapes.helpers import TETRAHEDRON, circle, distance_squared, kappa

KERNEL = Gaussian(0.7)
VERTICES, FACES = TETRAHEDRON


def tetrahedra(orientation):
    return [
        shapes.refine(shapes.triangle_mesh(v, FACES, orientation=orientation), max_distance=0.3)
        for v in (VERTICES, 1.3 * VERTICES - 0.1)
    ]


@pytest.mark.parametrize("orientation", ["current", "varifold"])
@pytest.mark.parametrize("method", ["exact", "nufft"])
def test_kernel_distance__takes_shapes(orientation, method):
    x, y = tetrahedra(orientation)
    found = distance.kernel_distance(x, y, kernel=KERNEL, normalize=False, method=method, eps=1e-8)
    slack = float(found["promise"])
    assert abs(float(found["distance_squared"]) - distance_squared(x, y, KERNEL)) <= slack
    assert slack < 1e-6 * kappa(x, x, KERNEL)
    assert found.attrs["W"] == pytest.approx(y.attrs["total_measure"])


def test_kernel_distance__takes_the_parts_of_shapes():
    x, y = tetrahedra("current")
    whole = distance.kernel_distance(x, y, kernel=KERNEL, normalize=False, method="exact")
    parts = distance.kernel_distance(
        x["point"],
        y["point"],
        x_weights=x["weight"],
        y_weights=y["weight"],
        x_vectors=x["vector"],
        y_vectors=y["vector"],
        kernel=KERNEL,
        normalize=False,
        method="exact",
    )
    assert float(whole["distance_squared"]) == float(parts["distance_squared"])


@pytest.mark.parametrize("method", ["exact", "nufft"])
def test_kernel_distance__of_a_current_from_its_reverse_is_four_kappa(method):
    x = circle(1.0, 64)
    found = distance.kernel_distance(
        x, shapes.reverse(x), kernel=KERNEL, normalize=False, method=method
    )
    assert float(found["distance_squared"]) == pytest.approx(4 * kappa(x, x, KERNEL), rel=1e-9)
    assert float(found["kappa_xy"]) == pytest.approx(-float(found["kappa_xx"]), rel=1e-12)


def test_kernel_distance__of_samples_and_points():
    x, y = (shapes.sample(shape, n=50) for shape in tetrahedra("current"))
    found = distance.kernel_distance(x, y, kernel=KERNEL, normalize=False, method="exact")
    assert float(found["distance_squared"]) == pytest.approx(distance_squared(x, y, KERNEL))
    points = shapes.point_set(VERTICES, weights=[1.0, 2.0, 3.0, 4.0])
    found = distance.kernel_distance(points, points, kernel=KERNEL, method="exact")
    assert float(found["distance"]) == pytest.approx(0.0, abs=1e-7)


def test_kernel_distance__of_a_current_from_a_varifold_is_an_error():
    with pytest.raises(ShapeError, match=r"vectors of 3 components.*6"):
        distance.kernel_distance(
            tetrahedra("current")[0], tetrahedra("varifold")[1], kernel=KERNEL, normalize=False
        )


def test_matrix__of_shapes_is_that_of_their_pairs():
    sets = dict(zip("ab", tetrahedra("varifold"), strict=True))
    table = distance.matrix(sets, kernel=KERNEL, normalize=False, method="exact")
    np.testing.assert_allclose(
        table["distance_squared"].sel(x="a", y="b"),
        distance_squared(sets["a"], sets["b"], KERNEL),
        rtol=1e-10,
    )
