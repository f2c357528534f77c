"""FINC against its definition, written out in float64."""

import array_api_strict as strict
import numpy as np
import pytest
import xarray as xr

from bigkd import finc
from bigkd.backends import rng
from bigkd.errors import InputError
from bigkd.kernels import FourierFeatures, Gaussian


def features_by_definition(x, w):
    phase = np.asarray(x, np.longdouble) @ np.asarray(w, np.longdouble).T
    both = np.concatenate([np.cos(phase), np.sin(phase)], axis=1) / np.sqrt(len(w))
    return both.astype(np.float64)


def difference_by_definition(x, y, w, rho):
    fx, fy = features_by_definition(x, w), features_by_definition(y, w)
    return fx.T @ fx / len(x) - rho * fy.T @ fy / len(y)


def top_by_definition(x, y, w, rho, k):
    return np.linalg.eigvalsh(difference_by_definition(x, y, w, rho))[::-1][:k]


def draw(n, m, *, dtype, offset=0.0, repeat=1, d=7):
    generator = rng(5)
    x = generator.standard_normal((n, d)) + offset
    y = 1.3 * generator.standard_normal((m, d)) + offset
    return np.repeat(x, repeat, axis=0).astype(dtype), np.repeat(y, repeat, axis=0).astype(dtype)


@pytest.mark.parametrize("rho", [1.0, 2.0, 5.0])
@pytest.mark.parametrize(
    ("offset", "repeat"), [(0.0, 1), (1000.0, 1), (0.0, 3)], ids=["plain", "offset", "repeated"]
)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-6)])
def test_modes__agree_with_the_definition(rho, offset, repeat, dtype, tolerance):
    x, y = draw(300, 170, dtype=dtype, offset=offset, repeat=repeat)
    w = Gaussian(1.5).frequencies(40, 7, seed=3)
    found = finc.modes(x, y, features=FourierFeatures(w), rho=rho, n_modes=20, n_top=0)
    np.testing.assert_allclose(
        found["eigenvalue"], top_by_definition(x, y, w, rho, 20), rtol=0, atol=tolerance
    )


def test_modes__of_a_collection_with_itself_are_none():
    x, _ = draw(200, 10, dtype="float64")
    found = finc.modes(x, x, kernel=Gaussian(1.5), n_frequencies=40)
    np.testing.assert_array_equal(found["eigenvalue"], 0.0)
    assert not found["significant"].any()
    assert float(found["mmd2"]) == 0.0


def test_modes__have_unit_eigenvectors_and_split_into_frequencies(mixture):
    test, reference, _ = mixture
    w = Gaussian(4.0).frequencies(100, 16)
    found = finc.modes(test, reference, features=FourierFeatures(w), rho=2.0, n_modes=6)
    u = found["mode_vector"].values
    np.testing.assert_allclose(u @ u.T, np.eye(6), atol=1e-10)
    difference = difference_by_definition(test, reference, w, 2.0)
    np.testing.assert_allclose(difference @ u.T, u.T * found["eigenvalue"].values, atol=1e-6)
    np.testing.assert_allclose(
        found["frequency_test"] - 2.0 * found["frequency_reference"],
        found["eigenvalue"],
        atol=1e-12,
    )


def test_modes__top_rows_and_scores_follow_the_definition(mixture):
    test, reference, _ = mixture
    w = Gaussian(4.0).frequencies(60, 16)
    found = finc.modes(test, reference, features=FourierFeatures(w), n_modes=4, n_top=9)
    u = found["mode_vector"].values
    for name, rows in (("test", test), ("reference", reference)):
        scores = np.sqrt(60) * features_by_definition(rows, w) @ u.T
        best = found[f"top_index_{name}"].values
        for mode in range(4):
            np.testing.assert_allclose(
                np.sort(scores[:, mode])[::-1][:9], scores[best[mode], mode], atol=1e-5
            )
        np.testing.assert_allclose(
            found[f"top_score_{name}"], np.take_along_axis(scores.T, best, axis=1), atol=1e-5
        )
        if name == "test":
            assert (scores.mean(axis=0) >= 0).all()
            spread = [rows[at].astype(float).var(axis=0).sum() for at in best]
            np.testing.assert_allclose(found["heterogeneity"], spread, rtol=1e-6)


def test_modes__find_what_the_reference_lacks_and_nothing_else(mixture):
    test, reference, label = mixture
    found = finc.modes(test, reference, kernel=Gaussian(4.0), n_frequencies=400)
    np.testing.assert_array_equal(found["significant"], [True] * 3 + [False] * 7)
    shown = [set(label[rows]) for rows in found["top_index_test"].values[:3]]
    assert sorted(mode for modes in shown for mode in modes) == [0, 1, 2]


