"""SLURM for real, on this machine alone."""

import os
import secrets
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager

import pytest

from tests.cluster.harm import send
from tests.conftest import require_tool

CORES = 8  # that SLURM believes in

_CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MinJobAge=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory=16000
PartitionName=test Nodes={host} Default=YES State=UP
"""


@contextmanager
def running_slurm(folder):
    """A controller, a node and munge in `folder`; afterwards all are gone, with their jobs."""
    tools = {name: require_tool(name) for name in ("munged", "slurmctld", "slurmd")}
    if os.getuid() != 0:
        pytest.skip("slurmd starts jobs as root only")
    for name in ("state", "spool", "munge", "logs"):
        (folder / name).mkdir(mode=0o755)
    (folder / "munge" / "key").write_bytes(secrets.token_bytes(1024))
    (folder / "munge" / "key").chmod(0o400)
    host = socket.gethostname().partition(".")[0]
    ports = _free_ports(2)
    (folder / "slurm.conf").write_text(
        _CONFIGURATION.format(folder=folder, host=host, ports=ports, cores=CORES)
    )
    munge = [f"--{name}-file={folder}/munge/{name}" for name in ("key", "pid", "log", "seed")]
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        for name, options in (
            ("munged", ["--foreground", "--force", f"--socket={folder}/munge/socket", *munge]),
            ("slurmctld", ["-D", "-c"]),
            ("slurmd", ["-D", "-N", host]),
        ):
            stack.enter_context(_daemon(folder / "logs" / name, tools[name], *options))
        _until(lambda: "idle" in slurm("sinfo", "--noheader", "--format=%T"), folder)
        try:
            yield folder
        finally:
            if slurm("squeue", "--noheader"):
                slurm("scancel", f"--user={os.getuid()}")
                _until(lambda: not slurm("squeue", "--noheader"), folder)


def slurm(command, *options):
    """What a command of SLURM prints; nothing if it fails."""
    done = subprocess.run(
        [require_tool(command), *options], capture_output=True, text=True, check=False, timeout=30
    )
    return done.stdout.strip()


def until_empty(seconds=20):
    """Whether SLURM's queue gets empty."""
    end = time.monotonic() + seconds
    while (found := slurm("squeue", "--noheader")) and time.monotonic() < end:
        time.sleep(0.1)
    return not found


def _until(ready, folder, seconds=30):
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            logs = [path.read_text()[-2000:] for path in (folder / "logs").iterdir()]
            raise TimeoutError("SLURM is not ready:\n" + "\n".join(logs))
        time.sleep(0.1)


def _free_ports(number):
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def _daemon(log, *command):
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
    try:
        yield
    finally:
        send([process.pid], signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            send([process.pid], signal.SIGKILL)
            process.wait(10)
