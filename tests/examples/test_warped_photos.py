import numpy as np
import pytest
import warped_photos
from data import FetchError

SEEN_APART = ["baboon", "coffee", "fruits", "motorcycle_left"]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    try:
        return warped_photos.main(["--out", str(tmp_path_factory.mktemp("out"))])
    except FetchError as error:
        pytest.skip(str(error))


def test_warped_photos__did_hardly_moves_while_warps_are_smooth(outcome):
    found = outcome.warps.medians("did") / float(outcome.warps.medians("did")[0])
    assert float(found.sel(temperature=1e-2)) <= 1.5
    assert float(found.sel(temperature=0.1)) <= 4
    assert float(found.sel(temperature=10.0)) >= 40


def test_warped_photos__rmse_soon_is_that_of_other_photos(outcome):
    found = outcome.warps.medians("rmse")
    assert float(found.sel(temperature=1e-2)) >= 2.5 * float(found.sel(temperature=1e-4))
    least = float(outcome.warps.others["rmse"].quantile(0.05))
    assert float(found.sel(temperature=1.0)) >= 0.95 * least


def test_warped_photos__warps_are_nearer_than_every_other_photo(outcome):
    assert int(outcome.warps.nearer("did", 0.1).sum()) >= 21  # of 23
    assert int(outcome.warps.nearer("rmse", 0.1).sum()) <= 16


def test_warped_photos__turns_are_ten_times_nearer_than_patches_from_elsewhere(outcome):
    turns = outcome.turns
    assert float(turns["did"].sel(setting="unit 1e-04").median()) >= 40
    assert float(turns["did"].sel(setting="paper 1e-04").median()) >= 8
    for setting in turns["setting"].values:
        assert (turns["did"].sel(setting=setting, photo=SEEN_APART) >= 8).all()
    assert float(turns["rmse"].max()) <= 1.3


def test_warped_photos__did_grows_with_lambda_and_with_temperature(outcome):
    fading = outcome.fading
    assert (fading.diff("lam") >= 0).all()
    assert ((fading / fading["lam"]).diff("lam") <= 0).all()
    assert (np.diff(fading.median("photo").sel(lam=[1e-4, 1e-3]), axis=-1) > -5e-3).all()
    gentle = warped_photos.slope(fading, 1e-4, 1e-2).sel(temperature=slice(None, 1e-2))
    assert 0.55 <= float(gentle.median()) <= 0.85


def test_warped_photos__draws_a_page(outcome):
    page = outcome.page.read_text(encoding="utf-8")
    assert page.count("<figure>") == 23
    assert "T = 0.01: DID" in page
