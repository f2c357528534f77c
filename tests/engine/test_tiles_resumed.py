"""Calls that store rows and pairs, taken up where others stopped; and what they keep meanwhile."""

import logging
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from bigkd.engine import Settings, open_session
from bigkd.errors import InputError
from bigkd.io import open_rows
from tests.engine.toys import (
    Log,
    Powers,
    Products,
    X,
    Y,
    notes,
    powers,
    products,
    read,
    store_pairs,
    store_rows,
)


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("scheduler", ["sync", "threads", "cluster"])
@pytest.mark.usefixtures("small_tiles")
def test_resume__makes_only_what_is_not_whole(scheduler, tmp_path, request, caplog):
    if scheduler == "cluster":
        scheduler = request.getfixturevalue("cluster")
    log = Log(tmp_path / "log")
    function, source = Powers(cost=160, log=log), open_rows(X, name="x")
    array = store_rows(source, tmp_path / "kept", function, scheduler)
    assert len(notes(log)) == 10
    store_rows(source, tmp_path / "kept", function, scheduler)
    assert notes(log) == []
    chunks = Path(array.data_path) / "c"
    flip(chunks / "2" / "0" / "0")
    (chunks / "9" / "0" / "0").unlink()
    (Path(array.work_path) / "tiles_done" / "c" / "0" / "0" / "0" / "0").unlink()
    events = []
    with caplog.at_level(logging.WARNING, logger="bigkd"):
        store_rows(source, tmp_path / "kept", function, scheduler, progress=events.append)
    assert sorted(notes(log)) == sorted(["0:5", "5:10", "10:15", "15:20", "40:45", "45:50"])
    assert "2 tiles of" in caplog.text
    done = [event.done for event in events]
    assert (done[0], done[-1], events[0].total) == (0, 50, 50)
    assert done == sorted(done)
    np.testing.assert_array_equal(read(array), powers(X))


@pytest.mark.usefixtures("small_tiles")
def test_resume__of_pairs_makes_only_what_is_not_whole(tmp_path):
    log = Log(tmp_path / "log")
    x, y = open_rows(X, name="x"), open_rows(Y, name="y")
    with open_session(Settings(scheduler="sync")) as session:

        def store(**options):
            return session.store_pairs(
                Products(cost=100, **options), x, y, str(tmp_path / "kept"), label="pairs",
                name="d", dims=("kind", "a", "b"),
            )  # fmt: skip

        array = store(log=log)
        notes(log)
        flip(Path(array.data_path) / "c" / "0" / "3" / "2")
        assert store(log=log) == array
        assert notes(log) == ["12:16 8"]
        store(log=log, factor=2.0)
        assert len(notes(log)) == 13 * 6
    np.testing.assert_allclose(read(array), 2 * products(X, Y), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    "change",
    [
        lambda x, kept, log: store_rows(open_rows(x + 1, name="x"), kept, Powers(log=log)),
        lambda x, kept, log: store_rows(open_rows(x, name="x"), kept, Powers(log=log, factor=2.0)),
        lambda x, kept, log: store_rows(
            open_rows(x, name="x"), kept, Powers(log=log), nonfinite="keep"
        ),
        lambda x, kept, log: store_rows(open_rows(x[:-1], name="x"), kept, Powers(log=log)),
    ],
    ids=["values", "function", "policy", "rows"],
)
def test_resume__never_takes_up_anything_else(change, tmp_path):
    log = Log(tmp_path / "log")
    store_rows(open_rows(X, name="x"), tmp_path / "kept", Powers(log=log))
    notes(log)
    change(X, tmp_path / "kept", log)
    assert len(notes(log)) == 1


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
@pytest.mark.usefixtures("small_tiles")
def test_progress__counts_rows_and_pairs(scheduler, tmp_path):
    events = []
    x, y = open_rows(X, name="x"), open_rows(Y, name="y")
    store_rows(x, tmp_path / "rows", scheduler=scheduler, progress=events.append)
    store_pairs(x, y, tmp_path / "pairs", scheduler=scheduler, progress=events.append)
    for label, total in (("rows", 50), ("pairs", 50 * 23)):
        own = [event for event in events if event.label == label]
        assert {event.unit for event in own} == {label}
        assert (own[0].done, own[-1].done, own[0].total) == (0, total, total)
        assert len(own) > 5


def test_scratch__is_gone_when_all_went_well(tmp_path):
    with open_session(Settings(scheduler="sync")) as session, session.scratch("a") as folder:
        Path(folder, "file").touch()
    assert not Path(folder).exists()


@pytest.mark.parametrize("where", ["checkpoint", "beside"])
def test_scratch__stays_after_faults_and_is_found_again(where, tmp_path):
    kept = {"checkpoint": tmp_path / "kept"} if where == "checkpoint" else {}
    beside = None if kept else tmp_path / "x.zarr"
    with open_session(Settings(scheduler="sync", **kept)) as session:
        with suppress(KeyboardInterrupt), session.scratch("a", 1, beside=beside) as folder:
            Path(folder).mkdir(parents=True)
            raise KeyboardInterrupt
        assert Path(folder).exists()
        with session.scratch("b", 1, beside=beside) as other:
            assert other != folder
        assert Path(folder).exists() == bool(kept)  # one result has one call
        with session.scratch("a", 1, beside=beside) as again:
            assert again == folder
    assert not Path(folder).exists()


def test_scratch__needs_a_place_that_workers_reach(cluster, tmp_path, monkeypatch):
    with open_session(Settings(scheduler=cluster)) as session, session.scratch() as folder:
        assert Path(folder).is_dir()
    monkeypatch.setattr(type(cluster), "cluster", None, raising=False)
    address = cluster.scheduler_info()["address"]
    with (
        open_session(Settings(scheduler=address)) as session,
        pytest.raises(InputError, match="pass checkpoint=FOLDER"),
        session.scratch(),
    ):
        pass
    with (
        open_session(Settings(scheduler=address, checkpoint=tmp_path)) as session,
        session.scratch() as folder,
    ):
        assert Path(folder).is_relative_to(tmp_path)
