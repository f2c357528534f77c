"""Bad input: one clear error that names the argument, what came, and what to do."""

import numpy as np
import pytest
import zarr

from bigkd import errors, finc
from bigkd.kernels import (
    CovarianceGaussian,
    DotTimes,
    FourierFeatures,
    Gaussian,
    Polynomial,
    Triangle,
)

X = np.random.default_rng(0).standard_normal((40, 3))
OPTIONS = {"kernel": Gaussian(1.0), "n_frequencies": 5}


@pytest.mark.parametrize(
    ("test", "reference", "options", "error", "pattern"),
    [
        (X, X[:, :2], {}, errors.ShapeError, "test has rows of 3 .* and reference of 2"),
        (X[:0], X, {}, errors.EmptyInputError, "test is empty: 0 rows"),
        (X, X[:, :0], {}, errors.EmptyInputError, "reference is empty"),
        (X[:, 0], X, {}, errors.ShapeError, r"test has shape \(40,\).*x\[:, None\]"),
        (X.tolist(), X, {}, errors.InputError, "test must be an array .* got list"),
        (X + 1j, X, {}, errors.InputError, "elements of type complex128"),
        (X.astype(str), X, {}, errors.InputError, "elements of type <U"),
        ("nowhere.zarr", X, {}, errors.StoreError, "test: nowhere.zarr does not exist"),
        (X, X, {"rho": -1.0}, errors.InputError, "rho must be finite and not negative; got -1.0"),
        (X, X, {"rho": np.nan}, errors.InputError, "rho must be finite"),
        (X, X, {"n_modes": 11}, errors.InputError, "n_modes=11 is more than the 10 features"),
        (X, X, {"n_modes": 0}, errors.InputError, "n_modes must be at least 1"),
        (X, X, {"n_frequencies": 0}, errors.InputError, "n_frequencies must be at least 1"),
        (X, X, {"n_frequencies": "many"}, errors.InputError, "n_frequencies must be"),
        (X, X, {"kernel": "gauss"}, errors.InputError, "kernel must be .* got 'gauss'"),
        (X, X, {"kernel": Triangle(1.0)}, errors.InputError, "kernel must be one with a spectrum"),
        (X, X, {"kernel": Polynomial((0, 1))}, errors.InputError, r"K\(x, x\) = 1: Gaussian"),
        (X, X, {"kernel": DotTimes(Gaussian(1.0))}, errors.InputError, "one with a spectrum"),
        (
            X,
            X,
            {"kernel": finc.ScaledRule("median", 1.0, Triangle(1.0))},
            errors.InputError,
            "spec",
        ),
        (X, X, {"alpha": 0.0}, errors.InputError, "alpha must be between 0 and 1"),
        (X, X, {"n_draws": 0}, errors.InputError, "n_draws must be at least 1"),
        (X, X, {"n_top": -1}, errors.InputError, "n_top must not be negative"),
        (X, X, {"seed": -1}, errors.InputError, "seed must not be negative"),
        (X, X, {"seed": 0.5}, errors.InputError, "seed must be an integer"),
        (X, X, {"method": "pca"}, errors.InputError, "method must be 'finc' or 'ken'"),
        (X, X, {"sampling": "sobol"}, errors.InputError, "sampling must be"),
        (X, X, {"nonfinite": "ignore"}, errors.InputError, "nonfinite must be"),
        (X, X, {"missing": "ignore"}, errors.InputError, "missing must be"),
        (
            X,
            X,
            {"block_rows": 0},
            errors.InputError,
            "block_rows must be a whole number of at least 1",
        ),
        (X, X, {"scheduler": "slurm"}, errors.InputError, "scheduler must be"),
        (X, X, {"memory_limit": 1000}, errors.MemoryPlanError, "one task needs"),
        (
            X,
            X,
            {"features": FourierFeatures(np.ones((2, 4)))},
            errors.ShapeError,
            "features are for rows of width 4; the rows have 3",
        ),
    ],
)
def test_modes__refuse(test, reference, options, error, pattern):
    with pytest.raises(error, match=pattern):
        finc.modes(test, reference, **{**OPTIONS, **options})


def test_scaled_rule__needs_a_kernel_with_a_length():
    with pytest.raises(errors.InputError, match=r"shape must be a kernel with a length.*Poly"):
        finc.ScaledRule("median", 1.0, Polynomial((0, 1)))


def test_modes__take_a_gaussian_of_a_full_covariance():
    kernel = CovarianceGaussian(np.diag([1.0, 4.0, 9.0]))
    found = finc.modes(X, X[:30], **{**OPTIONS, "kernel": kernel, "n_modes": 2})
    scaled = X / [1.0, 2.0, 3.0]
    same = finc.modes(scaled, scaled[:30], **{**OPTIONS, "n_modes": 2})
    assert found.attrs["kernel"] == "covariance_gaussian"
    np.testing.assert_allclose(found["eigenvalue"], same["eigenvalue"], rtol=1e-9)


def test_modes__name_the_first_row_that_is_not_finite():
    spoilt = X.copy()
    spoilt[[27, 33], 1] = np.nan
    with pytest.raises(errors.DataError, match=r"test: row 27 \(row 7 of block 2\)"):
        finc.modes(spoilt, X, block_rows=10, scheduler="sync", **OPTIONS)
    with pytest.raises(errors.EmptyInputError, match="none of its 40 rows is finite"):
        finc.modes(X * np.nan, X, nonfinite="drop", **OPTIONS)


def test_modes__refuse_a_missing_chunk_unless_told(tmp_path):
    path = tmp_path / "x.zarr"
    array = zarr.create_array(path, shape=X.shape, chunks=(10, 3), dtype="f8")
    array[:] = X
    (path / "c" / "1" / "0").unlink()
    with pytest.raises(errors.DataError, match=r"first is \(1, 0\), which begins at row 10"):
        finc.modes(str(path), X, **OPTIONS)
    found = finc.modes(str(path), X, missing="skip", n_top=5, **OPTIONS)
    assert found.attrs["n_skipped_test"] == 10
    assert found.attrs["n_rows_test"] == 30
    kept = np.delete(X, np.s_[10:20], axis=0)
    direct = finc.modes(kept, X, n_top=5, **OPTIONS)
    np.testing.assert_allclose(found["eigenvalue"], direct["eigenvalue"], atol=1e-12)
    # Row numbers are those of the store, gap included.
    np.testing.assert_array_equal(
        X[found["top_index_test"].values], kept[direct["top_index_test"].values]
    )


def test_modes__refuse_what_is_not_a_store(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(errors.StoreError, match="is not a collection of rows"):
        finc.modes(tmp_path / "empty", X, **OPTIONS)


def test_auto__needs_rows_that_differ():
    with pytest.raises(errors.InputError, match="all equal"):
        finc.modes(np.ones((30, 2)), np.ones((30, 2)))


def test_errors__carry_the_exit_code_a_scheduler_needs():
    assert errors.InputError.exit_code == 2
    assert errors.DataError.exit_code == 4
    assert errors.ClusterError.exit_code == 5
