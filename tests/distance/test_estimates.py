"""What follows from kernel sums: values, bounds and how failures share delta."""

import numpy as np
import pytest

from bigkd.distance.collections import Measured
from bigkd.distance.estimates import Kappas, single
from bigkd.kernels.promises import value_promise


def about(norm=1.0, *, squares=0.1, diagonal=0.1):
    return Measured(
        n=10, n_dropped=0, mass=10.0, total=norm, norm=norm, squares=squares, diagonal=diagonal,
        scale=10.0, lower=np.zeros(1), upper=np.ones(1),
    )  # fmt: skip


X, Y = about(2.0), about(3.0, squares=0.2, diagonal=0.4)


def test_deterministic__error_is_that_of_all_three_sums():
    answer = single(4.0, 5.0, 1.0, error=0.01, kind="deterministic").squared_distance(
        X, Y, delta=0.1
    )
    assert answer.value == 7.0
    assert (answer.lower, answer.upper) == pytest.approx((7.0 - 0.25, 7.0 + 0.25))
    assert answer.promise == pytest.approx(0.25)
    assert np.isnan(answer.standard_error)


def test_slack__of_both_embeddings_moves_the_distance():
    kappas = single(9.0, 0.0, 0.0, slack=(0.5, 1.0), kind="probabilistic")
    answer = kappas.squared_distance(X, Y, delta=0.1)
    assert (answer.lower, answer.upper) == pytest.approx((1.5**2, 4.5**2))
    assert answer.promise == pytest.approx(4.5**2 - 9.0)


def test_slack__larger_than_the_distance_leaves_zero():
    kappas = single(0.04, 0.0, 0.0, slack=(0.5, 0.0), kind="probabilistic")
    assert kappas.squared_distance(X, Y, delta=0.1).lower == 0.0


def test_sampled__values_lie_between_zero_and_the_square_of_both_norms():
    values = np.random.default_rng(0).uniform(0, 9, 50)
    kappas = Kappas(xx=values, yy=values, xy=values, difference=values, kind="probabilistic")
    answer = kappas.squared_distance(X, Y, delta=0.1)
    expected = value_promise(values, (2.0 + 3.0) ** 2, 0.1)
    assert (answer.lower, answer.upper) == (expected.lower, expected.upper)
    assert answer.standard_error == pytest.approx(values.std(ddof=1) / 50**0.5)


def test_unbiased__deterministic_error_is_that_of_all_three_sums():
    answer = single(4.0, 5.0, 1.0, error=0.01, kind="deterministic").unbiased(X, Y, delta=0.1)
    assert answer.value == pytest.approx((4.0 - 0.1) / 0.9 + (5.0 - 0.4) / 0.8 - 2.0)
    assert answer.promise == pytest.approx(0.01 * (4.0 / 0.9 + 9.0 / 0.8 + 2 * 6.0))


def test_unbiased__slack_counts_in_every_sum():
    kappas = single(4.0, 5.0, 1.0, slack=(0.1, 0.2), kind="probabilistic")
    answer = kappas.unbiased(X, Y, delta=0.1)
    own = 0.1 * (4 + 0.1) / 0.9 + 0.2 * (6 + 0.2) / 0.8
    assert answer.promise == pytest.approx(own + 2 * (0.1 * 3 + 0.2 * 2 + 0.02))


def test_unbiased__surplus_is_taken_off_and_allowed_for():
    kappas = single(4.0, 5.0, 1.0, surplus=(0.3, 0.4), kind="probabilistic")
    plain = single(3.7, 4.6, 1.0, kind="probabilistic").unbiased(X, Y, delta=0.1)
    answer = kappas.unbiased(X, Y, delta=0.1)
    assert answer.value == pytest.approx(plain.value)
    assert answer.promise == pytest.approx(0.3 / 0.9 + 0.4 / 0.8)


def test_unbiased__sampled_values_span_all_that_is_possible():
    rng = np.random.default_rng(1)
    xx, yy, xy = rng.uniform(0, 4, 60), rng.uniform(0, 9, 60), rng.uniform(-6, 6, 60)
    kappas = Kappas(xx=xx, yy=yy, xy=xy, difference=xx + yy - 2 * xy, kind="probabilistic")
    answer = kappas.unbiased(X, Y, delta=0.1)
    values = (xx - 0.1) / 0.9 + (yy - 0.4) / 0.8 - 2 * xy
    least = -0.1 / 0.9 - 0.4 / 0.8 - 12
    most = 3.9 / 0.9 + 8.6 / 0.8 + 12
    expected = value_promise(values - least, most - least, 0.1)
    assert answer.value == pytest.approx(values.mean())
    assert answer.lower == pytest.approx(expected.lower + least)
    assert answer.upper == pytest.approx(expected.upper + least)
