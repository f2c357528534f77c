import numpy as np
import pytest

from bigkd import did
from bigkd.kernels import Laplace
from tests.did import plain
from tests.did.test_dissimilarity import smooth

LAMS = [1e-6, 1e-4, 1e-2, 1.0]


def of_the_kernels(f, g, lam, y_kernel, mask):
    """Eq. 12 before landmarks: every position and every value is one."""
    shape = f.shape[:-1]
    x = plain.positions(shape)
    values = np.concatenate([f, g]).reshape(-1, f.shape[-1])
    n = len(x)
    weights = np.full(n, 4.0 / n)
    mu = plain.blackman(shape) if mask == "blackman" else np.ones(n)
    k_x, k_y = plain.gaussian(1 / 6), plain.laplace(1 / y_kernel.length_scale)
    # Coordinates of features in orthonormal bases, by eigenvectors: Gram matrices are singular.
    half_x, half_y = root(k_x(x, x)), root(k_y(values, values))
    a = half_y[:n].T @ ((weights * mu)[:, None] * half_x)
    b = half_y[n:].T @ (weights[:, None] * half_x)
    return plain.residual(a, b, lam)


def root(gram):
    eigenvalues, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.clip(eigenvalues, 0, None))


@pytest.mark.parametrize("y_landmarks", [1, 3, 6, "data:60"])
@pytest.mark.parametrize("length", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("mask", ["blackman", None])
def test_promise__holds_the_dissimilarity_of_the_kernels_themselves(y_landmarks, length, mask):
    f, g = smooth(0, (14, 13), 2), smooth(1, (14, 13), 2)
    f[3:6, 4:9] = [2.0, -1.0]  # a patch that g has nothing of
    kernel = Laplace(length)
    for x_landmarks in (3, 10):
        found = did.dissimilarity(
            f, g, lam=LAMS, promise=True, normalize=None, mask=mask, y_kernel=kernel,
            x_landmarks=x_landmarks, y_landmarks=y_landmarks,
        )  # fmt: skip
        for lam in LAMS:
            value, one = of_the_kernels(f, g, lam, kernel, mask), found.sel(lam=lam)
            assert float(one["lower"]) <= value * (1 + 1e-9)
            assert value <= float(one["upper"]) * (1 + 1e-9)
            assert float(one["lower"]) <= float(one["dissimilarity"])


def test_promise__is_narrow_where_landmarks_are_many():
    f, g = smooth(0, (14, 13), 2), smooth(1, (14, 13), 2)
    found = did.dissimilarity(
        f, g, lam=1.0, promise=True, normalize=None, y_kernel=Laplace(2.0), y_landmarks="data:364",
        x_landmarks=13,
    )  # fmt: skip
    assert float(found["upper"][0]) <= 1.1 * float(found["dissimilarity"][0])
    assert float(found["lower"][0]) >= 0.9 * float(found["dissimilarity"][0])


@pytest.mark.parametrize(("scale", "relative"), [("unit", False), ("paper", True)])
def test_promise__follows_the_units_of_the_answer(scale, relative):
    f, g = smooth(0, (14, 13), 3), smooth(1, (14, 13), 3)
    plainly = did.dissimilarity(f, g, lam=1e-2, promise=True, relative=True)
    found = did.dissimilarity(f, g, lam=1e-2, promise=True, scale=scale, relative=relative)
    by = float(plainly["norm_reference"]) ** 2 if scale == "unit" else 1.0
    for name in ("lower", "dissimilarity", "upper"):
        np.testing.assert_allclose(found[name] * by, plainly[name], rtol=1e-9)