def test_modes__swapped_are_the_underrepresented(mixture):
    test, reference, _ = mixture
    w = Gaussian(4.0).frequencies(100, 16)
    swapped = finc.modes(reference, test, features=FourierFeatures(w), n_modes=5, n_top=0)
    bottom = -np.linalg.eigvalsh(difference_by_definition(test, reference, w, 1.0))[:5]
    np.testing.assert_allclose(swapped["eigenvalue"], bottom, atol=1e-6)
    assert not swapped["significant"][3:].any()


def test_modes__accept_images_of_bytes_and_half_precision():
    images = rng(0).integers(0, 256, (60, 5, 4, 3)).astype(np.uint8)
    w = Gaussian(300.0).frequencies(20, 60)
    found = finc.modes(images[:40], images[40:], features=FourierFeatures(w), n_modes=5)
    flat = images.reshape(60, -1).astype(float)
    truth = top_by_definition(flat[:40], flat[40:], w, 1.0, 5)
    np.testing.assert_allclose(found["eigenvalue"], truth, atol=1e-6)
    half = rng(0).standard_normal((60, 3)).astype(np.float16)
    w = Gaussian(1.0).frequencies(20, 3)
    found = finc.modes(half[:40], half[40:], features=FourierFeatures(w), n_modes=5)
    truth = top_by_definition(half[:40], half[40:], w, 1.0, 5)
    np.testing.assert_allclose(found["eigenvalue"], truth, atol=1e-6)


@pytest.mark.parametrize("case", ["one row each", "fewer rows than features", "constant column"])
def test_modes__of_little_data_are_those_of_the_definition(case):
    x, y = draw(30, 20, dtype="float64")
    if case == "one row each":
        x, y = x[:1], y[:1]
    elif case == "constant column":
        x[:, 2] = y[:, 2] = 7.0
    w = Gaussian(1.5).frequencies(40, 7, seed=3)
    found = finc.modes(x, y, features=FourierFeatures(w), n_modes=5, n_top=3)
    np.testing.assert_allclose(found["eigenvalue"], top_by_definition(x, y, w, 1.0, 5), atol=1e-12)
    if case == "one row each":
        exact = finc.modes(x, y, kernel=Gaussian(1.5), method="ken", n_modes=2)
        assert not found["significant"].any()
        assert not exact["significant"].any()
        np.testing.assert_array_equal(found["top_index_test"].values[:, 1:], -1)
        assert np.isnan(found["top_score_test"].values[:, 1:]).all()


def test_modes__drop_rows_that_are_not_finite_and_count_them():
    x, y = draw(300, 170, dtype="float64")
    w = Gaussian(1.5).frequencies(20, 7)
    spoilt = np.insert(x, [5, 100, 100], np.nan, axis=0)
    options = {"features": FourierFeatures(w), "n_modes": 3}
    found = finc.modes(spoilt, y, nonfinite="drop", block_rows=50, **options)
    np.testing.assert_allclose(found["eigenvalue"], top_by_definition(x, y, w, 1.0, 3), atol=1e-10)
    assert found.attrs["n_dropped_test"] == 3
    assert found.attrs["n_rows_test"] == 300
    assert np.isfinite(spoilt[found["top_index_test"].values]).all()


def test_modes__record_every_choice(mixture):
    test, reference, _ = mixture
    options = {"n_top": 0, "frequency_tolerance": 0.03}
    found = finc.modes(test, reference, **options)
    assert found.attrs["bandwidth_rule_met"] == 1
    assert found.attrs["frequency_tolerance_met"] == 1
    assert found.attrs["frequency_error"] <= 0.03
    for key in ("kernel", "kernel_parameters", "n_frequencies", "rho", "seed", "bigkd_version"):
        assert key in found.attrs
    again = finc.modes(test, reference, **options)
    assert found.identical(again)
    other = finc.modes(test, reference, seed=1, **options)
    assert not np.array_equal(found["eigenvalue"], other["eigenvalue"])


def test_score__is_lazy_and_follows_the_definition(mixture):
    test, reference, _ = mixture
    w = Gaussian(4.0).frequencies(60, 16)
    found = finc.modes(test, reference, features=FourierFeatures(w), n_modes=4, n_top=0)
    fresh = test[:500] + np.float32(0.1)
    scores = finc.score(fresh, found, block_rows=90)
    assert scores.chunks is not None
    truth = np.sqrt(60) * features_by_definition(fresh, w) @ found["mode_vector"].values.T
    np.testing.assert_allclose(scores, truth, atol=1e-5)
    assert scores.dims == ("row", "mode")


