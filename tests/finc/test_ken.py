"""KEN against the matrix of its definition, and FINC against KEN."""

import numpy as np
import pytest

from bigkd import finc
from bigkd.backends import rng
from bigkd.errors import InputError, MemoryPlanError
from bigkd.kernels import FourierFeatures, Gaussian, Laplace


def spectrum_by_definition(kernel, x, y, rho):
    n, m = len(x), len(y)
    cross = np.sqrt(rho / (n * m)) * kernel(x, y)
    matrix = np.block([[kernel(x, x) / n, cross], [-cross.T, -rho * kernel(y, y) / m]])
    return np.sort(np.linalg.eigvals(matrix).real)[::-1]


def draw(n, m, repeat=1):
    generator = rng(7)
    x, y = generator.standard_normal((n, 3)), 1.5 * generator.standard_normal((m, 3))
    return np.repeat(x, repeat, axis=0), np.repeat(y, repeat, axis=0)


@pytest.mark.parametrize("rho", [1.0, 2.0, 5.0])
@pytest.mark.parametrize("repeat", [1, 3])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplace(2.0)], ids=lambda k: k.name)
def test_ken__agrees_with_the_dense_definition(rho, repeat, kernel):
    x, y = draw(60, 35, repeat)
    found = finc.modes(x, y, kernel=kernel, rho=rho, method="ken", n_modes=12, n_draws=9)
    truth = spectrum_by_definition(kernel, x, y, rho)[:12]
    np.testing.assert_allclose(found["eigenvalue"], truth, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        found["frequency_test"] - rho * found["frequency_reference"],
        found["eigenvalue"],
        atol=1e-10,
    )


def test_ken__of_the_features_is_finc():
    x, y = draw(80, 50)
    features = FourierFeatures(Gaussian(1.0).frequencies(30, 3))
    options = {"features": features, "rho": 2.0, "n_modes": 8, "n_top": 5, "n_draws": 9}
    exact = finc.modes(x, y, method="ken", **options)
    streamed = finc.modes(x, y, **options)
    for name in ("eigenvalue", "frequency_test", "frequency_reference", "mmd2", "mmd2_unbiased"):
        np.testing.assert_allclose(exact[name], streamed[name], atol=1e-10)
    np.testing.assert_array_equal(exact["top_index_test"], streamed["top_index_test"])
    np.testing.assert_array_equal(exact["top_index_reference"], streamed["top_index_reference"])
    scale = np.sqrt(30)
    np.testing.assert_allclose(
        exact["top_score_test"] * scale, streamed["top_score_test"], atol=1e-8
    )


def test_ken__finds_the_same_modes(mixture):
    test, reference, label = mixture
    options = {"kernel": Gaussian(4.0), "method": "ken", "n_draws": 99, "alpha": 0.05}
    found = finc.modes(test[:700], reference[:700], **options)
    np.testing.assert_array_equal(found["significant"], [True] * 3 + [False] * 7)
    shown = {mode for rows in found["top_index_test"].values[:3] for mode in label[rows]}
    assert shown == {0, 1, 2}


def test_ken__refuses_what_does_not_fit():
    x, y = draw(60, 35)
    with pytest.raises(MemoryPlanError, match=r"95 x 95 rows: 0\.0 GB"):
        finc.modes(x, y, kernel=Gaussian(1.0), method="ken", memory_limit=1000)
    with pytest.raises(InputError, match="rho > 0"):
        finc.modes(x, y, kernel=Gaussian(1.0), method="ken", rho=0.0)


def all_differences(x, y, kernel, r, rho, seed):
    """Sum of squared differences of all eigenvalues, FINC's and the exact ones, zeros included."""
    features = FourierFeatures(kernel.frequencies(r, x.shape[1], seed=seed))

    def proxy(a, b):
        return features(a) @ features(b).T

    exact = spectrum_by_definition(kernel, x, y, rho)
    return float(((spectrum_by_definition(proxy, x, y, rho) - exact) ** 2).sum())


def test_theorem_1__bounds_all_eigenvalues_and_the_error_falls_with_r():
    x, y = draw(60, 40)
    rho, delta = 1.0, 0.05
    errors = {}
    for r in (50, 800):
        errors[r] = [all_differences(x, y, Gaussian(1.0), r, rho, seed) for seed in range(20)]
        bound = (2 * (1 + rho)) ** 1.5 * (np.log(100 / delta) / r) ** 0.25
        assert max(errors[r]) <= bound**2
    # Squared errors of Monte Carlo features fall as 1 / r: sixteen times here.
    assert 8 < np.mean(errors[50]) / np.mean(errors[800]) < 32
