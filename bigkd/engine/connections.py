"""Clusters of `dask.distributed` to run on: started on this machine, or reached by an address."""

import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from dask import config
from distributed import Client, LocalCluster, Security
from distributed.comm.addressing import get_address_host_port
from distributed.comm.core import CommClosedError, connect
from tornado.ioloop import IOLoop

from bigkd.config import CONNECT_SECONDS
from bigkd.errors import ClusterError, InputError

ONE_THREAD: Final[Mapping[str, str]] = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
"""Environment of every worker process: parallelism is Dask's, and thread counts change sums."""

_QUIET = "bigkd.engine.quiet"

_TLS_SETTINGS = {
    "ca_file": "distributed.comm.tls.ca-file",
    "cert": "distributed.comm.tls.client.cert",
    "key": "distributed.comm.tls.client.key",
}


def one_thread_each() -> AbstractContextManager[None]:
    """Give `ONE_THREAD` to the worker processes that are begun meanwhile.

    Before they are: Numba reads its setting when it is imported, which Dask's default comes too
    late for.
    """
    environ = {**config.get("distributed.nanny.pre-spawn-environ", {}), **ONE_THREAD}
    setting: AbstractContextManager[None] = config.set(
        {"distributed.nanny.pre-spawn-environ": environ}
    )
    return setting


def start_local(
    *,
    n_workers: int | None = None,
    threads_per_worker: int = 1,
    memory_limit: int | None = None,
    local_directory: str | None = None,
) -> LocalCluster:
    """Worker processes of this machine, which end with it; to be closed by the caller.

    Parameters
    ----------
    n_workers
        How many; by default as many as there are cores for their threads.
    threads_per_worker
        Threads of each.
    memory_limit
        Bytes of each; an equal share of this machine's, or this container's, by default.
    local_directory
        Where they spill to; Dask's own choice by default.

    Raises
    ------
    ClusterError
        If they could not be started.
    """
    limit = {} if memory_limit is None else {"memory_limit": memory_limit}
    try:
        with one_thread_each():
            return LocalCluster(
                n_workers=n_workers,
                processes=True,
                threads_per_worker=threads_per_worker,
                local_directory=local_directory,
                dashboard_address="127.0.0.1:0",  # None means port 8787, and a warning if taken
                scheduler_kwargs={"dashboard": False},
                preload=[_QUIET],
                **limit,
            )
    except (RuntimeError, OSError) as error:
        raise ClusterError(
            f"worker processes could not be started on this machine: {error}. In a script, call it "
            f"under `if __name__ == '__main__':`, because each worker imports the script."
        ) from error


def connected(address: str, *, security: Security | None = None) -> Client:
    """A client of the scheduler at `address`; to be closed by the caller.

    Parameters
    ----------
    address
        Such as ``tcp://host:8786`` or ``tls://host:8786``. Over ``tls://`` the scheduler has to
        show a certificate of the right authority, and is shown one.
    security
        The certificates; those of Dask's own configuration by default.

    Raises
    ------
    InputError
        If it is no address, or there are no certificates that can be used for it.
    ClusterError
        If no scheduler answers there within `CONNECT_SECONDS`, or not one to be trusted.
    """
    security = _configured() if security is None else security
    try:
        arguments = security.get_connection_args("client")
    except OSError as error:
        raise InputError(f"the TLS files for {address} cannot be used: {error}.") from error
    if address.startswith("tls://") and arguments["ssl_context"] is None:
        raise InputError(
            f"{address} needs certificates, and there are none: give tls with ca_file, cert and "
            f"key to a job's cluster, or set {', '.join(_TLS_SETTINGS.values())} of Dask (see its "
            f"documentation of TLS)."
        )
    _knock(address, arguments)
    try:
        return Client(address, security=security, timeout=CONNECT_SECONDS, set_as_default=False)
    except OSError as error:
        raise _unreachable(address, error) from error


def require_pem(path: str, name: str) -> None:
    """Raise InputError unless `path`, given as `name`, is a file that TLS can use.

    A key behind a passphrase is refused, too: nobody is there to type it.
    """
    try:
        text = Path(path).read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise InputError(f"{name}: {path} cannot be read: {error.strerror}.") from error
    if "-----BEGIN " not in text:
        raise InputError(f"{name}: {path} is no PEM file; expected '-----BEGIN ...' in it.")
    if "ENCRYPTED" in text:
        raise InputError(
            f"{name}: {path} is behind a passphrase, which nobody is there to type; give a key "
            f"without one that only its owner can read."
        )


def _configured() -> Security:
    """The certificates that Dask's configuration names, if any."""
    security = Security()
    files = security.get_tls_config_for_role("client")
    for key, name in _TLS_SETTINGS.items():
        path = files[key]
        if path is not None and "\n" not in path:
            require_pem(path, name)
    return security


def _knock(address: str, arguments: dict[str, Any]) -> None:
    """Raise unless a scheduler opens at `address`: a client that fails takes long to give up.

    In a thread of its own, as this one may have a loop already.
    """
    try:
        get_address_host_port(address, strict=True)
    except ValueError as error:
        raise InputError(f"scheduler={address!r} is not an address: {error}.") from error

    async def attempt() -> InputError | ClusterError | None:
        try:
            comm = await connect(address, timeout=CONNECT_SECONDS, **arguments)
        except RuntimeError as error:
            return InputError(f"{address} is refused: {error}. Use tls://.")
        except (OSError, ValueError) as error:  # ValueError: a stream that is busy with plain bytes
            return _unreachable(address, error)
        await comm.close()
        return None

    def knock() -> InputError | ClusterError | None:
        loop = IOLoop(make_current=False)
        try:
            problem: InputError | ClusterError | None = loop.run_sync(attempt)
            return problem
        finally:
            loop.close(all_fds=True)  # `connect` may leave some open

    with ThreadPoolExecutor(1) as pool:
        problem = pool.submit(knock).result()
    if problem is not None:
        raise problem


def _unreachable(address: str, error: Exception) -> ClusterError:
    cause = error.__cause__ or error
    said = " ".join(str(cause).rpartition(">: ")[2].split()).rstrip(".")
    if isinstance(cause, ssl.SSLCertVerificationError):
        return ClusterError(
            f"the scheduler at {address} is not trusted: its certificate was not signed by the "
            f"authority that was given ({said})."
        )
    if isinstance(cause, ValueError) or "WRONG_VERSION_NUMBER" in said:
        return ClusterError(
            f"the scheduler at {address} does not speak TLS ({said}), so it is refused; start it "
            f"with its certificates."
        )
    if address.startswith("tls://") and isinstance(error, CommClosedError):
        return ClusterError(
            f"the scheduler at {address} ended the TLS connection, as it does when another "
            f"authority than its own signed this client's certificate ({said})."
        )
    hint = "" if address.startswith("tls://") else " A scheduler with TLS wants tls:// instead."
    return ClusterError(f"no Dask scheduler answers at {address}: {said}.{hint}")
