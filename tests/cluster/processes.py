"""Schedulers and workers as processes of their own, with certificates made for the test."""

import datetime
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.cluster.harm import send


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
        yield json.loads(appeared(told))["address"]


@contextmanager
def worker(folder, address, *, tls=None, name="worker", module="distributed.cli.dask_worker"):
    """A worker of the scheduler at `address`."""
    options = [] if tls is None else tls_flags(tls)
    command = [address, "--nthreads=1", "--no-dashboard", f"--local-directory={folder}"]
    with _process(folder, name, module, *command, *options) as process:
        yield process


def appeared(path, seconds=60):
    """The text of a file once it is there and has some."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if path.exists() and (text := path.read_text()):
            return text
        time.sleep(0.05)
    raise TimeoutError(f"{path} did not appear; there are {list(path.parent.iterdir())}")


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
