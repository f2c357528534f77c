"""DID on worker processes: the same bits, whoever dies in the middle."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr

from bigkd.engine import tiles
from bigkd.errors import InputError
from bigkd.io import load_dataset, open_tiled
from tests.cluster.conftest import started
from tests.cluster.did_client import SOME, as_zarr, digits, matrix, nearest
from tests.cluster.harm import Strike, send, wait_until_gone
from tests.engine.peak import resident

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(tiles, "TILE_WORK", 30_000_000)


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    """Path of 10,000 digits."""
    return as_zarr(digits(10_000), tmp_path_factory.mktemp("digits") / "digits.zarr")


@pytest.fixture(scope="module")
def truths(collection, tmp_path_factory):
    """The answers of one thread."""
    folder = tmp_path_factory.mktemp("truth")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles, "TILE_WORK", 30_000_000)
        patch.setattr("bigkd.engine.stripes.STRIPE_WORK", 1)
        pairs = matrix(collection, folder, scheduler="sync", output=None, checkpoint=None)
        return nearest(collection, folder, scheduler="sync"), pairs


def assert_same_bits(found, truth):
    xr.testing.assert_identical(found.load(), truth)
    for name in found.data_vars:
        assert found[name].values.tobytes() == truth[name].values.tobytes()


def test_did__has_the_same_bits_on_any_number_of_workers(collection, truths, tmp_path):
    for n_workers, threads in ((1, 1), (2, 1), (1, 3)):
        with started(n_workers=n_workers, threads_per_worker=threads) as client:
            folder = tmp_path / f"{n_workers}-{threads}"
            assert_same_bits(nearest(collection, folder, scheduler=client), truths[0])
            assert_same_bits(matrix(collection, folder, scheduler=client), truths[1])


def test_matrix__needs_a_place_that_other_machines_reach(collection, tmp_path):
    with started() as client:
        address = client.scheduler_info()["address"]
        with pytest.raises(InputError, match="pass checkpoint=FOLDER"):
            matrix(collection, tmp_path, scheduler=address, output=None, checkpoint=None)
        matrix(collection, tmp_path, scheduler=address, checkpoint=None)
    assert [path.name for path in tmp_path.iterdir()] == ["matrix.zarr"]


@pytest.mark.parametrize("share", [0.2, 0.7])
def test_worker_killed_in_nearest__changes_no_bit(share, collection, truths, tmp_path):
    with started() as client:
        victim = next(iter(client.run(os.getpid).values()))
        strike = Strike(lambda: send([victim], signal.SIGKILL), share=share)
        found = nearest(collection, tmp_path, scheduler=client, progress=strike, stall_seconds=200)
        assert victim not in client.run(os.getpid).values()
    assert strike.struck
    assert_same_bits(found, truths[0])


@pytest.mark.parametrize("label", ["mapping collection", "comparing pairs"])
def test_worker_killed_in_matrix__changes_no_bit(label, collection, truths, tmp_path):
    with started() as client:
        victim = next(iter(client.run(os.getpid).values()))
        strike = Strike(lambda: send([victim], signal.SIGKILL), share=0.4)

        def watch(event):
            if event.label == label:
                strike(event)

        found = matrix(collection, tmp_path, scheduler=client, progress=watch, stall_seconds=200)
        assert victim not in client.run(os.getpid).values()
    assert strike.struck
    assert_same_bits(found, truths[1])


def job(folder, deadly):
    return subprocess.run(
        [sys.executable, "-m", "tests.cluster.did_client", str(folder), deadly],
        cwd=ROOT, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip


def status(paths):
    return {path: path.stat().st_mtime_ns for path in paths}


def assert_gone(folder):
    """No worker outlives its client."""
    wait_until_gone(json.loads((folder / "children").read_text()))


def test_client_killed__goes_on_to_the_same_bits(collection, truths, tmp_path):
    (tmp_path / "digits.zarr").symlink_to(collection)
    died = job(tmp_path, "searching collection")
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert_gone(tmp_path)
    kept = status((tmp_path / "nearest").glob("*/*.zarr"))
    assert kept

    died = job(tmp_path, "comparing pairs")
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert_gone(tmp_path)
    assert status(kept) == kept
    assert_same_bits(load_dataset(tmp_path / "nearest.zarr", kind="nearest"), truths[0])
    assert not (tmp_path / "matrix.zarr").exists()
    partial = tmp_path / ".matrix.zarr.partial"
    marks = (partial / "tiles_done" / "c").rglob("[0-9]*")
    whole = [path for path in marks if path.is_file() and path.name.isdigit()]
    finished = status(whole)
    maps = status(path for path in (tmp_path / "maps").rglob("c/*/0") if path.is_file())
    assert len(finished) > 3
    assert maps

    resumed = job(tmp_path, "nothing")
    assert resumed.returncode == 0, resumed.stderr
    found = open_tiled(tmp_path / "matrix.zarr", kind="dissimilarities")
    assert found.sizes["reference"] == SOME
    assert_same_bits(found, truths[1])
    again = [
        tmp_path / "matrix.zarr" / "dissimilarity" / path.relative_to(partial / "tiles_done").parent
        for path in finished
    ]
    last = max(finished.values())
    assert all(path.stat().st_mtime_ns <= last for path in again)
    assert not list((tmp_path / "maps").iterdir())
    assert not partial.exists()


@pytest.mark.slow
def test_workers__need_no_more_for_ten_times_the_pictures(tmp_path):
    peaks = []
    for n in (2_000, 20_000):
        path = as_zarr(digits(n), tmp_path / f"{n}.zarr")
        with started() as client:
            nearest(path, tmp_path / str(n), scheduler=client)
            peaks.append(max(client.run(resident, "VmHWM").values()))
    assert peaks[1] <= 1.05 * peaks[0]
