"""Clusters that a job starts on this machine, and workers that are not like this process."""

import logging
import os

import numba
import numpy as np
import pytest
import xarray as xr
import yaml
from click.testing import CliRunner
from pydantic import TypeAdapter

from bigkd.cli import commands
from bigkd.errors import ClusterError
from bigkd.io import load_dataset
from bigkd.jobs.clusters import ClusterPart, memory_per_thread, opened_cluster
from bigkd.jobs.clusters.workers import differences, libraries
from tests.cluster.harm import wait_until_gone
from tests.cluster.processes import scheduler, worker

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

LOCAL = {"kind": "local", "n_workers": 2, "memory_limit": "1 GiB"}


def part(**given):
    return TypeAdapter(ClusterPart).validate_python(given)


def numba_threads():
    return os.getpid(), numba.config.NUMBA_NUM_THREADS, os.environ["OPENBLAS_NUM_THREADS"]


def test_local_cluster__has_what_was_asked_and_is_gone_after_an_error(tmp_path):
    found = part(**LOCAL, local_directory=str(tmp_path / "spill"))
    seen = {}

    def use(client):
        client.wait_for_workers(2, timeout=60)
        seen["told"] = list(client.run(numba_threads).values())
        seen["info"] = list(client.scheduler_info()["workers"].values())
        raise RuntimeError

    with pytest.raises(RuntimeError), opened_cluster(found) as client:
        use(client)
    assert [(threads, blas) for _, threads, blas in seen["told"]] == [(1, "1"), (1, "1")]
    for info in seen["info"]:
        assert info["nthreads"] == 1
        assert info["memory_limit"] == 1024**3
        assert info["local_directory"].startswith(str(tmp_path / "spill"))
    assert memory_per_thread(found) == int(0.8 * 1024**3)
    wait_until_gone([pid for pid, _, _ in seen["told"]])


def test_local_cluster__has_the_same_bits(tmp_path):
    generator = np.random.default_rng(0)
    for name, n in (("x", 400), ("y", 300)):
        np.save(tmp_path / f"{name}.npy", generator.normal(size=(n, 3)))
    kernel = {"name": "gaussian", "sigma": 1.0}
    distance = {"x": "x.npy", "y": "y.npy", "kernel": kernel, "method": "exact"}
    job = tmp_path / "job.yaml"
    for store, options in (("here", ["--scheduler", "sync"]), ("there", [])):
        output = {"store": f"{store}.zarr"}
        job.write_text(yaml.safe_dump({"distance": distance, "output": output, "cluster": LOCAL}))
        done = CliRunner().invoke(commands, ["run", str(job), *options])
        assert done.exit_code == 0, done.output
    here, there = (
        load_dataset(tmp_path / f"{store}.zarr", kind="distance").load()
        for store in ("here", "there")
    )
    xr.testing.assert_identical(here, there)


@pytest.mark.parametrize(
    ("strange", "told"),
    [
        (None, r"1 of 1 workers cannot compute: .*bigkd\. Install the same bigkd there as here"),
        ("0.0.1", r"workers have other versions of bigkd than this process, .*: 0\.0\.1\."),
    ],
)
def test_workers__without_this_bigkd_are_told(strange, told, tmp_path, monkeypatch):
    if strange is not None:
        monkeypatch.setenv("STRANGE_VERSION", strange)
    module = "tests.cluster.strange_worker"
    with scheduler(tmp_path) as address, worker(tmp_path, address, module=module):
        found = part(kind="address", address=address, wait_seconds=60.0)
        with pytest.raises(ClusterError, match=told), opened_cluster(found):
            pass


def test_workers__with_other_libraries_are_warned_of(tmp_path, monkeypatch, caplog):
    other = {**libraries(), "bigkd": "0.0.0", "BLAS": "openblas 0.3 Haswell"}
    monkeypatch.setattr("bigkd.jobs.clusters.opened.libraries", lambda: other)
    found = part(**{**LOCAL, "n_workers": 1})
    with caplog.at_level(logging.WARNING, logger="bigkd"), opened_cluster(found):
        pass
    (record,) = [record for record in caplog.records if record.name.startswith("bigkd")]
    mine = libraries()
    assert f"bigkd is 0.0.0 here, {mine['bigkd']} on 1 workers" in record.message
    assert f"BLAS is openblas 0.3 Haswell here, {mine['BLAS']} on 1 workers" in record.message


def test_differences__count_what_is_where():
    here = {"numpy": "2.4", "BLAS": "a"}
    workers = [{"numpy": "2.4", "BLAS": "a"}, {"numpy": "2.3", "BLAS": "a"}, {"BLAS": "a"}]
    assert differences(here, workers) == [
        "numpy is 2.4 here, 2.3 on 1 workers, 2.4 on 1 workers, absent on 1 workers"
    ]
    assert differences(here, workers[:1]) == []
    assert differences(here, []) == []


def test_libraries__are_those_that_compute():
    found = libraries()
    assert set(found) == {"bigkd", "numpy", "scipy", "numba", "BLAS"}
    assert found["numpy"] == np.__version__
    assert found["BLAS"]
