"""The nearest of a collection: by sorting all dissimilarities, on any scheduler."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

from bigkd import did
from bigkd.engine import stripes
from bigkd.errors import InputError
from tests.did.test_dissimilarity import smooth
from tests.did.test_matrix import labelled, truth

SHAPE = (14, 12)
FEW = {"x_landmarks": 4, "y_landmarks": 3, "scheduler": "sync", "lam": 1e-2}
X = np.stack([smooth(at, SHAPE, 3) for at in range(23)])
QUERIES = np.stack([smooth(at + 100, SHAPE, 3) for at in range(3)])


@pytest.fixture
def small_stripes(monkeypatch):
    monkeypatch.setattr(stripes, "STRIPE_WORK", 1)


def by_sorting(queries, x, lam=1e-2):
    every = np.array([[truth(f, g, lam) for g in x] for f in queries])
    order = np.argsort(every, axis=1, kind="stable")
    return order, np.take_along_axis(every, order, axis=1)


def test_nearest__is_what_sorting_finds():
    order, values = by_sorting(QUERIES, X)
    found = did.nearest(QUERIES, X, k=6, **FEW)
    np.testing.assert_array_equal(found["index"], order[:, :6])
    np.testing.assert_allclose(found["dissimilarity"], values[:, :6], rtol=1e-9)
    one = did.nearest(QUERIES[1], X, k=6, **FEW)
    np.testing.assert_array_equal(one["index"], order[1:2, :6])


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("scale", ["paper", "unit"])
def test_nearest__has_the_values_of_dissimilarity(scale, relative):
    options = {"scale": scale, "relative": relative}
    found = did.nearest(QUERIES[0], X, k=23, **FEW, **options)
    one = {name: value for name, value in FEW.items() if name != "scheduler"}
    alone = [
        float(did.dissimilarity(QUERIES[0], g, **one, **options)["dissimilarity"][0]) for g in X
    ]
    np.testing.assert_array_equal(found["index"][0], np.argsort(alone))
    np.testing.assert_allclose(found["dissimilarity"][0], np.sort(alone), rtol=1e-8)


def test_nearest__gives_all_where_there_are_fewer():
    found = did.nearest(QUERIES, X[:4], k=9, **FEW)
    assert found.sizes == {"query": 3, "rank": 4}
    assert (np.sort(found["index"], axis=1) == np.arange(4)).all()


@pytest.mark.parametrize("block", [1, 5, 40])
@pytest.mark.usefixtures("small_stripes")
def test_nearest__of_equal_ones_takes_the_first(block):
    x = np.concatenate([X[:3], X[:3], X[:3]])
    query = X[1]
    found = did.nearest(query, x, k=5, block_rows=block, **FEW)
    np.testing.assert_array_equal(found["index"][0, :3], [1, 4, 7])
    assert len(set(found["dissimilarity"].values[0, :3])) == 1
    order = by_sorting(query[None], X[:3])[0][0]
    np.testing.assert_array_equal(found["index"][0, 3:], [order[1], order[1] + 3])


def test_nearest__keeps_labels():
    names = np.array([f"picture {at}" for at in range(23)])
    found = did.nearest(QUERIES, labelled(X, image=names), k=3, **FEW)
    np.testing.assert_array_equal(found["name"], names[found["index"].values])


def test_nearest__leaves_out_what_nothing_is_known_of():
    x = X[:5].copy()
    x[2] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        did.nearest(QUERIES, x, **FEW)
    found = did.nearest(QUERIES, x, k=5, nan="zero_weight", **FEW)
    np.testing.assert_array_equal(found["index"][:, 4], -1)
    assert np.isnan(found["dissimilarity"][:, 4]).all()
    kept = [0, 1, 3, 4]
    clean = did.nearest(QUERIES, X[kept], k=4, **FEW)
    np.testing.assert_array_equal(found["index"][:, :4], np.array(kept)[clean["index"].values])
    dropped = did.nearest(QUERIES, x, k=5, nonfinite="drop", normalize="imagenet", **FEW)
    assert dropped.attrs["n_dropped"] == 1
    np.testing.assert_array_equal(dropped["index"], found["index"])


def test_nearest__of_a_query_of_nothing_is_nothing():
    query = np.full_like(QUERIES[:2], np.nan)
    query[1] = QUERIES[1]
    found = did.nearest(query, X, k=2, nan="zero_weight", **FEW)
    np.testing.assert_array_equal(found["index"][0], [-1, -1])
    assert np.isnan(found["dissimilarity"][0]).all()
    alone = did.nearest(QUERIES[1], X, k=2, **FEW)
    np.testing.assert_array_equal(found["index"][1], alone["index"][0])


@pytest.mark.parametrize("kind", ["numpy", "dask", "zarr"])
@pytest.mark.usefixtures("small_stripes")
def test_nearest__has_the_same_bits_on_threads(kind, tmp_path):
    x, options = X, {"block_rows": 5}
    if kind == "dask":
        x, options = da.from_array(X, chunks=((1, 9, 5, 8), 14, 7, 3)), {}
    if kind == "zarr":
        x = str(tmp_path / "x.zarr")
        zarr.create_array(x, data=X, chunks=(5, *SHAPE, 3))
    here = did.nearest(QUERIES, x, k=5, **FEW, **options)
    xr.testing.assert_identical(
        did.nearest(QUERIES, x, k=5, **{**FEW, "scheduler": "threads"}, **options), here
    )


@pytest.mark.usefixtures("small_stripes")
def test_nearest__goes_on_where_a_call_stopped(tmp_path):
    options = {**FEW, "block_rows": 1, "k": 5}
    here = did.nearest(QUERIES, X, **options)

    def stop(event):
        if event.done > 14:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        did.nearest(QUERIES, X, checkpoint=tmp_path, progress=stop, **options)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*.zarr")}
    assert kept
    events = []
    found = did.nearest(QUERIES, X, checkpoint=tmp_path, progress=events.append, **options)
    xr.testing.assert_identical(found, here)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert len(events) < 23
    did.nearest(QUERIES, X, checkpoint=tmp_path, **{**options, "k": 4})  # another question
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "many"])
def test_nearest__refuses_other_numbers(k):
    with pytest.raises(InputError, match="k must be a whole number of at least 1"):
        did.nearest(QUERIES, X, k=k, **FEW)


def test_nearest__ranks_by_one_lambda():
    with pytest.raises(InputError, match="lam must be one number"):
        did.nearest(QUERIES, X, **{**FEW, "lam": [1e-3, 1e-2]})
