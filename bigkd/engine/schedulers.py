"""Where tasks run: in this thread, in threads, or on any cluster of `dask.distributed`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

import psutil
import threadpoolctl
from dask import config
from dask.base import compute
from dask.callbacks import Callback
from distributed import Client, KilledWorker, LocalCluster, get_client
from distributed import wait as wait_for
from distributed.client import FutureCancelledError

from bigkd.config import STALL_SECONDS
from bigkd.engine.progress import Watch
from bigkd.errors import ClusterError, InputError

Scheduler: TypeAlias = str | Client | None

RESUME = "Run it again with the same checkpoint to go on from what is finished."


class Runner(Protocol):
    """Computes graphs."""

    distributed: bool

    def compute(self, root: Any, *, watch: Watch, topic: str, rows: dict[str, int]) -> Any:
        """Value of the delayed `root`; `rows` tells how many rows each named task stands for."""
        ...

    def available(self) -> int:
        """Bytes that one task may use."""
        ...


class _CountTasks(Callback):
    """Feeds a watch from the tasks of Dask's own schedulers."""

    def __init__(self, watch: Watch, rows: dict[str, int]) -> None:
        super().__init__(  # type: ignore[no-untyped-call]
            posttask=lambda key, *_: watch.advance(rows.get(str(key), 0))
        )


class LocalRunner:
    """The current process: one task at a time, or one on each thread."""

    distributed = False

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def compute(self, root: Any, *, watch: Watch, topic: str, rows: dict[str, int]) -> Any:
        """Value of `root`, with BLAS on one thread in each task."""
        del topic
        scheduler = "synchronous" if self._threads == 1 else "threads"
        with threadpoolctl.threadpool_limits(limits=1), _CountTasks(watch, rows):
            return compute(root, scheduler=scheduler, num_workers=self._threads)[0]

    def available(self) -> int:
        """What is free now, shared among the threads."""
        return int(psutil.virtual_memory().available // self._threads)


class ClusterRunner:
    """A cluster of worker processes."""

    distributed = True

    def __init__(self, client: Client, stall_seconds: float) -> None:
        self._client = client
        self._stall_seconds = stall_seconds

    def compute(self, root: Any, *, watch: Watch, topic: str, rows: dict[str, int]) -> Any:
        """Value of `root`; gives up when nothing finishes for long.

        Raises
        ------
        ClusterError
            If workers keep dying, or nothing happened for `stall_seconds`.
        """
        del rows
        self._client.subscribe_topic(topic, watch.on_event)
        with config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
            future = self._client.compute(root, retries=3)
        try:
            while not future.done():
                self._wait(future)
                if watch.idle > self._stall_seconds:
                    raise ClusterError(
                        f"nothing finished on the cluster for "
                        f"{watch.idle:.0f} s; are there workers, and have they memory and disk? "
                        f"{RESUME}"
                    )
            return future.result()
        except (KilledWorker, FutureCancelledError, OSError) as error:
            if isinstance(error, OSError) and not isinstance(error, ConnectionError):
                raise
            raise ClusterError(f"the cluster lost the work: {error}. {RESUME}") from error
        finally:
            future.release()
            self._client.unsubscribe_topic(topic)

    def available(self) -> int:
        """Memory of the smallest worker, shared among its threads; Dask pauses it at 80 %."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [
            worker["memory_limit"] // worker["nthreads"]
            for worker in workers
            if worker["memory_limit"]
        ]
        free = int(psutil.virtual_memory().available)
        return int(0.8 * min(limits)) if limits else free

    @staticmethod
    def _wait(future: Any) -> None:
        try:
            wait_for(future, timeout=1.0)
        except TimeoutError:
            return


@contextmanager
def open_runner(scheduler: Scheduler, *, stall_seconds: float = STALL_SECONDS) -> Iterator[Runner]:
    """The runner that `scheduler` names, closed afterwards if it was started here.

    Parameters
    ----------
    scheduler
        ``"sync"``, ``"threads"``, ``"local"`` (worker processes on this machine), the address of a
        `dask.distributed` scheduler, or a `distributed.Client`. None: the current client if there
        is one, else threads.

    Raises
    ------
    InputError
        If it is none of these.
    ClusterError
        If nothing answers at the address.
    """
    if scheduler is None:
        scheduler = _current_client() or "threads"
    if isinstance(scheduler, Client):
        yield ClusterRunner(scheduler, stall_seconds)
    elif scheduler == "sync":
        yield LocalRunner(1)
    elif scheduler == "threads":
        yield LocalRunner(os.cpu_count() or 1)
    elif scheduler == "local":
        with (
            LocalCluster(processes=True, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            yield ClusterRunner(client, stall_seconds)
    elif "://" in scheduler:
        with _connect(scheduler) as client:
            yield ClusterRunner(client, stall_seconds)
    else:
        raise InputError(
            f"scheduler must be 'sync', 'threads', 'local', an address such as tcp://host:8786, or "
            f"a distributed.Client; got {scheduler!r}."
        )


def _connect(address: str) -> Client:
    try:
        return Client(address, timeout="20s", set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise ClusterError(f"no Dask scheduler answers at {address}: {error}.") from error


def _current_client() -> Client | None:
    try:
        return get_client()
    except ValueError:
        return None
