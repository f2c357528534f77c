"""What a report says, read as a browser's parser reads it."""

import html.parser
import os
import re
from functools import partial

import numpy as np
import pytest

from bigkd.errors import InputError, MissingDependencyError
from bigkd.io import optional
from bigkd.jobs.report import banner, pictures_of, read_history, word, write_report
from tests.jobs.report_cases import HOSTILE, KINDS, distance_result, history, modes_result


class Page(html.parser.HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)

    def said(self):
        return " ".join(" ".join(self.texts).split())


def write(folder, runs, *, title="nightly", pictures=None, **results):
    """Write a report and read it."""
    found = {"drift": distance_result(), "new_modes": modes_result(), **results}
    path = write_report(
        folder / "report.html", title=title, history=runs, results=found, kinds=KINDS,
        pictures=pictures or {},
    )  # fmt: skip
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture
def report(tmp_path):
    """Writes a report and reads it."""
    return partial(write, tmp_path)


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory):
    """A report of 20 runs, of which two failed and the last ones differ."""
    folder = tmp_path_factory.mktemp("ordinary")
    return write(folder, history(20, verdicts={7: "failed", 9: "failed", 19: "exceeded"}))


def chart(page, title):
    """What the chart whose label begins with `title` says."""
    return next(text for name, text in page.attributes if name == "aria-label" if title in text)


def test_report__says_at_the_top_that_it_differs(ordinary):
    said = ordinary.said()
    assert said.index("It differs") < said.index("drift exceeded a threshold")
    number = "distance 0.39 must be at most 0.305 between 0.36 and 0.43 with probability 0.99"
    assert number in said


def test_report__says_that_it_does_not_differ_only_of_what_was_judged(report):
    said = report(history(3)).said()
    assert "It does not differ" in said
    assert "drift within thresholds; new_modes without a threshold" in said
    (last,) = read_history(history(1, fail_if={}, limit=np.nan)).runs
    assert banner(last).headline == "Nothing was judged"
    assert word("distance", last.outcomes["drift"]) == "no threshold set"


def test_report__says_what_failed_and_shows_the_last_result(report):
    page = report(history(5, verdicts={4: "failed"}))
    assert "It failed" in page.said()
    assert page.said().count("no room") == 2
    assert "are those of an earlier run" in page.said()
    assert "failed in 1 run" in chart(page, "Distance of 5 runs")


def test_report__one_that_differs_weighs_more_than_one_that_failed():
    runs = history(5, verdicts={4: "exceeded"})
    runs["new_modes.verdict"][4] = "failed"
    found = banner(read_history(runs).runs[-1])
    assert found.headline == "It differs, and a comparison failed"
    assert found.sentence == "drift exceeded a threshold; new_modes failed"


def test_report__yes_or_no_thresholds_are_judged():
    runs = history(4, fail_if={"rejected": True}, limit=np.nan)
    runs["drift.p_value"][3] = 0.05
    *_, before, last = (run.outcomes["drift"].readings[0] for run in read_history(runs).runs)
    assert [before.label, before.rule] == ["p-value", "must be above 0.05"]
    assert [before.against, last.against] == ["0.2 > 0.05", "0.05 <= 0.05"]
    assert [before.exceeded, last.exceeded] == [False, True]


def test_report__a_threshold_of_zero_is_one():
    account = read_history(history(2, fail_if={"above": 0.0}, limit=0.0))
    outcome = account.runs[-1].outcomes["drift"]
    assert outcome.judged
    assert outcome.main.rule == "must be at most 0"


def test_report__charts_count_what_is_in_them(ordinary):
    label = chart(ordinary, "Distance of 20 runs")
    assert "the last 0.39, the least 0.2, the largest 0.39" in label
    assert "threshold 0.305, exceeded in 9 runs; failed in 2 runs" in label
    assert "what its promise leaves" in ordinary.said()


@pytest.mark.parametrize("n", [1, 2, 400])
def test_report__any_number_of_runs_is_drawn(report, n):
    page = report(history(n))
    charts = [text for name, text in page.attributes if name == "aria-label" if " run" in text]
    assert len([text for text in charts if f" of {n} run" in text]) == 7
    assert page.tags.count("tr") >= n
    assert (f"{n - 30} earlier run" in page.said()) == (n > 30)


def test_report__a_comparison_that_came_late_is_drawn_from_there(report):
    page = report(history(10, start=7))
    assert chart(page, "Largest eigenvalue of the modes of 3 runs")
    assert chart(page, "Distance of 10 runs")


