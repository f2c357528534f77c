import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bigkd.backends import to_host
from bigkd.errors import EmptyInputError, InputError
from bigkd.kernels import Gaussian, Laplace, Polynomial
from bigkd.protocols import Rows
from bigkd.summaries import (
    KernelReducer,
    MergeReduce,
    QuantileReducer,
    Reservoir,
    levels_for,
)
from bigkd.summaries.reservoir import exponentials
from bigkd.testing import check_summary_laws

KERNEL = Gaussian(0.5)


def tree(n, d, *, size=32, pool=32, kernel=KERNEL, **options):
    reducer = KernelReducer(kernel=kernel, **options)
    return MergeReduce(
        width=d, size=size, pool=pool, n_levels=levels_for(n, pool), reducer=reducer, seed=3
    )


def merged(summary, rows, cuts, generator):
    """State of `rows`, cut into blocks and merged in a random tree of neighbours."""
    states = []
    for at in np.split(np.arange(rows.index.size), cuts):
        weights = None if rows.weights is None else rows.weights[at]
        block = Rows(rows.values[at], rows.index[at], weights)
        states.append(summary.update(summary.init(rows.values[:1]), block))
    while len(states) > 1:
        at = int(generator.integers(len(states) - 1))
        states[at : at + 2] = [summary.merge(states[at], states[at + 1])]
    return states[0]


def distance(rows, points, kernel=KERNEL):
    """By its definition, with total weight 1."""
    n = rows.index.size
    mine = np.ones(n) if rows.weights is None else rows.weights.astype("f8")
    signed = mine / mine.sum()
    np.subtract.at(signed, to_host(points.index), to_host(points.weights) / mine.sum())
    return float(np.sqrt(max(0.0, signed @ kernel(rows.values, rows.values) @ signed)))


def clusters(n, d, seed=0):
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(8, d)) * 2
    return centres[generator.integers(0, 8, n)] + 0.3 * generator.normal(size=(n, d))


def adversarial(name, n=1500, d=2):
    generator = np.random.default_rng(1)
    rows, weights = clusters(n, d), None
    if name == "outliers":
        rows[::100] *= 1e4
    elif name == "one point":
        rows[:] = rows[0]
    elif name == "repeated":
        rows = rows[generator.integers(0, 40, n)]
    elif name == "far apart":
        rows = np.arange(n * d, dtype="f8").reshape(n, d) * 100
    elif name == "heavy":
        weights = 10.0 ** generator.uniform(-3, 3, n)
    elif name == "offset":
        rows += 1e4
    elif name == "one heavy":
        weights = np.ones(n)
        weights[700] = 1e6
    return Rows(rows, np.arange(n), weights)


SETS = (
    "clusters", "outliers", "one point", "repeated", "far apart", "heavy", "offset", "one heavy",
)  # fmt: skip


@pytest.mark.parametrize("selection", ["greedy", "halving"])
@pytest.mark.parametrize("name", SETS)
def test_merge_reduce__keeps_its_bound_its_size_and_the_weight(name, selection):
    rows = adversarial(name)
    summary = tree(1500, 2, selection=selection)
    state = merged(summary, rows, [3, 400, 401, 1000], np.random.default_rng(0))
    thinned = summary.finalize(state)
    points = thinned.points
    mass = 1500.0 if rows.weights is None else rows.weights.sum()
    assert points.index.size == np.unique(points.index).size <= 32
    assert points.weights.sum() == pytest.approx(mass, rel=1e-14)
    assert points.weights.min() > 0
    np.testing.assert_array_equal(points.values, rows.values[points.index])
    assert distance(rows, points) <= thinned.error / mass * (1 + 1e-6)


@pytest.mark.parametrize("selection", ["greedy", "halving"])
@pytest.mark.parametrize("blocks", [16, 256])
def test_merge_reduce__of_any_tree_is_as_good_as_of_one_block(blocks, selection):
    rows = Rows(clusters(8192, 2), np.arange(8192))
    summary = tree(8192, 2, selection=selection)
    whole = summary.finalize(summary.update(summary.init(rows.values[:1]), rows))
    alone = distance(rows, whole.points)
    for seed in range(2):
        generator = np.random.default_rng(seed)
        cuts = np.sort(generator.choice(np.arange(1, 8192), blocks - 1, replace=False))
        thinned = summary.finalize(merged(summary, rows, cuts, generator))
        found = distance(rows, thinned.points)
        assert found <= thinned.error / 8192 * (1 + 1e-6)
        assert found < 2.0 * alone
        assert thinned.error < 1.5 * whole.error


