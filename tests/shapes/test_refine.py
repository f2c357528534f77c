"""Cutting up, and what it promises."""

import math

import numpy as np
import pytest
import xarray as xr

from bigkd import shapes
from bigkd.errors import InputError, MemoryPlanError
from bigkd.kernels import Gaussian, InverseMultiquadric, Laplace, Matern, Polynomial, Triangle
from tests.shapes.helpers import TETRAHEDRON, circle, crooked, distance_squared, kappa

KERNELS = [
    Gaussian(0.3),
    Gaussian(1.5),
    Laplace(0.7),
    Matern(1.5, 0.7),
    InverseMultiquadric(0.8, 1.0),
]


def curve(**options):
    return shapes.polyline(crooked(5), **options)


def surface(**options):
    return shapes.triangle_mesh(*TETRAHEDRON, **options)


MAKERS = [curve, surface]


@pytest.mark.parametrize("orientation", ["current", "varifold"])
@pytest.mark.parametrize("make", MAKERS)
def test_refine__keeps_the_shape(make, orientation):
    whole = make(orientation=orientation)
    pieces = shapes.refine(whole, max_distance=0.1)
    assert pieces.attrs["reach"] <= 0.1
    assert pieces.sizes["element"] > whole.sizes["element"]
    assert pieces.attrs["total_measure"] == pytest.approx(whole.attrs["total_measure"], rel=1e-14)
    for moment in (whole, pieces):
        moment["total"] = moment["weight"] @ moment["vector"]
        moment["first"] = moment["weight"] @ moment["point"]
    np.testing.assert_allclose(pieces["total"], whole["total"], atol=1e-12)
    np.testing.assert_allclose(pieces["first"], whole["first"], atol=1e-12)
    np.testing.assert_allclose((pieces["vector"] ** 2).sum("component"), 1.0, rtol=1e-14)


@pytest.mark.parametrize("make", [curve, surface])
def test_refine__pieces_have_the_measure_and_direction_of_their_corners(make):
    pieces = shapes.refine(make(), max_distance=0.1)
    corner = pieces["corner"].values
    if corner.shape[1] == 2:
        again = shapes.polyline(list(corner))
    else:
        again = shapes.triangle_mesh(
            corner.reshape(-1, 3), np.arange(len(corner) * 3).reshape(-1, 3)
        )
    for name in ("point", "weight", "vector"):
        np.testing.assert_allclose(pieces[name], again[name], rtol=1e-10, atol=1e-10)


def test_refine__what_is_small_enough_stays_as_it_is():
    whole = circle(1.0, 50)
    same = shapes.refine(whole, max_distance=10.0)
    xr.testing.assert_equal(same, whole)
    once = shapes.refine(whole, max_distance=0.01)
    xr.testing.assert_identical(shapes.refine(once, max_distance=0.01), once)


def test_refine__a_needle_is_cut_across():
    needle = shapes.triangle_mesh([[0, 0, 0], [10, 0, 0], [10, 0.1, 0]], [[0, 1, 2]])
    similar = (needle.attrs["reach"] / 0.2) ** 2  # pieces of its own form that reach as far
    assert shapes.refine(needle, max_distance=0.2).sizes["element"] < similar / 2


@pytest.mark.parametrize("max_distance", [0.0, -1.0, math.nan, math.inf])
def test_refine__bad_distance(max_distance):
    with pytest.raises(InputError, match="max_distance must be finite and positive"):
        shapes.refine(curve(), max_distance=max_distance)


@pytest.mark.parametrize("make", MAKERS)
def test_refine__too_many_pieces_are_refused_before_they_are_made(make):
    with pytest.raises(MemoryPlanError, match="max_elements is 10000000"):
        shapes.refine(make(), max_distance=1e-12)
    with pytest.raises(MemoryPlanError, match="max_elements is 100"):
        shapes.refine(make(), max_distance=0.02, max_elements=100)


def test_refine__points_have_no_elements():
    with pytest.raises(InputError, match="points alone cannot be refined"):
        shapes.refine(shapes.point_set(np.eye(3)), max_distance=1.0)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("eps", [0.1, 0.3])
def test_grid__reaches_to_where_the_kernel_has_fallen(kernel, eps):
    pieces = shapes.grid(curve(), kernel=kernel, eps=eps)
    squared = np.asarray([pieces.attrs["max_distance"] ** 2])
    assert kernel.of_squared(squared)[0] == pytest.approx(math.exp(-eps * eps), abs=1e-12)
    assert pieces.attrs["reach"] <= pieces.attrs["max_distance"]


@pytest.mark.parametrize("eps", [0.01, 0.3])
@pytest.mark.parametrize("sigma", [0.3, 2.0])
def test_grid__of_the_gaussian_is_the_papers(eps, sigma):
    pieces = shapes.grid(curve(), kernel=Gaussian(sigma), eps=eps)
    h = 2 * sigma**2
    assert pieces.attrs["max_distance"] == pytest.approx(eps * math.sqrt(h), rel=1e-14)
    assert pieces.attrs["kappa_error"] <= min(eps**2, 0.858 * eps)


