import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import psutil
import pytest
from dask.system import CPU_COUNT
from threadpoolctl import threadpool_info, threadpool_limits

from bigkd.engine import quiet
from bigkd.engine.schedulers import LocalRunner, open_runner
from bigkd.errors import ClusterError, InputError
from bigkd.protocols import Footprint
from tests.engine.helpers import Census, generated, reduce

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["distributed", "", "thread", 4, True, "localhost:8786", b"sync"])
def test_open_runner__refuses_what_it_does_not_know(name):
    with (
        pytest.raises(InputError, match=r"scheduler must be 'sync', 'threads', 'local'"),
        open_runner(name),
    ):
        pass


def test_open_runner__refuses_an_address_without_meaning():
    with pytest.raises(InputError, match="pigeon://home"), open_runner("pigeon://home:1"):
        pass


def test_open_runner__uses_threads_where_there_is_no_client():
    with open_runner(None) as runner:
        assert isinstance(runner, LocalRunner)
        assert runner.available() <= psutil.virtual_memory().total // CPU_COUNT


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


class BlasCensus(Census):
    seen: ClassVar[list[set[int]]] = []

    def update(self, state, rows):
        self.seen.append(blas_threads())
        return state

    def footprint(self, n_rows, itemsize):
        return Footprint(state=8, scratch=8, row_cost=1)


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_local_runner__limits_blas_while_it_runs(scheduler):
    with threadpool_limits(limits=2):
        BlasCensus.seen.clear()
        reduce(BlasCensus(), generated(40, 10), scheduler=scheduler)
        assert BlasCensus.seen == [{1}] * 4
        assert blas_threads() == {2}


LIMITED = """
import threading

import numpy
import scipy.linalg
import threadpoolctl

from bigkd.engine import limit_blas


def work():
    limit_blas()
    print(*{pool["num_threads"] for pool in threadpoolctl.threadpool_info()})


for _ in range(2):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""


def test_limit_blas__holds_for_every_thread_of_a_worker():
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED],
        env=environment, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["1", "1"]


def test_local__says_how_to_start_worker_processes(tmp_path):
    """A script without the guard: its workers import it, and start workers."""
    script = tmp_path / "script.py"
    script.write_text(
        "from bigkd.engine.schedulers import open_runner\nwith open_runner('local'):\n    pass\n"
    )
    process = psutil.Popen([sys.executable, script], stdout=-1, stderr=-1, text=True, cwd=ROOT)
    try:
        _, errors = process.communicate(timeout=60)
    finally:
        for child in [*process.children(recursive=True), process] if process.is_running() else []:
            child.kill()
    assert process.returncode
    assert ClusterError.__name__ in errors
    assert "if __name__ == '__main__':" in errors


def test_workers_of_this_machine__leave_out_failed_tasks_and_nothing_else(monkeypatch):
    logger = logging.Logger("distributed.worker")
    loggers = SimpleNamespace(getLogger={logger.name: logger}.__getitem__)
    monkeypatch.setattr(quiet, "logging", loggers)
    quiet.dask_setup(None)
    said = [
        bool(logger.filter(logging.makeLogRecord({"msg": message})))
        for message in ("Compute Failed\nKey: %s", "Worker is at %d%% memory usage. Compute Failed")
    ]
    assert said == [False, True]