def test_merge_reduce__bound_is_not_vacuous():
    rows = Rows(clusters(8192, 2), np.arange(8192))
    summary = tree(8192, 2)
    thinned = summary.finalize(summary.update(summary.init(rows.values[:1]), rows))
    assert thinned.error / 8192 < 8 * distance(rows, thinned.points)
    assert thinned.error / 8192 < 0.6 * (1.0 / 32) ** 0.5  # a random sample's root mean square


def test_merge_reduce__signed_weights_are_at_least_as_near():
    rows = Rows(clusters(512, 2), np.arange(512))
    found = {}
    for reweight in ("nonnegative", "mass"):
        summary = tree(512, 2, size=64, pool=128, reweight=reweight)
        state = summary.update(summary.init(rows.values[:1]), rows)
        found[reweight] = distance(rows, summary.finalize(state).points)
    assert found["mass"] < 1.5 * found["nonnegative"]


def test_merge_reduce__few_rows_stay_as_they_are():
    rows = Rows(clusters(30, 2), np.arange(30), np.arange(30.0))
    summary = tree(30, 2)
    thinned = summary.finalize(summary.update(summary.init(rows.values[:1]), rows))
    assert thinned.error == 0.0
    assert thinned.points.index.tolist() == list(range(1, 30))  # row 0 weighs nothing
    np.testing.assert_array_equal(thinned.points.weights, rows.weights[1:])


