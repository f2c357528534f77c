import numpy as np
import pytest

from bigkd.engine import stripes


@pytest.fixture
def small_stripes(monkeypatch):
    """Every block is a stripe of its own, so that small data make many tasks."""
    monkeypatch.setattr(stripes, "STRIPE_WORK", 1)


@pytest.fixture
def mmd():
    """Kernel distance of a result and its rows, each of total weight 1, by its definition."""

    def measure(rows, found, kernel, weights=None):
        signed = np.ones(len(rows)) if weights is None else np.asarray(weights, "f8").copy()
        signed /= signed.sum()
        own = found["weight"].values
        np.subtract.at(signed, found["index"].values, own / own.sum())
        rows = np.asarray(rows, "f8")
        return float(np.sqrt(max(0.0, signed @ kernel(rows, rows) @ signed)))

    return measure


@pytest.fixture
def clusters():
    """Rows about eight centres."""

    def make(n, d, seed=0):
        generator = np.random.default_rng(seed)
        centres = generator.random((8, d))
        return centres[generator.integers(0, 8, n)] + 0.05 * generator.standard_normal((n, d))

    return make
