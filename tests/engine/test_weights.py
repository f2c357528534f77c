import dask.array as da
import numpy as np
import pytest
import xarray as xr

from bigkd.engine import Settings, collect_rows, open_session
from bigkd.errors import DataError, ShapeError
from bigkd.io import open_rows
from bigkd.kernels import Gaussian
from bigkd.summaries import Extent, Joined, KernelSum, Mean
from tests.engine.helpers import assert_same_bits, generated

RNG = np.random.default_rng(0)
X, MU = RNG.normal(size=(50, 3)), RNG.uniform(1, 2, size=50)
U = RNG.normal(size=(50, 2))
EVERYTHING = Joined(summaries=(Mean(width=3), Extent(width=3)))


def reduce(source, **settings):
    with open_session(Settings(scheduler="sync", **settings)) as session:
        return session.reduce(EVERYTHING, source, label="weights")


def as_npy(tmp_path, array):
    np.save(tmp_path / "part.npy", array)
    return tmp_path / "part.npy"


def as_zarr(tmp_path, array):
    path = str(tmp_path / "part.zarr")
    xr.Dataset({"part": (("row", "c")[: array.ndim], array)}).chunk(row=9).to_zarr(
        path, zarr_format=3, consolidated=False
    )
    return path + "/part"


FORMS = {
    "numpy": lambda path, array: array,
    "dask": lambda path, array: da.from_array(array, chunks=(11, *array.shape[1:])),
    "xarray": lambda path, array: xr.DataArray(array),
    "npy": as_npy,
    "zarr": as_zarr,
}


@pytest.mark.parametrize("rows", ["numpy", "dask"])
@pytest.mark.parametrize("form", FORMS)
def test_weights__of_every_kind_reach_the_summary_with_their_rows(form, rows, tmp_path):
    data = X if rows == "numpy" else da.from_array(X, chunks=(20, 3))
    make = FORMS[form]
    (tmp_path / "vectors").mkdir()
    source = open_rows(
        data,
        name="x",
        block_rows=20,
        weights=make(tmp_path, MU),
        vectors=make(tmp_path / "vectors", U),
    )
    mean, extent = reduce(source).state
    np.testing.assert_allclose(mean.total, MU @ X, rtol=1e-14)
    assert extent.mass == pytest.approx(MU.sum())
    assert extent.absolute == pytest.approx((MU * np.linalg.norm(U, axis=1)).sum())
    rows = collect_rows(source, "raise") if rows == "numpy" and form != "dask" else None
    if rows is not None and form != "xarray":
        np.testing.assert_array_equal(rows.weights, MU)
        np.testing.assert_array_equal(rows.vectors, U)


def test_weights__that_are_not_finite_are_refused_or_dropped_with_their_row():
    weights = MU.copy()
    weights[[7, 30]] = np.nan
    source = open_rows(X, name="x", weights=weights)
    with pytest.raises(DataError, match=r"row 7 .* is not finite, the first of 2"):
        reduce(source)
    reduced = reduce(source, nonfinite="drop")
    assert (reduced.tally.rows, reduced.tally.dropped) == (48, 2)
    assert reduced.state[1].mass == pytest.approx(np.nansum(weights))


@pytest.mark.parametrize(
    ("weights", "message"),
    {
        "too few": (MU[:49], "weights of x must be one for each of the 50 rows; got 49"),
        "a table": (X, "weights of x must be one number for each row"),
        "a number": (np.array(3.0), r"weights of x has shape \(\)"),
    }.values(),
)
def test_weights__of_the_wrong_shape_are_refused(weights, message):
    with pytest.raises(ShapeError, match=message):
        open_rows(X, name="x", weights=weights)


def test_weights__change_the_identity_of_a_source():
    plain, weighted = open_rows(X, name="x"), open_rows(X, name="x", weights=MU)
    other = open_rows(X, name="x", weights=MU + 1)
    assert len({source.identity() for source in (plain, weighted, other)}) == 3


def test_weights__follow_the_rows_that_are_left_when_chunks_are_missing(tmp_path):
    path = as_zarr(tmp_path, X)
    (tmp_path / "part.zarr" / "part" / "c" / "1" / "0").unlink()
    for weights in (MU, da.from_array(MU, chunks=7)):
        source = open_rows(path, name="x", missing="skip", weights=weights)
        kept = np.r_[0:9, 18:50]
        mean = reduce(source).state[0]
        np.testing.assert_allclose(mean.total, MU[kept] @ X[kept], rtol=1e-14)


def test_pairs__resume_from_finished_segments_to_the_same_bits(tmp_path):
    summary = KernelSum(kernel=Gaussian(1.0))
    source = generated(2000, 100, log=tmp_path / "log")

    def run(**settings):
        with open_session(Settings(scheduler="sync", **settings)) as session:
            return session.reduce_pairs(summary, source, label="pairs")

    plain = run()
    reads = len(source.reads())
    first = run(checkpoint=tmp_path / "kept")
    again = run(checkpoint=tmp_path / "kept")
    assert_same_bits(plain, first)
    assert_same_bits(plain, again)
    assert len(source.reads()) == 2 * reads
