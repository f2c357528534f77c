import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bigkd.backends import to_host
from bigkd.errors import EmptyInputError, ShapeError
from bigkd.protocols import Rows
from bigkd.summaries import (
    GroupedSecondMoment,
    Joined,
    KernelSum,
    Mapped,
    Mean,
    SecondMoment,
    TopRows,
)
from bigkd.summaries.grouped import group_of
from tests import reference

WIDTH = 3
finite = st.floats(-100, 100, width=32)


class Columns:
    """The rows themselves, as features."""

    width = WIDTH
    n_features = WIDTH

    def __call__(self, x):
        return x * 1.0


def rows_of(values, weights=None, *, first=0, put=np.asarray):
    index = put(np.arange(first, first + len(values)))
    return Rows(put(values), index, None if weights is None else put(weights))


def state_of(summary, rows):
    return summary.update(summary.init(rows.values), rows)


@st.composite
def collections(draw, dtype="float64"):
    n = draw(st.integers(1, 8))
    values = draw(hnp.arrays(dtype, (n, WIDTH), elements=finite))
    weights = draw(st.none() | hnp.arrays("float64", n, elements=st.floats(0.125, 4)))
    return values, weights


@settings(max_examples=20)
@given(collection=collections())
def test_mean__matches_definition(put, collection):
    rows = rows_of(*collection, put=put)
    got = Mean(width=WIDTH).finalize(state_of(Mean(width=WIDTH), rows))
    np.testing.assert_allclose(to_host(got), reference.mean(*collection), rtol=1e-13, atol=1e-11)


@settings(max_examples=20)
@given(collection=collections())
def test_second_moment__matches_definition(put, collection):
    summary = SecondMoment(width=WIDTH)
    state = state_of(summary, rows_of(*collection, put=put))
    weight, outer = reference.second_moment(*collection)
    np.testing.assert_allclose(float(state.weight), weight, rtol=1e-14)
    np.testing.assert_allclose(to_host(state.outer), outer, rtol=1e-13, atol=1e-9)
    mean_outer = to_host(summary.finalize(state))
    np.testing.assert_allclose(mean_outer, np.asarray(outer) / weight, rtol=1e-13, atol=1e-9)


@settings(max_examples=20)
@given(collection=collections(), seed=st.integers(0, 2**63), first=st.sampled_from([0, 2**40]))
def test_groups__match_definition(put, collection, seed, first):
    values, weights = collection
    state = state_of(
        GroupedSecondMoment(width=WIDTH, n_groups=3, seed=seed),
        rows_of(values, weights, first=first, put=put),
    )
    label = np.array([reference.group(first + at, 3, seed) for at in range(len(values))])
    for at in range(3):
        own = None if weights is None else weights[label == at]
        weight, outer = reference.second_moment(values[label == at], own)
        np.testing.assert_allclose(float(state.weight[at]), weight, rtol=1e-14)
        if np.any(label == at):
            np.testing.assert_allclose(to_host(state.outer)[at], outer, rtol=1e-13, atol=1e-9)


@settings(max_examples=20)
@given(collection=collections(), n_top=st.integers(1, 10), cut=st.integers(0, 8))
def test_top_rows__match_definition_with_ties(put, collection, n_top, cut):
    values = np.round(collection[0] / 50)
    summary = TopRows(scores=Columns(), n_top=n_top, work_features=WIDTH)
    cut = min(cut, len(values))
    late, early = rows_of(values[cut:], first=cut, put=put), rows_of(values[:cut], put=put)
    state = summary.update(summary.update(summary.init(late.values), late), early)
    for at in range(WIDTH):
        best = reference.top_rows(values[:, at], range(len(values)), n_top)
        found = to_host(state.index)[at]
        assert found.tolist() == best + [-1] * (n_top - len(best))
        np.testing.assert_array_equal(to_host(state.score)[at, : len(best)], values[best, at])
        np.testing.assert_array_equal(to_host(state.values)[at, : len(best)], values[best])
        assert np.all(to_host(state.score)[at, len(best) :] == -np.inf)


def test_top_rows__prefer_a_row_of_infinitely_low_score_to_no_row():
    values = np.full((2, WIDTH), -np.inf)
    state = state_of(TopRows(scores=Columns(), n_top=3, work_features=3), rows_of(values))
    assert state.index[0].tolist() == [0, 1, -1]


@settings(max_examples=20)
@given(left=collections(), right=collections(), mirrored=st.booleans())
def test_kernel_sum__matches_definition(put, left, right, mirrored):
    def kernel(x, y):
        return x @ y.T

    def exact(row, other):
        return sum(a * b for a, b in zip(row, other, strict=True))

    summary = KernelSum(kernel=kernel)
    left_rows, right_rows = rows_of(*left, put=put), rows_of(*right, put=put)
    state = summary.init(left_rows.values)
    state = summary.update(state, left_rows, right_rows, mirrored=mirrored, diagonal=False)
    weight, total = reference.kernel_sum(exact, left[0], right[0], left[1], right[1])
    times = 2 if mirrored else 1
    np.testing.assert_allclose(float(state.weight), times * weight, rtol=1e-13)
    np.testing.assert_allclose(float(state.total), times * total, rtol=1e-10, atol=1e-6)
    np.testing.assert_allclose(
        float(summary.finalize(state)), total / weight, rtol=1e-10, atol=1e-6
    )


