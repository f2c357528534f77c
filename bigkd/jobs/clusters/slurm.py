"""Workers in jobs of SLURM.

What a job file says ends up in a batch script, which a shell reads. So every field has a pattern
that leaves no room for a second command, directives are chosen from a list, and there is no field
for lines of the script: what a site needs there (``module load``) stands in Dask's own
configuration on the machine, which no job file reaches.
"""

import logging
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Annotated, Any, Literal, Self, TypeAlias
from uuid import uuid4

from dask import config
from distributed import Client
from pydantic import AfterValidator, Field, model_validator

from bigkd.engine.connections import ONE_THREAD
from bigkd.errors import ClusterError
from bigkd.io.optional import require
from bigkd.jobs.base import Bytes, Location, Positive, Whole
from bigkd.jobs.clusters.base import (
    DEATH_TIMEOUT,
    AdaptivePart,
    StartedPart,
    TlsPart,
    in_bytes,
    per_thread,
)

COMMAND_SECONDS = 60
"""How long a command of SLURM may take."""

LOOK_SECONDS = 15.0
"""How often SLURM is asked which jobs are alive."""

logger = logging.getLogger(__name__)

_SETTINGS = "jobqueue.slurm"  # of Dask's configuration

DIRECTIVES = (
    "begin", "cluster-constraint", "clusters", "comment", "constraint", "contiguous", "exclude",
    "exclusive", "extra-node-info", "gpus", "gpus-per-node", "gres", "hint", "licenses",
    "mail-type", "mail-user", "mem-per-cpu", "nice", "no-requeue", "nodelist", "oversubscribe",
    "prefer", "qos", "requeue", "reservation", "signal", "switches", "threads-per-core", "time-min",
    "tmp", "wckey",
)  # fmt: skip
"""Options of sbatch that a job file may set; none of them names a program or a variable."""

_DIRECTIVE = re.compile(rf"--({'|'.join(DIRECTIVES)})(=[\w.,:@+%/*|&\[\]=-]+)?", re.ASCII)
_PLAIN_PATH = re.compile(r"[\w./@+=:,-]+", re.ASCII)


def _plain(value: str) -> str:
    """A path that a batch script can hold as it is."""
    if not _PLAIN_PATH.fullmatch(value):
        raise ValueError(
            f"stands in a batch script, so it may hold letters, digits and any of _ . / @ + = : , "
            f"- only, with the folder of the job file in front; got {value!r}"
        )
    return value


def _directive(value: str) -> str:
    if not _DIRECTIVE.fullmatch(value):
        raise ValueError(
            f"must be --NAME or --NAME=VALUE, without spaces and quotes, where NAME is one of "
            f"{', '.join(DIRECTIVES)}; got {value!r}"
        )
    return value


Word: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.,-]*$")]
"""A name that SLURM knows."""

PlainPath: TypeAlias = Annotated[Location, AfterValidator(_plain)]
Directive: TypeAlias = Annotated[str, AfterValidator(_directive)]
Walltime: TypeAlias = Annotated[
    str, Field(pattern=r"^([0-9]+|[0-9]+:[0-9]{2}|([0-9]+-)?[0-9]+:[0-9]{2}:[0-9]{2})$")
]


class PlainTlsPart(TlsPart):
    """Certificates on a disk that all nodes see."""

    ca_file: PlainPath = Field(description="certificate of the authority that signed the others")
    cert: PlainPath = Field(description="certificate of both sides")
    key: PlainPath = Field(description="key of that certificate, without a passphrase")


