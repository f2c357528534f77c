"""Jobs on a cluster over TLS: the same bits with the right certificates, refused with others."""

import time
from contextlib import ExitStack

import dask
import numpy as np
import pytest
import xarray as xr
import yaml
from click.testing import CliRunner

from bigkd.cli import commands
from bigkd.io import load_dataset
from tests.cluster.harm import wait_for
from tests.cluster.processes import certificates, scheduler, worker

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

TLS_SETTINGS = {
    "distributed.comm.tls.ca-file": "ca_file",
    "distributed.comm.tls.client.cert": "cert",
    "distributed.comm.tls.client.key": "key",
}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A cluster with TLS, a scheduler without, and the certificates of two authorities."""
    folder = tmp_path_factory.mktemp("tls")
    ours, others = certificates(folder / "ours"), certificates(folder / "others")
    (folder / "plain").mkdir()
    with ExitStack() as stack:
        address = stack.enter_context(scheduler(folder, tls=ours))
        stack.enter_context(worker(folder, address, tls=ours))
        plain = stack.enter_context(scheduler(folder / "plain"))
        yield {"address": address, "plain": plain, "ours": ours, "others": others}


@pytest.fixture
def run(tmp_path):
    """Runs a job on `cluster`, and says how long that took."""
    generator = np.random.default_rng(0)
    for name, n in (("x", 400), ("y", 300)):
        np.save(tmp_path / f"{name}.npy", generator.normal(size=(n, 3)))

    def run(cluster, *options, store="found"):
        distance = {
            "x": {"path": "x.npy", "block_rows": 100},
            "y": {"path": "y.npy", "block_rows": 100},
            "kernel": {"name": "gaussian", "sigma": 1.0},
        }
        job = {"distance": distance, "output": {"store": f"{store}.zarr"}}
        if cluster is not None:
            job["cluster"] = cluster
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
        began = time.monotonic()
        done = CliRunner().invoke(commands, ["run", str(tmp_path / "job.yaml"), *options])
        assert time.monotonic() - began < 100
        return done

    return run


def assert_same_bits(folder, *stores):
    truth, *others = (load_dataset(folder / f"{name}.zarr", kind="distance") for name in stores)
    for found in others:
        xr.testing.assert_identical(found.load(), truth.load())


def test_job__has_the_same_bits_over_tls(places, run, tmp_path):
    cluster = {"kind": "address", "address": places["address"], "tls": places["ours"]}
    for place, options, store in (
        (None, ["--scheduler", "sync"], "here"),
        (cluster, [], "there"),
    ):
        done = run(place, *options, store=store)
        assert done.exit_code == 0, done.output
    with dask.config.set({name: places["ours"][key] for name, key in TLS_SETTINGS.items()}):
        assert run(None, "--scheduler", places["address"], store="override").exit_code == 0
        with dask.config.set({"scheduler-address": places["address"]}):
            assert run({"kind": "address"}, store="settings").exit_code == 0
    assert_same_bits(tmp_path, "here", "there", "override", "settings")


@pytest.mark.parametrize(
    ("scheme", "at", "files", "code", "told"),
    [
        ("tls", "address", {"ca_file": "others"}, 5, "is not trusted"),
        ("tls", "address", {"cert": "others", "key": "others"}, 5, "authority than its own signed"),
        ("tls", "plain", {}, 5, "does not speak TLS"),
        ("tls", "address", None, 2, "needs certificates, and there are none"),
        ("tcp", "address", None, 5, "wants tls:// instead"),
    ],
    ids=["scheduler-of-another-authority", "client-of-another", "plain", "without", "tcp"],
)
def test_scheduler_that_is_not_trusted__is_refused(scheme, at, files, code, told, places, run):
    address = f"{scheme}://{places[at].partition('://')[2]}"
    cluster = {"kind": "address", "address": address}
    if files is not None:
        whose = {"ca_file": "ours", "cert": "ours", "key": "ours", **files}
        cluster["tls"] = {name: places[owner][name] for name, owner in whose.items()}
    done = run(cluster)
    assert done.exit_code == code, done.output
    assert told in done.output
    if files is None:
        overridden = run(None, "--scheduler", address)
        assert overridden.exit_code == code
        assert told in overridden.output


def test_encryption_that_dask_requires__refuses_tcp(places, run):
    with dask.config.set({"distributed.comm.require-encryption": True}):
        done = run({"kind": "address", "address": places["plain"]})
    assert done.exit_code == 2
    assert "encryption required" in done.output
    assert "Use tls://" in done.output


def test_worker_of_another_authority__does_not_come_in(places, run, tmp_path):
    ours = places["ours"]
    with (
        scheduler(tmp_path, tls=ours) as address,
        worker(tmp_path, address, tls=places["others"], name="stranger"),
    ):
        wait_for(lambda: "TLS handshake failed" in (tmp_path / "scheduler.log").read_text())
        done = run({"kind": "address", "address": address, "tls": ours, "wait_seconds": 2.0})
        assert done.exit_code == 5
        assert "no worker came to the address cluster within 2 s" in done.output


@pytest.mark.parametrize("name", ["ca_file", "cert", "key"])
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read: No such file"),
        ("secret", "is no PEM file"),
        ("-----BEGIN ENCRYPTED PRIVATE KEY-----", "is behind a passphrase"),
    ],
)
def test_certificates_that_cannot_be_used__are_named(name, content, told, places, run, tmp_path):
    path = tmp_path / "file.pem"
    if content is not None:
        path.write_text(content)
    files = {**places["ours"], name: str(path)}
    done = run({"kind": "address", "address": places["address"], "tls": files})
    assert done.exit_code == 2
    assert f"cluster.tls.{name}: {path} {told}" in done.output
    assert "secret" not in done.output
    setting = next(setting for setting, key in TLS_SETTINGS.items() if key == name)
    with dask.config.set({of: files[key] for of, key in TLS_SETTINGS.items()}):
        done = run({"kind": "address", "address": places["address"]})
    assert done.exit_code == 2
    assert f"{setting}: {path} {told}" in done.output


def test_certificate_and_key_that_do_not_belong_together__are_told(places, run):
    files = {**places["ours"], "key": places["others"]["key"]}
    done = run({"kind": "address", "address": places["address"], "tls": files})
    assert done.exit_code == 2
    assert "cannot be used" in done.output
    assert "KEY_VALUES_MISMATCH" in done.output
