"""Clusters on this machine, and clusters that run already."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal, Self

from dask import config
from dask.system import CPU_COUNT
from distributed import Client
from distributed.system import MEMORY_LIMIT
from pydantic import AfterValidator, Field, model_validator

from bigkd.engine.connections import connected, start_local
from bigkd.errors import InputError
from bigkd.io.urls import url_problem
from bigkd.jobs.base import Bytes, Location, Whole
from bigkd.jobs.clusters.base import StartedPart, TlsPart, in_bytes, per_thread


class LocalPart(StartedPart):
    """Worker processes of this machine."""

    kind: Literal["local"]
    n_workers: Whole | None = Field(
        default=None, description="worker processes; by default what the cores are enough for"
    )
    threads_per_worker: Whole = Field(default=1, description="threads of each")
    memory_limit: Bytes | None = Field(
        default=None, description="memory of each; an equal share by default"
    )
    local_directory: Location | None = Field(default=None, description="where they spill to")

    @contextmanager
    def started(self) -> Iterator[Client]:
        """A client of new worker processes, which are gone afterwards."""
        with (
            start_local(
                n_workers=self.n_workers,
                threads_per_worker=self.threads_per_worker,
                memory_limit=None if self.memory_limit is None else in_bytes(self.memory_limit),
                local_directory=self.local_directory,
            ) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield client

    def memory_per_thread(self) -> int:
        """Bytes that one task may use."""
        n_workers = self.n_workers or max(1, CPU_COUNT // self.threads_per_worker)
        limit = MEMORY_LIMIT // n_workers if self.memory_limit is None else self.memory_limit
        return per_thread(limit, threads=self.threads_per_worker)


def _address(value: str) -> str:
    problem = url_problem(value)
    if problem is not None:
        raise ValueError(problem)
    if not value.startswith(("tcp://", "tls://")):
        raise ValueError(f"must be tcp://host:port or tls://host:port; got {value!r}")
    return value


class AddressPart(StartedPart):
    """A cluster that runs already, and goes on afterwards."""

    kind: Literal["address"]
    address: Annotated[str, AfterValidator(_address)] | None = Field(
        default=None,
        description="tcp://host:port or tls://host:port of the scheduler; by default Dask's own "
        "setting scheduler-address, from DASK_SCHEDULER_ADDRESS",
    )
    tls: TlsPart | None = Field(
        default=None,
        description="certificates for tls://; by default those of Dask's own settings",
    )

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        if self.tls is not None and self.address is not None and self.address.startswith("tcp://"):
            raise ValueError("has certificates and an address with tcp://; make it tls://")
        return self

    @contextmanager
    def started(self) -> Iterator[Client]:
        """A client of the cluster, closed afterwards."""
        security = None if self.tls is None else self.tls.security()
        with connected(self._found(), security=security) as client:
            yield client

    def require_usable(self) -> None:
        """Raise InputError if there is no address, or a certificate cannot be read."""
        self._found()
        if self.tls is not None:
            self.tls.require_usable()

    def whereabouts(self) -> str:
        """What to look at when no worker comes."""
        return f"Start workers that connect to {self._found()}, or look at their logs."

    def _found(self) -> str:
        address = self.address or config.get("scheduler-address", None)
        if address is None:
            raise InputError(
                "cluster.address: there is none in the job file, and DASK_SCHEDULER_ADDRESS is not "
                "set either; give one such as tls://host:8786."
            )
        return str(address)
