import logging

import dask.array as da
import numpy as np
import pytest
import zarr

from bigkd.engine import Settings, open_session
from bigkd.engine.tokens import spec_token
from bigkd.errors import DataError, EmptyInputError, InputError, ShapeError, StoreError
from bigkd.io import columns, open_rows
from bigkd.mmdpca import long_rows
from bigkd.mmdpca.long_rows import combined, gram_of


def run(data, *, scheduler="sync", checkpoint=None, coefficients=None, missing="raise", **options):
    """What both passes over `data` give."""
    source = open_rows(data, name="X", missing=missing)
    settings = Settings(scheduler=scheduler, checkpoint=checkpoint)
    with open_session(settings) as session:
        rows = gram_of(session, source, **options)
        if coefficients is None:
            coefficients = np.eye(len(rows.samples))[:, :2]
        return rows, combined(session, rows, coefficients)


def film(dtype="uint8", shape=(12, 20, 30, 3)):
    """A still picture, something that moves, and noise."""
    generator = np.random.default_rng(0)
    still = generator.uniform(20, 200, shape[1:])
    frames = still + generator.normal(0, 3, shape)
    for at, frame in enumerate(frames):
        frame[at % 15 : at % 15 + 4, at : at + 6] = 250
    return np.clip(frames, 1, 255).astype(dtype)


@pytest.fixture
def small(monkeypatch):
    """Some blocks of columns, and few reads of what is stored by rows."""
    monkeypatch.setattr(columns, "BLOCK_BYTES", 20_000)
    monkeypatch.setattr(columns, "SLAB_BYTES", 20_000)
    monkeypatch.setattr(columns, "HELD_BYTES", 20_000)


def put(kind, folder, x):
    chunks = {"frames": (1, *x.shape[1:]), "pixels": (len(x), 2, 30, 3), "tiles": (5, 2, 10, 3)}
    if kind == "npy":
        np.save(folder / "x.npy", x)
        return folder / "x.npy"
    if kind in chunks:
        array = zarr.create_array(
            str(folder / "x.zarr"), shape=x.shape, dtype=x.dtype, chunks=chunks[kind]
        )
        array[...] = x
        return array
    if kind == "dask rows":
        return da.from_array(x, chunks=(5, -1, -1, -1))
    if kind == "dask pixels":
        return da.from_array(x, chunks=(5, 2, 30, 3))
    return x


