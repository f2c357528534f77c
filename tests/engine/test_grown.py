"""Collections that grow, or change, between passes that keep their states."""

import os
import shutil

import numpy as np
import pytest
import zarr

from bigkd.engine import stripes
from bigkd.engine.ledger import open_ledger
from bigkd.io import open_rows
from bigkd.summaries import Mean
from tests.engine.growing import append, as_zarr, fresh, kept_pass
from tests.engine.helpers import Census, assert_same_bits, everything, reduce

pytestmark = pytest.mark.usefixtures("small_stripes")


@pytest.mark.parametrize("before", [10, 30, 50, 160, 170, 190, 390])
@pytest.mark.parametrize("kind", ["zarr", "parquet"])
def test_grown_store__costs_its_new_rows_only_and_has_the_same_bits(rows, before, kind, tmp_path):
    if kind == "zarr":
        path = tmp_path / "x.zarr"
        as_zarr(rows[:before], path)
        kept_pass(path, tmp_path / "kept")
        append(path, rows[before:])
    else:
        pa, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
        path = tmp_path / "x"
        path.mkdir()
        for at in range(0, 400, 10):
            if at == before:
                kept_pass(path, tmp_path / "kept")
            part = {name: rows[at : at + 10, column] for column, name in enumerate("abc")}
            parquet.write_table(pa.table(part), path / f"{at:04d}.parquet")
    grown, read, reused = kept_pass(path, tmp_path / "kept")
    assert (read, reused) == (400 - before, before)
    assert_same_bits(grown, fresh(path))
    _, read, reused = kept_pass(path, tmp_path / "kept")
    assert (read, reused) == (0, 400)


def test_grown_store__night_after_night(rows, tmp_path):
    path, folder, total = tmp_path / "x.zarr", tmp_path / "kept", 20
    as_zarr(rows[:20], path)
    kept_pass(path, folder)
    for n_new in (10, 10, 40, 10, 100, 200, 10):
        append(path, rows[total : total + n_new])
        found, read, reused = kept_pass(path, folder)
        assert (read, reused) == (n_new, total)
        assert_same_bits(found, fresh(path))
        total += n_new


def test_grown_store__whose_last_chunk_was_not_full_reads_that_chunk_again(rows, tmp_path):
    path, folder = tmp_path / "x.zarr", tmp_path / "kept"
    as_zarr(rows[:195], path)
    kept_pass(path, folder)
    append(path, rows[195:230])
    found, read, reused = kept_pass(path, folder)
    assert_same_bits(found, fresh(path))
    assert (read, reused) == (40, 190)


@pytest.mark.parametrize("row", [0, 55, 175, 199])
def test_changed_block__is_noticed_and_costs_its_segment(rows, row, tmp_path):
    path, folder = tmp_path / "x.zarr", tmp_path / "kept"
    as_zarr(rows[:200], path)
    before, *_ = kept_pass(path, folder)
    zarr.open_array(str(path), mode="a")[row] = 7.0
    found, read, reused = kept_pass(path, folder)
    assert read + reused == 200
    assert 10 <= read <= 40
    assert_same_bits(found, fresh(path))
    with pytest.raises(AssertionError):
        assert_same_bits(found, before)


def test_changed_block__of_the_same_size_and_an_older_time_is_noticed(rows, tmp_path):
    path, folder = tmp_path / "x.zarr", tmp_path / "kept"
    zarr.create_array(str(path), data=rows[:200], chunks=(10, 3), compressors=None)
    kept_pass(path, folder)
    chunk = path / "c" / "3" / "0"
    status = chunk.stat()
    chunk.write_bytes((rows[:10] + 1).tobytes())
    os.utime(chunk, ns=(status.st_atime_ns, status.st_mtime_ns - 10**12))
    found, read, _ = kept_pass(path, folder)
    assert read == 10
    assert_same_bits(found, fresh(path))


def test_shorter_store__uses_what_is_whole(rows, tmp_path):
    path, folder = tmp_path / "x.zarr", tmp_path / "kept"
    as_zarr(rows[:200], path)
    kept_pass(path, folder)
    zarr.open_array(str(path), mode="a").resize((150, 3))
    found, read, reused = kept_pass(path, folder)
    assert (read, reused) == (10, 140)
    assert_same_bits(found, fresh(path))


def test_other_store_of_equal_rows__is_not_taken_for_the_first(rows, tmp_path):
    for name in "ab":
        as_zarr(rows[:200], tmp_path / name)
        _, read, _ = kept_pass(tmp_path / name, tmp_path / "kept")
        assert read == 200


def test_other_spec__reads_everything(rows, tmp_path):
    path, folder = tmp_path / "x.zarr", tmp_path / "kept"
    as_zarr(rows[:200], path)
    kept_pass(path, folder)
    _, read, reused = kept_pass(path, folder, summary=Mean(width=3))
    assert (read, reused) == (200, 0)


def test_other_version__reads_everything(rows, tmp_path, monkeypatch):
    path, folder = tmp_path / "x.zarr", tmp_path / "kept"
    as_zarr(rows[:200], path)
    kept_pass(path, folder)
    monkeypatch.setattr("bigkd.engine.work.__version__", "0.0.0")
    _, read, reused = kept_pass(path, folder)
    assert (read, reused) == (200, 0)


