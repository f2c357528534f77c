import logging
import shutil
from collections import Counter

import dask.array as da
import numpy as np
import pytest

from bigkd.engine import Settings, checkpoints, open_session
from bigkd.engine.ledger import open_ledger
from bigkd.engine.tokens import spec_token
from bigkd.errors import DataError, StoreError
from bigkd.io import open_rows, save_state, states
from bigkd.io.sources import FileSource
from bigkd.kernels import FourierFeatures
from bigkd.summaries import KernelSum, Mapped, Mean, SecondMoment, TopRows
from tests.engine.helpers import Project, assert_same_bits, everything, generated, reduce

pytestmark = pytest.mark.usefixtures("small_stripes")

BLOCKS = (
    20  # stripes of one block each; segments of one, of two from the fifth, and the last of four
)


@pytest.fixture
def source(tmp_path):
    return generated(BLOCKS * 10, 10, log=tmp_path / "reads")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "new" / "checkpoint"


def stores(folder):
    """The segments."""
    return sorted(folder.glob("*/[0-9]*.zarr"))


def sums(folder):
    """Sums of segments."""
    return sorted(folder.glob("*/sum-of-*.zarr"))


def run(source, folder, **settings):
    return reduce(everything(3), source, checkpoint=folder, **settings)


def test_checkpoint__keeps_every_segment_and_changes_no_bit(source, folder):
    found = run(source, folder)
    assert_same_bits(found, reduce(everything(3), source))
    labels = [*range(11), 10]  # the last is kept before its last block, too, which may grow
    assert [path.name[:6] for path in stores(folder)] == [f"{at:05d}-" for at in labels]
    assert [path.name[:7] for path in sums(folder)] == ["sum-of-"]
    assert {path.name for path in folder.rglob("*") if path.name.endswith("partial")} == set()


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_resume__reads_only_what_is_not_finished(source, folder, scheduler):
    whole = run(source, folder)
    for path in stores(folder)[10:]:
        shutil.rmtree(path)
    source.log.unlink()
    events = []
    again = run(source, folder, scheduler=scheduler, progress=events.append)
    assert_same_bits(again, whole)
    assert sorted(source.reads()) == [160, 170, 180, 190]
    assert (events[0].done, events[-1].done) == (0, 200)
    assert sorted(np.diff([event.done for event in events])) == [10] * 4 + [160]


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_resume__without_the_sum_reads_the_segments(source, folder, scheduler):
    whole = run(source, folder)
    (path,) = sums(folder)
    shutil.rmtree(path)
    shutil.rmtree(stores(folder)[5])
    source.log.unlink()
    events = []
    again = run(source, folder, scheduler=scheduler, progress=events.append)
    assert_same_bits(again, whole)
    assert sorted(source.reads()) == [60, 70]
    assert sorted(np.diff([event.done for event in events])) == [10] * 6 + [20] * 5 + [40]
    assert sums(folder) == [path]


def test_resume__goes_on_after_a_pass_that_failed(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(FileSource, "content", lambda self: "what is changed behind its back")
    rows = np.random.default_rng(0).normal(size=(200, 3))
    np.save(tmp_path / "x.npy", rows)
    bad = open_rows(tmp_path / "x.npy", name="x", block_rows=10)
    spoilt = rows.copy()
    spoilt[155] = np.nan
    with open(tmp_path / "x.npy", "r+b") as file:  # behind its back
        file.seek(bad.offset)
        file.write(spoilt.tobytes())
    with pytest.raises(DataError, match="row 155"):
        run(bad, folder)
    kept = {path.name for path in stores(folder)}
    assert kept
    assert not any(name.startswith("00009-") for name in kept)
    with open(tmp_path / "x.npy", "r+b") as file:
        file.seek(bad.offset)
        file.write(rows.tobytes())
    before = {path: path.stat().st_mtime_ns for path in stores(folder)}
    whole = run(bad, folder)
    assert_same_bits(whole, reduce(everything(3), open_rows(rows, name="x", block_rows=10)))
    assert {path: path.stat().st_mtime_ns for path in before} == before


def flip(path):
    """Flip a bit in the middle of the largest file of the store."""
    file = max(path.rglob("c/**/*"), key=lambda p: p.stat().st_size if p.is_file() else 0)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(content)


def truncate(path):
    for file in path.rglob("c"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:-3])


def lose_a_variable(path):
    shutil.rmtree(next(path.glob("state.1.outer")))


