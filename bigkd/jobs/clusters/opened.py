"""The cluster of a job: started, waited for, and gone afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, TypeAlias

from distributed import Client
from pydantic import Field

from bigkd.engine.schedulers import Scheduler
from bigkd.errors import ClusterError
from bigkd.jobs.clusters.cuda import CudaPart
from bigkd.jobs.clusters.here import AddressPart, LocalPart
from bigkd.jobs.clusters.kubernetes import KubernetesPart
from bigkd.jobs.clusters.slurm import SlurmPart
from bigkd.jobs.clusters.workers import differences, found_on, libraries, warn

ClusterPart: TypeAlias = Annotated[
    LocalPart | AddressPart | SlurmPart | KubernetesPart | CudaPart, Field(discriminator="kind")
]
"""Where a job runs."""


@contextmanager
def opened_cluster(part: ClusterPart | None) -> Iterator[Scheduler]:
    """What to pass as `scheduler`: a client of the cluster, which has a worker; None for None.

    What is started for it ends with the block, also after errors, Ctrl-C and SIGTERM. Whether
    workers compute with the same libraries is looked at before the block and after it.

    Parameters
    ----------
    part
        ``cluster`` of a job file.

    Raises
    ------
    MissingDependencyError
        If the extra for this kind is not installed.
    InputError
        If certificates cannot be read.
    ClusterError
        If it cannot be started or reached, or no worker comes in time.
    """
    if part is None:
        yield None
        return
    check_cluster(part)
    with part.started() as client:
        _wait(client, part)
        before = differences(libraries(), found_on(client))
        warn(before)
        yield client
        with suppress(OSError, ClusterError):  # it may be gone; the work is done
            after = differences(libraries(), found_on(client))
            warn([] if after == before else after)


def check_cluster(part: ClusterPart | None) -> None:
    """Raise what can be known to be wrong with a cluster before anything is started.

    Raises
    ------
    MissingDependencyError, InputError, ClusterError
        As `opened_cluster`.
    """
    if part is not None:
        part.require_usable()


def memory_per_thread(part: ClusterPart | None) -> int | None:
    """Bytes that one task may use there; None if that is only known once it runs."""
    return None if part is None else part.memory_per_thread()


def _wait(client: Client, part: ClusterPart) -> None:
    try:
        client.wait_for_workers(1, timeout=part.wait_seconds)
    except TimeoutError as error:
        raise ClusterError(
            f"no worker came to the {part.kind} cluster within {part.wait_seconds:g} s. "
            f"{part.whereabouts()}"
        ) from error
