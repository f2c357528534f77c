"""All pairs: by the plain formulas, by `dissimilarity`, on any scheduler, larger than memory."""

from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

from bigkd import did
from bigkd.did.matrix import KIND
from bigkd.did.pairs import StoredMaps, StoredPairs
from bigkd.engine import tiles
from bigkd.errors import (
    DataError,
    EmptyInputError,
    InputError,
    MemoryPlanError,
    ShapeError,
    StoreError,
)
from bigkd.io import load_dataset, open_tiled
from tests.did import plain
from tests.did.test_dissimilarity import expected, imagenet, smooth

SHAPE = (14, 12)
LAMS = [1e-3, 1e-1]
FEW = {"x_landmarks": 4, "y_landmarks": 3, "scheduler": "sync", "lam": LAMS}
X = np.stack([smooth(at, SHAPE, 3) for at in range(7)])
Y = np.stack([smooth(at + 20, SHAPE, 3) for at in range(4)])


def truth(f, g, lam):
    args = plain.gaussian(1 / 6), plain.laplace(5), plain.position_grid(4, 2), plain.colour_grid(3)
    return expected(imagenet(f), imagenet(g), SHAPE, *args, lam)


@pytest.fixture
def small_tiles(monkeypatch):
    """A tile of maps for each two data, and one of pairs for each four or so."""
    monkeypatch.setattr(tiles, "TILE_WORK", 30_000)
    monkeypatch.setattr(tiles, "CHUNK_BYTES", 16_000)


@pytest.mark.usefixtures("small_tiles")
def test_matrix__is_eq_12_for_every_pair():
    found = did.matrix(X, Y, **FEW)["dissimilarity"]
    assert found.dims == ("lam", "reference", "searched")
    for lam in LAMS:
        every = [[truth(f, g, lam) for g in Y] for f in X]
        np.testing.assert_allclose(found.sel(lam=lam), every, rtol=1e-9)


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("scale", ["paper", "unit"])
def test_matrix__is_dissimilarity_of_every_pair(scale, relative):
    options = {"scale": scale, "relative": relative}
    found = did.matrix(X[:3], **FEW, **options)["dissimilarity"]
    one = {name: value for name, value in FEW.items() if name != "scheduler"}
    for i, f in enumerate(X[:3]):
        for j, g in enumerate(X[:3]):
            alone = did.dissimilarity(f, g, **one, **options)["dissimilarity"]
            np.testing.assert_allclose(found[:, i, j], alone, rtol=1e-8)


def test_matrix__is_not_symmetric_and_least_on_its_diagonal():
    found = did.matrix(X, scale="unit", mask=None, **FEW)["dissimilarity"].sel(lam=1e-3).values
    assert not np.allclose(found, found.T)
    np.testing.assert_allclose(np.diag(found), 1e-3 / (1 + 1e-3), rtol=1e-10)
    assert (found >= np.diag(found).min() * (1 - 1e-10)).all()


def labelled(x, name="image", **coords):
    return xr.DataArray(x, dims=(name, "y", "x", "channel"), coords=coords)


def test_matrix__keeps_labels():
    times = np.array(["2020-01-01", "2020-01-02", "2020-01-05", "2020-02-01"], "datetime64[ns]")
    found = did.matrix(
        labelled(X, image=[f"x{at}" for at in range(7)]), labelled(Y, "time", time=times), **FEW
    )
    assert list(found["reference"].values) == [f"x{at}" for at in range(7)]
    np.testing.assert_array_equal(found["searched"], times)
    assert found["dissimilarity"].attrs["long_name"]
    plainly = did.matrix(X, Y, **FEW)
    np.testing.assert_array_equal(found["dissimilarity"], plainly["dissimilarity"])


def test_matrix__of_series():
    series = np.random.default_rng(0).normal(size=(5, 30)).cumsum(axis=1)
    one = {"lam": 0.1, "dims": ("time",), "normalize": (0.0, 2.0), "y_landmarks": series[:, :1]}
    found = did.matrix(series, scheduler="sync", **one)["dissimilarity"]
    alone = did.dissimilarity(series[4], series[2], **one)["dissimilarity"]
    np.testing.assert_allclose(found[0, 4, 2], alone[0], rtol=1e-8)


