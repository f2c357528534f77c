import gc

import pytest
from zarr.core.sync import sync


@pytest.fixture(scope="module")
def bucket():
    """URL of a bucket on a server of this machine, reachable through the environment alone."""
    moto_server = pytest.importorskip("moto.server", reason="needs moto[server]: an S3 server")
    s3fs = pytest.importorskip("s3fs", reason="needs s3fs, the extra [s3]")
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem().mkdir("bigkd")
        yield "s3://bigkd"
        s3fs.S3FileSystem().rm("bigkd", recursive=True)  # servers of one process share their data
        _close_sessions(s3fs)
    server.stop()


def _close_sessions(s3fs):
    """Close what zarr's file systems leave open for the life of the process."""
    aiohttp = pytest.importorskip("aiohttp")
    s3fs.S3FileSystem.clear_instance_cache()
    for found in gc.get_objects():
        if isinstance(found, aiohttp.ClientSession) and not found.closed:
            sync(found.close())
