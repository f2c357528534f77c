"""Where tasks run: in this thread, in threads, or on any cluster of `dask.distributed`."""

from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeAlias

import psutil
import threadpoolctl
from dask import config
from dask.base import compute
from dask.callbacks import Callback
from dask.system import CPU_COUNT
from distributed import Client, KilledWorker, LocalCluster, get_client
from distributed import wait as wait_for
from distributed.client import ClosedClientError
from distributed.comm.core import CommClosedError
from distributed.system import MEMORY_LIMIT

from bigkd.config import STALL_SECONDS
from bigkd.engine.alignment import aligned
from bigkd.engine.connections import connected, start_local
from bigkd.engine.progress import Watch
from bigkd.engine.rehearsal import Rehearsal
from bigkd.errors import ClusterError, InputError
from bigkd.io.urls import plain_location

Scheduler: TypeAlias = str | Client | Rehearsal | None

RESUME = "Run it again with the same checkpoint to go on from what is finished."
RETRIES = 3  # of a task that raised, for reads that fail once in a while

LOST = (KilledWorker, CancelledError, ClosedClientError, CommClosedError, ConnectionError)


def usable_bytes(memory_limit: int, *, threads: int) -> int:
    """Bytes for one task of a worker with that limit; Dask pauses workers at 80 % of it."""
    return int(0.8 * (memory_limit // threads))


class Runner(Protocol):
    """Computes graphs."""

    distributed: bool
    same_machine: bool
    """Whether all work is done where this process is, as far as is known."""

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
            posttask=lambda key, *_: watch.advance(rows[str(key)]) if str(key) in rows else None
        )


class LocalRunner:
    """The current process: one task at a time, or one on each thread."""

    distributed = False
    same_machine = True

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def compute(self, root: Any, *, watch: Watch, topic: str, rows: dict[str, int]) -> Any:
        """Value of `root`, with BLAS on one thread in each task."""
        del topic
        scheduler = "synchronous" if self._threads == 1 else "threads"
        with threadpoolctl.threadpool_limits(limits=1), _CountTasks(watch, rows):
            return compute(root, scheduler=scheduler, num_workers=self._threads)[0]

    def available(self) -> int:
        """What is free now, or what this container may use, shared among the threads."""
        return int(min(psutil.virtual_memory().available, MEMORY_LIMIT) // self._threads)


class ClusterRunner:
    """A cluster of worker processes."""

    distributed = True

    def __init__(self, client: Client, stall_seconds: float) -> None:
        if client.asynchronous:
            raise InputError(
                "scheduler is an asynchronous distributed.Client; pass a synchronous one, or the "
                "address of its scheduler."
            )
        if client.status in ("closing", "closed"):
            raise ClusterError(f"{client} is closed; pass one that is open, or an address.")
        self.same_machine = isinstance(client.cluster, LocalCluster)
        self._client = client
        self._stall_seconds = stall_seconds

    def compute(self, root: Any, *, watch: Watch, topic: str, rows: dict[str, int]) -> Any:
        """Value of `root`; gives up when nothing finishes for long.

        Raises
        ------
        ClusterError
            If workers keep dying, the scheduler is gone, or nothing happened for `stall_seconds`.
        """
        del rows
        with _cluster_faults():
            self._client.subscribe_topic(topic, watch.on_event)
            with config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
                future = self._client.compute(root, retries=RETRIES)
        try:
            with _cluster_faults():
                self._wait(future, watch)
            if future.status == "error" and not isinstance(future.exception(), KilledWorker):
                return future.result()  # raises what the task raised, as it is
            with _cluster_faults():
                return self._gather(future)
        finally:
            future.release()
            with suppress(ClosedClientError, OSError):
                self._client.unsubscribe_topic(topic)

    def available(self) -> int:
        """Memory of the smallest worker, shared among its threads."""
        with _cluster_faults():
            workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        usable = [
            usable_bytes(worker["memory_limit"], threads=worker["nthreads"])
            for worker in workers
            if worker["memory_limit"]
        ]
        return min(usable, default=int(psutil.virtual_memory().available))

    def _wait(self, future: Any, watch: Watch) -> None:
        """Return when `future` is done, however it ended."""
        while not future.done():
            with suppress(TimeoutError), self._client.as_current():  # wait asks for the current one
                wait_for(future, timeout=min(1.0, self._stall_seconds))
            watch.check()
            if watch.idle > self._stall_seconds and not future.done():
                raise ClusterError(
                    f"nothing finished on the cluster for {watch.idle:.0f} s; are there workers, "
                    f"and have they memory and disk? {RESUME}"
                )

    def _gather(self, future: Any) -> Any:
        """The value, from the worker that holds it."""
        try:
            return aligned(future.result(timeout=self._stall_seconds))
        except TimeoutError as error:
            raise ClusterError(
                f"the cluster finished, but its result did not arrive within "
                f"{self._stall_seconds:.0f} s. {RESUME}"
            ) from error


@contextmanager
def _cluster_faults() -> Iterator[None]:
    """Tell faults of the cluster from those of the work."""
    try:
        yield
    except LOST as error:
        why = " ".join(str(error).split()).rstrip(".")
        raise ClusterError(f"the cluster lost the work: {why}. {RESUME}") from error


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
        If nothing answers at the address, or no worker process could be started.
    """
    if scheduler is None:
        scheduler = _current_client() or "threads"
    if isinstance(scheduler, Client):
        yield ClusterRunner(scheduler, stall_seconds)
    elif scheduler == "sync":
        yield LocalRunner(1)
    elif scheduler == "threads":
        yield LocalRunner(CPU_COUNT)
    elif scheduler == "local":
        with start_local() as cluster, Client(cluster, set_as_default=False) as client:
            yield ClusterRunner(client, stall_seconds)
    elif isinstance(scheduler, str) and "://" in scheduler:
        with connected(plain_location(scheduler, name="scheduler")) as client:
            yield ClusterRunner(client, stall_seconds)
    else:
        raise InputError(
            f"scheduler must be 'sync', 'threads', 'local', an address such as tcp://host:8786, or "
            f"a distributed.Client; got {scheduler!r}."
        )


def _current_client() -> Client | None:
    try:
        return get_client()
    except ValueError:
        return None
