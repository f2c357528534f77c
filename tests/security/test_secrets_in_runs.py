"""A whole job on an object store: its credentials are in nothing that it leaves or says."""

import gc

import numpy as np
import pytest
import zarr
from click.testing import CliRunner
from zarr.core.sync import sync

from bigkd.cli import commands

moto_server = pytest.importorskip("moto.server", reason="needs moto[server]: an S3 server to test")
s3fs = pytest.importorskip("s3fs", reason="needs s3fs, the extra [s3]")
aiohttp = pytest.importorskip("aiohttp")
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::DeprecationWarning:botocore",
)

SECRETS = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "AWS_SESSION_TOKEN": "IQoJb3JpZ2luX2VjEXAMPLESESSIONTOKEN",
}

JOB = """\
data: {tonight: s3://nights/tonight.zarr, reference: s3://nights/reference.zarr}
comparisons:
  drift:
    distance: {x: tonight, y: reference, kernel: {name: gaussian, sigma: 1.0}}
output: {store: nightly, history: s3://nights/history.zarr, report: nightly.html}
run: {scheduler: sync, checkpoint: s3://nights/kept, progress_log: progress.jsonl}
"""


@pytest.fixture
def endpoint(monkeypatch, tmp_path):
    """An S3 server, and credentials for it in the environment."""
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    monkeypatch.chdir(tmp_path)
    host, port = server.get_host_and_port()
    for name, value in {
        **SECRETS,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    s3fs.S3FileSystem.clear_instance_cache()
    s3fs.S3FileSystem().mkdir("nights")
    yield monkeypatch
    s3fs.S3FileSystem.clear_instance_cache()
    for found in gc.get_objects():
        if isinstance(found, aiohttp.ClientSession) and not found.closed:
            sync(found.close())
    server.stop()


def write(name, number):
    rows = np.random.default_rng(number).normal(size=(number, 3))
    zarr.create_array(f"s3://nights/{name}.zarr", shape=rows.shape, chunks=(10, 3), dtype="f4")[
        :
    ] = rows


def run(folder, code):
    found = CliRunner().invoke(commands, ["--debug", "run", "job.yaml"])
    assert found.exit_code == code, found.output
    contents = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    fs = s3fs.S3FileSystem(skip_instance_cache=True)
    contents |= {path: fs.cat_file(path) for path in fs.find("nights")}
    contents["output"] = found.output.encode()
    for value in SECRETS.values():
        assert not [path for path, content in contents.items() if value.encode() in content]
    return found.output


def test_credentials__are_in_nothing_that_a_run_leaves_or_says(endpoint, tmp_path):
    write("tonight", 40)
    write("reference", 30)
    (tmp_path / "job.yaml").write_text(JOB)
    run(tmp_path, 0)
    s3fs.S3FileSystem(skip_instance_cache=True).rm("nights/tonight.zarr/c/1/0")
    assert "do not exist" in run(tmp_path, 4)
    quoted = JOB.replace("s3://nights/tonight", "s3://other-bucket/tonight")
    (tmp_path / "job.yaml").write_text(quoted)
    run(tmp_path, 4)
    with_user = "http://" + ":".join(list(SECRETS.values())[:2]) + "@127.0.0.1:1"
    endpoint.setenv("AWS_ENDPOINT_URL", with_user)
    s3fs.S3FileSystem.clear_instance_cache()
    found = CliRunner().invoke(commands, ["--debug", "run", "job.yaml"])
    assert found.exit_code in (2, 4), found.output
    assert not any(value in found.output for value in SECRETS.values())
