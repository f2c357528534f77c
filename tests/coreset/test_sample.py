import numpy as np
import pytest

from bigkd import coreset
from bigkd.errors import EmptyInputError, InputError, ShapeError
from bigkd.kernels import Gaussian

KERNEL = Gaussian(0.1)


def test_sample__does_not_depend_on_blocks(clusters):
    rows = clusters(1000, 3)
    found = [coreset.sample(rows, 40, seed=2, block_rows=block) for block in (7, 100, 1000)]
    assert found[0].identical(found[1])
    assert found[0].identical(found[2])
    assert not found[0].identical(coreset.sample(rows, 40, seed=3))
    np.testing.assert_array_equal(found[0]["rows"], rows[found[0]["index"]])
    assert set(found[0]["weight"].values) == {25.0}


def test_sample__draws_every_row_equally_often():
    rows = np.arange(50.0)[:, None]
    counts = np.zeros(50)
    for seed in range(600):
        counts[coreset.sample(rows, 10, seed=seed, scheduler="sync")["index"]] += 1
    assert abs(counts - 120).max() < 5 * (120 * 0.8) ** 0.5


@pytest.mark.parametrize("replacement", [None, False])
def test_sample__estimates_sums_without_bias(replacement):
    generator = np.random.default_rng(0)
    weights = 10.0 ** generator.uniform(-2, 1, 60)
    value = generator.normal(size=60)
    sums, masses = [], []
    for seed in range(800):
        found = coreset.sample(
            value[:, None], 15, weights=weights, replacement=replacement, seed=seed,
            scheduler="sync",
        )  # fmt: skip
        sums.append(float(found["weight"] @ found["rows"][:, 0]))
        masses.append(float(found["weight"].sum()))
    np.testing.assert_allclose(masses, weights.sum(), rtol=1e-12)
    error = np.std(sums) / len(sums) ** 0.5
    slack = 0.0 if replacement is None else 0.02 * weights.sum()  # scaled to W: a ratio
    assert abs(np.mean(sums) - weights @ value) < 4 * error + slack


def test_sample__with_replacement_is_of_independent_draws():
    weights = np.array([8.0, 1.0, 1.0, 0.0])
    counts = np.zeros((500, 4))
    for seed in range(500):
        found = coreset.sample(
            np.arange(4.0)[:, None], 5, weights=weights, seed=seed, scheduler="sync"
        )
        counts[seed, found["index"]] = found["count"]
        assert int(found["count"].sum()) == 5
    np.testing.assert_allclose(counts.mean(axis=0), [4.0, 0.5, 0.5, 0.0], atol=0.15)
    np.testing.assert_allclose(counts.var(axis=0), [0.8, 0.45, 0.45, 0.0], atol=0.15)


@pytest.mark.parametrize(
    "options",
    [{}, {"replacement": True}, {"weights": True}, {"weights": True, "replacement": False}],
)
def test_sample__keeps_its_promise(clusters, mmd, options):
    rows = clusters(600, 2)
    weights = 10.0 ** np.random.default_rng(0).uniform(-1, 2, 600) if "weights" in options else None
    options = {**options, "weights": weights}
    ratios = []
    for seed in range(60):
        found = coreset.sample(rows, 50, seed=seed, delta=0.1, scheduler="sync", **options)
        ratios.append(mmd(rows, found, KERNEL, weights) / float(found["distance_upper"]))
    assert np.mean(np.array(ratios) > 1) <= 0.1
    assert np.mean(ratios) > 0.05


def test_sample__of_all_rows_is_exact(clusters, mmd):
    rows = clusters(30, 2)
    weights = np.arange(30.0)
    found = coreset.sample(rows, 29, weights=weights, replacement=False)
    assert found["index"].values.tolist() == list(range(1, 30))
    np.testing.assert_array_equal(found["weight"], weights[1:])
    assert float(found["distance_upper"]) == 0.0
    assert mmd(rows, found, KERNEL, weights) == 0.0


def test_sample__refuses(clusters):
    rows = clusters(30, 2)
    with pytest.raises(InputError, match="size must be"):
        coreset.sample(rows, 0)
    with pytest.raises(EmptyInputError, match="sum to zero"):
        coreset.sample(rows, 3, weights=np.zeros(30))
    with pytest.raises(InputError, match="not be negative"):
        coreset.sample(rows, 3, weights=-np.ones(30))
    with pytest.raises(ShapeError, match="weights of data"):
        coreset.sample(rows, 3, weights=np.ones(31))


def test_sorted_1d__keeps_its_promise():
    generator = np.random.default_rng(0)
    rows = np.concatenate([generator.standard_cauchy(4000), np.full(1000, 0.5)])[:, None]
    weights = 10.0 ** generator.uniform(-3, 3, 5000)
    for own in (None, weights):
        found = coreset.sorted_1d(rows, 10, weights=own, block_rows=300)
        mine = np.full(5000, 1.0) if own is None else own
        at = np.sort(rows[:, 0])
        full = (mine[:, None] * (rows <= at)).sum(axis=0)
        few = (found["weight"].values[:, None] * (found["rows"].values <= at)).sum(axis=0)
        worst = np.abs(full - few).max() / mine.sum()
        assert worst <= float(found["rank_error"]) < 0.066
        assert found.sizes["point"] <= 10
        kernel = Gaussian(1.0)
        density = np.abs(
            kernel(at[::50, None], rows) @ (mine / mine.sum())
            - kernel(at[::50, None], found["rows"].values) @ (found["weight"].values / mine.sum())
        )
        assert density.max() <= float(found["density_error"])


def test_sorted_1d__refuses_wide_rows(clusters):
    with pytest.raises(ShapeError, match="width 1; got width 2"):
        coreset.sorted_1d(clusters(20, 2), 3)


def test_size_for__inverts_the_promise_of_sample():
    size = coreset.size_for(0.2, delta=0.05)
    found = coreset.sample(np.zeros((10_000, 1)), size, delta=0.05)
    assert float(found["distance_upper"]) <= 0.2
    found = coreset.sample(np.zeros((10_000, 1)), size - 1, delta=0.05)
    assert float(found["distance_upper"]) > 0.2


def test_size_for__needs_what_its_rule_does():
    assert coreset.size_for(0.1, width=2, rule="ranges") > 0
    assert coreset.size_for(0.01, width=2, rule="low_discrepancy") < coreset.size_for(0.01)
    assert coreset.size_for(0.1, n=100, rule="lemma_a1") > coreset.size_for(0.1)
    for rule, name in (("ranges", "width"), ("low_discrepancy", "width"), ("lemma_a1", "n")):
        with pytest.raises(InputError, match=f"needs {name}"):
            coreset.size_for(0.1, rule=rule)
    with pytest.raises(InputError, match="rule must be one of"):
        coreset.size_for(0.1, rule="best")
