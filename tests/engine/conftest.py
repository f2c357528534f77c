import numpy as np
import pytest
from distributed import Client, LocalCluster

from bigkd.engine import pairs, stripes, tiles


@pytest.fixture
def small_stripes(monkeypatch):
    """Every block is a stripe of its own, so that small data make many tasks."""
    monkeypatch.setattr(stripes, "STRIPE_WORK", 1)


@pytest.fixture
def small_squares(monkeypatch):
    """Squares of about 20 by 20 rows, for kernels that cost 64 a pair."""
    monkeypatch.setattr(pairs, "STRIPE_WORK", 64 * 20**2)


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles of rows of 10, in chunks of 5; parts of pairs of about 4 by 4."""
    monkeypatch.setattr(tiles, "TILE_WORK", 1600)
    monkeypatch.setattr(tiles, "CHUNK_BYTES", 5 * 48)


@pytest.fixture(scope="module")
def cluster():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, protocol="tcp://", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
