import faces_in_shadow
import lit_surfaces
import numpy as np
import photo_data
import pytest
from data import FetchError


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    try:
        out = str(tmp_path_factory.mktemp("shadow"))
        return faces_in_shadow.main(["--out", out, "--people", "6", "--side", "64"])
    except FetchError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def lion():
    try:
        return lit_surfaces.render("lion-head", 64)
    except FetchError as error:
        pytest.skip(str(error))


def at(table, **where):
    return table.sel(where).values


def test_faces_in_shadow__five_components_are_the_same_by_all(outcome):
    five = outcome.surfaces["rmse"].sel(k=5)
    np.testing.assert_allclose(at(five, by="Gauss"), at(five, by="PCA"), atol=0.01)
    assert (five.sel(pixel="lit") < 0.06).all()
    assert (five.sel(pixel="attached") > 0.3).all()


def test_faces_in_shadow__one_component_of_gauss_is_evenly_lit(outcome):
    angle = outcome.surfaces["angle"]
    gap = at(angle, by="PCA", to="albedo") - at(angle, by="Gauss", to="albedo")
    assert (gap > 2.5).all()
    assert (at(angle, by="Gauss", to="mean") < 1.0).all()
    assert (at(angle, by="PCA", to="mean") > 4.0).all()


def test_faces_in_shadow__one_component_of_pca_is_nearer_to_shading(outcome):
    assert (
        at(outcome.surfaces["angle"], by="PCA", to="camera")
        < at(outcome.surfaces["angle"], by="Gauss", to="camera") - 2.0
    ).all()
    one = outcome.surfaces["rmse"].sel(k=1)
    worse = at(one, by="Gauss") - at(one, by="PCA")
    assert (worse[:, 1] > 0.005).all()  # in attached shadow
    assert (np.abs(worse) < 0.03).all()


def test_faces_in_shadow__gauss_of_bytes_is_pca(outcome):
    assert float(outcome.surfaces["alone"].max()) < 1e-3


def test_faces_in_shadow__photos_are_nearer_by_gauss_and_hardly(outcome):
    one = outcome.faces["rmse"].sel(k=1, pixel="shadow")
    gain = 1 - at(one, by="Gauss") / at(one, by="PCA")
    assert (gain > 0).all()
    assert (gain < 0.02).all()
    plain = outcome.faces["plain"].sel(pixel="shadow")
    assert (one.sel(by="Gauss") < 0.8 * plain).all()
    five = outcome.faces["rmse"].sel(k=5, pixel="shadow")
    assert (five > 0.8 * plain).all()


def test_faces_in_shadow__writes_pages(outcome):
    surfaces, faces = (page.read_text(encoding="utf-8") for page in outcome.pages)
    assert surfaces.count("<figure>") == faces.count("<figure>") == 40
    assert "lion-head: Gauss, k = 1" in surfaces


def test_egg_in_light__keeps_what_is_turned_to_the_light():
    kept = faces_in_shadow.egg_in_light((20, 16))
    assert kept.shape == (16, 20, 16)
    assert kept[0].min() > 0.95  # from ahead
    lights = lit_surfaces.directions()[::4]
    right = kept[lights[:, 0].argmax()]
    assert right[10, 0] == pytest.approx(faces_in_shadow.DARK, abs=1e-3)
    assert right[10, -1] == pytest.approx(1.0, abs=1e-3)


def test_angle__is_that_of_vectors_up_to_sign():
    one = np.array([[1.0, 0.0], [np.nan, 0.0]])
    other = np.array([[-1.0, 1.0], [5.0, 0.0]])
    assert faces_in_shadow.angle(one, other) == pytest.approx(45.0)
    assert faces_in_shadow.angle(one, -3 * one) == 0.0


def test_directions__are_those_of_yale_b():
    lights = lit_surfaces.directions()
    assert lights.shape == (64, 3)
    np.testing.assert_allclose(np.linalg.norm(lights, axis=1), 1.0)
    np.testing.assert_allclose(lights[[0, 3]], [[0, 0, 1], [0, 1, 0]], atol=1e-12)
    assert len(np.unique(lights.round(6), axis=0)) == 64
    np.testing.assert_allclose(lights[6:35] * [-1, 1, 1], lights[35:])
    assert (lights[:, 2] < -1e-9).sum() == 14


def test_render__differs_from_the_truth_in_shadow_only(lion):
    seen = np.isfinite(lion.front)
    for one in (lion.images, lion.truth):
        np.testing.assert_array_equal(np.isfinite(one), np.broadcast_to(seen, one.shape))
    lit = seen & ~lion.shadow
    np.testing.assert_allclose(lion.images[lit], lion.truth[lit], atol=0.5 / 255 + 1e-6)
    assert (lion.images[lion.shadow] == 0).all()
    assert lion.shadow[:, seen][lion.truth[:, seen] <= 0].all()
    np.testing.assert_allclose(lion.truth[0], lion.front)
    assert lion.shadow[0, seen].mean() < 0.01
    cast = lion.shadow & (lion.truth > 0)
    assert 0.02 < cast[:, seen].mean() < 0.1
    assert lion.shadow[:, seen].mean(axis=1).max() > 0.7


def test_render__truth_has_three_dimensions(lion):
    seen = np.isfinite(lion.front)
    values = np.linalg.svd(lion.truth[:, seen], compute_uv=False)
    assert values[3] < 1e-9 * values[0]


def crossed(start, towards, corners):
    """Whether rays hit triangles, by Moeller and Trumbore; ``(ray,)``."""
    one, other = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    across = np.cross(towards, other)
    scale = (one * across).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = start[:, None] - corners[:, 0]
        u = (gap * across).sum(axis=2) / scale
        turned = np.cross(gap, one)
        v = (turned @ towards) / scale
        t = (turned * other).sum(axis=2) / scale
        return ((u >= 0) & (v >= 0) & (u + v <= 1) & (t > 1e-6)).any(axis=1)


@pytest.mark.parametrize("light", [2, 3, 17, 46, 60])
def test_hidden__is_what_rays_meet(fetch, light):
    vertices, faces = fetch(lambda: lit_surfaces.placed("head", 96))
    points = lit_surfaces.sampled(vertices, faces)
    towards = lit_surfaces.directions()[light]
    first = lit_surfaces.nearest(points.places, 96)
    first = np.random.default_rng(0).permutation(first[first >= 0])[:800]
    normals = points.normals[first]
    normals = np.where(normals[:, 2:] < 0, -normals, normals)
    turned = normals @ towards > 0.1
    start = points.places[first[turned]] + lit_surfaces.OFFSET * normals[turned]
    found = lit_surfaces.hidden(points.places, start, towards)
    expected = crossed(start, towards, vertices[faces])
    assert expected.mean() > 0.05
    assert (found == expected).mean() > 0.97
    assert (found & expected).sum() > 0.8 * (found | expected).sum()


def test_faces__are_ten_photos_of_each_person(fetch):
    faces = fetch(photo_data.faces)
    assert faces.shape == (40, 10, 112, 92)
    assert faces.dtype == "uint8"
    assert faces.mean() == pytest.approx(112.6193, abs=1e-4)
    rows = faces.reshape(40, 10, -1) / np.linalg.norm(
        faces.reshape(40, 10, -1).astype(float), axis=2, keepdims=True
    )
    same = np.einsum("pad,pbd->pab", rows, rows).mean()
    assert same > np.einsum("pad,qad->pq", rows, rows).mean() / 10 + 0.02
