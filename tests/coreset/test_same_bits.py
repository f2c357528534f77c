import dask.array as da
import numpy as np
import pytest

from bigkd import coreset
from bigkd.kernels import Gaussian
from tests.cluster.conftest import started

WAYS = {
    "greedy": lambda rows, **run: coreset.thin(rows, 40, kernel=Gaussian(0.4), **run),
    "halving": lambda rows, **run: coreset.thin(
        rows, 40, kernel=Gaussian(0.4), selection="halving", reweight="equal", **run
    ),
    "sample": lambda rows, **run: coreset.sample(rows, 40, **run),
    "sorted": lambda rows, **run: coreset.sorted_1d(rows[:, :1], 20, **run),
}


@pytest.mark.usefixtures("small_stripes")
@pytest.mark.parametrize("way", WAYS)
def test_coresets__have_the_same_bits_on_threads_and_after_a_resume(clusters, tmp_path, way):
    rows, ask = clusters(3000, 4).astype("f4"), WAYS[way]
    first = ask(rows, block_rows=150, scheduler="sync")
    assert ask(rows, block_rows=150, scheduler="threads").identical(first)
    assert ask(da.from_array(rows, chunks=(150, 4)), scheduler="threads").identical(first)
    kept = tmp_path / "kept"
    assert ask(rows, block_rows=150, scheduler="sync", checkpoint=kept).identical(first)
    finished = sorted(kept.glob("*/*.zarr"))
    assert len(finished) > 1
    events = []
    again = ask(rows, block_rows=150, scheduler="sync", checkpoint=kept, progress=events.append)
    assert again.identical(first)
    assert events[-1].done == events[-1].total


@pytest.mark.cluster
@pytest.mark.timeout(400)
@pytest.mark.usefixtures("small_stripes")
def test_coresets__have_the_same_bits_on_workers(clusters):
    rows = clusters(3000, 4).astype("f4")
    with started() as client:
        for ask in WAYS.values():
            sync = ask(rows, block_rows=150, scheduler="sync")
            assert ask(rows, block_rows=150, scheduler=client).identical(sync)


def test_coresets__hardly_depend_on_blocks(clusters, mmd):
    rows = clusters(4096, 2)
    found = [
        mmd(rows, coreset.thin(rows, 64, kernel=Gaussian(0.1), block_rows=block), Gaussian(0.1))
        for block in (16, 256, 4096)
    ]
    assert max(found) < 1.5 * min(found)
    assert np.isfinite(found).all()
