"""Collections that are opened once for all comparisons of a run."""

import numpy as np
import pytest
import zarr

from bigkd.errors import DataError
from bigkd.io import open_rows
from bigkd.jobs.rows import RowsPart
from bigkd.jobs.snapshot import Snapshot, one_snapshot


def test_snapshot__looks_at_what_was_used_since_the_last_look(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((4, 2)))

    def opened():
        return open_rows(path, name="x")

    snapshot = Snapshot()
    source = snapshot.source("x", opened)
    np.save(path, np.ones((4, 2)))
    snapshot.forget_uses()
    snapshot.require_unchanged()
    assert snapshot.source("x", opened) is source
    with pytest.raises(DataError, match="x: 1 of its 1 blocks were changed"):
        snapshot.require_unchanged()
    snapshot.require_unchanged()


def test_snapshot__opens_a_store_once_for_each_way_to_read_it(tmp_path):
    path = tmp_path / "x.zarr"
    zarr.create_array(str(path), data=np.ones((40, 2)), chunks=(10, 2))
    (path / "c" / "1" / "0").unlink()
    ways = [{"missing": how, "block_rows": n} for n in (10, 20) for how in ("fill", "skip")]
    parts = [RowsPart.model_validate({"path": str(path), **way}) for way in ways]
    with one_snapshot(part.look for part in parts):
        opened = [part.open("x") for part in parts]
    assert [(source.n_rows, source.skipped) for source in opened] == [(40, 0), (30, 10)] * 2
    assert [source.n_blocks for source in opened] == [4, 3, 2, 2]
