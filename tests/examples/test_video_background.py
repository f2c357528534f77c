import numpy as np
import pytest
import video_background
from data import FetchError
from video_background import commonest, people, shadows, swinging
from xarray import DataArray

AGE = {
    "median": (1.76, 1.30, 2.71),
    "PCA": (3.35, 4.86, 6.11),
    "Kurtosis": (3.34, 4.87, 5.81),
    "Gauss 5": (3.34, 4.88, 5.74),
    "Laplace 5": (3.28, 4.85, 5.74),
    "PCA, centred": (3.06, 4.57, 5.63),
    "Gauss 5, centred": (3.06, 4.57, 5.63),
    "Laplace 5, centred": (2.99, 4.50, 5.58),
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("video"))
    try:
        return video_background.main(["--lines", "96", "--frames", "120", "--out", folder])
    except FetchError as error:
        pytest.skip(str(error))


def test_video_background__measures_every_scene_and_method(outcome):
    table = outcome.table
    assert table["scene"].values.tolist() == ["video", "composite", "light"]
    assert table["estimate"].values.tolist()[:4] == ["mean", "median", "PCA", "Kurtosis"]
    assert table["measure"].values.tolist() == ["age", "peps", "pceps", "ms_ssim", "psnr", "cqm"]
    assert np.isfinite(table).all()
    assert outcome.known < 0.5


@pytest.mark.parametrize("estimate", AGE)
def test_video_background__is_as_near_as_it_says(outcome, estimate):
    found = outcome.table.sel(estimate=estimate, measure="age")
    np.testing.assert_allclose(found, AGE[estimate], atol=0.15)


def test_video_background__has_a_median_that_is_hard_to_beat(outcome):
    table = outcome.table
    others = table.drop_sel(estimate="median")
    for measure, best in (("age", min), ("peps", min), ("pceps", min), ("ms_ssim", max)):
        own = table.sel(estimate="median", measure=measure)
        for scene in table["scene"].values:
            rest = others.sel(scene=scene, measure=measure).values
            assert best([*rest, float(own.sel(scene=scene))]) == own.sel(scene=scene)


def test_video_background__of_kernels_is_about_that_of_pca(outcome):
    age = outcome.table.sel(measure="age")
    plain = age.sel(estimate=[name for name in video_background.SUBSPACES if "," not in name])
    assert (plain <= 1.02 * age.sel(estimate="PCA")).all()
    assert (plain >= 0.9 * age.sel(estimate="PCA")).all()
    np.testing.assert_allclose(age.sel(estimate="Poisson 1"), age.sel(estimate="PCA"), atol=0.01)


def test_video_background__is_nearer_without_the_mean(outcome):
    age = outcome.table.sel(measure="age")
    for name in video_background.CENTRED:
        assert (age.sel(estimate=f"{name}, centred") < age.sel(estimate=name)).all()


def test_video_background__writes_a_page(outcome):
    page = outcome.page.read_text(encoding="utf-8")
    assert page.count("<figure>") == 6
    assert "composite: a frame, the truth, median, PCA, Gauss 5, Laplace 5, centred" in page


def test_commonest__is_what_a_pixel_shows_most_often():
    rng = np.random.default_rng(0)
    frames = np.full((40, 3, 4, 3), 100) + rng.integers(-1, 2, (40, 3, 4, 3))
    frames[:18, 1, 2] = rng.integers(0, 90, (18, 3))  # crossed by many things
    frames[30:, 2, 0] = 200  # something stops there for a while
    video = DataArray(frames.astype(np.uint8), dims=("time", "y", "x", "channel"))
    np.testing.assert_allclose(commonest(video).astype(int), 100, atol=1)


def test_people__are_upright_and_not_small():
    background = np.full((144, 192, 3), 90, np.uint8)
    frame = background.copy()
    frame[40:60, 50:57] = 20
    frame[100:104, 20:60, 1] = 190  # lies flat
    frame[10:12, 10:12] = 200  # a spot
    ((y, x),) = people(frame, background)
    assert (y.min(), y.max(), x.min(), x.max()) == (40, 59, 50, 56)
    assert len(y) == 20 * 7


def test_shadows__lie_to_the_right_of_the_feet():
    y, x = np.indices((20, 4)).reshape(2, -1)
    dark = shadows([(y + 40, x + 10)], (300, 60))
    assert dark.max() <= 1.0
    assert dark[59, 12] > 0.5
    assert dark[56, 20] > 0.5
    assert dark[45, 12] < 0.01
    assert dark[59, 30] < 0.01


def test_swinging__is_as_often_bright_as_dark():
    video = DataArray(np.full((60, 2, 2, 3), 100, np.uint8), dims=("time", "y", "x", "channel"))
    levels = np.array([frame[0, 0, 0] for frame in swinging(video)])
    assert len(levels) == 60
    assert np.median(levels) == 100
    assert (levels.min(), levels.max()) == (90, 110)
