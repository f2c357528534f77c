"""SLURM for real, on this machine alone."""

import os
import secrets
import signal
import socket
import subprocess
from contextlib import ExitStack, contextmanager

import pytest

from tests.cluster.harm import send, wait_for
from tests.cluster.processes import free_ports
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
MessageTimeout=60
BatchStartTimeout=60
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
    ports = free_ports(2)
    (folder / "slurm.conf").write_text(
        _CONFIGURATION.format(folder=folder, host=host, ports=ports, cores=CORES)
    )
    munge = [f"--{name}-file={folder}/munge/{name}" for name in ("key", "pid", "log", "seed")]
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        for name, options, is_ready in (
            (
                "munged",
                ["--foreground", "--force", f"--socket={folder}/munge/socket", *munge],
                (folder / "munge" / "socket").exists,
            ),
            ("slurmctld", ["-D", "-c"], lambda: "is UP" in slurm("scontrol", "ping")),
            ("slurmd", ["-D", "-N", host], lambda: "idle" in slurm("sinfo", "-h", "-o", "%T")),
        ):
            stack.enter_context(_daemon(folder / "logs" / name, tools[name], *options))
            _until(is_ready, folder)
        try:
            yield folder
        finally:
            if slurm("squeue", "--noheader"):
                slurm("scancel", f"--user={os.getuid()}")
                _until(lambda: not slurm("squeue", "--noheader"), folder)


def slurm(command, *options):
    """What a command of SLURM prints; nothing if it fails."""
    done = subprocess.run(
        [require_tool(command), *options], capture_output=True, text=True, check=False, timeout=90
    )
    return done.stdout.strip()


def wait_until_empty():
    """Return when SLURM's queue is empty."""
    wait_for(lambda: not slurm("squeue", "--noheader"))


def _until(is_ready, folder):
    try:
        wait_for(is_ready)
    except TimeoutError as error:
        logs = [path.read_text()[-2000:] for path in (folder / "logs").iterdir()]
        raise TimeoutError("SLURM is not ready:\n" + "\n".join(logs)) from error


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