def lose_the_manifest(path):
    (path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')


def scramble_the_metadata(path):
    (path / "zarr.json").write_bytes(b"\xff\x00nonsense")


def exchange(path):
    """Put another segment in its place: whole, but not this one's."""
    shutil.rmtree(path)
    shutil.copytree(stores(path.parents[1])[0], path)


def rename_its_token(path):
    state = everything(3).init(np.zeros((1, 3), dtype=np.float32))
    save_state(path, state, token="of something else")


@pytest.mark.parametrize(
    "harm",
    [
        flip,
        truncate,
        lose_a_variable,
        lose_the_manifest,
        scramble_the_metadata,
        exchange,
        rename_its_token,
    ],
    ids=lambda harm: harm.__name__,
)
def test_resume__computes_a_damaged_segment_again(source, folder, harm, caplog):
    whole = run(source, folder)
    harm(stores(folder)[9])
    shutil.rmtree(sums(folder)[0])
    source.log.unlink()
    with caplog.at_level(logging.WARNING, logger="bigkd"):
        again = run(source, folder)
    assert_same_bits(again, whole)
    assert sorted(source.reads()) == [140, 150]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "00009-" in caplog.text
    source.log.unlink()
    assert_same_bits(run(source, folder), whole)
    assert source.reads() == []


def test_resume__of_finished_segments_says_nothing(source, folder, caplog):
    with caplog.at_level(logging.WARNING, logger="bigkd"):
        run(source, folder)
        run(source, folder)
    assert caplog.records == []


def other_values(source, folder):
    run(generated(200, 10, seed=1, log=source.log), folder)


def other_blocks(source, folder):
    run(generated(200, 11, log=source.log), folder)


def other_type(source, folder):
    run(generated(200, 10, dtype="float64", log=source.log), folder)


def other_first_row(source, folder):
    reduce(everything(3), source, checkpoint=folder, first_row=5)


def other_policy(source, folder):
    run(source, folder, nonfinite="drop")


def other_summary(source, folder):
    reduce(Mean(width=3), source, checkpoint=folder)


@pytest.mark.parametrize(
    "change",
    [other_values, other_blocks, other_type, other_first_row, other_policy, other_summary],
    ids=lambda change: change.__name__,
)
def test_checkpoint__is_never_used_for_anything_else(source, folder, change):
    run(source, folder)
    source.log.unlink()
    change(source, folder)
    assert len(source.reads()) >= BLOCKS - 1


def test_checkpoint__is_used_whatever_the_rows_are_called(source, folder):
    run(source, folder, label="one")
    source.log.unlink()
    run(source, folder, label="other")
    assert source.reads() == []


def test_checkpoint__of_dask_arrays_restores_too(folder):
    array = da.from_array(np.ones((100, 3)), chunks=(10, 3))
    whole = run(open_rows(array, name="x"), folder)
    before = {path: path.stat().st_mtime_ns for path in stores(folder)}
    assert len(before) == 8
    assert_same_bits(run(open_rows(array, name="x"), folder), whole)
    assert {path: path.stat().st_mtime_ns for path in stores(folder)} == before


@pytest.mark.parametrize("below", ["", "below"])
def test_checkpoint__says_where_it_cannot_write(source, tmp_path, below):
    (tmp_path / "file").write_text("in the way")
    target = tmp_path / "file" / below
    with pytest.raises(StoreError, match=f"checkpoint folder {target} cannot be written") as caught:
        run(source, target)
    assert caught.value.exit_code == 4
    assert source.reads() == []


def test_checkpoint__says_when_the_disk_is_full(source, folder, monkeypatch):
    def full(path, state, *, token):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "save_state", full)
    with pytest.raises(
        StoreError, match=r"-\w+\.zarr cannot be written: .*No space left"
    ) as caught:
        run(source, folder)
    assert caught.value.exit_code == 4


def test_session__makes_no_folder_without_a_pass(folder):
    with open_session(Settings(scheduler="sync", checkpoint=folder)):
        pass
    assert not folder.exists()


FREQUENCIES = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        ("1", 1),
        (None, "None"),
        ((1, 2), (12,)),
        ((1, (2,)), (1, 2)),
        (("a", "b"), ("ab",)),
        (np.zeros(2), np.zeros((1, 2))),
        (np.zeros(2), np.zeros(2, dtype="f4")),
        (np.float32(1), np.float64(1)),
        (Mean(width=3), Mean(width=4)),
        (Mean(width=3), SecondMoment(width=3)),
        (FourierFeatures(FREQUENCIES), FourierFeatures(FREQUENCIES + 1e-15)),
        (TopRows(scores=Project(3), n_top=1, work_features=2), Project(3)),
        (reduce, run),
        (Mean(width=3).init, Mean(width=4).init),
    ],
)
def test_token__tells_specs_apart(one, other):
    assert spec_token(one) != spec_token(other)
    assert spec_token(one) == spec_token(one)


def test_token__sees_through_equal_specs():
    specs = [
        Mapped(features=FourierFeatures(FREQUENCIES.copy()), summary=Mean(width=4))
        for _ in range(2)
    ]
    assert spec_token(specs[0]) == spec_token(specs[1])
    assert spec_token(Mean(width=3), 1) != spec_token(Mean(width=3), 2)
    fortran = np.asfortranarray(FREQUENCIES)
    assert spec_token(fortran) == spec_token(FREQUENCIES)


def test_token__refuses_what_it_cannot_see():
    with pytest.raises(TypeError, match="module-level function"):
        spec_token(KernelSum(kernel=lambda x, y: x @ y.T))
    with pytest.raises(TypeError, match="cannot be keyed"):
        spec_token(object())


def test_kept_states__are_read_whole_by_their_tasks_alone_unless_one_is_damaged(
    source, folder, monkeypatch
):
    read, original = [], states.load_dataset

    def noted(path, **options):
        read.append(str(path))
        return original(path, **options)

    for module in (checkpoints, states):
        monkeypatch.setattr(module, "load_dataset", noted)
    whole = run(source, folder)
    shutil.rmtree(sums(folder)[0])
    assert_same_bits(run(source, folder), whole)
    assert len(read) == len(set(read)) == 11
    read.clear()
    shutil.rmtree(sums(folder)[0])
    flip(stores(folder)[9])
    with open_ledger() as ledger:
        assert_same_bits(run(source, folder), whole)
    assert (ledger.rows_read, ledger.rows_reused) == (20, 180)
    assert max(Counter(read).values()) <= 3  # by its task, by the driver, and by its task


def test_kept_states__that_look_whole_and_cannot_be_restored_are_an_error(
    source, folder, monkeypatch
):
    def broken(*_, **__):
        raise StoreError("no disk")

    run(source, folder)
    monkeypatch.setattr(checkpoints, "load_state", broken)
    with pytest.raises(StoreError, match="no disk"):
        run(source, folder)
