import numpy as np
import outliers
import pytest

LOST = np.sqrt(2.0)  # one direction
KERNELS = [name for name in outliers.KERNELS if name != "Gauss 5"]


@pytest.fixture(scope="module")
def errors():
    return outliers.main(["--kernels", *KERNELS])


def of(errors, case, norm, kernel):
    """Over shares and seeds."""
    return errors.sel(case=case, norm=norm, kernel=kernel).values


def test_outliers__pca_needs_no_help_where_they_are_short(errors):
    assert (of(errors, "I", "short", "PCA") < 0.006).all()
    assert (of(errors, "II", "short", "PCA") < 0.08).all()


@pytest.mark.parametrize(("case", "norm"), [("I", "short"), ("II", "short"), ("I", "equal")])
def test_outliers__kurtosis_is_best_where_none_is_long(errors, case, norm):
    best = of(errors, case, norm, "Kurtosis")
    assert (best < 0.25 * of(errors, case, norm, "PCA")).all()
    assert (best < 0.01).all()


@pytest.mark.parametrize("kernel", ["Gauss 25", "Poisson 1"])
def test_outliers__that_differ_are_those_of_pca_by_kernels_that_see_no_pairs(errors, kernel):
    for norm in outliers.NORMS:
        np.testing.assert_allclose(
            of(errors, "I", norm, kernel), of(errors, "I", norm, "PCA"), rtol=1e-3
        )


def test_outliers__gauss_that_sees_pairs_loses_where_they_are_short(errors):
    pca = of(errors, "I", "short", "PCA")
    for kernel in ("Gauss .05", "Gauss .2", "Laplace 1"):
        assert (of(errors, "I", "short", kernel) > 2 * pca).all()


def test_outliers__gauss_that_sees_pairs_wins_where_they_are_long_and_differ(errors):
    pca = of(errors, "I", "triple", "PCA")
    assert (pca > 0.25).all()
    assert (of(errors, "I", "triple", "Gauss .05") < pca / 5).all()
    assert (of(errors, "I", "triple", "Gauss .2") < pca / 3).all()
    assert (of(errors, "I", "triple", "Laplace 1") < pca / 1.8).all()


def test_outliers__that_are_long_are_all_that_kurtosis_sees(errors):
    assert (of(errors, "I", "triple", "Kurtosis") > 4.0).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_outliers__that_are_long_copies_take_one_direction_whatever_the_kernel(errors, kernel):
    np.testing.assert_allclose(of(errors, "II", "triple", kernel), LOST, atol=0.05)


def test_outliers__that_are_copies_spoil_gauss_before_pca(errors):
    assert (of(errors, "II", "short", "Gauss 1") > 1.2).all()
    equal = errors.sel(case="II", norm="equal", share=0.05)
    assert (equal.sel(kernel="PCA") < 0.7).all()
    assert (equal.drop_sel(kernel="PCA") > 0.9).all()
    np.testing.assert_allclose(errors.sel(case="II", norm="equal", share=0.1), LOST, atol=0.15)


@pytest.mark.parametrize("norm", outliers.NORMS)
@pytest.mark.parametrize("case", outliers.CASES)
def test_rows_and_outliers__are_as_the_paper_has_them(case, norm):
    rows, basis = outliers.rows_and_outliers(0.1, case, norm, 3)
    assert rows.shape == (400, 400)
    np.testing.assert_allclose(basis.T @ basis, np.eye(10), atol=1e-12)
    kept, others = rows[:360], rows[360:]
    np.testing.assert_allclose(kept @ basis @ basis.T, kept, atol=1e-10)
    assert np.linalg.matrix_rank(others) == (40 if case == "I" else 1)
    length = np.sqrt((others**2).sum(axis=1).mean())
    root = np.sqrt((kept**2).sum(axis=1).mean())
    expected = {"short": np.sqrt(400), "equal": root, "triple": 3 * root}[norm]
    assert length == pytest.approx(expected, rel=0.1 if norm == "short" else 1e-12)


def test_apart__is_the_norm_of_the_difference_of_projections():
    rng = np.random.default_rng(0)
    one, other = (np.linalg.qr(rng.standard_normal((7, 3)))[0] for _ in range(2))
    expected = np.linalg.norm(one @ one.T - other @ other.T)
    assert outliers.apart(one.T, other) == pytest.approx(expected)
    assert outliers.apart(one.T, one @ np.linalg.qr(rng.standard_normal((3, 3)))[0]) < 1e-14
    turned = one.copy()
    turned[:, 0] = np.linalg.svd(one)[0][:, 3]
    assert outliers.apart(turned.T, one) == pytest.approx(LOST)