def test_kernel_sum__keeps_fractional_weights_of_a_kernel_of_integers():
    rows = Rows(np.ones((2, 1), dtype=np.int64), np.arange(2), np.array([0.5, 0.25]))
    summary = KernelSum(kernel=lambda x, y: x @ y.T)
    state = summary.update(summary.init(rows.values), rows, rows, mirrored=False, diagonal=True)
    assert (float(state.weight), float(state.total)) == (0.5625, 0.5625)


def test_mapped__summarises_features_tile_by_tile(put, monkeypatch):
    monkeypatch.setattr("bigkd.summaries.compose.MOST_TILE_ROWS", 4)
    monkeypatch.setattr("bigkd.summaries.compose.tile_rows", lambda row_bytes: 4)
    values = np.random.default_rng(0).integers(-9, 9, (19, WIDTH)).astype("f8")
    weights = np.arange(19.0)
    rows = rows_of(values, weights, put=put)
    inner = Joined(summaries=(Mean(width=WIDTH), SecondMoment(width=WIDTH)))
    mean, moment = state_of(Mapped(features=Columns(), summary=inner), rows)
    assert int(mean.count) == 19
    np.testing.assert_array_equal(to_host(mean.total), weights @ values)
    np.testing.assert_array_equal(to_host(moment.outer), (values * weights[:, None]).T @ values)


@pytest.mark.parametrize("dtype", ["float16", "uint8", "int8", "int16", "bool"])
def test_second_moment__of_narrow_rows_does_not_overflow(dtype):
    values = np.full((3000, 2), 100).astype(dtype)
    for summary in (SecondMoment(width=2), GroupedSecondMoment(width=2, n_groups=1, seed=0)):
        state = state_of(summary, rows_of(values))
        one = float(values[0, 0]) ** 2
        np.testing.assert_array_equal(np.squeeze(state.outer), np.full((2, 2), 3000 * one))
    assert Mean(width=2).finalize(state_of(Mean(width=2), rows_of(values)))[0] == values[0, 0]


@pytest.mark.parametrize("weighted", [False, True])
def test_sums__of_a_million_float32_rows_lose_no_digits(weighted):
    generator = np.random.default_rng(0)
    values = generator.uniform(0.5, 1.5, (1_000_000, 2)).astype("f4")
    weights = np.full(1_000_000, 0.1) if weighted else None
    rows = rows_of(values, weights)
    exact, factor = values.astype("f8"), 0.1 if weighted else 1.0
    mean = state_of(Mean(width=2), rows)
    np.testing.assert_allclose(mean.total, factor * exact.sum(axis=0), rtol=1e-12)
    moment = state_of(SecondMoment(width=2), rows)
    np.testing.assert_allclose(moment.outer, factor * exact.T @ exact, rtol=1e-6)
    np.testing.assert_allclose(float(moment.weight), factor * 1e6, rtol=1e-12)
    grouped = state_of(GroupedSecondMoment(width=2, n_groups=2, seed=0), rows)
    np.testing.assert_allclose(grouped.outer.sum(axis=0), factor * exact.T @ exact, rtol=1e-6)


def test_summaries__refuse_rows_of_another_width():
    for summary in (Mean(width=2), SecondMoment(width=2)):
        with pytest.raises(ShapeError, match=r"width 2; got \(1, 3\)"):
            state_of(summary, rows_of(np.ones((1, 3))))
    with pytest.raises(ShapeError, match="width 2"):
        state_of(GroupedSecondMoment(width=2, n_groups=2, seed=0), rows_of(np.ones((1, 3))))


def test_summaries__of_nothing_have_no_mean():
    like = np.ones((1, 2))
    for summary in (Mean(width=2), SecondMoment(width=2), KernelSum(kernel=np.dot)):
        with pytest.raises(EmptyInputError, match="zero"):
            summary.finalize(summary.init(like))


def test_groups__are_balanced_and_know_nothing_of_order():
    index = np.arange(200_000)
    for seed in (0, 1, 2**70):
        label = group_of(index, 20, seed=seed)
        counts = np.bincount(label, minlength=20)
        # chi squared with 19 degrees of freedom: 43.8 once in a thousand
        assert np.sum((counts - 10_000) ** 2 / 10_000) < 43.8
        # neighbours, and rows a period apart, share a group one time in twenty
        for lag in (1, 2, 20, 1000, 65_536):
            together = np.mean(label[lag:] == label[:-lag])
            assert abs(together - 0.05) < 4 * np.sqrt(0.05 * 0.95 / (len(index) - lag))
        assert abs(np.corrcoef(index, label)[0, 1]) < 4 / np.sqrt(len(index))
    assert np.mean(group_of(index, 20, seed=0) == group_of(index, 20, seed=1)) < 0.06


def test_groups__of_sorted_rows_have_honest_means():
    values = np.sort(np.random.default_rng(0).normal(0, 1, 20_000))[:, None]
    state = state_of(GroupedSecondMoment(width=1, n_groups=20, seed=3), rows_of(values))
    means = state.outer[:, 0, 0] / state.weight
    expected = np.sqrt(2 / 1000)  # standard deviation of a mean of 1000 squares of normals
    assert 0.6 * expected < np.std(means) < 1.5 * expected
