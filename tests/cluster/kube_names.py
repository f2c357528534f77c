"""What pods have of a network of their own, in processes that share that of this machine.

Names of services are found, and who listens on every address listens on that of its pod only.
Ports with a number of their own are shifted: others of this machine may have theirs.
"""

import json
import os
import socket
from pathlib import Path

EVERY = {None, "", "0.0.0.0", "::"}
FIXED = range(1, 10_000)
SHIFT = 12_000


def install(names, pod):
    """Let this process find what `names` says, a file, and listen on the address `pod`, if any."""
    found = socket.getaddrinfo

    def getaddrinfo(host, port, family=0, type=0, proto=0, flags=0):
        there = None
        if pod is not None and host in EVERY and flags & socket.AI_PASSIVE:
            there, family = pod, socket.AF_INET
        elif isinstance(host, str) and "." in host:
            there = json.loads(Path(names).read_text()).get(host)
        if there is None:
            return found(host, port, family, type, proto, flags)
        return found(there, shifted(port), family, type, proto, flags)

    socket.getaddrinfo = getaddrinfo


def shifted(port):
    """The port of a pod that has the number `port` in it."""
    return port + SHIFT if port in FIXED else port


def environment(folder, names, pod=None):
    """Environment of a process that begins with `install`."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(
        "import os\n"
        "from tests.cluster.kube_names import install\n"
        "install(os.environ['KUBE_NAMES'], os.environ.get('KUBE_POD'))\n"
    )
    root = Path(__file__).parents[2]
    found = {"PYTHONPATH": os.pathsep.join((str(folder), str(root))), "KUBE_NAMES": str(names)}
    return found if pod is None else {**found, "KUBE_POD": pod}
