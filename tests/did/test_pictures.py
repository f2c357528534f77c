import numpy as np
import pytest
import xarray as xr
from PIL import Image

from bigkd.did.pictures import match_sheet
from bigkd.errors import InputError, ShapeError

GAP = 2


@pytest.fixture
def photos():
    generator = np.random.default_rng(0)
    return [generator.integers(0, 256, (60, 50, 3), dtype=np.uint8) for _ in range(2)]


def panels(path, width=50):
    grid = np.asarray(Image.open(path))
    assert grid.shape[1] == 4 * width + 3 * GAP
    return [grid[:, at * (width + GAP) :][:, :width].astype(float) for at in range(4)]


def test_match_sheet__lights_up_where_h_and_q_are_large(photos, tmp_path):
    f, g = photos
    h, q = np.zeros((2, 60, 50))
    h[10, 20], h[40, 30] = -0.5, 0.25
    q[5, :] = 3.0
    first, lit, second, found = panels(match_sheet(tmp_path / "new" / "m.png", f, g, h, q))
    np.testing.assert_array_equal(first, f)
    np.testing.assert_array_equal(second, g)
    brightness = np.full((60, 50, 1), 0.2)
    brightness[10, 20], brightness[40, 30] = 1.0, 0.6
    np.testing.assert_allclose(lit, f * brightness, atol=0.51)
    brightness = np.full((60, 50, 1), 0.2)
    brightness[5] = 1.0
    np.testing.assert_allclose(found, g * brightness, atol=0.51)


def test_match_sheet__counts_what_is_below_the_threshold_as_nothing(photos, tmp_path):
    f, g = photos
    h = np.linspace(0, 1, 50)[None, :].repeat(60, axis=0)
    _, lit, _, _ = panels(match_sheet(tmp_path / "m.png", f, g, h, h, threshold=0.5))
    np.testing.assert_allclose(lit[:, :25], 0.2 * f[:, :25], atol=0.51)
    np.testing.assert_allclose(lit[:, 25:], f[:, 25:] * (0.2 + 0.8 * h[:, 25:, None]), atol=0.51)


def test_match_sheet__shows_numbers_of_any_range_and_nan_white(tmp_path):
    f = np.arange(-1800.0, 1200.0).reshape(60, 50)
    g = np.full((60, 50), 3200.0)
    f[0, 0] = np.nan
    first, _, second, _ = panels(match_sheet(tmp_path / "m.png", f, g, f * 0, f * 0))
    assert (first[0, 0] == 255).all()
    np.testing.assert_allclose(first[1:, :, 0], (f[1:] + 1799) / 4999 * 255, atol=0.51)
    assert (second == 255).all()
    first, _, _, _ = panels(
        match_sheet(tmp_path / "m.png", f, g, f * 0, f * 0, value_range=(-1000.0, 0.0))
    )
    np.testing.assert_allclose(
        first[1:, :, 2], np.clip((f[1:] + 1000) / 1000, 0, 1) * 255, atol=0.51
    )


def test_match_sheet__enlarges_small_images_of_different_sizes(tmp_path):
    f, g = np.zeros((6, 5)), np.ones((60, 30, 3))
    h = np.ones((6, 5))
    grid = np.asarray(Image.open(match_sheet(tmp_path / "m.png", f, g, h, np.ones((60, 30)))))
    assert grid.shape == (60, 4 * 40 + 3 * GAP, 3)
    assert (grid[:48, :40] == 0).all()
    assert (grid[48:, :40] == 255).all()


def test_match_sheet__draws_series_with_time_tinted(tmp_path):
    times = np.linspace(0, 1, 90)
    f = xr.DataArray(np.stack([np.sin(9 * times), times], axis=1), dims=("time", "variable"))
    h = np.exp(-(((times - 0.25) / 0.1) ** 2))
    path = match_sheet(tmp_path / "m.png", f, f[::-1], h, xr.DataArray(h[::-1]))
    first, lit, second, found = panels(path, 360)
    assert (first[0] == 255).all()
    for picture, place in ((lit, 90), (found, 269)):
        tinted = 255 - picture[0, :, 2]
        assert abs(int(np.argmax(tinted)) - place) <= 2
        assert tinted.max() > 190
    for picture in (first, second):
        assert (picture.reshape(-1, 3) != 255).any(axis=1).sum() > 2 * 360


def test_match_sheet__breaks_lines_at_missing_points(tmp_path):
    line = np.ones(361)
    line[0] = 0.0
    line[100:200] = np.nan
    first, _, _, _ = panels(match_sheet(tmp_path / "m.png", line, line, line, line), 360)
    inked = (first != 255).any(axis=(0, 2))
    assert not inked[103:197].any()
    assert inked[:98].all()
    assert inked[202:].all()


def test_match_sheet__as_a_page_needs_no_network(photos, tmp_path):
    f, g = photos
    h = np.ones((60, 50))
    path = match_sheet(tmp_path / "m.html", f, g, h, h, caption="D < 0.1")
    text = path.read_text(encoding="utf-8")
    assert "<h1>Match</h1>" in text
    assert "D &lt; 0.1" in text
    assert "http" not in text


def test_match_sheet__refuses(photos, tmp_path):
    f, g = photos
    h = np.ones((60, 50))
    with pytest.raises(InputError, match=r"must end in \.png or \.html; got 'm\.gif'"):
        match_sheet(tmp_path / "m.gif", f, g, h, h)
    with pytest.raises(
        ShapeError, match=r"q must be on the grid of g, \(60, 50\); got .*\(50, 60\)"
    ):
        match_sheet(tmp_path / "m.png", f, g, h, h.T)
    with pytest.raises(InputError, match="threshold must be at least 0 and less than 1; got 1"):
        match_sheet(tmp_path / "m.png", f, g, h, h, threshold=1)
    with pytest.raises(InputError, match="f must be an image or a series"):
        match_sheet(tmp_path / "m.png", f, g, h[0, 0], h)
    with pytest.raises(InputError, match="1, 3 or 4 channels"):
        match_sheet(tmp_path / "m.png", f[..., :2], g, h, h)
    with pytest.raises(InputError, match="h must be an array; got list"):
        match_sheet(tmp_path / "m.png", f, g, [1], h)


@pytest.mark.parametrize("value", [0, 7])
def test_match_sheet__of_constant_images_is_defined(value, tmp_path):
    flat = np.full((60, 50), value, dtype=np.uint8)
    first, lit, _, _ = panels(match_sheet(tmp_path / "m.png", flat, flat, flat * 0.0, flat * 0.0))
    assert (first == value).all()
    np.testing.assert_allclose(lit, 0.2 * value, atol=0.51)
    one = np.ones((1, 1, 3))
    assert match_sheet(tmp_path / "m.png", one, one, one[..., 0], one[..., 0]).exists()
