"""What the p-values, standard errors and error estimates promise, held to it over seeds."""

import numpy as np
import pytest

from bigkd import finc
from bigkd.backends import rng
from bigkd.kernels import FourierFeatures, Gaussian
from tests.finc.conftest import clusters

OPTIONS = {"kernel": Gaussian(4.0), "n_frequencies": 100, "n_top": 0, "scheduler": "sync"}


@pytest.mark.slow
def test_p_values__of_equal_distributions_are_rarely_small():
    first = []
    for seed in range(200):
        test, _ = clusters(400, range(20), seed=2 * seed)
        reference, _ = clusters(300, range(20), seed=2 * seed + 1)
        found = finc.modes(test, reference, seed=seed, n_draws=99, alpha=0.05, **OPTIONS)
        first.append(float(found["p_value"][0]))
    # 5 % plus three binomial standard errors of 200 trials; and not vacuous.
    assert np.mean(np.asarray(first) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert np.mean(np.asarray(first) <= 0.5) >= 0.25


@pytest.mark.parametrize("seed", range(5))
def test_significant__keeps_the_true_modes_and_nothing_else(seed):
    test, _ = clusters(3000, range(20), seed=10 * seed)
    reference, _ = clusters(3000, range(3, 20), seed=10 * seed + 1)
    found = finc.modes(test, reference, seed=seed, **OPTIONS)
    assert int(found["significant"].sum()) == 3


def test_significant__holds_for_sorted_collections():
    test, label = clusters(3000, range(20), seed=1)
    reference, other = clusters(3000, range(20), seed=2)
    test, reference = test[np.argsort(label)], reference[np.argsort(other)]
    found = finc.modes(test, reference, block_rows=100, **OPTIONS)
    assert not found["significant"].any()
    reference = reference[np.sort(other) > 2]
    found = finc.modes(test, reference, block_rows=100, **OPTIONS)
    assert int(found["significant"].sum()) == 3


def test_significant__needs_more_than_rho_times_the_reference():
    generator = rng(3)
    twice = generator.random(4000) < 0.2
    once = generator.random(4000) < 0.1
    shared, _ = clusters(8000, range(5, 20), seed=4)
    rare, _ = clusters(8000, [0], seed=5)
    test = np.where(twice[:, None], rare[:4000], shared[:4000])
    reference = np.where(once[:, None], rare[4000:], shared[4000:])
    for rho, expected in ((1.0, 1), (1.5, 1), (3.0, 0)):
        found = finc.modes(test, reference, rho=rho, **OPTIONS)
        assert int(found["significant"].sum()) == expected


def test_standard_error__is_that_of_repeated_samples():
    values, errors = [], []
    for seed in range(60):
        test, _ = clusters(600, range(10), seed=3 * seed)
        reference, _ = clusters(500, range(2, 10), seed=3 * seed + 1)
        found = finc.modes(test, reference, n_draws=1, n_modes=2, **OPTIONS)
        values.append(found["eigenvalue"].values.mean())
        errors.append(found["standard_error"].values)
    # Of the mean of two modes of equal frequency p: their counts compete, so the variance is
    # half of 2 p (1 - 2 p) / n and not half of p (1 - p) / n.
    expected = np.mean(errors) * np.sqrt((1 - 2 * 0.1) / (1 - 0.1) / 2)
    assert 0.75 < np.std(values, ddof=1) / expected < 1.33


@pytest.mark.slow
def test_frequency_error__is_honest_on_fresh_rows():
    """The estimate comes from a sample; the truth, of the frequencies chosen, from other rows."""
    kernel, ratios = Gaussian(4.0), []
    for seed in range(30):
        test, _ = clusters(1600, range(20), seed=50 + seed)
        reference, _ = clusters(1600, range(3, 20), seed=150 + seed)
        chosen = finc.modes(
            test[:1000],
            reference[:1000],
            kernel=kernel,
            frequency_tolerance=0.03,
            n_modes=5,
            n_top=0,
            seed=seed,
        ).attrs
        assert chosen["frequency_error"] <= 0.03
        w = kernel.frequencies(chosen["n_frequencies"], 16, seed=seed)
        fresh = {"test": test[1000:], "reference": reference[1000:], "n_modes": 5, "n_draws": 1}
        exact = finc.modes(**fresh, kernel=kernel, method="ken")["eigenvalue"].values
        found = finc.modes(**fresh, features=FourierFeatures(w), n_top=0)["eigenvalue"].values
        error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
        ratios.append(error / chosen["frequency_error"])
    assert np.mean(np.asarray(ratios) <= 2.0) >= 0.8  # 0.9 is promised; 30 seeds
    assert 0.5 <= np.sqrt(np.mean(np.square(ratios))) <= 1.5
