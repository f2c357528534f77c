import numpy as np
import pytest

from bigkd.kernels import Gaussian, Laplace
from bigkd.linalg import (
    equal_points,
    exchange,
    greedy_selection,
    halve,
    herd,
    mass_weights,
    neighbours,
    nonnegative_weights,
)

KERNEL = Gaussian(0.2)


def candidates(n, d, seed=0, kernel=KERNEL):
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(n, d)) * 0.3
    rows = rows[neighbours(rows)]
    weights = generator.random(n) + 0.1
    gram = kernel(rows, rows)
    return rows, weights, gram, gram @ weights


def squared(gram, weights, places, own):
    v = np.zeros(weights.size)
    np.add.at(v, places, own)
    return (weights - v) @ gram @ (weights - v)


@pytest.mark.parametrize("d", [1, 2, 10])
def test_greedy_selection__factors_the_gram_matrix_and_projects_the_target(d):
    rows, _, gram, target = candidates(300, d)
    found = greedy_selection(KERNEL, rows, target, np.ones(300), 60)
    own = gram[np.ix_(found.picked, found.picked)]
    assert np.unique(found.picked).size == found.picked.size
    np.testing.assert_allclose(found.factor @ found.factor.T, own, atol=1e-9)
    free = np.linalg.lstsq(found.factor, target[found.picked], rcond=None)[0]
    np.testing.assert_allclose(found.projection, free, atol=1e-4 * np.abs(target).max())


def test_greedy_selection__starts_where_it_is_told():
    rows, _, _, target = candidates(200, 2)
    start = np.array([7, 3, 150])
    found = greedy_selection(KERNEL, rows, target, np.ones(200), 20, start)
    assert found.picked[:3].tolist() == [7, 3, 150]
    assert found.picked.size == 20


def test_greedy_selection__stops_where_nothing_is_left():
    rows = np.repeat(np.arange(5.0)[:, None], 40, axis=0)
    target = KERNEL(rows, rows).sum(axis=1)
    found = greedy_selection(KERNEL, rows, target, np.ones(200), 50)
    assert sorted(rows[found.picked, 0]) == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert greedy_selection(KERNEL, rows, 0 * target, np.ones(200), 50).picked.size == 0


def test_mass_weights__minimise_under_the_constraint():
    rows, weights, gram, target = candidates(200, 2)
    found = greedy_selection(KERNEL, rows, target, np.ones(200), 25)
    mass = weights.sum()
    solved = mass_weights(found.factor, found.projection, mass)
    assert solved.sum() == pytest.approx(mass, rel=1e-15)
    best = squared(gram, weights, found.picked, solved)
    for seed in range(20):
        step = np.random.default_rng(seed).normal(size=25) * 0.01
        other = solved + step - step.mean()
        assert squared(gram, weights, found.picked, other) > best


@pytest.mark.parametrize("seed", range(8))
def test_nonnegative_weights__meet_the_conditions_of_the_optimum(seed):
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(40, 2))
    gram = Laplace(1.0)(rows, rows)
    target = generator.normal(size=40)
    solved = nonnegative_weights(gram, target, 3.0)
    assert solved.min() >= 0.0
    assert solved.sum() == pytest.approx(3.0, rel=1e-15)
    slope = gram @ solved - target
    least = slope.min()
    np.testing.assert_allclose(slope[solved > 0], least, atol=1e-8)
    assert (solved == 0).any()


def test_nonnegative_weights__are_found_one_by_one_where_blocks_go_round(monkeypatch):
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(30, 2))
    gram, target = Laplace(1.0)(rows, rows), generator.normal(size=30)
    expected = nonnegative_weights(gram, target, 2.0)
    monkeypatch.setattr("bigkd.linalg.simplex_weights._MOST_STEPS", 0)
    np.testing.assert_allclose(nonnegative_weights(gram, target, 2.0), expected, atol=1e-5)


def test_exchange__never_comes_further_away_and_tells_the_distance():
    rows, weights, gram, target = candidates(200, 2)
    generator = np.random.default_rng(3)
    start = generator.choice(200, 20, replace=False)
    own = np.full(20, weights.sum() / 20) * generator.uniform(0.5, 1.5, 20)
    before = squared(gram, weights, start, own)
    for sweeps in (1, 2, 5):
        picked, cost = exchange(KERNEL, rows, target, np.ones(200), start, own, sweeps=sweeps)
        after = squared(gram, weights, picked, own)
        assert after <= before
        assert cost + weights @ target == pytest.approx(after, rel=1e-9)
        assert np.unique(picked).size == 20
        before = after