KINDS = ["numpy", "npy", "frames", "pixels", "tiles", "dask rows", "dask pixels"]
BY_ROWS = ["frames", "dask rows"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_gram_of__is_the_same_for_every_kind_of_source(tmp_path, caplog, kind, dtype):
    x = film(dtype)
    wide = x.reshape(12, -1).astype("f8")
    coefficients = np.random.default_rng(1).normal(0, 1, (12, 3))
    with caplog.at_level(logging.INFO, logger="bigkd.mmdpca"):
        rows, sums = run(put(kind, tmp_path, x), coefficients=coefficients)
    exact = {"rtol": 0} if dtype == "uint8" else {"rtol": 1e-13}
    np.testing.assert_allclose(rows.gram, wide @ wide.T, **exact)
    squared = ((wide[:, None] - wide[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(rows.squared_distances, squared, **exact)
    centred = wide - wide.mean(axis=0)
    scale = np.abs(centred @ centred.T).max()
    np.testing.assert_allclose(rows.centred, centred @ centred.T, atol=1e-13 * scale)
    np.testing.assert_allclose(sums, wide.T @ coefficients, rtol=1e-13, atol=1e-12)
    assert rows.samples.tolist() == list(range(12))
    assert (rows.n_features, rows.n_dropped) == (1800, 0)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == (kind in BY_ROWS), told
    assert all("all 12 rows by" in message for message in told)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", KINDS)
def test_gram_of__same_bits_on_any_scheduler(tmp_path, kind):
    data = put(kind, tmp_path, film("float32"))
    one, again = run(data), run(data, scheduler="threads")
    for name in ("gram", "centred", "squared_distances", "features"):
        np.testing.assert_array_equal(getattr(one[0], name), getattr(again[0], name))
    np.testing.assert_array_equal(one[1], again[1])


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", KINDS)
def test_gram_of__land_and_bad_rows(tmp_path, kind):
    x = film("float32")
    land = np.zeros(x.shape[1:], bool)
    land[3:9, 10:20] = True
    x[:, land] = np.nan
    x[4, 0, 0, 0], x[4, 19, 29, 2], x[9, 12] = np.nan, np.inf, np.nan
    data = put(kind, tmp_path, x)
    with pytest.raises(DataError, match=r"X: row 4 is not finite in 2 features, .* 2 such rows"):
        run(data)
    good = [at for at in range(12) if at not in (4, 9)]
    coefficients = np.random.default_rng(1).normal(0, 1, (10, 3))
    scale = np.random.default_rng(2).uniform(0.5, 1.5, land.size)
    rows, sums = run(data, nonfinite="drop", coefficients=coefficients, scale=scale)
    sea = x.reshape(12, -1)[good][:, ~land.ravel()].astype("f8")
    scaled = sea * scale[~land.ravel()]
    np.testing.assert_allclose(rows.gram, scaled @ scaled.T, rtol=1e-6)
    np.testing.assert_array_equal(rows.features, ~land.ravel())
    assert rows.samples.tolist() == good
    assert (rows.n_dropped, rows.n_features) == (2, sea.shape[1])
    np.testing.assert_allclose(sums[rows.features], sea.T @ coefficients, rtol=1e-12, atol=1e-11)
    assert np.isnan(sums[~rows.features]).all()


def test_gram_of__rows_that_do_not_exist_are_named_as_stored(tmp_path):
    x = np.random.default_rng(0).normal(3, 1, (6, 200))
    x[5, 7] = np.nan
    array = zarr.create_array(str(tmp_path / "x"), shape=x.shape, dtype="f8", chunks=(2, 50))
    array[...] = x
    (tmp_path / "x" / "c" / "1" / "2").unlink()
    with pytest.raises(DataError, match="row 5 is not finite in 1 feature"):
        run(array, missing="skip")
    rows, sums = run(array, missing="skip", nonfinite="drop", coefficients=np.eye(3))
    assert rows.samples.tolist() == [0, 1, 4]
    np.testing.assert_allclose(rows.gram, x[[0, 1, 4]] @ x[[0, 1, 4]].T, rtol=1e-13)
    np.testing.assert_array_equal(sums.T, x[[0, 1, 4]])


def test_gram_of__near_equal_frames():
    generator = np.random.default_rng(0)
    x = generator.normal(300, 50, 50_000) + 1e-2 * generator.normal(0, 1, (5, 50_000))
    x = x.astype("f4")
    wide = x.astype("f8")
    squared = ((wide[:, None] - wide[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(run(x)[0].squared_distances, squared, rtol=2e-6)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", BY_ROWS)
def test_gram_of__leaves_no_scratch(monkeypatch, tmp_path, kind):
    data, kept = put(kind, tmp_path, film()), tmp_path / "kept"
    reference = run(data)
    for _ in range(2):
        rows, sums = run(data, checkpoint=kept)
        np.testing.assert_array_equal(rows.gram, reference[0].gram)
        np.testing.assert_array_equal(sums, reference[1])
    assert not any(kept.rglob("*0.rows"))


@pytest.mark.usefixtures("small")
def test_gram_of__goes_on_from_a_checkpoint(monkeypatch, tmp_path):
    x = film("float32")
    first = run(x, checkpoint=tmp_path / "kept")

    def never(*given):
        raise AssertionError("read again")

    monkeypatch.setattr(columns.ArrayColumns, "slab", never)
    again = run(x, checkpoint=tmp_path / "kept")
    np.testing.assert_array_equal(first[0].gram, again[0].gram)
    np.testing.assert_array_equal(first[1], again[1])


@pytest.mark.usefixtures("small")
def test_gram_of__copies_rows_before_the_pass_that_needs_them(monkeypatch, tmp_path):
    x, written = film("float64"), []
    write = long_rows.RowFiles.update

    def spy(files, state, rows):
        written.append(rows.values.shape[0])
        return write(files, state, rows)

    monkeypatch.setattr(long_rows.RowFiles, "update", spy)
    run(put("dask rows", tmp_path, x))
    assert written == [5, 5, 2]


@pytest.mark.usefixtures("small")
def test_gram_of__says_where_scratch_files_have_no_place(monkeypatch, tmp_path):
    data = put("frames", tmp_path, film())
    source = open_rows(data, name="X")
    with pytest.raises(InputError, match="a file system; the checkpoint folder is a URL"):
        long_rows._place(source, "memory://kept", 100)
    with pytest.raises(StoreError, match=r"needs 1000000000\.00 GB of scratch files"):
        long_rows._place(source, str(tmp_path), 10**18)


def test_gram_of__refuses():
    x = np.ones((3, 8))
    with pytest.raises(ShapeError, match="each of the 8 features of X; got shape \\(7,\\)"):
        run(x, scale=np.ones(7))
    with pytest.raises(ShapeError, match="each of the 3 rows kept; got shape \\(2, 1\\)"):
        run(x, coefficients=np.ones((2, 1)))
    with pytest.raises(EmptyInputError, match="every one of its features is NaN"):
        run(x * np.nan)
    with pytest.raises(EmptyInputError, match="none of its 3 rows is finite"):
        run(np.where(np.eye(3, 8) > 0, np.nan, x), nonfinite="drop")
    with pytest.raises(DataError, match="overflow"):
        run((x * [[1e30], [0], [-1e30]]).astype("f4"))


def test_spec__has_a_token():
    assert spec_token(long_rows.RowFiles(folder="a")) != spec_token(long_rows.RowFiles(folder="b"))
