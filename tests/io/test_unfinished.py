"""What interrupted runs left of arrays in tiles."""

import numpy as np
import pytest

from bigkd.io import TiledArray
from bigkd.io.unfinished import n_finished_tiles, remove_unfinished, unfinished, unfinished_in


@pytest.fixture
def array(tmp_path):
    """An array of four tiles, begun."""
    begun = TiledArray(
        path=str(tmp_path / "a.zarr"), name="v", dims=("x",), shape=(7,), tile=(2,), chunk=(2,),
        token="t",
    )  # fmt: skip
    begun.begin()
    return begun


def test_unfinished__counts_tiles_and_goes_away(array, tmp_path):
    (work,) = unfinished(array.path)
    assert list(unfinished_in(tmp_path)) == [work]
    assert n_finished_tiles(work) == 0
    for at in (1, 3):
        array.write((at,), [np.ones(2 if at == 1 else 1)])
    assert n_finished_tiles(work) == 2
    remove_unfinished(work)
    assert list(unfinished(array.path)) == []
    assert n_finished_tiles(work) == 0


def test_unfinished__leaves_alone_what_is_not_ours(tmp_path):
    (tmp_path / ".b.zarr.partial").mkdir()
    (tmp_path / ".c.zarr.partial").mkdir()
    (tmp_path / ".c.zarr.partial" / "zarr.json").write_text("{}")
    for name in "bcd":
        assert list(unfinished(tmp_path / f"{name}.zarr")) == []
    assert list(unfinished_in(tmp_path)) == []
    assert list(unfinished_in(tmp_path / "nowhere")) == []
