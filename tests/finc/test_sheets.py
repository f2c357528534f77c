import numpy as np
import pytest
from PIL import Image

from bigkd import finc
from bigkd.errors import InputError
from bigkd.kernels import Gaussian

SHADES = (0, 60, 120, 180, 240)


@pytest.fixture(scope="module")
def pictures():
    """Flat pictures of five shades and the modes of the lightest against the others."""
    generator = np.random.default_rng(0)
    shade = np.repeat(SHADES, 40).astype(np.uint8)
    images = np.broadcast_to(shade[:, None, None, None], (200, 6, 5, 3)).copy()
    images[:, 0, 0, 0] += generator.integers(0, 9, 200).astype(np.uint8)
    modes = finc.modes(images, images[:160], kernel=Gaussian(200.0), n_frequencies=40, n_modes=3)
    return images, modes


def test_contact_sheet__shows_the_top_rows(pictures, tmp_path):
    images, modes = pictures
    path = finc.contact_sheet(images, modes, tmp_path / "sheet.png", n_columns=4)
    grid = np.asarray(Image.open(path))
    zoom = 8  # the least multiple that makes the longer side 48 pixels
    assert grid.shape == (3 * 6 * zoom + 4, 4 * 5 * zoom + 6, 3)
    first = grid[: 6 * zoom, : 5 * zoom]
    np.testing.assert_array_equal(first[::zoom, ::zoom], images[modes["top_index_test"][0, 0]])
    assert (grid[zoom : 6 * zoom, : 5 * zoom] == 240).all()


def test_contact_sheet__as_a_page_needs_no_network(pictures, tmp_path):
    images, modes = pictures
    path = finc.contact_sheet(images, modes, tmp_path / "new" / "sheet.html", only_significant=True)
    text = path.read_text(encoding="utf-8")
    assert text.count("<figure>") == int(modes["significant"].sum()) == 1
    assert "http" not in text
    assert f"eigenvalue {float(modes['eigenvalue'][0]):.4f}" in text


def test_contact_sheet__refuses(pictures, tmp_path):
    images, modes = pictures
    with pytest.raises(InputError, match=r"must end in \.png or \.html"):
        finc.contact_sheet(images, modes, tmp_path / "sheet.gif")
    with pytest.raises(InputError, match="the modes name row"):
        finc.contact_sheet(images[:10], modes, tmp_path / "sheet.png")
    with pytest.raises(InputError, match="with 1, 3 or 4 channels"):
        finc.contact_sheet(images[..., :2], modes, tmp_path / "sheet.png")
    with pytest.raises(InputError, match="no top_index_both"):
        finc.contact_sheet(images, modes, tmp_path / "sheet.png", collection="both")