def test_report__a_clock_that_went_back_changes_no_order(report):
    runs = history(6)
    runs["time"][4] = np.datetime64("2025-01-01", "ns")
    runs["time"][5] = np.datetime64("NaT", "ns")
    account = read_history(runs)
    assert [run.went_back for run in account.runs] == [False] * 4 + [True, False]
    assert [run.run_id for run in account.runs] == [f"run-{at}" for at in range(6)]
    runs["version"][5] = "0.2.0"
    said = report(runs).said()
    assert said.count("clock went back") == said.count("new version 0.2.0") == 1


def test_report__nothing_but_nan_is_no_chart(report):
    page = report(history(3, verdicts=dict.fromkeys(range(3), "failed")))
    assert not [
        text for name, text in page.attributes if name == "aria-label" if "Distance" in text
    ]
    assert "Rows read and reused" in page.said()


def test_report__modes_show_pictures_of_their_rows(report):
    images = np.arange(12 * 5 * 5, dtype=np.uint8).reshape(12, 5, 5)
    page = report(history(2), pictures={"new_modes": pictures_of("modes", modes_result(), images)})
    shown = [text for name, text in page.attributes if name == "src"]
    assert len(shown) == 11  # the last mode has three rows
    assert all(text.startswith("data:image/png;base64,iVBOR") for text in shown)
    assert ("alt", "row 4 of the test set") in page.attributes


def test_report__modes_without_pictures_show_row_numbers(ordinary):
    said = ordinary.said()
    assert "img" not in ordinary.tags
    assert "top rows of the test set 8, 9, 10 " in said
    assert "eigenvalue 0.2 ± 0.011 p-value 0.005 frequency in the test set 0.21" in said


def test_report__shows_choices_and_promises(ordinary):
    said = ordinary.said()
    assert "promise_kind probabilistic" in said
    assert "distance_upper 0.29 largest distance that the promise leaves" in said
    assert "may be broken, with a probability of at most 0.01" in said


def test_report__what_data_say_does_nothing(report):
    runs = history(3, messages=[HOSTILE] * 3, verdicts={2: "failed"})
    runs["version"][2] = HOSTILE
    labelled = distance_result(**{"x": HOSTILE, HOSTILE: HOSTILE})
    labelled["distance"].attrs["long_name"] = HOSTILE
    page = report(runs, title=HOSTILE + "\ud800", drift=labelled)
    assert not {"script", "img"} & {*page.tags}
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert page.tags.count("style") == page.tags.count("title") == 1
    assert "<script>document.title" in page.said()
    assert "{{ 7 * 7 }}" in page.said()
    assert not re.search("[\x00\x1b\u202e\ud800]", page.said())


def test_report__a_threshold_of_many_distances_is_drawn_with_the_largest():
    runs = history(4).rename({"drift.distance": "drift.judged.distance"})
    account = read_history(runs.drop_vars(["drift.distance_lower", "drift.distance_upper"]))
    reading = account.runs[-1].outcomes["drift"].main
    assert (reading.label, reading.against) == ("largest distance", "0.23 <= 0.305")


def test_report__endless_text_is_cut(report):
    page = report(history(2, messages=["long " * 100_000] * 2, verdicts={1: "failed"}))
    assert "(498,000 characters more)" in page.said()
    assert len(page.said()) < 50_000


def test_report__allows_nothing_and_names_no_other_place(report, tmp_path):
    page = report(history(1))
    policy = next(text for name, text in page.attributes if name == "content")
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|url\((?!#)|@import|<link|<script", text)


def test_report__names_are_unique(ordinary):
    names = [text for name, text in ordinary.attributes if name == "id"]
    assert len(names) == len({*names}) > 2
    used = re.findall(r"url\(#(.*?)\)", " ".join(str(text) for _, text in ordinary.attributes))
    linked = [text[1:] for name, text in ordinary.attributes if name == "href"]
    assert {*used, *linked} <= {*names}


def test_report__equal_input_gives_equal_bytes(report, tmp_path):
    pages = []
    for _ in range(2):
        report(history(3, verdicts={1: "failed"}))
        pages.append((tmp_path / "report.html").read_bytes())
    assert pages[0] == pages[1]


def test_report__an_earlier_page_stays_whole_where_a_new_one_cannot_be_written(
    report, tmp_path, monkeypatch
):
    report(history(1))
    before = (tmp_path / "report.html").read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        report(history(2))
    assert (tmp_path / "report.html").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_report__needs_a_run_and_matplotlib(report, monkeypatch):
    with pytest.raises(InputError, match="history has no run"):
        report(history(0))

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(optional.importlib, "import_module", absent)
    with pytest.raises(MissingDependencyError, match=r"bigkd\[report\]"):
        report(history(1))
