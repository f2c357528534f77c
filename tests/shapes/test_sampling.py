import math

import numpy as np
import pytest
import xarray as xr

from bigkd import shapes
from bigkd.errors import InputError
from bigkd.kernels import Gaussian, Laplace
from tests.shapes.helpers import TETRAHEDRON, crooked, kappa

N_SEEDS = 200


def surface(**options):
    return shapes.triangle_mesh(*TETRAHEDRON, **options)


def curve(**options):
    return shapes.polyline(crooked(5), **options)


MAKERS = [curve, surface]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplace(2.0)], ids=repr)
@pytest.mark.parametrize("delta", [0.05, 0.5])
def test_sample__is_within_eps_at_the_promised_rate(make, kernel, delta):
    fine = shapes.refine(make(), max_distance=0.08)
    own = kappa(fine, fine, kernel)
    ratios = []
    for seed in range(N_SEEDS):
        points = shapes.sample(make(), n=40, delta=delta, seed=seed)
        bound = shapes.discretisation_error(fine, points, kernel=kernel)
        squared = own + kappa(points, points, kernel) - 2 * kappa(fine, points, kernel)
        ratios.append(math.sqrt(max(squared, 0.0)) / float(bound["distance"]))
    exceeded = np.mean(np.array(ratios) > 1.0)
    assert exceeded <= delta + 3 * math.sqrt(delta * (1 - delta) / N_SEEDS)
    assert np.mean(ratios) > 0.15  # and the promise is not empty


@pytest.mark.parametrize("orientation", ["current", "varifold"])
@pytest.mark.parametrize("make", MAKERS)
def test_sample__is_uniform(make, orientation):
    shape = make(orientation=orientation)
    points = shapes.sample(shape, n=20_000, seed=1)
    assert points.attrs["total_measure"] == pytest.approx(float(points["weight"].sum()))
    assert points.attrs["total_measure"] == pytest.approx(shape.attrs["total_measure"])
    share = shape["weight"] / shape["weight"].sum()
    scale = 5 / math.sqrt(20_000)  # five standard errors
    spread = float(np.sqrt(((shape["corner"] - shape["corner"].mean()) ** 2).sum("axis").max()))
    for name, size in (("point", spread), ("vector", 1.0)):
        np.testing.assert_allclose(
            points[name].mean("element"), share @ shape[name], atol=scale * size
        )
    # Of the simplex itself: the mean squared distance from the centres of the elements.
    one = shapes.sample(make().isel(element=[0]), n=20_000, seed=2)
    apart = ((one["point"] - make()["point"][0]) ** 2).sum("axis")
    k = make().sizes["corner"]
    corner = make()["corner"][0] - make()["point"][0]
    expected = float((corner**2).sum()) / (k * (k + 1))
    assert float(apart.mean()) == pytest.approx(expected, abs=scale * float(apart.std()))


def test_sample__points_are_on_their_elements():
    points = shapes.sample(curve(), n=500)
    segments = curve()
    along = points["point"].values[:, None] - segments["corner"].values[None, :, 0]
    tangent = segments["vector"].values
    place = (along * tangent).sum(axis=2)
    off = np.linalg.norm(along - place[..., None] * tangent, axis=2)
    inside = (off < 1e-12) & (place >= 0) & (place <= segments["weight"].values)
    assert inside.sum(axis=1).tolist() == [1] * 500
    np.testing.assert_array_equal(points["vector"].values, tangent[inside.argmax(axis=1)])


@pytest.mark.parametrize(("eps", "delta"), [(0.1, 0.05), (0.3, 0.01), (0.05, 0.5)])
def test_sample__sizes_itself(eps, delta):
    points = shapes.sample(surface(), eps=eps, delta=delta)
    n = math.ceil(((1 + math.sqrt(2 * math.log(1 / delta))) / eps) ** 2)
    assert points.sizes["element"] == points.attrs["n_points"] == n
    assert points.attrs["eps"] <= eps
    bound = shapes.discretisation_error(points, points, kernel=Gaussian(1.0), normalize=True)
    assert float(bound["distance"]) == pytest.approx(2 * points.attrs["eps"])
    assert bound.attrs["promise"] == "probabilistic"
    assert bound.attrs["delta"] == 2 * delta


def test_sample__equal_seeds_give_equal_points():
    first, again = (shapes.sample(surface(), n=10, seed=3) for _ in range(2))
    xr.testing.assert_identical(first, again)
    assert not first.equals(shapes.sample(surface(), n=10, seed=4))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "either n"),
        ({"n": 3, "eps": 0.1}, "either n"),
        ({"n": 0}, "n must be an integer of at least 1; got 0"),
        ({"n": 2.5}, "n must be an integer"),
        ({"n": True}, "n must be an integer"),
        ({"eps": 0.0}, "eps must be finite and positive"),
        ({"eps": math.inf}, "eps must be finite and positive"),
        ({"n": 3, "delta": 0.0}, "delta must be between 0 and 1"),
        ({"n": 3, "delta": 1.0}, "delta must be between 0 and 1"),
    ],
)
def test_sample__bad_options(options, match):
    with pytest.raises(InputError, match=match):
        shapes.sample(surface(), **options)


def test_sample__points_cannot_be_sampled_again():
    with pytest.raises(InputError, match="points alone cannot be sampled"):
        shapes.sample(shapes.sample(surface(), n=5), n=3)
    with pytest.raises(InputError, match="points alone cannot be sampled"):
        shapes.sample(shapes.point_set(np.eye(3)), n=3)
