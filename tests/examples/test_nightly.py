"""Five nights of a job. Its data are 1.4 MB that pip fetches, so it has no reason to skip."""

import nightly
import pytest

from bigkd.io import load_history


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return nightly.main(["--out", str(tmp_path_factory.mktemp("nightly"))])


def test_nightly__only_the_night_with_something_new_exceeds_a_threshold(outcome):
    assert outcome.exit_codes == [0, 0, 0, 0, 3]
    assert max(outcome.distances[:4]) < 0.04
    assert outcome.distances[4] > 0.05
    assert outcome.n_significant == [0, 0, 0, 0, 1]


def test_nightly__what_is_new_is_seen_in_the_pictures(outcome):
    assert outcome.top_digits == [nightly.NEW_DIGIT] * 12


def test_nightly__the_distance_reads_new_rows_only(outcome):
    first = nightly.N_REFERENCE + nightly.N_ROWS
    assert outcome.rows_read == [first] + [nightly.N_ROWS] * 4


def test_nightly__history_and_report_tell_of_all_nights(outcome):
    history = load_history(outcome.history)
    assert history["verdict"].values.tolist() == ["fine"] * 4 + ["exceeded"]
    page = outcome.report.read_text(encoding="utf-8")
    assert "drift and new_modes exceeded a threshold" in page
    assert page.count("data:image/png") == 4 * 12
