import matched_regions
import numpy as np
import pytest
from data import FetchError


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    try:
        return matched_regions.main(["--out", str(tmp_path_factory.mktemp("out"))])
    except FetchError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("kind", "correlation", "apart", "share"),
    [("photos", 0.85, 0.05, 0.9), ("wall", 0.4, 0.15, 0.4)],
)
def test_matched_regions__light_up_the_same_place_in_both_views(
    outcome, kind, correlation, apart, share
):
    found = outcome.matches[kind]
    near = matched_regions.of_pairs(found["apart"])
    assert np.median(matched_regions.of_pairs(found["correlation"])) >= correlation
    assert np.median(near) <= apart
    assert (near < 0.1).mean() >= share


@pytest.mark.parametrize("kind", ["photos", "wall"])
def test_matched_regions__chance_does_not(outcome, kind):
    found = outcome.matches[kind]
    far = matched_regions.of_chance(found["apart"])
    assert abs(np.median(matched_regions.of_chance(found["correlation"]))) <= 0.2
    assert np.median(far) >= 0.2
    assert (far < 0.1).mean() <= 0.15


def test_matched_regions__draws_each_pair(outcome):
    assert len(outcome.pictures) == 40
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in outcome.pictures)
