import dask
import dask.array as da
import numpy as np
import pytest
from dask.callbacks import Callback

from bigkd.engine import Settings, map_rows, open_session
from bigkd.errors import DataError
from bigkd.io import open_rows
from bigkd.kernels import FourierFeatures
from tests.engine.helpers import generated, unreadable


def doubled(x):
    return 2.0 * x


class NoCompute(Callback):
    def _start(self, dsk):
        raise AssertionError("something was computed")


def test_map_rows__runs_nothing():
    with NoCompute():
        found = map_rows(doubled, unreadable(100, 7), width=3, dtype=np.dtype("f4"))
    assert found.shape == (100, 3)
    assert found.dtype == np.float32
    assert found.chunks[0] == (7,) * 14 + (2,)


@pytest.mark.parametrize("kind", ["numpy", "dask"])
def test_map_rows__equals_the_function_of_all_rows(kind):
    rows = np.random.default_rng(0).normal(size=(50, 3)).astype("f4")
    data = da.from_array(rows, chunks=(9, 2)) if kind == "dask" else rows
    source = open_rows(data, name="x", block_rows=7)
    found = map_rows(doubled, source, width=3, dtype=np.dtype("f4"))
    assert found.numblocks == (source.n_blocks, 1)
    assert found.numblocks[0] > 5
    np.testing.assert_array_equal(found.compute(scheduler="threads"), 2 * rows)


def test_map_rows__gives_nan_for_dropped_rows():
    rows = np.arange(60.0).reshape(20, 3)
    rows[5, 1], rows[14:] = np.nan, np.inf
    source = open_rows(rows, name="x", block_rows=7)
    found = map_rows(doubled, source, width=3, dtype=np.dtype("f8"), nonfinite="drop").compute()
    bad = [5, *range(14, 20)]
    assert np.isnan(found[bad]).all()
    np.testing.assert_array_equal(np.delete(found, bad, axis=0), 2 * np.delete(rows, bad, axis=0))
    with pytest.raises(DataError, match=r"row (5|14) "):
        map_rows(doubled, source, width=3, dtype=np.dtype("f8")).compute(scheduler="sync")


def test_map_rows__reads_only_what_is_asked_for(tmp_path):
    counted = generated(100, 10, log=tmp_path / "reads")
    found = map_rows(doubled, counted, width=3, dtype=np.dtype("f4"))
    found[35:55].compute(scheduler="sync")
    assert sorted(counted.reads()) == [30, 40, 50]


def test_map_rows__carries_the_parameters_once():
    features = FourierFeatures(np.ones((10, 3)))
    found = map_rows(features, generated(100, 10), width=20, dtype=np.dtype("f4"))
    (whole,) = dask.optimize(found)
    holders = [
        key
        for key, task in dict(whole.__dask_graph__()).items()
        if getattr(task, "value", 0) is features
    ]
    assert len(holders) == 1


def test_compute__fetches_runs_of_blocks_and_shows_them(monkeypatch):
    monkeypatch.setattr("bigkd.engine.session.COMPUTED_BLOCKS", 2)
    x = np.arange(70.0).reshape(35, 2)
    events = []
    source = open_rows(x, name="x", block_rows=10)
    rows = map_rows(lambda part: part * 2, source, width=2, dtype=np.dtype(float))
    with open_session(Settings(scheduler="sync", progress=events.append)) as session:
        found = session.compute(rows, label="doubling")
    assert np.array_equal(found, x * 2)
    assert [event.done for event in events if event.done] == [20, 35]
    assert {event.label for event in events} == {"doubling"}