def answers(x, y, kernel):
    xx, yy, xy = kappa(x, x, kernel), kappa(y, y, kernel), kappa(x, y, kernel)
    squared = xx + yy - 2.0 * xy
    return {
        "kappa_xx": xx,
        "kappa_yy": yy,
        "kappa_xy": xy,
        "distance": math.sqrt(max(squared, 0.0)),
        "distance_squared": squared,
    }


def ratios_of(make, other, kernel, coarse, *, fine):
    """Errors over their bounds, against much finer elements."""
    x, y = (shapes.refine(shape(), max_distance=coarse) for shape in (make, other))
    u, v = (shapes.refine(shape(), max_distance=fine) for shape in (make, other))
    bound = shapes.discretisation_error(x, y, kernel=kernel)
    slack = shapes.discretisation_error(u, v, kernel=kernel)
    got, true = answers(x, y, kernel), answers(u, v, kernel)
    return {name: abs(got[name] - true[name]) / float(bound[name] + slack[name]) for name in got}


def moved_curve():
    return shapes.polyline(crooked(5) + np.array([0.3, 0.0, 0.1]))


def moved_surface():
    vertices, faces = TETRAHEDRON
    return shapes.triangle_mesh(1.1 * vertices + 0.2, faces)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize(
    ("make", "other", "fine"),
    [(curve, moved_curve, 0.01), (surface, moved_surface, 0.08)],
    ids=["curves", "surfaces"],
)
@pytest.mark.parametrize("coarse", [10.0, 0.3])
def test_discretisation_error__is_not_exceeded(make, other, fine, kernel, coarse):
    ratios = ratios_of(make, other, kernel, coarse, fine=fine)
    assert max(ratios.values()) <= 1.0


def test_discretisation_error__is_reached():
    """A segment that is short for the kernel is the worst there is."""
    kernel = Gaussian(1.0)
    whole = shapes.polyline([[0.0, 0.0], [0.1, 0.0]])
    fine = shapes.refine(whole, max_distance=1e-4)
    bound = shapes.discretisation_error(whole, fine, kernel=kernel)
    lost = kappa(whole, whole, kernel) - kappa(fine, fine, kernel)
    assert 0.99 < lost / float(bound["kappa_xx"]) <= 1.0
    distance = math.sqrt(distance_squared(whole, fine, kernel))
    assert 0.99 < distance / float(bound["distance"]) <= 1.0


@pytest.mark.parametrize("make", [curve, surface])
def test_grid__squared_distance_is_within_an_eighth_of_the_measure(make):
    eps, kernel = 1 / 8, Gaussian(0.8)
    x = shapes.grid(make(), kernel=kernel, eps=eps)
    y = shapes.grid(shapes.reverse(make()), kernel=kernel, eps=eps)
    bound = shapes.discretisation_error(x, y, kernel=kernel)
    assert float(bound["distance_squared"]) <= eps * bound.attrs["W"] ** 2
    assert bound.attrs["promise"] == "deterministic"
    assert bound.attrs["delta"] == 0.0


def test_discretisation_error__normalised_is_per_measure():
    kernel = Gaussian(0.8)
    plain = shapes.discretisation_error(curve(), curve(), kernel=kernel)
    shares = shapes.discretisation_error(curve(), curve(), kernel=kernel, normalize=True)
    total = curve().attrs["total_measure"]
    for name, power in (("distance", 1), ("distance_squared", 2), ("kappa_xy", 2)):
        assert float(plain[name]) == pytest.approx(float(shares[name]) * total**power)
    assert shares.attrs["W"] == 1.0


def test_discretisation_error__of_points_is_zero():
    points = shapes.point_set(np.eye(3))
    bound = shapes.discretisation_error(points, points, kernel=Gaussian(1.0))
    assert all(float(bound[name]) == 0.0 for name in bound)


@pytest.mark.parametrize("kernel", [Polynomial((0.0, 1.0)), Triangle(1.0)], ids=repr)
def test_discretisation_error__needs_a_kernel_it_knows(kernel):
    with pytest.raises(InputError, match="positive definite kernels of the distance"):
        shapes.discretisation_error(curve(), curve(), kernel=kernel)
    with pytest.raises(InputError, match="positive definite kernels of the distance"):
        shapes.grid(curve(), kernel=kernel, eps=0.1)


@pytest.mark.parametrize("eps", [0.0, -0.1, math.nan])
def test_grid__bad_eps(eps):
    with pytest.raises(InputError, match="eps must be finite and positive"):
        shapes.grid(curve(), kernel=Gaussian(1.0), eps=eps)
