"""What the workers compute with, for the bits depend on it."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import threadpoolctl
from distributed import Client, wait

from bigkd import __version__
from bigkd.errors import ClusterError

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 20.0
"""How long workers may take to tell what they compute with."""


def libraries() -> dict[str, str]:
    """What this process computes with: versions, and the kernels that BLAS chose for its CPU."""
    found = {"bigkd": __version__}
    found |= {name: version(name) for name in ("numpy", "scipy", "numba")}
    kernels = {
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}".strip()
        for pool in threadpoolctl.threadpool_info()
        if pool["user_api"] == "blas"
    }
    return found | {"BLAS": ", ".join(sorted(kernels))}


def found_on(client: Client) -> list[dict[str, str]]:
    """The `libraries` of each worker that tells them within `ANSWER_SECONDS`.

    Raises
    ------
    ClusterError
        If a worker has no bigkd, or another version of it than this process.
    """
    mine = version("bigkd")
    # First a question that every Python understands: what a worker cannot import ends it.
    others = {found for found in _told(client, version, "bigkd") if found != mine}
    if others:
        raise ClusterError(
            f"workers have other versions of bigkd than this process, which has {mine}: "
            f"{', '.join(sorted(others))}. Install the same there."
        )
    return _told(client, libraries)


def _told(client: Client, function: Callable[..., Any], *arguments: str) -> list[Any]:
    """What `function` returns on each worker, of those that answer in time."""
    futures = [
        client.submit(function, *arguments, workers=[address], pure=False, priority=10)
        for address in client.scheduler_info(n_workers=-1)["workers"]
    ]
    with suppress(TimeoutError), client.as_current():  # wait asks for the current one
        wait(futures, timeout=ANSWER_SECONDS)
    failed = [future.exception() for future in futures if future.status == "error"]
    if failed:
        raise ClusterError(
            f"{len(failed)} of {len(futures)} workers cannot compute: {failed[0]}. Install the "
            f"same bigkd there as here."
        )
    return [future.result() for future in futures if future.status == "finished"]


def warn(found: list[str]) -> None:
    """Log where libraries differ, if they do."""
    if found:
        logger.warning(
            "not all of this cluster computes with the same libraries: %s. Results are as good, "
            "but their last bits may differ from those of another run.",
            "; ".join(found),
        )


def differences(here: Mapping[str, str], workers: Iterable[Mapping[str, str]]) -> list[str]:
    """For each library that is not the same everywhere, where it is what."""
    workers = list(workers)
    sentences = []
    for name, mine in here.items():
        counted = Counter(worker.get(name, "absent") for worker in workers)
        if set(counted) - {mine}:
            there = ", ".join(f"{value} on {n} workers" for value, n in sorted(counted.items()))
            sentences.append(f"{name} is {mine} here, {there}")
    return sentences
