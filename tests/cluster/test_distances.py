"""Kernel distances on worker processes over TCP: the same bits as in this one."""

import dask.array as da
import numpy as np
import pytest
import zarr

from bigkd import distance
from bigkd.kernels import Gaussian
from tests.cluster.test_happy import assert_identical

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(900, 3)), RNG.normal(size=(700, 3)) + 0.3
WEIGHTS = RNG.uniform(size=900)


def found(x, scheduler, method, **options):
    return distance.kernel_distance(
        x, Y, kernel=Gaussian(1.0), method=method, n_frequencies=100, coreset_size=80,
        block_rows=50, scheduler=scheduler, **options,
    )  # fmt: skip


@pytest.mark.parametrize("method", ["exact", "nufft", "rff", "coreset"])
@pytest.mark.parametrize("kind", ["numpy", "dask", "zarr"])
def test_distances__have_the_same_bits_on_a_cluster(kind, method, two_workers, tmp_path):
    x, weights = X, WEIGHTS
    if kind == "dask":
        x, weights = da.from_array(X, chunks=(50, 3)), da.from_array(WEIGHTS, chunks=70)
    if kind == "zarr":
        x = str(tmp_path / "x.zarr")
        zarr.create_array(x, data=X, chunks=(50, 3))
    here = found(x, "sync", method, x_weights=weights)
    assert_identical(found(x, two_workers, method, x_weights=weights), here)


@pytest.mark.parametrize("method", ["exact", "rff"])
def test_distances__resume_on_a_cluster_what_was_begun_here(method, two_workers, tmp_path):
    here = found(X, "sync", method, checkpoint=tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir())
    assert_identical(found(X, two_workers, method, checkpoint=tmp_path / "kept"), here)


def test_p_values__have_the_same_bits_on_a_cluster(two_workers):
    options = {"kernel": Gaussian(1.0), "method": "features", "block_rows": 50}
    here = distance.two_sample_test(X, Y, scheduler="sync", **options)
    assert_identical(distance.two_sample_test(X, Y, scheduler=two_workers, **options), here)


def test_matrix__has_the_same_bits_on_a_cluster(two_workers):
    sets = {"x": X, "y": Y, "z": X[:300] * 2}
    here = distance.matrix(sets, kernel=Gaussian(1.0), scheduler="sync")
    assert_identical(distance.matrix(sets, kernel=Gaussian(1.0), scheduler=two_workers), here)
