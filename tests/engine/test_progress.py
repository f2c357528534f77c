import io
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from bigkd.engine import Event, progress
from bigkd.engine.progress import Watch, part_of_a_job
from bigkd.errors import DataError
from bigkd.io import open_rows
from bigkd.summaries import KernelSum, Mean
from tests.engine.helpers import generated, reduce, reduce_pairs


def inner(x, y):
    return x @ y.T


def assert_sound(events, label, total):
    assert {event.label for event in events} == {label}
    assert {event.total for event in events} == {total}
    done = [event.done for event in events]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, total)
    assert done.count(total) == 1
    seconds = [event.seconds for event in events]
    assert seconds == sorted(seconds)
    assert seconds[0] >= 0.0


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
@pytest.mark.usefixtures("small_stripes")
def test_progress__counts_every_row_once(scheduler):
    events = []
    reduce(Mean(width=3), generated(95, 10), progress=events.append, scheduler=scheduler)
    assert_sound(events, "pass", 95)
    assert len(events) == 11
    steps = np.diff([event.done for event in events])
    assert sorted(steps) == [5] + [10] * 9


@pytest.mark.usefixtures("small_squares")
def test_progress__counts_every_pair():
    events = []
    summary = KernelSum(kernel=inner)
    reduce_pairs(summary, generated(60, 10), progress=events.append)
    # three runs of 20 rows: six squares
    assert_sound(events, "pairs", 6 * 400)
    assert len(events) == 7


def test_progress__stops_where_the_pass_failed():
    events = []
    rows = np.ones((20, 2))
    rows[15] = np.nan
    with pytest.raises(DataError):
        reduce(Mean(width=2), open_rows(rows, name="x", block_rows=5), progress=events.append)
    assert [event.done for event in events] == [0]


@pytest.mark.usefixtures("small_stripes")
def test_progress__raises_what_the_function_raises():
    def refuse(event: Event):
        if event.done:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        reduce(Mean(width=3), generated(20, 10), progress=refuse)


@pytest.mark.usefixtures("small_stripes")
def test_progress__writes_lines_of_json(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 0.0))
    path = tmp_path / "new" / "log.jsonl"
    for label, part in (("one", ""), ("other", "drift")):
        with part_of_a_job(part):
            reduce(Mean(width=3), generated(95, 10), label=label, progress=str(path))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert set(lines[0]) == {"time", "label", "done", "total", "seconds", "unit"}
    ends = [(line["label"], line["done"]) for line in lines if line["done"] == line["total"]]
    assert ends == [("one", 95), ("drift: other", 95)]
    when = datetime.fromisoformat(lines[0]["time"])
    assert abs(datetime.now(UTC) - when) < timedelta(minutes=10)
    # at most one a second, and the ends
    assert len(lines) == 4


@pytest.mark.usefixtures("small_stripes")
def test_progress__draws_a_bar(monkeypatch):
    screen = io.StringIO()

    def terminal(*, stderr):
        assert stderr  # what is on stdout may be piped
        return Console(file=screen, force_terminal=True, width=120)

    monkeypatch.setattr(progress, "Console", terminal)
    reduce(Mean(width=3), generated(1_234, 100), label="means of x", progress=True)
    assert "means of x" in screen.getvalue()
    assert "1,234/1,234 rows" in screen.getvalue()
    assert "100%" in screen.getvalue()


@pytest.mark.parametrize("silent", [None, False])
def test_progress__is_silent_by_default(silent, capsys):
    reduce(Mean(width=3), generated(95, 10), progress=silent)
    assert capsys.readouterr() == ("", "")


class Shown(list):
    def __call__(self, event):
        self.append(event)

    def close(self):
        pass


def test_watch__counts_what_is_read_twice_once():
    shown = Shown()
    with Watch(shown, "x", 10) as watch:
        for _ in range(3):
            watch.on_event((0.0, {"rows": 6}))
        watch.check()
    assert [event.done for event in shown] == [0, 6, 10, 10]


def test_watch__does_not_show_what_comes_late():
    shown = Shown()
    with Watch(shown, "x", 10) as watch:
        pass
    watch.on_event((0.0, {"rows": 6}))
    assert [event.done for event in shown] == [0, 10]


def test_watch__hands_over_what_the_reporter_raised():
    def fail(event):
        if event.done:
            raise OSError("disk full")

    watch = Watch(fail, "x", 10)
    watch.on_event((0.0, {"rows": 6}))
    with pytest.raises(OSError, match="disk full"):
        watch.check()


def test_part_of_a_job__is_over_when_it_ends():
    events = []
    with pytest.raises(KeyError), part_of_a_job("drift"):
        raise KeyError
    reduce(Mean(width=3), generated(10, 10), label="one", progress=events.append)
    assert {event.label for event in events} == {"one"}
