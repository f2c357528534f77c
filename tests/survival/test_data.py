"""Data and kept work that are damaged, or change while they are read."""

import os
import random
import shutil
import signal

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

from bigkd.cli import commands
from bigkd.engine import stripes
from bigkd.errors import DataError
from bigkd.io import load_history
from bigkd.jobs import load_job, run_job
from tests.survival.command import Harm
from tests.survival.harness import (
    CHUNK,
    RESULTS,
    copy_of,
    digest_of,
    grow,
    look,
    make_data,
    night,
    rows,
    write_job,
)
from tests.survival.test_struck import assert_same

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]


@pytest.fixture(autouse=True)
def small_stripes(monkeypatch):
    monkeypatch.setattr(stripes, "STRIPE_WORK", 1)


def carried_out(work, progress=False):
    return run_job(load_job(work / "job.yaml"), progress=progress)


def flip(path, at=0.5):
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] ^= 4
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-7])


@pytest.mark.parametrize(
    ("harm", "message"),
    [(flip, "rows 40 to 59 cannot be read"), (cut, "rows 40 to 59 cannot be read"),
     (os.unlink, "1 of 3 chunks .* do not exist; the first is .*row 40")],
)  # fmt: skip
def test_a_damaged_chunk__is_named_and_costs_only_what_needs_it(nights, evening, harm, message):
    work = evening(0, report=False)
    text = (work / "job.yaml").read_text()
    last = "stand_ins:\n    coreset: {data: reference"
    (work / "job.yaml").write_text(text.replace("stand_ins:\n    coreset: {data: tonight", last))
    chunk = work / "tonight.zarr" / "c" / "2" / "0"
    before, about = chunk.read_bytes(), chunk.stat()
    harm(chunk)
    record = carried_out(work)
    assert record.exit_code == 4
    made = {one.name: one for one in record.comparisons}
    for name in ("drift", "new_modes"):
        assert made[name].verdict == "failed"
        with pytest.raises(DataError, match=message):
            raise DataError(made[name].message)
    assert made["stand_ins"].verdict == "fine"
    assert list(load_history(work / "history.zarr")["drift.verdict"].values) == ["failed"]
    chunk.write_bytes(before)
    os.utime(chunk, ns=(about.st_atime_ns, about.st_mtime_ns))
    again = carried_out(work)
    assert again.exit_code == 0
    for name in ("drift", "new_modes"):
        store = work / "nightly" / f"{name}.zarr"
        assert digest_of(store) == nights[0].after.results[name]


