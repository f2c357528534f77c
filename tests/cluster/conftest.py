from contextlib import contextmanager

import pytest
from distributed import Client, LocalCluster

from bigkd.engine import stripes


@contextmanager
def started(**options):
    """A real cluster of worker processes over TCP, and a client of it that is no default."""
    options = {"n_workers": 2, "threads_per_worker": 1, **options}
    with (
        LocalCluster(
            processes=True, protocol="tcp://", dashboard_address="127.0.0.1:0", **options
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        if options["n_workers"]:
            client.wait_for_workers(options["n_workers"], timeout=60)
        yield client


@pytest.fixture(scope="module")
def two_workers():
    with started() as client:
        yield client


@pytest.fixture(autouse=True)
def small_stripes(monkeypatch):
    """Every block is a stripe of its own, so that small data make many tasks."""
    monkeypatch.setattr(stripes, "STRIPE_WORK", 1)
