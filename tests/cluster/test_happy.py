"""Two and more worker processes over TCP, and nothing goes wrong."""

import logging
import socket
import time
from contextlib import suppress
from unittest.mock import Mock

import dask.array as da
import numpy as np
import pytest
import zarr
from distributed import Client, get_client
from threadpoolctl import threadpool_info

from bigkd import finc
from bigkd.engine import Settings, open_session
from bigkd.engine.schedulers import ClusterRunner, open_runner
from bigkd.errors import ClusterError, DataError, InputError
from bigkd.io import open_rows
from bigkd.kernels import Gaussian
from bigkd.summaries import KernelSum, Mean, SecondMoment
from tests.cluster.conftest import started
from tests.cluster.harm import wait_for
from tests.engine.helpers import assert_same_bits, everything, generated, reduce, reduce_pairs

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]


def collections(seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(1_700, 8)).astype("f4")
    test = np.concatenate([shared[:700], rng.normal(size=(200, 8)).astype("f4") + 4])
    return rng.permutation(test), shared[700:]


def as_zarr(rows, path):
    array = zarr.create_array(path, shape=rows.shape, chunks=(100, 8), dtype=rows.dtype)
    array[:] = rows
    return str(path)


def as_npy(rows, path):
    np.save(path, rows)
    return str(path)


KINDS = {
    "zarr": lambda rows, path: as_zarr(rows, path.with_suffix(".zarr")),
    "npy": lambda rows, path: as_npy(rows, path.with_suffix(".npy")),
    "numpy": lambda rows, path: rows,
    "dask": lambda rows, path: da.from_array(rows, chunks=(100, 8)),
}


def found_modes(data, scheduler):
    return finc.modes(
        *data, kernel=Gaussian(3.0), n_frequencies=40, n_modes=4, n_top=5, n_draws=199,
        block_rows=100, scheduler=scheduler,
    )  # fmt: skip


def assert_identical(one, other):
    assert set(one.variables) == set(other.variables)
    for name in one.variables:
        assert one[name].dtype == other[name].dtype
        assert one[name].values.tobytes() == other[name].values.tobytes(), name
    assert one.attrs == other.attrs


@pytest.fixture(scope="module")
def three_workers():
    with started(n_workers=3) as client:
        yield client


@pytest.mark.parametrize("kind", KINDS)
def test_modes__have_the_same_bits_everywhere(kind, two_workers, three_workers, tmp_path):
    data = [
        KINDS[kind](rows, tmp_path / name)
        for rows, name in zip(collections(), ("test", "reference"), strict=True)
    ]
    sync = found_modes(data, "sync")
    assert bool(sync["significant"][0])
    for scheduler in ("threads", two_workers, three_workers):
        assert_identical(sync, found_modes(data, scheduler))


def test_modes__do_not_depend_on_threads_of_workers_nor_of_blas():
    blas = {f"{name}_NUM_THREADS": "2" for name in ("OMP", "OPENBLAS", "MKL")}
    with started(n_workers=1, threads_per_worker=2, env=blas) as client:
        source = generated(3_000, 500, width=400)
        found = reduce(SecondMoment(width=400), source, scheduler=client)
        limits = client.run(
            lambda: [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]
        )
    assert all(limits.values())
    assert {limit for own in limits.values() for limit in own} == {1}
    assert_same_bits(found, reduce(SecondMoment(width=400), source))


def test_pairs__have_the_same_bits(two_workers, monkeypatch):
    monkeypatch.setattr("bigkd.engine.pairs.STRIPE_WORK", 64 * 20**2)
    summary, events = KernelSum(kernel=Gaussian(2.0)), []
    for right in (None, generated(70, 7, seed=1)):
        sync = reduce_pairs(summary, generated(90, 7), right)
        found = reduce_pairs(
            summary, generated(90, 7), right, scheduler=two_workers, progress=events.append
        )
        assert_same_bits(found, sync)
        assert events[-1].done == events[-1].total


def test_progress__arrives_while_workers_work(two_workers):
    events = []
    rows = da.from_array(np.ones((400, 3)), chunks=(10, 3)).map_blocks(slowly)
    reduce(Mean(width=3), open_rows(rows, name="x"), scheduler=two_workers, progress=events.append)
    done = [event.done for event in events]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, 400)
    assert len(set(done)) > 5
    assert 0.2 < events[-1].seconds < 60


def slowly(block):
    time.sleep(0.03)
    return block


def test_progress__raises_what_the_function_raises(two_workers):
    def refuse(event):
        if event.done:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        reduce(Mean(width=3), generated(200, 10), scheduler=two_workers, progress=refuse)
    assert_released(two_workers)


def test_data_error__arrives_as_it_was_raised(two_workers):
    rows = np.ones((60, 3))
    rows[44] = np.nan
    source = open_rows(rows, name="rows", block_rows=10)
    with pytest.raises(DataError) as local:
        reduce(Mean(width=3), source)
    with pytest.raises(DataError) as remote:
        reduce(Mean(width=3), source, scheduler=two_workers)
    assert str(remote.value) == str(local.value)
    assert "row 44 (row 4 of block 4)" in str(remote.value)
    assert_released(two_workers)


