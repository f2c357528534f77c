import numpy as np
import pytest
import same_or_different
from scipy import stats


@pytest.fixture(scope="module")
def outcome():
    return same_or_different.main([])


def test_halves__of_one_collection_have_uniform_p_values(outcome):
    assert stats.kstest(outcome.halves, "uniform").pvalue > 0.05
    assert np.mean(outcome.halves <= 0.05) <= 0.15


def test_halves__that_differ_in_one_row_of_twenty_are_told_apart(outcome):
    assert float(outcome.replaced["p_value"]) <= 0.05


def test_fours_and_nines__are_different(outcome):
    assert float(outcome.fours_nines_test["p_value"]) == 0.001
    found = outcome.fours_nines
    assert float(found["distance_lower"]) > 0.2
    assert float(found["distance_upper"]) < 0.25


def test_digits__four_and_nine_are_nearest_zero_and_one_farthest(outcome):
    distances = outcome.digits["distance"]
    pairs = {
        (str(x), str(y)): float(distances.sel(x=x, y=y))
        for x in distances["x"].values
        for y in distances["y"].values
        if x < y
    }
    assert min(pairs, key=pairs.get) == ("4", "9")
    assert max(pairs, key=pairs.get) == ("0", "1")
    assert pairs["7", "9"] < pairs["3", "9"]