@pytest.mark.parametrize("seed", range(2))
def test_damaged_summaries__are_told_and_made_again(nights, evening, seed):
    work, generator = evening(1, report=False), random.Random(seed)
    stores = sorted((work / "nightly.checkpoint").glob("*/*.zarr"))
    for store in generator.sample(stores, len(stores) // 2):
        file = generator.choice(sorted(path for path in store.rglob("*") if path.is_file()))
        generator.choice([flip, cut, os.unlink])(file)
    ended = night(work)
    assert ended.code == 0, ended.stderr
    assert "a checkpoint is damaged and is computed again" in ended.stderr
    assert look(work)._replace(names=frozenset()) == nights[1].after._replace(names=frozenset())


def test_a_damaged_result__is_noticed_and_made_again(nights, evening):
    work = evening(1, report=False)
    flip(work / "nightly" / "drift.zarr" / "distance" / "c")
    shown = CliRunner().invoke(commands, ["show", str(work / "nightly" / "drift.zarr")])
    assert shown.exit_code == 4
    assert "corrupted" in shown.stderr
    assert night(work).code == 0
    assert_same(look(work), nights[1].after)


def test_a_damaged_history__is_left_alone_and_the_run_is_kept_beside_it(nights, evening):
    work = evening(1, report=False)
    flip(work / "history.zarr" / "drift.distance" / "c" / "0")
    before = digest_of(work / "history.zarr")
    ended = night(work)
    assert ended.code == 4
    assert "history.zarr is" in ended.stderr
    assert "This run was put into" in ended.stderr
    assert digest_of(work / "history.zarr") == before
    (beside,) = work.glob("history.zarr.*.zarr")
    assert load_history(beside)["verdict"].values.tolist() == ["fine"]
    results = look_at_results(work)
    assert results == nights[1].after.results


def look_at_results(work):
    return {name: digest_of(work / "nightly" / f"{name}.zarr") for name in RESULTS}


class Meanwhile:
    """Does something at one moment of a run."""

    def __init__(self, do, at):
        self._do, self._left = do, at

    def __call__(self, event):
        self._left -= 1
        if self._left == 0:
            self._do()


@pytest.mark.parametrize("at", [1, 15])
def test_a_store_that_grows_while_it_is_read__is_taken_as_it_was(nights, evening, at):
    work = evening(0, report=False)
    record = carried_out(work, Meanwhile(lambda: grow(work), at))
    assert record.exit_code == 0
    assert_same(look(work)._replace(names=frozenset()), nights[0].after._replace(names=frozenset()))
    assert carried_out(work).exit_code == 0
    assert look_at_results(work) == nights[1].after.results


@pytest.mark.parametrize("at", [2, 10])
def test_a_chunk_rewritten_while_it_is_read__is_noticed(evening, at):
    work = evening(0, report=False)
    text = (work / "job.yaml").read_text()  # else the first run's choice of a kernel would stay
    for made in ("n_frequencies: 30", "n_modes: 2"):
        text = text.replace(made, f"{made}, kernel: {{name: gaussian, sigma: 3.0}}")
    (work / "job.yaml").write_text(text)

    def rewrite():
        zarr.open_array(work / "tonight.zarr")[:CHUNK] = rows(CHUNK, 9)

    record = carried_out(work, Meanwhile(rewrite, at))
    messages = [one.message for one in record.comparisons if one.verdict == "failed"]
    assert record.exit_code == 4
    assert all("changed" in message for message in messages)
    clean = copy_of(work, work.parent / "clean")
    for name in ("nightly", "nightly.checkpoint", "history.zarr"):
        shutil.rmtree(clean / name, ignore_errors=True)
    os.rename(work, work.parent / "aside")
    os.rename(clean, work)
    assert carried_out(work).exit_code == 0
    expected = look_at_results(work)
    shutil.rmtree(work)
    os.rename(work.parent / "aside", work)
    assert carried_out(work).exit_code == 0
    assert look_at_results(work) == expected


def test_difficult_data__give_the_same_after_a_kill(tmp_path):
    """NaN rows, absent chunks, ragged chunks, types that differ."""
    work = tmp_path / "work"
    work.mkdir()
    make_data(work)
    for name, number, chunk, dtype in (("tonight", 95, 17, "f2"), ("reference", 77, 9, "i2")):
        array = zarr.create_array(
            work / f"{name}.zarr", shape=(number, 4), chunks=(chunk, 4), dtype=dtype,
            overwrite=True,
        )  # fmt: skip
        values = np.round(rows(number, 5))
        values[2 * chunk : 3 * chunk] = 0
        array[:] = values
    zarr.open_array(work / "tonight.zarr")[60] = np.nan
    assert not (work / "reference.zarr" / "c" / "2").exists()
    write_job(work)
    text = (work / "job.yaml").read_text()
    text = text.replace("tonight.zarr,", "tonight.zarr, missing: skip,")
    text = text.replace("reference.zarr,", "reference.zarr, missing: fill,")
    for made in ("n_frequencies: 30", "n_modes: 2", "size: 6"):
        text = text.replace(made, f"{made}, nonfinite: drop")
    (work / "job.yaml").write_text(text)
    before = copy_of(work, tmp_path / "before")
    ended = night(work)
    assert ended.code == 0, ended.stderr
    expected = look(work)
    copy_of(before, work)
    assert night(work, Harm("kill", ended.changes // 2)).code == -signal.SIGKILL
    assert night(work).code == 0
    assert_same(look(work), expected)


def test_times_of_change_in_other_years__change_no_result(nights, evening):
    work = evening(1, report=False)
    for at, path in enumerate(sorted(work.rglob("*"))):
        moment = (1971 if at % 2 else 2100) - 1970
        os.utime(path, (moment * 31_556_952, moment * 31_556_952))
    assert night(work).code == 0
    assert look_at_results(work) == nights[1].after.results


def test_a_clock_that_jumps__changes_nothing_but_the_times(nights, evening):
    work = evening(1, report=False)
    ended = night(work, Harm("clock", 500))
    assert ended.code == 0, ended.stderr
    assert_same(look(work), nights[1].after)
    assert night(work).code == 0
    assert load_history(work / "history.zarr").sizes["run"] == 3


def test_links_among_the_checkpoints__lead_nowhere(nights, evening, tmp_path):
    work = evening(1, report=False)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "text").write_text("all my work")
    kept = work / "nightly.checkpoint"
    planted = [kept / ("0" * 32), next(kept.glob("*/")) / "00000-0123456789abcdef0123.zarr"]
    stores = sorted(kept.glob("*/*.zarr"))
    for store in stores[::3]:
        shutil.rmtree(store)
        planted.append(store)
    for path in planted:
        path.symlink_to(tmp_path / "thesis")
    assert night(work).code == 0
    assert look_at_results(work) == nights[1].after.results
    assert (tmp_path / "thesis" / "text").read_text() == "all my work"
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["text"]
