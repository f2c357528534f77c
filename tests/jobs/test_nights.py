"""Jobs that run again and again on data that grow."""

import json
import re

import numpy as np
import pytest
import xarray as xr
import zarr

from bigkd import errors
from bigkd.engine import stripes
from bigkd.io import load_dataset, load_history, zarr_rows
from bigkd.io.small_files import files_at, read_record, write_record
from bigkd.jobs import load_job, run_job

JOB = """\
data:
  tonight: {path: tonight.zarr, block_rows: 20}
  reference: {path: reference.zarr, block_rows: 20}
comparisons:
  drift:
    distance: {x: tonight, y: reference, kernel: median, method: rff, eps: 0.2}
    fail_if: {above: 0.2}
  new_modes:
    modes: {test: tonight, reference: reference, n_frequencies: 50, n_modes: 3, n_top: 0}
    fail_if: {significant: true}
output: {store: out, history: history.zarr}
run: {scheduler: sync}
"""


@pytest.fixture(autouse=True)
def small_stripes(monkeypatch):
    monkeypatch.setattr(stripes, "STRIPE_WORK", 1)


@pytest.fixture
def source():
    """Rows of a night: ordinary ones, or far away."""
    generator = np.random.default_rng(0)

    def rows(n_rows, shift=0.0):
        return generator.normal(size=(n_rows, 4)) + shift

    return rows


@pytest.fixture
def night(tmp_path, source):
    """Adds rows to tonight's store, and runs the job."""
    zarr.create_array(str(tmp_path / "tonight.zarr"), data=source(100), chunks=(20, 4))
    zarr.create_array(str(tmp_path / "reference.zarr"), data=source(100), chunks=(20, 4))
    (tmp_path / "job.yaml").write_text(JOB)

    def run(n_new=0, shift=0.0, text=JOB, **how):
        if n_new:
            array = zarr.open_array(str(tmp_path / "tonight.zarr"), mode="a")
            array.append(source(n_new, shift))
        (tmp_path / "job.yaml").write_text(text)
        return run_job(load_job(tmp_path / "job.yaml"), **how)

    return run


def rows_of(record):
    return {made.name: (made.rows_read, made.rows_reused) for made in record.comparisons}


def test_nights__read_what_is_new_and_tell_when_it_differs(night, tmp_path):
    first = night()
    assert (first.exit_code, first.verdict) == (0, "fine")
    assert rows_of(first) == {"drift": (200, 0), "new_modes": (200, 0)}
    second = night(20)
    assert second.exit_code == 0
    assert rows_of(second) == {"drift": (20, 200), "new_modes": (20, 200)}
    third = night(100, shift=9.0)
    assert third.exit_code == 3
    assert [made.verdict for made in third.comparisons] == ["exceeded", "exceeded"]
    assert rows_of(third) == {"drift": (100, 220), "new_modes": (100, 220)}
    history = xr.open_zarr(tmp_path / "history.zarr")
    assert history.sizes["run"] == 3
    assert history["exit_code"].values.tolist() == [0, 0, 3]
    assert history["drift.rows_read"].values.tolist() == [200, 20, 100]
    drift = [float(record.comparisons[0].result["distance"]) for record in (first, second, third)]
    assert history["drift.distance"].values.tolist() == drift
    assert history["drift.limit.distance"].values.tolist() == [0.2] * 3
    assert history["new_modes.significant"].values[:, 0].tolist() == [0, 0, 1]
    assert load_dataset(tmp_path / "out" / "drift.zarr", kind="distance").identical(
        third.comparisons[0].result
    )
    assert {path.name for path in tmp_path.iterdir()} == {
        "job.yaml", "tonight.zarr", "reference.zarr", "out", "out.checkpoint", "history.zarr",
    }  # fmt: skip


