"""When a result counts as a difference."""

import numpy as np
import pytest
import xarray as xr

from bigkd.jobs.thresholds import ThresholdsPart


def judged(values, name="distance", **thresholds):
    values = np.asarray(values)
    dims = [f"d{axis}" for axis in range(values.ndim)]
    found = ThresholdsPart(**thresholds).judgements(xr.Dataset({name: (dims, values)}))
    return [(one.variable, one.limit, one.exceeded) for one in found]


@pytest.mark.parametrize(
    ("values", "exceeded"),
    [
        (0.1, False), (0.1 + 1e-12, True), (np.nan, True), (np.inf, True), (0.0, False),
        ([[0.0, 0.05], [0.05, 0.0]], False), ([[0.0, 0.2], [0.2, 0.0]], True),
        ([np.nan, 0.05], False), ([np.nan, 0.2], True), ([np.nan, np.nan], True),
    ],
)  # fmt: skip
def test_above__is_the_largest_and_what_is_not_known_is_no_good_news(values, exceeded):
    assert judged(values, above=0.1) == [("distance", 0.1, exceeded)]


def test_above__of_zero_is_a_threshold():
    assert judged(1e-300, above=0.0) == [("distance", 0.0, True)]
    assert judged(0.0, above=0.0) == [("distance", 0.0, False)]


@pytest.mark.parametrize(
    ("values", "exceeded"), [([0.5, 0.4], False), ([0.5, 0.3], True), ([0.5, np.nan], True)]
)
def test_explained_below__is_of_the_sum(values, exceeded):
    assert judged(values, "explained_share", explained_below=0.9) == [
        ("explained_share", 0.9, exceeded)
    ]


@pytest.mark.parametrize("values", [True, [False, True]])
def test_yes_or_no__have_no_limit(values):
    assert judged(values, "significant", significant=True) == [("significant", None, True)]
    assert judged(np.zeros_like(values), "rejected", rejected=True) == [("rejected", None, False)]


def test_thresholds__not_set_judge_nothing():
    assert judged(5.0) == []
    assert judged(5.0, significant=False, above=None) == []


def test_thresholds__of_what_is_not_made_are_named():
    part = ThresholdsPart(above=1.0, significant=True)
    assert set(part.unjudged(frozenset({"distance"}))) == {"significant"}
    assert part.unjudged(frozenset({"distance", "significant"})) == {}