def test_matrix__gives_nan_rows_where_nothing_is_known():
    x = X.copy()
    x[2] = np.nan
    x[4, :5] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        did.matrix(x, **FEW)
    found = did.matrix(x, nan="zero_weight", **FEW)["dissimilarity"].values
    assert np.isnan(found[:, 2, :]).all()
    assert np.isnan(found[:, :, 2]).all()
    rest = np.delete(np.delete(found, 2, axis=1), 2, axis=2)
    assert np.isfinite(rest).all()
    clean = did.matrix(X, **FEW)["dissimilarity"].values
    kept = [0, 1, 3, 5, 6]
    np.testing.assert_array_equal(found[:, kept][:, :, kept], clean[:, kept][:, :, kept])
    assert (found[:, 4, 0] != clean[:, 4, 0]).all()


@pytest.mark.usefixtures("small_tiles")
def test_matrix__of_nothing_but_nan_is_kept(tmp_path):
    x = X.copy()
    x[:6] = np.nan
    for output in (None, tmp_path / "x.zarr"):
        found = did.matrix(x, nan="zero_weight", normalize="imagenet", output=output, **FEW)
        expected_ = np.full((2, 7, 7), np.nan)
        expected_[:, 6, 6] = did.matrix(X[6:], **FEW)["dissimilarity"][:, 0, 0]
        np.testing.assert_allclose(found["dissimilarity"], expected_, rtol=1e-12)


@pytest.mark.parametrize("kind", ["dask", "zarr", "irregular"])
@pytest.mark.usefixtures("small_tiles")
def test_matrix__has_the_same_bits_however_data_are_stored(kind, tmp_path):
    here = did.matrix(X, Y, **FEW)
    if kind == "zarr":
        x = str(tmp_path / "x.zarr")
        zarr.create_array(x, data=X, chunks=(3, *SHAPE, 3))
    else:
        chunks = (3, 7, 12, 3) if kind == "dask" else ((1, 4, 2), (10, 4), (12,), (2, 1))
        x = da.from_array(X, chunks=chunks)
    xr.testing.assert_identical(did.matrix(x, Y, **FEW), here)
    threads = did.matrix(x, Y, **{**FEW, "scheduler": "threads"})
    xr.testing.assert_identical(threads, here)


@pytest.mark.usefixtures("small_tiles")
def test_matrix__larger_than_memory_lies_in_tiles(tmp_path):
    names = [f"x{at}" for at in range(7)]
    here = did.matrix(labelled(X, image=names), **FEW)
    there = did.matrix(labelled(X, image=names), output=tmp_path / "d.zarr", **FEW)
    assert there["dissimilarity"].data.npartitions > 4
    xr.testing.assert_identical(there.load(), here)
    xr.testing.assert_identical(open_tiled(tmp_path / "d.zarr", kind=KIND).load(), here)
    assert [path.name for path in tmp_path.iterdir()] == ["d.zarr"]
    with xr.open_zarr(tmp_path / "d.zarr") as plainly:
        assert float(plainly["dissimilarity"].sel(reference="x3", searched="x0", lam=0.1)) == float(
            here["dissimilarity"][1, 3, 0]
        )
    with pytest.raises(StoreError, match="in tiles"):
        load_dataset(tmp_path / "d.zarr", kind=KIND)


def count_calls(monkeypatch, log):
    """Notes every run of maps and every part of pairs."""
    for one in (StoredMaps, StoredPairs):
        call = one.__call__

        def noted(self, *rows, call=call, name=one.__name__):
            log.append((name, *(int(part.index[0]) for part in rows)))
            return call(self, *rows)

        monkeypatch.setattr(one, "__call__", noted)


