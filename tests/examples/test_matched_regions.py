import matched_regions
import numpy as np
import pytest
from data import FetchError
from matched_regions import of_chance, of_pairs
from PIL import Image


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    try:
        return matched_regions.main(["--out", str(tmp_path_factory.mktemp("matched"))])
    except FetchError as error:
        pytest.skip(str(error))


def test_matched_regions__of_photos_are_one_object(outcome):
    found = outcome.matches["photos"]
    assert (of_pairs(found["apart"]) < 0.1).mean() >= 0.9
    assert np.median(of_pairs(found["apart"])) <= 0.05
    assert (of_chance(found["apart"]) < 0.1).mean() < 0.2
    assert np.median(of_pairs(found["correlation"])) > 0.85
    assert np.median(of_chance(found["correlation"])) < 0.2


def test_matched_regions__of_the_wall_are_often_one_object(outcome):
    found = outcome.matches["wall"]
    assert (of_pairs(found["apart"]) < 0.1).mean() >= 0.4
    assert np.median(of_pairs(found["apart"])) <= 0.15
    assert (of_chance(found["apart"]) < 0.1).mean() < 0.1
    assert np.median(of_pairs(found["correlation"])) > 0.4
    assert np.median(of_chance(found["correlation"])) < 0.15


@pytest.mark.parametrize(("kind", "share"), [("photos", 0.8), ("wall", 0.4)])
def test_matched_regions__are_not_by_chance(outcome, kind, share):
    correlation = outcome.matches[kind]["correlation"]
    assert np.median(of_chance(outcome.matches[kind]["apart"])) >= 0.2
    by_chance = np.quantile(of_chance(correlation), 0.95)
    assert (of_pairs(correlation) > by_chance).mean() >= share


def test_matched_regions__views_show_one_place(fetch):
    rng = np.random.default_rng(3)
    for scenes, turn in ((matched_regions.wall, 0.0), (matched_regions.moved_photos, 40.0)):
        for pair in matched_regions.pairs(fetch(scenes)[:4], 4, rng, turn=turn):
            y, x = pair.origin
            seen = (x >= 0) & (x <= 99) & (y >= 0) & (y <= 99)
            assert 0.3 < seen.mean() < 1.0
            again = matched_regions.read(pair.f * 255.0, x[seen], y[seen])
            straight = np.corrcoef(again.ravel(), pair.g[seen].ravel())[0, 1]
            assert straight > np.corrcoef(pair.f.ravel(), pair.g.ravel())[0, 1] + 0.1
            assert straight > 0.75


def test_matched_regions__draws_each_pair(outcome):
    assert len(outcome.pictures) == 40
    with Image.open(outcome.pictures[0]) as sheet:
        assert sheet.size == (4 * 100 + 3 * 2, 100)
