import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bigkd.backends import to_host
from bigkd.errors import ShapeError
from bigkd.kernels import distances, squared_distances


def by_definition(x, y):
    return np.array([[math.dist(a, b) ** 2 for b in y.astype("f8")] for a in x.astype("f8")])


@given(
    x=hnp.arrays("f8", st.tuples(st.integers(1, 8), st.just(6)), elements=st.integers(-9, 9)),
    offset=st.sampled_from([0, 10**4, 10**6]),
    dtype=st.sampled_from(["f4", "f8"]),
)
def test_squared_distances__matches_definition(x, offset, dtype):
    x = (x + offset).astype(dtype)
    got = squared_distances(x, x[::-1])
    np.testing.assert_allclose(got, by_definition(x, x[::-1]), rtol=3e-4, atol=0)


def clustered(n, d, radius, dtype, *, n_clusters):
    generator = np.random.default_rng(0)
    centres = generator.normal(0, 1.0, (n_clusters, d))
    x = centres[np.arange(n) % n_clusters] + radius * generator.normal(0, 1.0, (n, d))
    return x.astype(dtype)


@pytest.mark.parametrize("radius", [0.0, 1e-12, 1e-6, 1e-3, 1e-2])
@pytest.mark.parametrize(("dtype", "rtol"), [("f4", 4e-4), ("f8", 2e-8)])
@pytest.mark.parametrize("n_clusters", [1, 2, 20])
def test_squared_distances__keeps_digits_inside_tight_clusters(
    put, radius, dtype, rtol, n_clusters
):
    x = clustered(60, 24, radius, dtype, n_clusters=n_clusters)
    y = np.concatenate([x[:40], x[:1] + 1])
    got = to_host(squared_distances(put(x), put(y)))
    np.testing.assert_allclose(got, by_definition(x, y), rtol=rtol, atol=0)


@pytest.fixture
def mended(monkeypatch):
    """Counts of the pairs that are mended one by one."""
    counts = []

    def spy(xp, x, y, squared, lost):
        counts.append(int(lost.sum()))
        return original(xp, x, y, squared, lost)

    original = distances._mend_pairs
    monkeypatch.setattr(distances, "_mend_pairs", spy)
    return counts


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
def test_squared_distances__mends_equal_rows_only_whatever_the_offset(mended, offset):
    x = (np.random.default_rng(0).normal(size=(50, 12)) + offset).astype("f4")
    squared_distances(x, x)
    assert sum(mended) == 50


def test_squared_distances__does_not_depend_on_the_tiles(monkeypatch):
    x = clustered(60, 24, 1e-4, "f8", n_clusters=6)
    for width in (3, 24):
        whole = squared_distances(x[:, :width], x[:50, :width])
        with monkeypatch.context() as patch:
            patch.setattr(distances, "_TILE_ELEMENTS", 7 * 50)
            tiled = squared_distances(x[:, :width], x[:50, :width])
        np.testing.assert_allclose(whole, tiled, rtol=1e-7, atol=0)


def test_squared_distances__mends_a_large_cluster_by_products(mended):
    x = np.zeros((200, 300), "f4")
    x[::2] = np.random.default_rng(0).normal(size=(100, 300)).astype("f4")
    got = squared_distances(x, x)
    assert sum(mended) == 100  # the diagonal; the 100 x 100 pairs of blank rows went in one product
    np.testing.assert_array_equal(got[1::2, 1::2], 0.0)
    np.testing.assert_array_equal(np.diagonal(got), 0.0)
    np.testing.assert_allclose(got, by_definition(x, x), rtol=4e-4)


def test_squared_distances__mends_many_pairs_in_pieces(monkeypatch):
    monkeypatch.setattr(distances, "_PAIR_ELEMENTS", 64)
    x = clustered(30, 24, 0.0, "f8", n_clusters=10)
    np.testing.assert_allclose(squared_distances(x, x), by_definition(x, x), rtol=1e-10)


def test_squared_distances__survives_an_outlier():
    x = np.random.default_rng(0).normal(size=(40, 12)).astype("f4")
    x[0] = 1e8
    got = squared_distances(x, x)
    np.testing.assert_allclose(got, by_definition(x, x), rtol=4e-4)


def test_squared_distances__leaves_its_arguments_alone():
    x = np.arange(30.0).reshape(5, 6)
    before = x.copy()
    squared_distances(x, x)
    np.testing.assert_array_equal(x, before)


def test_squared_distances__refuses_bad_shapes():
    with pytest.raises(ShapeError, match="squared_distances needs two row blocks of equal width"):
        squared_distances(np.ones((2, 3)), np.ones((2, 4)))
