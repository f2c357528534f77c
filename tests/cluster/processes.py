"""Schedulers and workers as processes of their own, with certificates made for the test."""

import datetime
import json
import os
import random
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.cluster.harm import send, wait_for


def certificates(folder):
    """A certificate authority of its own, and one certificate that it signed: `tls` of a job."""
    folder.mkdir()
    authority = ec.generate_private_key(ec.SECP256R1())
    _certificate(folder / "ca.pem", folder.name, authority, folder.name, authority)
    node = ec.generate_private_key(ec.SECP256R1())
    _certificate(folder / "cert.pem", "node", node, folder.name, authority)
    (folder / "key.pem").write_bytes(
        node.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return {
        "ca_file": str(folder / "ca.pem"),
        "cert": str(folder / "cert.pem"),
        "key": str(folder / "key.pem"),
    }


def _certificate(path, subject, key, issuer, issuer_key):
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=key is issuer_key, path_length=None), critical=True)
        .sign(issuer_key, hashes.SHA256())
    )
    path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))


def tls_flags(tls):
    return [f"--tls-{name.replace('_', '-')}={path}" for name, path in tls.items()]


@contextmanager
def scheduler(folder, *, tls=None):
    """Address of a scheduler, over TLS with `tls`, which is gone afterwards."""
    told = folder / "scheduler.json"
    options = [] if tls is None else ["--protocol=tls", *tls_flags(tls)]
    command = ["--host=127.0.0.1", "--port=0", "--no-dashboard", f"--scheduler-file={told}"]
    with _process(folder, "scheduler", "distributed.cli.dask_scheduler", *command, *options):
        yield told_address(told)


@contextmanager
def worker(folder, address, *, tls=None, name="worker", module="distributed.cli.dask_worker"):
    """A worker of the scheduler at `address`."""
    options = [] if tls is None else tls_flags(tls)
    command = [address, "--nthreads=1", "--no-dashboard", f"--local-directory={folder}"]
    with _process(folder, name, module, *command, *options) as process:
        yield process


def told_address(path):
    """The address in a scheduler's file, once that is there and whole."""
    found = []

    def is_whole():
        with suppress(FileNotFoundError, json.JSONDecodeError):
            found.append(json.loads(path.read_text())["address"])
        return found

    wait_for(is_whole)
    return found[0]


def free_ports(number):
    """Ports that nobody listens on, of those that the system gives to nobody by itself."""
    with ExitStack() as stack:
        found = []
        while len(found) < number:
            each = stack.enter_context(socket.socket())
            with suppress(OSError):
                each.bind(("127.0.0.1", random.SystemRandom().randrange(10_000, 32_000)))
                found.append(each.getsockname()[1])
        return found


@contextmanager
def _process(folder, name, module, *options):
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *options],
            stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
        )  # fmt: skip
    try:
        yield process
    finally:
        send([process.pid], signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)