def test_nights__have_the_bits_of_a_run_that_reads_all(night, tmp_path):
    night()
    night(60)
    fresh = night(resume=False)
    assert rows_of(fresh) == {"drift": (260, 0), "new_modes": (260, 0)}
    again = night()
    assert rows_of(again) == {"drift": (0, 260), "new_modes": (0, 260)}
    for one, other in zip(fresh.comparisons, again.comparisons, strict=True):
        for name in one.result:
            assert one.result[name].values.tobytes() == other.result[name].values.tobytes()


def test_nights__keep_the_choices_of_the_first(night):
    first = night()
    second = night(100, shift=3.0)
    for one, other in zip(first.comparisons, second.comparisons, strict=True):
        for choice in ("kernel", "kernel_parameters", "n_frequencies"):
            assert one.result.attrs[choice] == other.result.attrs[choice]


def test_nights__choose_anew_where_they_begin_anew(night):
    first, fresh = night(), night(100, shift=3.0, resume=False)
    again = night(20)
    chosen = [
        record.comparisons[1].result.attrs["kernel_parameters"] for record in (first, fresh, again)
    ]
    assert chosen[0] != chosen[1] == chosen[2]


def test_nights__choose_anew_where_something_else_is_asked_for(night):
    first = night()
    other = night(text=JOB.replace("eps: 0.2", "eps: 0.1"))
    drift = [record.comparisons[0].result.attrs["n_frequencies"] for record in (first, other)]
    assert drift[0] < drift[1]
    assert rows_of(other)["new_modes"] == (0, 200)
    assert rows_of(other)["drift"][0] > 0


def test_nights__with_nothing_new_read_nothing(night):
    first, events = night(), []
    second = night(progress=events.append)
    assert {event.label.partition(": ")[0] for event in events} == {"drift", "new_modes"}
    assert rows_of(second) == {"drift": (0, 200), "new_modes": (0, 200)}
    for one, other in zip(first.comparisons, second.comparisons, strict=True):
        for name in one.result:
            assert one.result[name].values.tobytes() == other.result[name].values.tobytes()


def test_nights__forget_summaries_that_nobody_uses(night, tmp_path):
    def stores():
        return sorted((tmp_path / "out.checkpoint").glob("*/*.zarr"))

    night()
    before = stores()
    night(20)
    night(20)
    folders = {path.parent for path in stores()}
    assert folders == {path.parent for path in before}
    night(text=JOB.replace("n_frequencies: 50", "n_frequencies: 60"))
    assert len({path.parent for path in stores()}) == len(folders)
    night(text=JOB.replace("output: {", "output: {keep_summaries: false, "))
    assert not (tmp_path / "out.checkpoint").exists() or not stores()


def test_nights__one_comparison_that_fails_leaves_the_others(night, tmp_path, source):
    bad = source(40)
    bad[3] = np.nan
    zarr.create_array(str(tmp_path / "bad.zarr"), data=bad, chunks=(20, 4))
    text = JOB.replace("comparisons:\n", "  bad: bad.zarr\ncomparisons:\n").replace(
        "output:", "  broken:\n    two_sample: {x: bad, y: reference}\noutput:"
    )
    record = night(text=text)
    assert record.exit_code == 4
    assert [made.verdict for made in record.comparisons] == ["fine", "fine", "failed"]
    assert "x: row 3 " in record.comparisons[2].message
    assert record.comparisons[2].message.endswith(f"x is {tmp_path / 'bad.zarr'}.")
    assert record.comparisons[2].result is None
    history = load_history(tmp_path / "history.zarr")
    assert history["broken.verdict"].values.tolist() == ["failed"]
    assert "row 3" in str(history["broken.message"].values[0])
    again = night()
    assert rows_of(again) == {"drift": (0, 200), "new_modes": (0, 200)}


def test_nights__an_interrupted_one_is_taken_up_by_the_next(night, tmp_path):
    night()

    def stop(event):
        if "reference" in event.label and event.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        night(40, text=JOB.replace("n_frequencies: 50", "n_frequencies: 60"), progress=stop)
    assert load_history(tmp_path / "history.zarr").sizes["run"] == 1
    record = night(text=JOB.replace("n_frequencies: 50", "n_frequencies: 60"))
    assert rows_of(record)["new_modes"] == (100, 140)
    assert load_history(tmp_path / "history.zarr").sizes["run"] == 2


