"""Collections that change while a pass reads them."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import zarr

from bigkd.engine.ledger import open_ledger
from bigkd.errors import DataError
from bigkd.io import open_rows
from bigkd.kernels import Gaussian
from bigkd.summaries import KernelSum
from tests.engine.growing import append, as_zarr, fresh, kept_pass
from tests.engine.helpers import assert_same_bits, everything, reduce, reduce_pairs

pytestmark = pytest.mark.usefixtures("small_stripes")


def test_store_that_grows_while_it_is_read__gives_the_rows_that_were_there(rows, tmp_path, caplog):
    path, folder = tmp_path / "x.zarr", tmp_path / "kept"
    as_zarr(rows[:195], path)
    truth = fresh(path)

    def grow(event):
        if event.done == event.total:
            append(path, rows[195:260])

    source = open_rows(path, name="x", block_rows=10)
    found = reduce(everything(3), source, checkpoint=folder, progress=grow)
    assert_same_bits(found, truth)
    assert "the next run reads them again" in caplog.text
    found, read, reused = kept_pass(path, folder)
    assert (read, reused) == (70, 190)
    assert_same_bits(found, fresh(path))


def test_block_that_changes_while_it_is_read__is_noticed(rows, tmp_path):
    path, folder = tmp_path / "x.zarr", tmp_path / "kept"
    as_zarr(rows[:200], path)

    def change(event):
        if event.done == 100:
            zarr.open_array(str(path), mode="a")[50:60] = 1.0

    source = open_rows(path, name="x", block_rows=10)
    with pytest.raises(DataError, match=r"1 of its 20 blocks were changed .* from row 50 on"):
        reduce(everything(3), source, checkpoint=folder, progress=change)
    found, read, _ = kept_pass(path, folder)
    assert read in (10, 20)
    assert_same_bits(found, fresh(path))


@pytest.mark.parametrize(("block", "again"), [(12, 20), (15, 20), (17, 40)])
def test_block_that_changes_while_it_is_read_and_is_put_back__is_read_again(
    rows, tmp_path, block, again
):
    path, folder = tmp_path / "x.zarr", tmp_path / "kept"
    chunk = path / "c" / str(block) / "0"
    as_zarr(rows[:200], path)
    shutil.copy2(chunk, tmp_path / "chunk")

    def change(event):
        if event.done == 100:
            zarr.open_array(str(path), mode="a")[10 * block : 10 * block + 10] = 1.0

    source = open_rows(path, name="x", block_rows=10)
    with pytest.raises(DataError, match="1 of its 20 blocks were changed"):
        reduce(everything(3), source, scheduler="sync", checkpoint=folder, progress=change)
    shutil.copy2(tmp_path / "chunk", chunk)
    found, read, reused = kept_pass(path, folder)
    assert (read, reused) == (again, 200 - again)
    assert_same_bits(found, fresh(path))


@pytest.mark.usefixtures("small_squares")
@pytest.mark.parametrize("changed", ["x", "y"])
def test_block_that_changes_while_pairs_are_read__is_noticed_and_nothing_is_kept(
    rows, tmp_path, changed
):
    folder, chunk = tmp_path / "kept", tmp_path / changed / "c" / "3" / "0"
    for name, some in (("x", rows[:60]), ("y", rows[60:100])):
        as_zarr(some, tmp_path / name)
    shutil.copy2(chunk, tmp_path / "chunk")

    def passed(**how):
        left, right = (open_rows(tmp_path / name, name=name, block_rows=10) for name in "xy")
        with open_ledger() as ledger:
            found = reduce_pairs(KernelSum(kernel=Gaussian(2.0)), left, right, **how)
        return found, ledger.rows_reused

    def change(event):
        if event.done == 0:
            zarr.open_array(str(tmp_path / changed), mode="a")[30:40] = 1.0

    with pytest.raises(DataError, match=f"{changed}: 1 of its . blocks were changed"):
        passed(checkpoint=folder, progress=change)
    assert not list(folder.glob("*/*.zarr"))
    shutil.copy2(tmp_path / "chunk", chunk)
    truth, _ = passed()
    for reused in (0, 100):
        found, n_reused = passed(checkpoint=folder)
        assert n_reused == reused
        assert_same_bits(found, truth)


def fail(event):
    if event.done >= 180:
        raise ValueError("for another reason")


def interrupt(event):
    if event.done >= 180:
        raise KeyboardInterrupt


@pytest.mark.parametrize("ending", [fail, interrupt])
def test_block_that_changes_before_a_pass_ends_otherwise__is_read_again(rows, tmp_path, ending):
    path, folder, chunk = tmp_path / "x.zarr", tmp_path / "kept", tmp_path / "x.zarr/c/15/0"
    as_zarr(rows[:200], path)
    shutil.copy2(chunk, tmp_path / "chunk")

    def change(event):
        if event.done == 100:
            zarr.open_array(str(path), mode="a")[150:160] = 1.0
        ending(event)

    source = open_rows(path, name="x", block_rows=10)
    with pytest.raises((ValueError, KeyboardInterrupt)):
        reduce(everything(3), source, scheduler="sync", checkpoint=folder, progress=change)
    shutil.copy2(tmp_path / "chunk", chunk)
    found, read, _ = kept_pass(path, folder)
    assert read < 200
    assert_same_bits(found, fresh(path))


def test_names_of_blocks__are_those_that_were_known_when_the_pass_began(rows, tmp_path):
    path, folder = tmp_path / "x.zarr", tmp_path / "kept"
    as_zarr(rows[:200], path)
    source = open_rows(path, name="x", block_rows=10)
    source = replace(source, known=tuple(source.block_identities()))
    zarr.open_array(str(path), mode="a")[150:160] = 1.0
    with pytest.raises(DataError, match=r"1 of its 20 blocks were changed .* from row 150 on"):
        reduce(everything(3), open_rows(source, name="y"), checkpoint=folder)
    _, read, reused = kept_pass(path, folder)
    assert (read, reused) == (20, 180)


def test_changed_blocks__in_the_middle_and_at_the_end_of_a_store_that_grows(rows, tmp_path):
    path = tmp_path / "x.zarr"
    as_zarr(rows[:195], path)

    def change(event):
        if event.done == 100:
            append(path, rows[195:230])
            zarr.open_array(str(path), mode="a")[50] = 1.0

    source = open_rows(path, name="x", block_rows=10)
    with pytest.raises(DataError, match="2 of its 20 blocks were changed"):
        reduce(everything(3), source, checkpoint=tmp_path / "kept", progress=change)


@pytest.mark.parametrize("kind", ["zarr", "npy"])
def test_last_block__that_changes_without_growth_is_noticed(rows, kind, tmp_path):
    path = tmp_path / f"x.{kind}"
    if kind == "zarr":
        as_zarr(rows[:10], path)
    else:
        np.save(path, rows[:10])

    def change(event):
        if event.done == event.total:
            if kind == "zarr":
                zarr.open_array(str(path), mode="a")[:] = 3.0
            else:
                np.save(path, rows[:10] + 3)

    source = open_rows(path, name="x", block_rows=10)
    with pytest.raises(DataError, match="1 of its 1 blocks were changed"):
        reduce(everything(3), source, checkpoint=tmp_path / "kept", progress=change)


def test_block_that_changes_while_nothing_is_kept__is_not_looked_for(rows, tmp_path):
    as_zarr(rows[:200], tmp_path / "x.zarr")

    def change(event):
        if event.done == 100:
            zarr.open_array(str(tmp_path / "x.zarr"), mode="a")[50:60] = 1.0

    source = open_rows(tmp_path / "x.zarr", name="x", block_rows=10)
    assert int(reduce(everything(3), source, progress=change).tally.rows) == 200


def test_share_of_a_pass__may_have_no_rows_left(rows):
    rows[:100] = np.nan
    source = open_rows(rows[:200], name="x", block_rows=100)
    tally = reduce(everything(3), source, share=0.5, nonfinite="drop").tally
    assert (int(tally.rows), int(tally.dropped)) == (0, 100)
