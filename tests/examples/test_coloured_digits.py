"""The README's main job. It has no reason to skip: its data are 1.4 MB that pip fetches."""

import coloured_digits
import pytest
import zarr
from PIL import Image

from bigkd.io import load_dataset


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return coloured_digits.main(["--out", str(tmp_path_factory.mktemp("coloured"))])


def test_coloured_digits__every_digit_is_a_mode_and_no_mode_is_anything_else(outcome):
    assert sorted(mode.digit for mode in outcome.modes) == list(range(10))
    assert min(mode.purity for mode in outcome.modes) >= 0.9


def test_coloured_digits__all_ten_are_significant(outcome):
    assert all(mode.significant for mode in outcome.modes)
    assert max(mode.p_value for mode in outcome.modes) <= 0.01


def test_coloured_digits__eigenvalues_are_below_the_frequencies_and_near_them(outcome):
    eigenvalues = [mode.eigenvalue for mode in outcome.modes]
    assert eigenvalues == sorted(eigenvalues, reverse=True)
    assert 0.02 < eigenvalues[-1] < eigenvalues[0] < 0.05
    for mode in outcome.modes:
        assert mode.frequency_reference < 0.001
        excess = mode.frequency_test - mode.frequency_reference
        assert mode.eigenvalue == pytest.approx(excess, abs=1e-9)


def test_coloured_digits__nothing_coloured_gives_no_mode(outcome):
    assert outcome.control_n_significant == 0
    assert outcome.control_least_p_value > 0.05


def test_coloured_digits__writes_images_result_and_sheets(outcome):
    images = zarr.open_array(str(outcome.store.parent / "test.zarr"), mode="r")
    assert images.shape == (2500, 28, 28, 3)
    assert images.chunks == (250, 28, 28, 3)
    result = load_dataset(outcome.store, kind="modes")
    assert result["eigenvalue"].values.tolist() == [mode.eigenvalue for mode in outcome.modes]
    with Image.open(outcome.picture) as sheet:
        assert sheet.size == (578, 578)  # ten lines of ten, 56 pixels each, 2 between
        assert len(sheet.getcolors(maxcolors=2**24)) > 100
    assert outcome.page.read_text(encoding="utf-8").count("<figure>") == 10
