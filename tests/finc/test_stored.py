"""Stored summaries: what follows from them equals what follows from the rows."""

import numpy as np
import pytest
import xarray as xr

from bigkd import finc
from bigkd.errors import InputError, StoreError
from bigkd.kernels import FourierFeatures, Gaussian
from tests.finc.conftest import clusters

KERNEL = Gaussian(4.0)
OPTIONS = {"kernel": KERNEL, "n_frequencies": 50}


@pytest.fixture(scope="module")
def sets():
    return {
        name: clusters(400 + 50 * at, range(at, at + 8), seed=at)[0]
        for at, name in enumerate("abcde")
    }


@pytest.fixture(scope="module")
def summaries(sets):
    return {name: finc.summarize(rows, name=name, **OPTIONS) for name, rows in sets.items()}


def test_modes_from__equals_modes(sets, summaries, tmp_path):
    store = tmp_path / "a.zarr"
    finc.summarize(sets["a"], name="a", out=store, **OPTIONS)
    stored = finc.modes_from(store, summaries["b"], rho=2.0)
    direct = finc.modes(sets["a"], sets["b"], rho=2.0, **OPTIONS, n_top=0)
    for name in stored.data_vars:
        np.testing.assert_array_equal(stored[name], direct[name])


def test_compare_many__is_every_ordered_pair_and_the_others(sets, summaries):
    found = finc.compare_many(summaries, n_modes=4)
    assert found["eigenvalue"].dims == ("test", "reference", "mode")
    for test in sets:
        for reference in sets:
            pair = found.sel(test=test, reference=reference)
            if test == reference:
                assert np.isnan(pair["eigenvalue"]).all()
                assert not pair["significant"].any()
                continue
            one = finc.modes_from(summaries[test], summaries[reference], n_modes=4)
            np.testing.assert_array_equal(pair["eigenvalue"], one["eigenvalue"])
            np.testing.assert_array_equal(pair["p_value"], one["p_value"])
            assert float(pair["mmd2"]) == float(one["mmd2"])
        others = np.concatenate([rows for name, rows in sets.items() if name != test])
        mixed = finc.modes(sets[test], others, n_modes=4, n_top=0, **OPTIONS)
        pair = found.sel(test=test, reference="others")
        np.testing.assert_allclose(pair["eigenvalue"], mixed["eigenvalue"], atol=1e-6)


def test_compare_many__can_weigh_sets_equally(sets, summaries):
    few = {name: summaries[name] for name in "abc"}
    found = finc.compare_many(few, n_modes=4, mixture="equal").sel(test="a", reference="others")
    w = KERNEL.frequencies(50, 16)
    moments = {}
    for name in few:
        phase = sets[name].astype(float) @ w.T
        rows = np.concatenate([np.cos(phase), np.sin(phase)], axis=1) / np.sqrt(50)
        moments[name] = rows.T @ rows / len(rows)
    truth = np.linalg.eigvalsh(moments["a"] - (moments["b"] + moments["c"]) / 2)[::-1][:4]
    np.testing.assert_allclose(found["eigenvalue"], truth, atol=1e-6)


def test_add_rows__equals_a_summary_of_all(sets):
    rows = sets["e"]
    before = finc.summarize(rows[:500], **OPTIONS)
    kept = before.copy(deep=True)
    extended = finc.add_rows(before, rows[500:])
    whole = finc.summarize(rows, **OPTIONS)
    assert before.identical(kept)
    assert extended.attrs == whole.attrs
    for name in whole.data_vars:
        np.testing.assert_allclose(extended[name], whole[name], rtol=1e-6, atol=1e-4)
    np.testing.assert_array_equal(extended["groups.weight"], whole["groups.weight"])


def test_add_rows__replaces_the_store_it_read(sets, tmp_path):
    store = tmp_path / "growing.zarr"
    finc.summarize(sets["a"], out=store, **OPTIONS)
    for _ in range(2):
        finc.add_rows(store, sets["b"], out=store)
    grown = finc.load_summary(store)
    assert grown.attrs["n_rows"] == len(sets["a"]) + 2 * len(sets["b"])
    assert [path.name for path in tmp_path.iterdir()] == ["growing.zarr"]