def test_merge_reduce__state_does_not_grow():
    summary = tree(10**9, 5)
    empty = summary.init(np.zeros((1, 5), "f4"))
    size = sum(part.nbytes for part in empty)
    state = merged(
        summary, Rows(clusters(3000, 5).astype("f4"), np.arange(3000)), [999], np.random
        .default_rng(0),
    )  # fmt: skip
    assert sum(part.nbytes for part in state) == size
    assert summary.footprint(1000, 4).state == pytest.approx(size, abs=64)
    for one, other in zip(state, empty, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape


def test_merge_reduce__more_rows_than_levels_are_for_still_fit():
    rows = Rows(clusters(4096, 2), np.arange(4096))
    summary = tree(1, 2, size=16, pool=16)
    assert summary.n_levels == 1
    thinned = summary.finalize(summary.update(summary.init(rows.values[:1]), rows))
    assert thinned.points.weights.sum() == pytest.approx(4096, rel=1e-14)
    assert distance(rows, thinned.points) <= thinned.error / 4096


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_merge_reduce__is_the_same_in_every_namespace(put, dtype):
    values = (clusters(700, 3) * 20 + 128).clip(0, 255).astype(dtype)
    weights = np.random.default_rng(0).integers(0, 3, 700).astype("f8")
    kernel = Laplace(20.0)
    summary = tree(700, 3, kernel=kernel)

    def found(put):
        states = [
            summary.update(
                summary.init(put(values[:1])),
                Rows(put(values[at]), put(at), put(weights[at])),
            )
            for at in (np.arange(300), np.arange(300, 700))
        ]
        return summary.finalize(summary.merge(*states))

    one, other = found(put), found(np.array)
    assert one.error == other.error
    for mine, theirs in zip(one.points, other.points, strict=True):
        np.testing.assert_array_equal(to_host(mine), theirs)
    assert to_host(one.points.values).dtype == dtype


def test_merge_reduce__leaves_its_arguments_as_they_are():
    rows = Rows(clusters(900, 2), np.arange(900))
    summary = tree(900, 2)
    left, right = (
        summary.update(summary.init(rows.values[:1]), Rows(rows.values[at], rows.index[at]))
        for at in (np.arange(500), np.arange(500, 900))
    )
    before = [part.copy() for state in (left, right) for part in state]
    merged_once, again = summary.merge(left, right), summary.merge(left, right)
    for one, other in zip([*left, *right], before, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(merged_once, again, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "summary",
    [tree(100, 2), Reservoir(width=2, size=5)],
    ids=["merge-reduce", "reservoir"],
)
def test_summaries__refuse_weights_that_are_no_shares(summary):
    rows, index = np.ones((3, 2)), np.arange(3)
    state = summary.init(rows)
    with pytest.raises(InputError, match=r"row 1 has -2\.0"):
        summary.update(state, Rows(rows, index, np.array([1.0, -2.0, 0.0])))
    with pytest.raises(InputError, match="vectors"):
        summary.update(state, Rows(rows, index, None, rows))


def test_merge_reduce__refuses_no_weight_at_all():
    summary = tree(100, 2)
    state = summary.update(
        summary.init(np.ones((1, 2))), Rows(np.ones((3, 2)), np.arange(3), np.zeros(3))
    )
    with pytest.raises(EmptyInputError, match="sum to zero"):
        summary.finalize(state)


@settings(max_examples=20)
@given(data=st.data())
def test_reservoir__keeps_the_laws(put, data):
    weighted = data.draw(st.booleans())
    blocks, first = [], 0
    for size in data.draw(st.lists(st.integers(0, 6), min_size=3, max_size=5)):
        values = data.draw(hnp.arrays("f4", (size, 2), elements=st.integers(0, 3)))
        weights = data.draw(hnp.arrays("f8", size, elements=st.integers(0, 4)))
        index = np.arange(first, first + size)
        blocks.append(Rows(put(values), put(index), put(weights) if weighted else None))
        first += size
    check_summary_laws(Reservoir(width=2, size=4, seed=1), blocks)


def test_exponentials__are_exponential_and_differ_by_seed(put):
    index = np.arange(100_000)
    one, other = (to_host(exponentials(put(index), seed=seed)) for seed in (0, 1))
    assert one.mean() == pytest.approx(1.0, abs=0.02)
    assert one.var() == pytest.approx(1.0, abs=0.05)
    assert np.sort(one)[50_000] == pytest.approx(np.log(2), abs=0.02)
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.02
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.02
    np.testing.assert_array_equal(one[500:600], exponentials(index[500:600], seed=0))


@pytest.mark.parametrize("weighted", [False, True])
def test_quantile_reducer__keeps_its_bound(weighted):
    generator = np.random.default_rng(0)
    values = np.concatenate([generator.normal(size=3000), np.full(500, 0.25)])[:, None]
    weights = 10.0 ** generator.uniform(-3, 3, 3500) if weighted else None
    rows = Rows(values, np.arange(3500), weights)
    summary = MergeReduce(
        width=1, size=20, pool=160, n_levels=levels_for(3500, 160), reducer=QuantileReducer()
    )
    thinned = summary.finalize(merged(summary, rows, [10, 1700, 1701], generator))
    mine = np.ones(3500) if weights is None else weights
    steps = np.concatenate([values[:, 0], values[:, 0] - 1e-12])
    full = np.array([mine[values[:, 0] <= at].sum() for at in steps])
    few = np.array(
        [thinned.points.weights[thinned.points.values[:, 0] <= at].sum() for at in steps]
    )
    worst = np.abs(full - few).max() / mine.sum()
    assert worst <= thinned.error / mine.sum() * (1 + 1e-9)
    assert thinned.error / mine.sum() < 1.3 / 40
    assert thinned.points.index.size <= 20


def test_merge_reduce__of_rows_that_cancel_keeps_one():
    values = np.concatenate([np.eye(3), -np.eye(3)]) * 2.0
    values = np.concatenate([values, [[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]]])
    rows = Rows(values, np.arange(8))
    summary = tree(8, 3, size=4, pool=4, kernel=Polynomial((0.0, 1.0)))
    thinned = summary.finalize(summary.update(summary.init(values[:1]), rows))
    assert thinned.points.weights.tolist() == [8.0]
    assert abs(thinned.points.values[0, 0]) == 0.5
    assert 4.0 <= thinned.error < 4.0 + 1e-5
