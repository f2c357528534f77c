import math

import numpy as np
import pytest
from scipy import stats

from bigkd.errors import InputError
from bigkd.kernels import (
    FourierFeatures,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Matern,
    frequencies,
)

KERNELS = [
    Gaussian(1.3),
    Laplace(1.3),
    Matern(1.5, 1.3),
    Matern(0.8, 1.3),
    InverseMultiquadric(1.3, 0.4),
    InverseMultiquadric(1.3, 3.0),
]
by_repr = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
by_sampling = pytest.mark.parametrize("sampling", ["iid", "orthogonal"])


@by_repr
@by_sampling
@pytest.mark.parametrize("d", [1, 2, 5, 64])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_frequencies__estimate_the_kernel(kernel, sampling, d, seed):
    r = 4096
    generator = np.random.default_rng(seed + 100)
    x = generator.normal(0, 1.0 / math.sqrt(d), (8, d))
    features = FourierFeatures(kernel.frequencies(r, d, seed=seed, sampling=sampling))(x)
    # A cosine's variance is at most 1, and 28 pairs at 4.5 deviations err once in 5000 runs;
    # orthogonal directions are dependent, but not so that they add up.
    np.testing.assert_allclose(features @ features.T, kernel(x, x), atol=4.5 / math.sqrt(r))


@by_repr
@by_sampling
@pytest.mark.parametrize("d", [1, 5, 64])
def test_frequencies__have_the_radial_distribution_of_the_spectrum(kernel, sampling, d):
    w = kernel.frequencies(2000, d, seed=3, sampling=sampling)
    squared = np.sum((w * kernel.length) ** 2, axis=1)
    if isinstance(kernel, Gaussian):
        law = stats.chi2(d).cdf
    elif isinstance(kernel, InverseMultiquadric):  # 2 s times chi2(d), s of Gamma(beta)
        mixture = stats.gamma(kernel.beta).ppf((np.arange(2000) + 0.5) / 2000)

        def law(v):
            return np.mean(stats.chi2(d).cdf(np.asarray(v)[:, None] / (2 * mixture)), axis=1)
    else:
        nu = 0.5 if isinstance(kernel, Laplace) else kernel.nu

        def law(v):  # the squared length of a multivariate t, over d, is F(d, 2 nu)
            return stats.f(d, 2 * nu).cdf(np.asarray(v) / d)

    assert stats.kstest(squared, law).pvalue > 1e-3


@by_repr
@pytest.mark.parametrize("d", [1, 2, 5, 64])
def test_frequencies__are_orthogonal_in_blocks(kernel, d):
    w = kernel.frequencies(2 * d + 1, d, seed=1, sampling="orthogonal")
    w /= np.linalg.norm(w, axis=1)[:, None]
    for block in (w[:d], w[d : 2 * d]):
        np.testing.assert_allclose(block @ block.T, np.eye(d), atol=1e-12)
    if d > 1:
        assert np.abs(w[:d] @ w[d : 2 * d].T).max() < 0.9999


def test_frequencies__have_haar_directions():
    first = np.array(
        [Gaussian(1.0).frequencies(2, 2, seed=s, sampling="orthogonal") for s in range(400)]
    )
    angle = np.arctan2(first[:, :, 1], first[:, :, 0])
    for k in range(2):
        assert stats.kstest(angle[:, k], stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-3
    turn = np.sign(np.linalg.det(first))
    assert abs(turn.mean()) < 0.2  # rotations and reflections alike


def test_frequencies__orthogonal_ones_vary_less():
    x = np.random.default_rng(0).normal(0, 0.2, (2, 16))
    kernel = Gaussian(1.0)
    errors = {
        sampling: [
            np.mean(np.cos(kernel.frequencies(64, 16, seed=s, sampling=sampling) @ (x[0] - x[1])))
            - kernel(x, x)[0, 1]
            for s in range(200)
        ]
        for sampling in ("iid", "orthogonal")
    }
    assert np.var(errors["orthogonal"]) < 0.5 * np.var(errors["iid"])


def test_frequencies__come_in_smaller_blocks_for_wide_rows(monkeypatch):
    monkeypatch.setattr(frequencies, "_ORTHOGONAL_PIECE", 8)
    w = Gaussian(1.0).frequencies(9, 50, sampling="orthogonal")
    inner = w @ w.T / 50
    np.testing.assert_allclose(inner[:8, :8], np.diag(np.diagonal(inner)[:8]), atol=1e-12)
    assert np.abs(inner[8, :8]).max() > 1e-3
    assert np.diagonal(inner) == pytest.approx(np.ones(9), abs=0.8)


@by_repr
@by_sampling
@pytest.mark.parametrize("d", [1, 5, 70])
def test_frequencies__begin_with_the_fewer_ones(kernel, sampling, d):
    most = kernel.frequencies(200, d, seed=7, sampling=sampling)
    assert most.shape == (200, d)
    assert most.dtype == np.float64
    assert np.isfinite(most).all()
    for k in (1, 4, 5, 6, 63, 64, 65, 199):
        np.testing.assert_array_equal(kernel.frequencies(k, d, seed=7, sampling=sampling), most[:k])
    assert np.unique(most, axis=0).shape[0] == 200


@by_sampling
def test_frequencies__depend_on_the_seed_only(sampling):
    kernel = Matern(0.8, 1.0)
    np.random.default_rng(0).normal(size=10)
    a, b, other = (kernel.frequencies(9, 4, seed=s, sampling=sampling) for s in (3, 3, 4))
    np.testing.assert_array_equal(a, b)
    assert not np.isin(a, other).any()


def test_frequencies__scale_with_the_inverse_length():
    np.testing.assert_allclose(
        Laplace(4.0).frequencies(5, 3), Laplace(1.0).frequencies(5, 3) / 4, rtol=1e-15
    )


def test_frequencies__stay_finite_for_the_heaviest_tail():
    assert np.isfinite(Matern(1e-3, 1.0).frequencies(500, 2)).all()


@pytest.mark.parametrize(
    ("arguments", "options", "pattern"),
    [
        ((0, 3), {}, "n_frequencies must be an integer of at least 1; got 0"),
        ((2.0, 3), {}, r"n_frequencies must be an integer of at least 1; got 2\.0"),
        ((2, 0), {}, "width must be an integer of at least 1; got 0"),
        ((2, 3), {"seed": -1}, "seed must be an integer of at least 0; got -1"),
        ((2, 3), {"sampling": "sobol"}, r"one of \('iid', 'orthogonal'\); got 'sobol'"),
    ],
)
def test_frequencies__refuse_bad_arguments(arguments, options, pattern):
    with pytest.raises(InputError, match=pattern):
        Gaussian(1.0).frequencies(*arguments, **options)