def test_summarize__like_another_is_comparable(sets):
    first = finc.summarize(sets["a"], kernel="median", n_frequencies=30, seed=4)
    second = finc.summarize(sets["b"], like=first)
    finc.modes_from(first, second, n_modes=3)
    np.testing.assert_array_equal(first["fourier_frequency"], second["fourier_frequency"])
    with pytest.raises(InputError, match="fixes the features"):
        finc.summarize(sets["b"], like=first, seed=3)


def test_summarize__chooses_parameters_from_its_own_rows(sets):
    found = finc.summarize(sets["a"], frequency_tolerance=0.05)
    assert found.attrs["frequency_error"] <= 0.05
    assert found.attrs["frequency_tolerance_met"] == 1
    assert found.attrs["kernel"] == "gaussian"


def test_modes_from__refuses_other_features(sets, summaries):
    other = finc.summarize(sets["b"], kernel=KERNEL, n_frequencies=50, seed=1)
    with pytest.raises(InputError, match="different features"):
        finc.modes_from(summaries["a"], other)
    with pytest.raises(InputError, match="expected a summary"):
        finc.modes_from(summaries["a"], xr.Dataset())


def test_summary__damaged_is_refused(sets, tmp_path):
    store = tmp_path / "a.zarr"
    finc.summarize(sets["a"], out=store, **OPTIONS)
    with pytest.raises(StoreError, match=r"absent\.zarr"):
        finc.load_summary(tmp_path / "absent.zarr")
    chunk = max(store.rglob("c/*/*"), key=lambda path: path.stat().st_size)
    damaged = bytearray(chunk.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    chunk.write_bytes(bytes(damaged))
    with pytest.raises(StoreError, match="corrupted"):
        finc.modes_from(store, store)


def test_entropies__are_those_of_the_kernel_matrix(sets):
    rows = sets["a"][:200].astype(float)
    w = KERNEL.frequencies(20, 16)
    summary = finc.summarize(rows, features=FourierFeatures(w))
    phase = rows @ w.T
    features = np.concatenate([np.cos(phase), np.sin(phase)], axis=1) / np.sqrt(20)
    spectrum = np.linalg.eigvalsh(features @ features.T / len(rows))
    spectrum = spectrum[spectrum > 1e-15]
    found = finc.entropies(summary)
    assert float(found["vendi"]) == pytest.approx(
        np.exp(-(spectrum * np.log(spectrum)).sum()), rel=1e-9
    )
    assert float(found["rke"]) == pytest.approx(1 / (spectrum**2).sum(), rel=1e-9)
    assert 8 < float(found["rke"]) < 10  # eight modes, each a little spread


def test_mmd2__is_within_its_error_of_the_kernels(sets):
    x, y = sets["a"].astype(float), sets["b"].astype(float)
    exact = KERNEL(x, x).mean() + KERNEL(y, y).mean() - 2 * KERNEL(x, y).mean()
    n, m = len(x), len(y)
    within = [(k.sum() - len(k)) / (len(k) * (len(k) - 1)) for k in (KERNEL(x, x), KERNEL(y, y))]
    unbiased = sum(within) - 2 * KERNEL(x, y).mean()
    far, far_unbiased = [], []
    for seed in range(20):
        found = finc.modes(x, y, kernel=KERNEL, n_frequencies=200, seed=seed, n_top=0, n_draws=1)
        error = float(found["mmd2_standard_error"])
        far.append((float(found["mmd2"]) - exact) / error)
        far_unbiased.append((float(found["mmd2_unbiased"]) - unbiased) / error)
    for z in (far, far_unbiased):
        assert np.mean(np.abs(z) <= 2) >= 0.8
        assert 0.4 < np.std(z) < 1.6
    assert n != m
