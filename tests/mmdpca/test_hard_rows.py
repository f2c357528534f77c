"""Rows that approximate methods once got wrong: sorted, with outliers, far from the origin."""

import numpy as np
import pytest
import zarr

from bigkd import mmdpca
from tests.mmdpca import plain


def exact(x, k, kernel="gauss", a=1.0):
    gram = plain.values(plain.KERNELS[kernel](x.shape[1], a), x, x)
    values, vectors = plain.eigenpairs(x.T @ gram @ x / len(x) ** 2)
    return values, vectors[:, :k]


def off(found, vectors):
    return plain.sine(found["component"].values.T, vectors)


@pytest.fixture
def outliers():
    """Six rows of 3000 are sixty times as long as the others."""
    rows = 3 * np.random.default_rng(1).standard_normal((3000, 30))
    rows[:6] *= 60
    return rows


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("way", [{"kernel": "gauss"}, {"kernel": "kurtosis", "method": "moments"}])
def test_fit__takes_the_mean_off_before_it_approximates(way, center):
    generator = np.random.default_rng(0)
    x = generator.standard_normal((900, 60)) * np.arange(1, 61.0) ** -0.8 * 8 + 5.0
    found = mmdpca.fit(
        x, k=3, **{"method": "nystrom", **way}, center=center, n_landmarks=400, n_directions=20
    )
    rows = x - x.mean(axis=0) if center else x
    values, vectors = exact(rows, 3, way["kernel"])
    assert off(found, vectors) < 0.03
    np.testing.assert_allclose(found["eigenvalue"], values[:3], rtol=0.03)


def test_nystrom__keeps_what_outliers_add_by_themselves(outliers):
    values, vectors = exact(outliers, 2)
    found = mmdpca.fit(outliers, k=2, method="nystrom")
    assert off(found, vectors) <= float(found["subspace_error"]) < 0.05
    np.testing.assert_allclose(found["eigenvalue"], values[:2], rtol=1e-3)


def test_nystrom__of_a_kernel_that_is_nearly_diagonal():
    x = np.random.default_rng(2).standard_normal((4000, 20)) * np.linspace(2.0, 0.5, 20)
    values, vectors = exact(x, 3, a=10.0)
    found = mmdpca.fit(x, k=3, a=10.0, method="nystrom", n_landmarks=200)
    assert off(found, vectors) < 0.01
    np.testing.assert_allclose(found["eigenvalue"], values[:3], rtol=0.01)


@pytest.mark.parametrize("seed", range(6))
def test_distance__knows_how_sure_it_is_of_heavy_rows(outliers, seed):
    found = mmdpca.fit(outliers, k=2, kernel="kurtosis", method="moments", seed=seed)
    h = plain.KERNELS["kurtosis"](30, 1.0)
    true = plain.mmd2_to(h, outliers, found["component"].values.T)
    assert abs(float(found["mmd2"]) - true) < 4 * float(found["mmd2_standard_error"])
    assert float(found["mmd2_standard_error"]) < 0.1 * true


@pytest.mark.parametrize("kernel", ["gauss", "kurtosis"])
def test_sorted_rows__are_distrusted_or_right(kernel):
    generator, x = np.random.default_rng(3), np.zeros((1500, 300))
    for at in range(15):
        block = generator.standard_normal((100, 20)) * (1 + at / 2)
        x[at * 100 : (at + 1) * 100, 20 * at : 20 * at + 20] = block
    values, vectors = exact(x, 4, kernel)
    method = "nystrom" if kernel == "gauss" else "moments"
    found = mmdpca.fit(x, k=4, kernel=kernel, method=method)
    assert off(found, vectors) <= float(found["subspace_error"])
    assert float(found["mmd2_lower"]) <= values[4:].sum()


@pytest.mark.parametrize("offset", [0.0, 300.0, 1e4])
def test_pairs__of_float32_rows_far_from_the_origin(offset):
    x = np.random.default_rng(4).standard_normal((500, 40)) * np.linspace(3.0, 0.3, 40) + offset
    x = x.astype(np.float32)
    values, vectors = exact(x.astype(float), 3)
    found = mmdpca.fit(x, k=3, method="pairs")
    assert off(found, vectors) <= float(found["subspace_error"]) + 1e-12
    np.testing.assert_allclose(found["eigenvalue"], values[:3], rtol=1e-6)
    assert float(found["mmd2_upper"]) >= float(found["mmd2_lower"])


@pytest.mark.parametrize(
    "sizes",
    [{"n_landmarks": 1}, {"method": "features", "n_frequencies": 1}, {"n_directions": 2}],
)
def test_too_little_effort__is_distrusted(sizes):
    x = np.random.default_rng(5).standard_normal((600, 60)) * np.linspace(2.0, 0.5, 60)
    found = mmdpca.fit(x, k=2, **{"method": "nystrom", **sizes})
    assert off(found, exact(x, 2)[1]) <= float(found["subspace_error"])


def test_mmd_to_projection__weighs_many_rows():
    generator = np.random.default_rng(6)
    x, weights = generator.standard_normal((300, 8)) + 1.0, generator.uniform(0.2, 3.0, 8)
    found = mmdpca.fit(x, k=3, weights=weights, center=True, method="pairs")
    for method in ("exact", "sample"):
        again = mmdpca.mmd_to_projection(x, found, method=method, n_points=300)
        assert float(again["mmd2"]) == pytest.approx(float(found["mmd2"]), rel=1e-9)


def test_project__by_columns_takes_the_mean_off(tmp_path, monkeypatch):
    x = np.random.default_rng(7).standard_normal((12, 4000)) + 5.0
    found = mmdpca.fit(x, k=3, center=True)
    zarr.create_array(str(tmp_path / "x.zarr"), data=x, chunks=(12, 500))
    rows = mmdpca.project(x, found).values
    monkeypatch.setattr("bigkd.mmdpca.projection.HELD_BYTES", 1000)
    columns = mmdpca.project(str(tmp_path / "x.zarr"), found).values
    np.testing.assert_allclose(columns, rows, rtol=1e-9, atol=1e-9)
    direct = (x - x.mean(axis=0)) @ found["component"].values.T
    np.testing.assert_allclose(rows, direct, rtol=1e-9, atol=1e-9)