class SlurmPart(StartedPart):
    """Workers in jobs of SLURM, through dask-jobqueue; the scheduler runs where bigkd runs."""

    kind: Literal["slurm"]
    cores: Whole = Field(description="cores of each job")
    memory: Bytes = Field(description="memory of each job")
    processes: Whole | None = Field(
        default=None, description="workers in each job; one a core by default"
    )
    n_jobs: Whole | None = Field(default=None, description="how many jobs; one by default")
    adaptive: AdaptivePart | None = Field(
        default=None, description="in place of n_jobs: fewest and most jobs, as there is work"
    )
    partition: Word | None = Field(default=None, description="partition, as sbatch -p")
    account: Word | None = Field(default=None, description="account, as sbatch -A")
    walltime: Walltime | None = Field(
        default=None, description="longest time of a job, such as 02:00:00; others take its place"
    )
    directives: list[Directive] = Field(
        default=[], description="further options of sbatch, such as --constraint=skylake"
    )
    interface: Word | None = Field(
        default=None, description="network between nodes, such as ib0; the default route's else"
    )
    local_directory: PlainPath | None = Field(
        default=None, description="disk of a node to spill to; its TMPDIR by default"
    )
    log_directory: PlainPath | None = Field(
        default=None, description="folder for the jobs' logs, seen by all nodes"
    )
    tls: PlainTlsPart | None = Field(
        default=None,
        description="certificates; without, whoever reaches the port may run code",
    )
    wait_seconds: Positive = Field(
        default=3600.0, description="how long the first worker may wait in the queue"
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.adaptive is not None and self.n_jobs is not None:
            raise ValueError("has n_jobs beside adaptive; leave one out")
        if self.cores % self._processes:
            raise ValueError(
                f"shares {self.cores} cores among {self._processes} processes, which does not go; "
                f"expected a divisor"
            )
        return self

    @contextmanager
    def started(self) -> Iterator[Client]:
        """A client of a scheduler here and workers in jobs, which are cancelled afterwards."""
        name = f"bigkd-{uuid4().hex[:12]}"
        cluster = self._cluster(name)
        try:
            _rehearse(cluster.job_script())
            if self.adaptive is None:
                cluster.scale(jobs=self.n_jobs or 1)
            else:
                least, most = self.adaptive.minimum, self.adaptive.maximum
                cluster.adapt(minimum_jobs=least, maximum_jobs=most)
            with Client(cluster, set_as_default=False) as client, _kept_up(cluster, name):
                try:
                    yield client
                except ClusterError as error:
                    error.add_note(queued(name))
                    raise
        finally:
            with _cancelled(name):
                cluster.close()

    def options(self) -> dict[str, Any]:
        """Keywords of `dask_jobqueue.SLURMCluster`; None is left to Dask's configuration."""
        return {
            "queue": self.partition,
            "account": self.account,
            "walltime": self.walltime,
            "cores": self.cores,
            "memory": f"{in_bytes(self.memory)} B",
            "processes": self._processes,
            "interface": self.interface,
            "local_directory": self.local_directory,
            "log_directory": self.log_directory,
            "job_extra_directives": [
                *config.get(f"{_SETTINGS}.job-extra-directives", []),
                *self.directives,
            ],
            "job_script_prologue": [
                *config.get(f"{_SETTINGS}.job-script-prologue", []),
                *(f"export {name}={value}" for name, value in ONE_THREAD.items()),
            ],
            "python": shlex.quote(sys.executable),
            "death_timeout": DEATH_TIMEOUT,
            "scheduler_options": {
                **config.get(f"{_SETTINGS}.scheduler-options", {}),
                "dashboard": False,
                "dashboard_address": "127.0.0.1:0",
            },
            "security": None if self.tls is None else self.tls.security(),
        }

    def require_usable(self) -> None:
        """Raise if dask-jobqueue or SLURM's commands are not there, or a certificate is not."""
        _dask_jobqueue()
        for tool in ("sbatch", "scancel", "squeue"):
            if shutil.which(tool) is None:
                raise ClusterError(
                    f"cluster.kind is slurm, but the command {tool} is not here; start bigkd on a "
                    f"machine from which jobs are submitted."
                )
        if self.tls is not None:
            self.tls.require_usable()

    def memory_per_thread(self) -> int:
        """Bytes that one task may use."""
        threads = self.cores // self._processes
        return per_thread(in_bytes(self.memory) // self._processes, threads=threads)

    def whereabouts(self) -> str:
        """What to look at when no worker comes."""
        where = "" if self.log_directory is None else f", and at the logs in {self.log_directory}"
        return f"Look at squeue{where}."

    def _cluster(self, name: str) -> Any:
        """A scheduler in this process, without workers yet."""
        make = _dask_jobqueue().SLURMCluster
        try:
            return make(job_name=name, **self.options())
        except (OSError, RuntimeError, ValueError) as error:
            raise ClusterError(f"the slurm cluster could not be started: {error}.") from error

    @property
    def _processes(self) -> int:
        return self.processes or self.cores


def queued(name: str) -> str:
    """What SLURM says about the jobs called `name`."""
    told = _told(["squeue", "--noheader", "--format=%i %T %r", f"--name={name}"])
    if told is None:
        return "SLURM itself does not answer to squeue."
    jobs = "; ".join(line.strip() for line in told.splitlines())
    return f"SLURM says about the jobs {name} (number, state, reason): {jobs or 'there are none'}."


def _dask_jobqueue() -> Any:
    before = signal.getsignal(signal.SIGINT)
    try:
        return require("dask_jobqueue", extra="slurm")
    finally:  # it takes SIGINT when it is imported, so that Ctrl-C would end a job with code 0
        if signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)


def _rehearse(script: str) -> None:
    """Ask SLURM whether it would take `script`: what it refuses would only be seen as no worker."""
    try:
        done = subprocess.run(
            ["sbatch", "--test-only"], input=script,
            capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"sbatch did not answer within {COMMAND_SECONDS} s.") from error
    if done.returncode:
        raise ClusterError(
            f"SLURM refuses such jobs: {' '.join(done.stderr.split())}. Change cluster in the job "
            f"file, or ask who runs SLURM there."
        )


@contextmanager
def _kept_up(cluster: Any, name: str) -> Iterator[None]:
    """Submit jobs in place of those that ended, every `LOOK_SECONDS`; Dask itself does not."""
    over = Event()

    def keep_up() -> None:
        while not over.wait(LOOK_SECONDS):
            alive = _told(["squeue", "--noheader", "--format=%A", f"--name={name}"])
            if alive is not None and not over.is_set():
                cluster.sync(_replace_ended, cluster, set(alive.split()))

    keeper = Thread(target=keep_up, daemon=True, name=f"{name}-keeper")
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join(COMMAND_SECONDS)


async def _replace_ended(cluster: Any, alive: set[str]) -> None:
    """Submit the jobs of `cluster` again that have a number which is not in `alive`."""
    ended = [key for key, job in cluster.workers.items() if job.job_id not in {None, *alive}]
    for key in ended:
        logger.warning("SLURM's job %s ended; another takes its place", cluster.workers[key].job_id)
        del cluster.workers[key]
    if ended:
        cluster.scale(jobs=len(cluster.worker_spec))


@contextmanager
def _cancelled(name: str) -> Iterator[None]:
    """Cancel the jobs called `name` before and after the block, whatever happens in it.

    Also those that dask-jobqueue does not know of, because something ended it while it submitted.
    """
    _cancel(name)
    try:
        yield
    finally:
        _cancel(name)


def _cancel(name: str) -> None:
    command = ["scancel", "--quiet", f"--name={name}"]
    with suppress(subprocess.TimeoutExpired):  # own session: a second Ctrl-C does not reach it
        subprocess.Popen(command, start_new_session=True).wait(COMMAND_SECONDS)


def _told(command: Sequence[str]) -> str | None:
    """What a command prints, or None if it fails."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=COMMAND_SECONDS
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
