import data
import pytest
import representative_digits
from PIL import Image

from bigkd.io import load_dataset


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    try:
        data.mnist_5k()
    except data.FetchError as error:
        pytest.skip(str(error))
    return representative_digits.main(["--out", str(tmp_path_factory.mktemp("chosen"))])


def test_representative_digits__are_twice_as_near_as_random_ones(outcome):
    assert outcome.exact < 0.5 * outcome.random
    assert outcome.equal < 0.5 * outcome.random
    assert outcome.exact < outcome.equal


def test_representative_digits__distance_is_measured_and_promised(outcome):
    assert outcome.measured == pytest.approx(outcome.exact, rel=0.03)
    assert outcome.exact <= float(outcome.chosen["distance_upper"]) < 1.5 * outcome.exact


def test_representative_digits__show_all_ten_by_about_their_share(outcome):
    assert outcome.shares.sum() == pytest.approx(1.0)
    assert outcome.shares.min() > 0.04
    assert outcome.shares.max() < 0.16


def test_representative_digits__writes_result_and_picture(outcome):
    stored = load_dataset(outcome.store, kind="coreset")
    assert stored["index"].values.tolist() == outcome.chosen["index"].values.tolist()
    with Image.open(outcome.picture) as sheet:
        assert sheet.size == (578, 230)  # ten to a line, four lines, 56 pixels each, 2 between