@pytest.mark.parametrize("where", ["output", "checkpoint", "both"])
@pytest.mark.usefixtures("small_tiles")
def test_matrix__goes_on_where_a_call_stopped(where, tmp_path, monkeypatch):
    here, log = did.matrix(X, **FEW), []
    options = {
        **({} if where == "checkpoint" else {"output": tmp_path / "d.zarr"}),
        **({} if where == "output" else {"checkpoint": tmp_path / "kept"}),
    }

    def stop(event):
        if event.label == "comparing pairs" and event.done > event.total / 2:
            raise KeyboardInterrupt

    count_calls(monkeypatch, log)
    with pytest.raises(KeyboardInterrupt):
        did.matrix(X, progress=stop, **options, **FEW)
    n_maps = sum(name == "StoredMaps" for name, *_ in log)
    n_pairs = len(log) - n_maps
    assert n_maps > 2
    log.clear()
    found = did.matrix(X, **options, **FEW)
    assert sum(name == "StoredMaps" for name, *_ in log) == 0
    assert 0 < len(log) < n_pairs
    xr.testing.assert_identical(found.load(), here)
    left = {path.name for path in tmp_path.rglob("*") if "d.zarr" not in path.parts}
    assert not [name for name in left if "maps" in name or "pairs" in name or "partial" in name]


@pytest.mark.usefixtures("small_tiles")
def test_matrix__shares_a_checkpoint_folder_with_other_calls(tmp_path):
    here = [did.matrix(X, **{**FEW, "lam": lam}) for lam in LAMS]
    inside = []

    def other(event):
        if event.label == "comparing pairs" and event.done == 0 and not inside:
            inside.append(None)
            inside[0] = did.matrix(X, **{**FEW, "lam": LAMS[1]}, checkpoint=tmp_path)

    found = did.matrix(X, **{**FEW, "lam": LAMS[0]}, checkpoint=tmp_path, progress=other)
    xr.testing.assert_identical(found, here[0])
    xr.testing.assert_identical(inside[0], here[1])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("small_tiles")
def test_matrix__notices_maps_that_are_taken_away(tmp_path):
    """Chunks that do not exist read as NaN, which data may have, but not maps."""

    def take(event):
        if event.label == "comparing pairs" and event.done == 0:
            for chunk in tmp_path.rglob("rows/c/1/0"):
                chunk.unlink()

    with pytest.raises(DataError, match="not finite"):
        did.matrix(X, nan="zero_weight", checkpoint=tmp_path, progress=take, **FEW)
    found = did.matrix(X, nan="zero_weight", checkpoint=tmp_path, **FEW)
    xr.testing.assert_identical(found, did.matrix(X, nan="zero_weight", **FEW))


def test_matrix__leaves_what_is_there(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "thesis.txt").write_text("all my work")
    events = []
    with pytest.raises(InputError, match="not written by bigkd"):
        did.matrix(X, output=tmp_path / "x", overwrite=True, progress=events.append, **FEW)
    did.matrix(X, output=tmp_path / "d.zarr", **FEW)
    with pytest.raises(InputError, match="overwrite=True"):
        did.matrix(Y, output=tmp_path / "d.zarr", progress=events.append, **FEW)
    assert events == []  # before anything was computed
    found = did.matrix(Y, output=tmp_path / "d.zarr", overwrite=True, **FEW)
    xr.testing.assert_identical(found.load(), did.matrix(Y, **FEW))
    assert (tmp_path / "x" / "thesis.txt").read_text() == "all my work"


def test_matrix__refuses_what_it_cannot_do(tmp_path):
    with pytest.raises(InputError, match="nonfinite='drop' would leave rows out"):
        did.matrix(X, nonfinite="drop", **FEW)
    with pytest.raises(InputError, match="'raise' or 'drop'; got 'keep'"):
        did.matrix(X, nonfinite="keep", **FEW)
    with pytest.raises(ShapeError, match="compared on one grid"):
        did.matrix(X, Y[:, 1:], **FEW)
    with pytest.raises(MemoryPlanError, match=r"mapping collection.*fewer landmarks"):
        did.matrix(X, memory_limit="1 MB", **FEW)
    with pytest.raises(EmptyInputError):
        did.matrix(X[:0], **FEW)
    assert not list(Path(tmp_path).iterdir())
