import numpy as np
import pytest
import warped_photos
from data import FetchError

SEEN_APART = ["baboon", "coffee", "fruits", "motorcycle_left"]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    try:
        return warped_photos.main(["--out", str(tmp_path_factory.mktemp("warped"))])
    except FetchError as error:
        pytest.skip(str(error))


def test_warped_photos__hardly_move_while_warps_are_smooth(outcome):
    medians = outcome.warps.medians("did")
    growth = (medians / medians.sel(temperature=1e-4)).values
    assert (growth[:3] <= 1.5).all()
    assert growth[3] <= 3.0
    assert growth[5] >= 40.0
    assert (np.diff(growth) > 0).all()
    root = outcome.warps.medians("rmse")
    assert float(root.sel(temperature=1e-2) / root.sel(temperature=1e-4)) > 2.5
    least = float(outcome.warps.others["rmse"].quantile(0.05))
    assert float(root.sel(temperature=1.0)) >= 0.95 * least


def test_warped_photos__are_nearer_than_all_others(outcome):
    warps = outcome.warps
    assert warps.warped.sizes == {"photo": 23, "temperature": 6, "warp": 6}
    assert warps.nearer("did", 0.01).all()
    assert warps.nearer("did", 0.1).sum() >= 22
    assert warps.nearer("rmse", 0.1).sum() <= 17
    assert float(warps.others["did"].median()) > 100 * float(warps.medians("did")[2])


def test_warped_photos__turned_are_nearer_than_elsewhere(outcome):
    turns = outcome.turns
    least = {"unit 1e-04": 50, "unit 1e-02": 7, "paper 1e-04": 8}
    for setting, share in least.items():
        assert float(turns["did"].sel(setting=setting).median()) > share
        assert (turns["did"].sel(setting=setting, photo=SEEN_APART) > 10).all()
    assert int((turns["did"].sel(setting="unit 1e-04") > 10).sum()) >= 7
    assert float(turns["rmse"].max()) < 1.3


def test_warped_photos__board_is_like_itself_elsewhere(outcome):
    assert float(outcome.turns["did"].sel(setting="unit 1e-04", photo="board")) < 5


def test_warped_photos__grow_in_lambda_and_slower_than_it(outcome):
    fading = outcome.fading
    assert (fading.diff("lam") > 0).all()
    assert ((fading / fading["lam"]).diff("lam") < 0).all()
    slopes = warped_photos.slope(fading, 1e-4, 1e-2).sel(temperature=slice(None, 0.1))
    assert ((slopes.median("photo") > 0.55) & (slopes.median("photo") < 0.84)).all()


def test_warped_photos__writes_a_page(outcome):
    page = outcome.page.read_text(encoding="utf-8")
    assert page.count("<figure>") == 23
    assert "astronaut: T = 0.0001: DID 0.00" in page