def test_equal_points__are_at_least_as_near_as_herding():
    rows, weights, gram, _ = candidates(300, 2)
    share = weights / weights.sum()
    goal = gram @ share
    generator = np.random.default_rng(0)
    herded = herd(KERNEL, rows, goal, np.ones(300), 30)
    picked, _ = equal_points(KERNEL, rows, goal, np.ones(300), 30, generator)
    own = np.full(30, 1 / 30)
    assert np.unique(herded).size == np.unique(picked).size == 30
    assert squared(gram, share, picked, own) <= squared(gram, share, herded, own)
    drawn = [generator.choice(300, 30, replace=False, p=share) for _ in range(20)]
    assert squared(gram, share, picked, own) < 0.05 * np.mean(
        [squared(gram, share, places, own) for places in drawn]
    )


@pytest.mark.parametrize("n", [1, 2, 3, 255, 600])
def test_halve__keeps_the_weight_and_half_of_the_points(n):
    generator = np.random.default_rng(n)
    rows = generator.normal(size=(n, 3))
    weights = 10.0 ** generator.uniform(-3, 3, n)
    places, sums = halve(KERNEL, rows, weights, generator)
    assert places.size == np.unique(places).size == (n + 1) // 2
    assert sums.sum() == pytest.approx(weights.sum(), rel=1e-13)
    _, equal = halve(KERNEL, rows, np.ones(n), generator)
    assert set(equal) <= {1.0, 2.0}


def test_halve__is_unbiased_at_first_and_far_nearer_than_chance():
    rows, _, gram, _ = candidates(512, 2)
    ones = np.ones(512)
    errors, kept = [], np.zeros(512)
    for seed in range(30):
        places, sums = halve(KERNEL, rows, ones, np.random.default_rng(seed))
        errors.append(squared(gram, ones, places, sums))
        kept[places] += 1
    chance = [
        squared(gram, ones, np.random.default_rng(seed).choice(512, 256, replace=False), sums)
        for seed in range(30)
    ]
    assert np.mean(errors) < 0.1 * np.mean(chance)
    assert abs(kept.mean() - 15) < 1e-9
    assert kept.max() < 30


def test_halve__keeps_the_heavier_of_two():
    rows = np.array([[0.0, 0.0], [0.1, 0.0]])
    kept = [halve(KERNEL, rows, np.array([1.0, 1e6]), np.random.default_rng(s))[0][0]
            for s in range(50)]  # fmt: skip
    assert set(kept) == {1}
    places, sums = halve(KERNEL, rows, np.zeros(2), np.random.default_rng(0))
    assert sums.tolist() == [0.0]
    assert places.size == 1


@pytest.mark.parametrize("d", [1, 2, 40])
def test_neighbours__of_an_order_are_near(d):
    rows = np.random.default_rng(0).normal(size=(501, d))
    order = neighbours(rows)
    assert sorted(order) == list(range(501))
    gaps = np.linalg.norm(np.diff(rows[order], axis=0), axis=1).mean()
    assert gaps < (0.5 if d < 3 else 0.999) * np.linalg.norm(np.diff(rows, axis=0), axis=1).mean()


def test_halve__balances_better_than_pairs_alone():
    rows, _, gram, _ = candidates(512, 10, kernel=(wide := Gaussian(1.0)))
    ones = np.ones(512)

    def mean_error(choose):
        return np.mean([squared(gram, ones, *choose(np.random.default_rng(s))) for s in range(40)])

    def by_coin(generator):
        order = neighbours(rows).reshape(-1, 2)
        return order[np.arange(256), generator.integers(0, 2, 256)], np.full(256, 2.0)

    walked = mean_error(lambda generator: halve(wide, rows, ones, generator))
    assert walked < 0.5 * mean_error(by_coin)


def test_exchange__takes_no_candidate_twice():
    rows, _, gram, _ = candidates(60, 2)
    own = np.full(5, 0.2)
    picked, _ = exchange(KERNEL, rows, gram[7], np.ones(60), np.arange(20, 25), own, sweeps=3)
    assert 7 in picked
    assert np.unique(picked).size == 5