def test_connection_error_of_a_read__is_not_taken_for_one_of_the_cluster(two_workers):
    rows = da.from_array(np.ones((60, 3)), chunks=(10, 3)).map_blocks(
        refuse_connection, meta=np.ones((0, 3))
    )
    with pytest.raises(ConnectionError, match="the bucket hung up"):
        reduce(Mean(width=3), open_rows(rows, name="x"), scheduler=two_workers)


def refuse_connection(block):
    raise ConnectionResetError("the bucket hung up")


def assert_released(client):
    """No future is left, and the scheduler forgets the tasks."""
    wait_for(lambda: not client.futures and client.run_on_scheduler(n_tasks) == 0)


def n_tasks(dask_scheduler):
    return len(dask_scheduler.tasks)


def test_pass__leaves_nothing_behind(two_workers):
    reduce(Mean(width=3), generated(100, 10), scheduler=two_workers)
    assert_released(two_workers)


def test_large_graphs_and_results__pass_without_a_warning(two_workers):
    rows = np.random.default_rng(0).normal(size=(2_000, 1_500)).astype("f4")
    source = open_rows(rows, name="x", block_rows=1_000)
    assert rows.nbytes > 10e6
    found = reduce(SecondMoment(width=1_500), source, scheduler=two_workers)
    assert_same_bits(found, reduce(SecondMoment(width=1_500), source))


def test_address__is_enough(two_workers):
    address = two_workers.scheduler_info()["address"]
    source = generated(100, 10)
    found = reduce(everything(3), source, scheduler=address)
    assert_same_bits(found, reduce(everything(3), source))
    wait_for(lambda: clients_of(two_workers) == {two_workers.id})  # the other one has left


def clients_of(client):
    names = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.clients))
    return {name for name in names if name != "fire-and-forget"}


def test_current_client__is_used_and_stays_current(two_workers):
    address = two_workers.scheduler_info()["address"]
    with Client(address) as current:
        with open_runner(None) as runner:
            assert isinstance(runner, ClusterRunner)
        found = reduce(Mean(width=3), generated(100, 10), scheduler=None)
        assert get_client() is current
        with open_runner(address):
            assert get_client() is current
    assert_same_bits(found, reduce(Mean(width=3), generated(100, 10)))


@pytest.fixture
def taken_port():
    """Dask's usual port for its dashboard, in use by something else."""
    with socket.socket() as taken:
        with suppress(OSError):  # by another program even
            taken.bind(("0.0.0.0", 8787))
            taken.listen()
        yield


@pytest.mark.usefixtures("taken_port")
def test_local__starts_workers_and_ends_them():
    source = generated(100, 10)
    with open_session(Settings(scheduler="local")) as session:
        found = session.reduce(everything(3), source, label="pass")
        with pytest.raises(ValueError, match="No global client"):
            get_client()
    assert_same_bits(found, reduce(everything(3), source))
    assert session.plans[0].task_bytes > 0


def test_plan__knows_the_memory_of_workers():
    with started(n_workers=1, threads_per_worker=2, memory_limit="2 GiB") as client:
        assert ClusterRunner(client, 1.0).available() == int(0.8 * 2**30)


def test_checkpoint__is_kept_by_workers_and_restored_by_them(two_workers, tmp_path):
    source = generated(200, 10, log=tmp_path / "reads")
    settings = {"scheduler": two_workers, "checkpoint": tmp_path / "kept"}
    found = reduce(everything(3), source, **settings)
    source.log.unlink()
    events = []
    again = reduce(everything(3), source, progress=events.append, **settings)
    assert source.reads() == []
    assert_same_bits(again, found)
    assert_same_bits(reduce(everything(3), source, checkpoint=tmp_path / "kept"), found)
    assert events[-1].done == 200


def test_nothing_answers__is_told_quickly(monkeypatch):
    monkeypatch.setattr("bigkd.engine.connections.CONNECT_SECONDS", 2.0)
    began = time.monotonic()
    with (
        pytest.raises(ClusterError, match="no Dask scheduler answers at tcp://127"),
        open_runner("tcp://127.0.0.1:9"),
    ):
        pass
    assert time.monotonic() - began < 25


def test_closed_client__is_told(two_workers):
    client = Client(two_workers.scheduler_info()["address"], set_as_default=False)
    client.close()
    with pytest.raises(ClusterError, match="is closed"):
        reduce(Mean(width=3), generated(100, 10), scheduler=client)


def test_pass__logs_nothing(two_workers, caplog):
    with caplog.at_level(logging.WARNING, logger="distributed"):
        reduce(Mean(width=3), generated(100, 10), scheduler=two_workers)
    assert caplog.records == []


def test_asynchronous_client__is_refused_at_once():
    client = Mock(spec=Client, asynchronous=True, status="running")
    with pytest.raises(InputError, match="asynchronous"), open_runner(client):
        pass
