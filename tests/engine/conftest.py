import pytest

from bigkd.engine import pairs, stripes


@pytest.fixture
def small_stripes(monkeypatch):
    """Every block is a stripe of its own, so that small data make many tasks."""
    monkeypatch.setattr(stripes, "STRIPE_WORK", 1)


@pytest.fixture
def small_squares(monkeypatch):
    """Squares of about 20 by 20 rows, for kernels that cost 64 a pair."""
    monkeypatch.setattr(pairs, "STRIPE_WORK", 64 * 20**2)