def test_damaged_sum__falls_back_on_the_segments(rows, tmp_path, caplog):
    path, folder = tmp_path / "x.zarr", tmp_path / "kept"
    as_zarr(rows[:200], path)
    whole, *_ = kept_pass(path, folder)
    (joined,) = folder.glob("*/sum-of-*.zarr")
    shutil.rmtree(joined / "state.0.total")
    found, read, reused = kept_pass(path, folder)
    assert (read, reused) == (0, 200)
    assert_same_bits(found, whole)
    assert "sum-of-" in caplog.text


def test_weights__that_grow_with_the_rows_cost_new_rows_only(rows, tmp_path):
    path, beside, folder = tmp_path / "x.zarr", tmp_path / "w.zarr", tmp_path / "kept"
    weights = np.arange(200.0)

    def weighted():
        with open_ledger() as ledger:
            source = open_rows(path, name="x", block_rows=10, weights=beside)
            found = reduce(everything(3), source, checkpoint=folder)
        return found, ledger.rows_read

    as_zarr(rows[:160], path)
    zarr.create_array(str(beside), data=weights[:160], chunks=(20,))
    weighted()
    append(path, rows[160:200])
    append(beside, weights[160:])
    found, read = weighted()
    assert read == 40
    assert_same_bits(found, reduce(everything(3), open_rows(rows[:200], name="x", block_rows=10,
                                                            weights=weights)))  # fmt: skip
    zarr.open_array(str(beside), mode="a")[30] = 5.0
    _, read = weighted()
    assert read == 20  # blocks 2 and 3 are segments of one


def test_rows_in_memory__are_known_by_their_content(rows, tmp_path):
    def passed(n_rows):
        with open_ledger() as ledger:
            source = open_rows(rows[:n_rows].copy(), name="x", block_rows=10)
            found = reduce(everything(3), source, checkpoint=tmp_path)
        return found, ledger.rows_read

    passed(200)
    found, read = passed(240)
    assert read == 40
    assert_same_bits(found, reduce(everything(3), open_rows(rows[:240], name="x", block_rows=10)))


def test_ledger__names_all_that_an_equal_call_would_look_for(rows, tmp_path):
    path, folder = tmp_path / "x.zarr", tmp_path / "kept"
    as_zarr(rows[:170], path)
    with open_ledger() as ledger:
        reduce(everything(3), open_rows(path, name="x", block_rows=10), checkpoint=folder)
    assert ledger.in_use == {str(store) for store in folder.glob("*/*.zarr")}
    append(path, rows[170:200])
    with open_ledger() as ledger:
        reduce(everything(3), open_rows(path, name="x", block_rows=10), checkpoint=folder)
    there = {str(store) for store in folder.glob("*/*.zarr")}
    assert ledger.in_use < there
    (old,) = there - ledger.in_use  # the last segment as it was
    shutil.rmtree(old)
    assert kept_pass(path, folder)[1:] == (0, 200)


@pytest.mark.parametrize("row", [3, 17, 25])
@pytest.mark.parametrize("column", [0, 2])
def test_changed_chunk__of_several_in_a_block_is_noticed(rows, row, column, tmp_path):
    path = tmp_path / "x.zarr"
    zarr.create_array(str(path), data=rows[:120], chunks=(10, 2))
    kept_pass(path, tmp_path / "kept", block_rows=30)
    zarr.open_array(str(path), mode="a")[row, column] = 9.0
    found, read, reused = kept_pass(path, tmp_path / "kept", block_rows=30)
    assert (read, reused) == (30, 90)
    assert_same_bits(found, reduce(everything(3), open_rows(path, name="x", block_rows=30)))


def test_linked_chunks__are_read_and_looked_at(rows, tmp_path):
    path, elsewhere = tmp_path / "x.zarr", tmp_path / "elsewhere"
    as_zarr(rows[:50], path)
    shutil.move(path / "c", elsewhere)
    (path / "c").symlink_to(elsewhere)
    kept_pass(path, tmp_path / "kept")
    zarr.open_array(str(path), mode="a")[:] = rows[50:100]
    found, read, reused = kept_pass(path, tmp_path / "kept")
    assert (read, reused) == (50, 0)
    assert_same_bits(found, fresh(path))


def test_group_with_consolidated_metadata__shows_rows_that_were_added(rows, tmp_path):
    path = tmp_path / "x.zarr"
    zarr.create_group(str(path)).create_array("x", data=rows[:50], chunks=(10, 3))
    with pytest.warns(UserWarning, match="Consolidated"):
        zarr.consolidate_metadata(str(path))
    kept_pass(path, tmp_path / "kept")
    append(path / "x", rows[50:80])
    found, read, reused = kept_pass(path, tmp_path / "kept")
    assert (read, reused) == (30, 50)
    assert_same_bits(found, fresh(path / "x"))