def test_score__gives_nan_for_dropped_rows(mixture):
    test, reference, _ = mixture
    found = finc.modes(test, reference, kernel=Gaussian(4.0), n_frequencies=30, n_top=0)
    fresh = test[:10].copy()
    fresh[4, 2] = np.inf
    scores = finc.score(fresh, found, nonfinite="drop").values
    np.testing.assert_array_equal(np.isnan(scores).any(axis=1), np.arange(10) == 4)


def test_modes__flow_through_a_strict_namespace():
    x, y = draw(120, 70, dtype="float64")
    features = FourierFeatures(Gaussian(1.5).frequencies(20, 7))
    options = {"features": features, "n_modes": 3, "n_top": 4, "block_rows": 50}
    found = finc.modes(strict.asarray(x), strict.asarray(y), scheduler="sync", **options)
    plain = finc.modes(x, y, scheduler="sync", **options)
    for name in plain.data_vars:
        np.testing.assert_allclose(found[name], plain[name], atol=1e-12)


def test_modes__of_a_narrower_kernel_are_narrower():
    """Figure 9: the heterogeneity of modes grows with sigma."""
    generator = rng(0)
    centres = generator.standard_normal((4, 16))
    test = np.repeat(centres, (500, 400, 300, 200), axis=0)
    test += 0.1 * generator.standard_normal(test.shape)
    options = {"n_frequencies": 400, "n_modes": 1, "n_top": 300}
    spreads = [
        float(finc.modes(test, test + 50, kernel=Gaussian(s), **options)["heterogeneity"][0])
        for s in (1.0, 20.0)
    ]
    assert spreads[0] < 16 * 0.1**2  # within one of the four
    assert spreads[1] > 10 * spreads[0]  # all of them


def test_save_modes__is_read_back_as_it_was(mixture, tmp_path):
    test, reference, _ = mixture
    found = finc.modes(test, reference, kernel=Gaussian(4.0), n_frequencies=30)
    store = tmp_path / "modes.zarr"
    finc.save_modes(found, store)
    assert finc.load_modes(store).identical(found)
    plain = xr.open_zarr(store)
    np.testing.assert_array_equal(plain["eigenvalue"], found["eigenvalue"])
    with pytest.raises(InputError, match="exists already"):
        finc.save_modes(found, store)


def test_top_share__looks_for_top_rows_in_some_stripes_only(monkeypatch):
    monkeypatch.setattr("bigkd.engine.stripes.STRIPE_WORK", 1)
    x, y = draw(300, 200, dtype="float64")
    options = {"kernel": Gaussian(1.5), "n_frequencies": 30, "n_modes": 3, "block_rows": 20}
    found = finc.modes(x, y, **options, n_top=5, top_share=0.2)
    every = finc.modes(x, y, **options, n_top=300)
    assert (found.attrs["n_searched_test"], found.attrs["n_searched_reference"]) == (60, 40)
    assert (every.attrs["n_searched_test"], every.attrs["n_searched_reference"]) == (300, 200)
    xr.testing.assert_identical(found["eigenvalue"], every["eigenvalue"])
    for name, searched in (("test", [0, 5, 10]), ("reference", [0, 5])):
        for mode in range(3):
            index = every[f"top_index_{name}"].values[mode]
            best = [row for row in index if row // 20 in searched][:5]
            assert found[f"top_index_{name}"].values[mode].tolist() == best


def test_top_share__of_rows_that_are_all_dropped_finds_none(monkeypatch):
    monkeypatch.setattr("bigkd.engine.stripes.STRIPE_WORK", 1)
    x, y = draw(300, 200, dtype="float64")
    x[:20] = np.nan
    options = {"kernel": Gaussian(1.5), "n_frequencies": 30, "n_modes": 2, "block_rows": 20}
    found = finc.modes(x, y, **options, n_top=5, top_share=1e-3, nonfinite="drop")
    assert (found.attrs["n_searched_test"], found.attrs["n_searched_reference"]) == (0, 20)
    assert (found["top_index_test"] == -1).all()
    assert found["heterogeneity"].isnull().all()


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5, np.nan])
def test_top_share__is_a_share(share):
    x, y = draw(30, 20, dtype="float64")
    with pytest.raises(InputError, match="top_share must be above 0 and at most 1"):
        finc.modes(x, y, top_share=share)
