"""MMD-PCA on worker processes: the same bits, whoever dies in the middle."""

import os
import signal

import numpy as np
import pytest
import zarr

from bigkd import mmdpca
from tests.cluster.conftest import started
from tests.cluster.harm import Strike, send

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

ROWS = {"gram": (60, 40_000), "pairs": (1500, 30), "nystrom": (6000, 40)}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Rows of each shape, in Zarr; of the long ones, chunked along their features."""
    folder, generator = tmp_path_factory.mktemp("rows"), np.random.default_rng(0)
    for method, (n, width) in ROWS.items():
        x = generator.standard_normal((n, 8)) @ generator.standard_normal((8, width))
        x = (x + generator.standard_normal((n, width))).astype("f4")
        chunks = (n, 2000) if method == "gram" else (100, width)
        zarr.create_array(str(folder / f"{method}.zarr"), data=x, chunks=chunks)
    return folder


def found(stores, method, **options):
    path = str(stores / f"{method}.zarr")
    return mmdpca.fit(path, k=4, method=method, n_landmarks=100, block_rows=100, **options)


@pytest.fixture(scope="module")
def truths(stores):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bigkd.engine.stripes.STRIPE_WORK", 1)
        return {method: found(stores, method, scheduler="sync") for method in ROWS}


@pytest.mark.parametrize("method", ROWS)
def test_worker_killed_in_fit__changes_no_bit(method, stores, truths, tmp_path):
    with started() as client:
        victim = next(iter(client.run(os.getpid).values()))
        strike = Strike(lambda: send([victim], signal.SIGKILL), share=0.4)
        result = found(
            stores, method, scheduler=client, progress=strike, stall_seconds=200,
            checkpoint=tmp_path,
        )  # fmt: skip
        assert victim not in client.run(os.getpid).values()
    assert strike.struck
    assert result.identical(truths[method])


@pytest.mark.parametrize("chunks", [(60, 2000), (4, 40_000)])
def test_projections__are_the_same_on_a_cluster(chunks, stores, truths, two_workers, tmp_path):
    x = zarr.open_array(str(stores / "gram.zarr"), mode="r")[...]
    path = str(tmp_path / "x.zarr")
    zarr.create_array(path, data=x, chunks=chunks)
    here = mmdpca.mmd_to_projection(path, truths["gram"], scheduler="sync")
    assert mmdpca.mmd_to_projection(path, truths["gram"], scheduler=two_workers).identical(here)
    assert float(here["mmd2"]) == pytest.approx(float(truths["gram"]["mmd2"]), rel=1e-5)