def test_weights__beside_skipped_rows_are_those_of_the_rows_that_are_there(rows, tmp_path):
    path, beside = tmp_path / "x.zarr", tmp_path / "w.zarr"
    as_zarr(rows[:100], path)
    (path / "c" / "3" / "0").unlink()
    zarr.create_array(str(beside), data=np.arange(100.0), chunks=(10,))

    def weighted():
        with open_ledger() as ledger:
            source = open_rows(path, name="x", block_rows=10, weights=beside, missing="skip")
            reduce(everything(3), source, checkpoint=tmp_path / "kept")
        return ledger.rows_read

    weighted()
    zarr.open_array(str(beside), mode="a")[35] = 7.0  # of a row that is not there
    assert weighted() == 0
    zarr.open_array(str(beside), mode="a")[95] = 7.0
    assert weighted() == 10


def test_weights__are_not_taken_for_vectors(rows, tmp_path):
    path, beside = tmp_path / "x.npy", tmp_path / "w.npy"
    np.save(path, rows[:20])
    np.save(beside, np.ones((20, 1)))
    weighted = open_rows(path, name="x", weights=beside)
    directed = open_rows(path, name="x", vectors=beside)
    assert weighted.block_identities() != directed.block_identities()


def test_inexact_states__are_never_gone_on_from(rows, tmp_path):
    def passed(n_rows, folder):
        path = tmp_path / "x.zarr"
        if path.exists():
            append(path, rows[path_rows(path) : n_rows])
        else:
            as_zarr(rows[:n_rows], path)
        summary = Census(exact=False)
        with open_ledger() as ledger:
            reduce(summary, open_rows(path, name="x", block_rows=10), checkpoint=folder)
        return ledger.rows_read

    def path_rows(path):
        return zarr.open_array(str(path), mode="r").shape[0]

    def stores():
        return len(list((tmp_path / "kept").glob("*/*.zarr")))

    # four segments of one block, one of two begun, which is not kept in parts
    assert (passed(50, tmp_path / "kept"), stores()) == (50, 5)
    assert (passed(60, tmp_path / "kept"), stores()) == (20, 6)
    shutil.rmtree(tmp_path / "kept")
    assert (passed(60, tmp_path / "kept"), stores()) == (60, 5)


def test_other_columns_of_one_parquet_file__are_other_rows(rows, tmp_path):
    pa, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    table = {name: rows[:20, column] for column, name in enumerate("abc")}
    parquet.write_table(pa.table(table), tmp_path / "x.parquet")
    one, other = (
        open_rows(tmp_path / "x.parquet", name="x", columns=columns).block_identities()
        for columns in (("a", "b"), ("b", "c"))
    )
    assert not set(one) & set(other)


def test_share_of_a_pass__reads_the_same_stripes_and_more_when_a_store_grows(rows, tmp_path):
    path, folder = tmp_path / "x.zarr", tmp_path / "kept"

    def shared():
        with open_ledger() as ledger:
            source = open_rows(path, name="x", block_rows=10)
            found = reduce(everything(3), source, checkpoint=folder, share=0.3)
        return found, ledger

    as_zarr(rows[:200], path)
    found, ledger = shared()
    assert int(found.tally.rows) == ledger.rows_read == 60
    append(path, rows[200:300])
    grown, ledger = shared()
    assert int(grown.tally.rows) == 90
    assert ledger.rows_read <= 50
    assert_same_bits(
        grown, reduce(everything(3), open_rows(path, name="x", block_rows=10), share=0.3)
    )


def test_grown_store__takes_the_longest_sum_and_writes_what_is_new_only(rows, tmp_path):
    path, folder, events = tmp_path / "x.zarr", tmp_path / "kept", []
    as_zarr(rows[:200], path)
    kept_pass(path, folder)
    append(path, rows[200:])
    kept_pass(path, folder)
    assert len(list(folder.glob("*/sum-of-*.zarr"))) == 2
    before = {file: file.stat().st_mtime_ns for file in folder.glob("*/**/*")}
    source = open_rows(path, name="x", block_rows=10)
    reduce(everything(3), source, checkpoint=folder, progress=events.append)
    assert {file: file.stat().st_mtime_ns for file in folder.glob("*/**/*")} == before
    assert max(np.diff([event.done for event in events])) > 200


@pytest.mark.parametrize(("n_blocks", "again"), [(3, 60), (30, 270)])
def test_stripes_of_several_blocks__grow_and_change(rows, tmp_path, monkeypatch, n_blocks, again):
    path, folder = tmp_path / "x.zarr", tmp_path / "kept"
    row_cost = everything(3).footprint(10, 4).row_cost
    monkeypatch.setattr(stripes, "STRIPE_WORK", 10 * n_blocks * (row_cost + 12))
    as_zarr(rows[:200], path)
    kept_pass(path, folder)
    append(path, rows[200:270])
    found, read, reused = kept_pass(path, folder)
    assert (read, reused) == (70, 200)
    assert_same_bits(found, fresh(path))
    zarr.open_array(str(path), mode="a")[145] = 7.0  # neither the first of a stripe nor the last
    found, read, reused = kept_pass(path, folder)
    assert (read, reused) == (again, 270 - again)
    assert_same_bits(found, fresh(path))