@pytest.mark.parametrize("changed", [False, True])
def test_nights__one_that_was_stopped_after_its_append_is_one(
    night, tmp_path, monkeypatch, changed
):
    night()

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("bigkd.jobs.run.ended", killed)
        with pytest.raises(KeyboardInterrupt):
            night(20)
    assert load_history(tmp_path / "history.zarr").sizes["run"] == 2
    night(20 if changed else 0)
    history = load_history(tmp_path / "history.zarr")
    assert history.sizes["run"] == (3 if changed else 2)
    assert len(set(history["run_id"].values.tolist())) == history.sizes["run"]
    night()
    assert load_history(tmp_path / "history.zarr").sizes["run"] == (4 if changed else 3)


def nothing_of_ours(text):
    return '{"drift": 3}'


def another_digit(text):
    return re.sub(r'"sigma": [0-9]', '"sigma": 7', text)


def nested_without_end(text):
    return "[" * 100_000


@pytest.mark.parametrize("damage", [nothing_of_ours, another_digit, nested_without_end])
def test_nights__of_a_damaged_file_of_choices_choose_anew(night, tmp_path, caplog, damage):
    night()
    pins = tmp_path / "out.checkpoint" / "pins.json"
    pins.write_text(damage(pins.read_text()))
    record = night()
    assert record.exit_code == 0
    assert "pins.json is damaged" in caplog.text


def test_nights__of_choices_that_cannot_be_used_choose_anew_once(night, tmp_path, caplog):
    night()
    files = files_at(tmp_path / "out.checkpoint")
    pins = read_record(files, "pins.json")
    (choice,) = (one for one in pins["drift"]["choices"].values() if isinstance(one["value"], dict))
    choice["value"]["of_another_version"] = 1
    write_record(files, "pins.json", pins)
    assert night().exit_code == 0
    assert "pins.json holds choices that drift cannot use" in caplog.text
    caplog.clear()
    assert night().exit_code == 0
    assert "pins.json" not in caplog.text


def test_nights__a_sheet_that_cannot_be_drawn_leaves_the_other_comparisons(night):
    drawn = "n_top: 2}\n    sheet: modes.html"
    record = night(text=JOB.replace("n_top: 0}", drawn))
    assert record.exit_code == 2
    assert [made.verdict for made in record.comparisons] == ["fine", "failed"]
    assert "images" in record.comparisons[1].message


def test_nights__whose_summaries_cannot_be_kept_say_where(night, tmp_path):
    (tmp_path / "out.checkpoint").write_text("in the way")
    with pytest.raises(errors.StoreError, match=r"checkpoint folder .*out.checkpoint cannot be wr"):
        night()


def test_job__takes_paths_from_the_caller(night, tmp_path, source):
    night()
    zarr.create_array(str(tmp_path / "other.zarr"), data=source(60), chunks=(20, 4))
    job = load_job(tmp_path / "job.yaml", data={"tonight": str(tmp_path / "other.zarr")})
    record = run_job(job)
    assert rows_of(record) == {"drift": (60, 100), "new_modes": (60, 100)}
    assert json.loads(record.job)["comparisons"]["drift"]["distance"]["x"]["path"].endswith(
        "other.zarr"
    )
    with pytest.raises(errors.JobFileError, match="no data called 'today'"):
        load_job(tmp_path / "job.yaml", data={"today": "x"})


def test_nights__look_at_a_store_as_often_as_passes_and_comparisons_end(night, monkeypatch):
    looks, look = [], zarr_rows.folder_status
    monkeypatch.setattr(zarr_rows, "folder_status", lambda path: looks.append(path) or look(path))
    night()
    opened, drift, new_modes = 2, 2, 2  # gaps and names; the end of each pass, and of each
    assert len(looks) == 2 * (opened + drift + new_modes)
