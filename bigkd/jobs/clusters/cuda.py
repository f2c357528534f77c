"""One worker process for each GPU of this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from distributed import Client
from pydantic import Field

from bigkd.engine.connections import one_thread_each
from bigkd.io.optional import require
from bigkd.jobs.base import Bytes, Location, Whole
from bigkd.jobs.clusters.base import StartedPart, in_bytes, per_thread


class CudaPart(StartedPart):
    """Worker processes of this machine with a GPU each, through dask-cuda."""

    kind: Literal["cuda"]
    n_workers: Whole | None = Field(default=None, description="workers; one a GPU by default")
    threads_per_worker: Whole = Field(default=1, description="threads of each")
    devices: list[int] | None = Field(
        default=None, min_length=1, description="numbers of the GPUs; all by default"
    )
    memory_limit: Bytes | None = Field(
        default=None, description="memory of each on the host; an equal share by default"
    )
    device_memory_limit: Bytes | None = Field(
        default=None, description="memory of each on its GPU, beyond which it spills to the host"
    )
    local_directory: Location | None = Field(default=None, description="where they spill to")

    @contextmanager
    def started(self) -> Iterator[Client]:
        """A client of new worker processes, which are gone afterwards."""
        dask_cuda = _dask_cuda()
        with (
            one_thread_each(),
            dask_cuda.LocalCUDACluster(**self.options()) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield client

    def options(self) -> dict[str, Any]:
        """Keywords of `dask_cuda.LocalCUDACluster`; what is not given is left to it."""
        given = {
            "n_workers": self.n_workers,
            "CUDA_VISIBLE_DEVICES": self.devices,
            "memory_limit": _optional(self.memory_limit),
            "device_memory_limit": _optional(self.device_memory_limit),
            "local_directory": self.local_directory,
        }
        return {
            "threads_per_worker": self.threads_per_worker,
            "dashboard_address": "127.0.0.1:0",
            "scheduler_kwargs": {"dashboard": False},
            **{name: value for name, value in given.items() if value is not None},
        }

    def require_usable(self) -> None:
        """Raise MissingDependencyError without dask-cuda."""
        _dask_cuda()

    def memory_per_thread(self) -> int | None:
        """Bytes that one task may use of the host, if they are given."""
        if self.memory_limit is None:
            return None
        return per_thread(self.memory_limit, threads=self.threads_per_worker)


def _dask_cuda() -> Any:
    return require("dask_cuda", extra="cuda")


def _optional(value: int | str | None) -> int | None:
    return None if value is None else in_bytes(value)
