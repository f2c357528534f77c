"""Nights on which something goes wrong beside the comparisons, or in one of them."""

import json

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

from bigkd import errors
from bigkd.cli.app import commands
from bigkd.io import load_history
from bigkd.io.small_files import files_at, write_record
from bigkd.jobs import load_job, run_job
from bigkd.jobs.comparisons.distance import DistancePart
from bigkd.jobs.kept import to_keep
from bigkd.jobs.pins import Pins
from bigkd.jobs.published import begun, require_own_folder
from bigkd.jobs.status import status_of

JOB = """\
data:
  tonight: {path: tonight.zarr, block_rows: 20}
  reference: {path: reference.zarr, block_rows: 20}
comparisons:
  drift:
    distance: {x: tonight, y: reference, kernel: median, method: rff, n_frequencies: 8}
    fail_if: {above: 9}
output: {store: out, history: history.zarr}
run: {scheduler: sync}
"""
BROKEN = """\
  broken:
    distance: {x: odd.zarr, y: reference, kernel: {name: gaussian, sigma: 1}, method: rff,
      n_frequencies: 8}
output:"""


@pytest.fixture
def night(tmp_path):
    """Adds rows to tonight's store, and runs the job."""
    generator = np.random.default_rng(0)
    for name in ("tonight", "reference"):
        rows = generator.normal(size=(40, 2))
        zarr.create_array(str(tmp_path / f"{name}.zarr"), data=rows, chunks=(20, 2))

    def run(text=JOB, *, n_new=0, **how):
        if n_new:
            array = zarr.open_array(str(tmp_path / "tonight.zarr"), mode="a")
            array.append(generator.normal(size=(n_new, 2)) * 3)
        (tmp_path / "job.yaml").write_text(text)
        return run_job(load_job(tmp_path / "job.yaml"), **how)

    return run


def put(path, rows):
    zarr.create_array(str(path), data=rows, chunks=(20, 2), overwrite=True)


def kernel_of(record):
    return record.comparisons[0].result.attrs["kernel_parameters"]


def test_run_job__with_a_damaged_history_puts_every_night_beside_it(night, tmp_path, caplog):
    first = night()
    (tmp_path / "history.zarr" / "zarr.json").write_text("{}")
    nights = [night(n_new=20), night(n_new=20)]
    assert "The comparisons are made all the same" in caplog.text
    for record in nights:
        assert (record.exit_code, record.verdict) == (4, "fine")
        beside = tmp_path / f"history.zarr.{record.run_id}.zarr"
        assert f"This run was put into {beside}" in record.trouble
        assert load_history(beside)["run_id"].values.tolist() == [record.run_id]
        assert kernel_of(record) == kernel_of(first)
    assert len({record.run_id for record in (first, *nights)}) == 3
    assert json.loads((tmp_path / "out.checkpoint" / "run.json").read_text())["content"]["ended"]


def test_run_job__does_not_claim_a_row_that_was_put_nowhere(night, tmp_path, monkeypatch):
    night()
    (tmp_path / "history.zarr" / "zarr.json").write_text("{}")
    with monkeypatch.context() as patched:
        patched.setattr("bigkd.jobs.run.ended", lambda *_: None)
        first = night(n_new=20)
    again = night(n_new=20)
    assert first.run_id == again.run_id
    assert "put into" in first.trouble
    assert "put nowhere" in again.trouble


def test_run_job__whose_report_cannot_be_written_is_one_run_with_its_choices(night, tmp_path):
    (tmp_path / "report.html").mkdir()
    text = JOB.replace("history:", "report: report.html, history:")
    text = text.replace("above: 9", "above: 0.0001")
    nights = [night(text), night(text, n_new=20), night(text, n_new=20)]
    assert [record.exit_code for record in nights] == [4, 4, 4]
    assert {record.verdict for record in nights} == {"exceeded"}
    assert all("The report was not written" in record.trouble for record in nights)
    assert len({kernel_of(record) for record in nights}) == 1
    history = load_history(tmp_path / "history.zarr")
    assert history["run_id"].values.tolist() == [record.run_id for record in nights]
    assert history["exit_code"].values.tolist() == [3, 3, 3]
    assert not status_of(load_job(tmp_path / "job.yaml")).is_interrupted
    shown = CliRunner().invoke(commands, ["run", str(tmp_path / "job.yaml")])
    assert shown.exit_code == 4
    assert "exceeded" in shown.stdout
    assert "The report was not written" in shown.stderr
    assert "Wrote the report" not in shown.stderr


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_run_job__one_odd_data_set_leaves_the_others(night, tmp_path):
    put(tmp_path / "odd.zarr", np.random.default_rng(0).normal(size=(40, 2)) * 1e307)
    odd = "  odd:\n    modes: {test: odd.zarr, reference: reference, n_frequencies: 10, n_top: 0,"
    odd += " kernel: {name: gaussian, sigma: 0.001}}\n"
    record = night(JOB.replace("comparisons:\n", f"comparisons:\n{odd}"))
    assert [made.verdict for made in record.comparisons] == ["failed", "fine"]
    assert "internal error: ValueError" in record.comparisons[0].message
    assert record.exit_code == 1
    history = load_history(tmp_path / "history.zarr")
    assert history["odd.verdict"].values.tolist() == ["failed"]


def test_run_job__a_judgement_that_cannot_be_made_is_a_failure(night, monkeypatch):
    def broken(*_):
        raise RuntimeError("no judge")

    monkeypatch.setattr("bigkd.jobs.thresholds.ThresholdsPart.judgements", broken)
    record = night()
    assert (record.exit_code, record.verdict) == (1, "failed")
    assert "no judge" in record.comparisons[0].message


def test_run_job__a_failure_counts_more_than_a_threshold(night):
    text = JOB.replace("above: 9", "above: 0.0001").replace("output:", BROKEN)
    record = night(text)
    assert [made.verdict for made in record.comparisons] == ["exceeded", "failed"]
    assert record.exit_code == 4


def test_run_job__with_a_failing_comparison_keeps_what_it_may_use_and_no_more(night, tmp_path):
    def stores():
        return set((tmp_path / "out.checkpoint").glob("*/*.zarr"))

    text, odd = JOB.replace("output:", BROKEN), tmp_path / "odd.zarr"
    put(odd, np.random.default_rng(1).normal(size=(40, 2)))
    night(text)
    odd.rename(tmp_path / "away")
    counts = []
    for _ in range(3):
        assert night(text, n_new=7).exit_code == 4
        counts.append(len(stores()))
    assert counts[0] == counts[1] == counts[2]
    (tmp_path / "away").rename(odd)
    record = night(text)
    assert (record.exit_code, record.comparisons[1].rows_reused) == (0, 80)


def test_run_job__a_comparison_that_never_succeeded_keeps_what_it_used_last(night, tmp_path):
    text = JOB.replace("output:", BROKEN)
    bad = np.random.default_rng(1).normal(size=(40, 2))
    bad[30] = np.nan
    put(tmp_path / "odd.zarr", bad)
    counts = []
    for _ in range(4):
        assert night(text, n_new=20).exit_code == 4
        counts.append(len(list((tmp_path / "out.checkpoint").glob("*/*.zarr"))))
    assert counts[1] == counts[2] == counts[3]


def test_run_job__refuses_the_checkpoints_of_another_job(night, tmp_path):
    text = JOB.replace("run: {", "run: {checkpoint: kept, ")
    first, other = night(text), text.replace("store: out", "store: other")
    before = (tmp_path / "kept" / "pins.json").read_text()
    for how in ({}, {"resume": False}):
        with pytest.raises(errors.InputError, match=r"kept.* holds the summaries of another job"):
            night(other, **how)
    checked = CliRunner().invoke(commands, ["check", str(tmp_path / "job.yaml")])
    assert checked.exit_code == 2
    assert "another job" in checked.output
    assert (tmp_path / "kept" / "pins.json").read_text() == before
    assert kernel_of(night(text, n_new=20)) == kernel_of(first)


def test_require_own_folder__knows_its_job_by_any_name(load, tmp_path):
    text = "modes: {test: a.npy, reference: b.npy}\noutput: {store: STORE}\nrun: {checkpoint: ck}\n"
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "out")
    begun(str(tmp_path / "ck"), str(tmp_path / "out"))
    for same in ("out", "./out/", "link"):
        require_own_folder(load(text.replace("STORE", same)))
    other = text.replace("STORE", "other")
    with pytest.raises(errors.InputError, match="another job"):
        require_own_folder(load(other))
    require_own_folder(load(other.replace("run: {", "run: {keep_checkpoints: false, ")))


def test_to_keep__of_a_failure_is_what_was_good_and_what_was_tried_last(tmp_path):
    def at(*names):
        return {f"{tmp_path}/{'0' * 32}/{name}.zarr" for name in names}

    def kept(a, b, *failed):
        return to_keep(str(tmp_path), {"a": at(*a), "b": at(*b)}, set(failed))

    assert kept("1", "2") == at("1", "2")
    assert kept("3", "4", "b") == at("3", "2", "4")
    assert kept("3", "", "b") == at("3", "2", "4")
    assert kept("3", "5", "b") == at("3", "2", "5")
    assert kept("3", "6") == at("3", "6")


@pytest.mark.parametrize("before", [None, {"b": 3}, {"b": {"good": [1], "tried": []}}])
def test_to_keep__of_a_failure_that_nothing_is_known_of_is_all(tmp_path, before):
    if before is not None:
        write_record(files_at(tmp_path), "in_use.json", before)
    assert to_keep(str(tmp_path), {"a": set(), "b": set()}, {"b"}) is None


def test_to_keep__of_a_failure_after_a_damaged_note_is_all(tmp_path):
    (tmp_path / "in_use.json").write_text("?")
    assert to_keep(str(tmp_path), {"b": set()}, {"b"}) is None


@pytest.mark.parametrize(
    ("output", "where"),
    [
        ("store: out, history: out/drift.zarr/history.zarr", "output.history"),
        ("store: out, history: h.zarr, report: out/drift.zarr/r.html", "output.report"),
    ],
)
def test_run_job__refuses_to_write_into_a_store_of_a_result(night, output, where):
    with pytest.raises(errors.InputError, match=f"{where} .*is inside .*replaced whole"):
        night(JOB.replace("store: out, history: history.zarr", output))


@pytest.mark.parametrize(
    "place", ["sheet: out/a.png", "history: out/h.zarr", "report: out/r.html, history: h.zarr"]
)
def test_run_job__of_one_result_refuses_to_write_into_its_store(load, place):
    job = load(
        f"modes: {{test: a.npy, reference: b.npy}}\noutput: {{store: out, {place}}}\n"
        f"run: {{checkpoint: ck}}\n"
    )
    with pytest.raises(errors.InputError, match=r"is inside .*out, the store of a result"):
        run_job(job)


def test_run_job__has_a_history_in_the_folder_of_its_results(night):
    text = JOB.replace("history: history", "history: out/history")
    assert [night(text).exit_code, night(text).exit_code] == [0, 0]


def test_run_job__one_that_is_taken_up_chooses_as_it_did(night, monkeypatch):
    text = JOB.replace(
        "output:", BROKEN.replace("broken", "second").replace("odd.zarr", "reference")
    )

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("bigkd.jobs.run.publish", killed)
        with pytest.raises(KeyboardInterrupt):
            night(text)
    taken_up = night(text)
    assert "bandwidth_rule" in taken_up.comparisons[0].result.attrs
    assert taken_up.comparisons[0].rows_read == 0
    assert "bandwidth_rule" not in night(text).comparisons[0].result.attrs


def distance_part(**changed):
    return DistancePart.model_validate({"x": "a.npy", "y": "b.npy", **changed})


ATTRS = {"kernel": "gaussian", "kernel_parameters": '{"sigma": 2.0}'}


def test_pins__of_a_choice_that_comes_later_are_added(tmp_path):
    part = distance_part(kernel="median", method="auto")
    Pins(tmp_path, "1").note("drift", part, {**ATTRS, "method": "exact"})
    second = Pins(tmp_path, "2")
    pinned = second.applied("drift", part)
    assert (pinned.method, pinned.kernel.sigma, pinned.n_frequencies) == ("exact", 2.0, None)
    later = {"kernel": "gaussian", "kernel_parameters": '{"sigma": 3.0}', "method": "rff"}
    second.note("drift", part, {**later, "n_frequencies": 50})
    pinned = Pins(tmp_path, "3").applied("drift", part)
    assert (pinned.method, pinned.kernel.sigma, pinned.n_frequencies) == ("exact", 2.0, 50)
    pinned = Pins(tmp_path, "2").applied("drift", part)
    assert (pinned.method, pinned.kernel.sigma, pinned.n_frequencies) == ("exact", 2.0, None)


def test_pins__stay_where_the_data_are_others(tmp_path):
    part, other = (distance_part(kernel="median", method="rff", x=x) for x in ("a.npy", "c.npy"))
    Pins(tmp_path, "1").note("drift", part, {**ATTRS, "n_frequencies": 50})
    assert Pins(tmp_path, "2").applied("drift", other).kernel.sigma == 2.0


def test_pins__of_a_method_that_was_found_have_its_size(tmp_path):
    part = distance_part(kernel={"name": "gaussian", "sigma": 1.0})
    about = {"method": "coreset", "coreset_size": 30}
    Pins(tmp_path, "1").note("drift", part, about)
    pinned = Pins(tmp_path, "2").applied("drift", part)
    assert (pinned.method, pinned.coreset_size) == ("coreset", 30)
    asked = distance_part(kernel={"name": "gaussian", "sigma": 1.0}, method="coreset")
    assert asked.choices(about) == {}


@pytest.mark.parametrize(
    "changed",
    [
        {"eps": 0.2}, {"delta": 0.5}, {"seed": 1}, {"sizing": "value"}, {"normalize": False},
        {"method": "rff"}, {"kernel": {"name": "laplace", "bandwidth": "median"}}, {"test": True},
    ],
)  # fmt: skip
def test_pins__are_of_all_that_was_asked_for(tmp_path, changed):
    part, other = distance_part(), distance_part(**changed)
    Pins(tmp_path, "1").note("drift", part, {**ATTRS, "method": "rff", "n_frequencies": 50})
    pins = Pins(tmp_path, "2")
    assert pins.applied("drift", part).n_frequencies == 50
    assert pins.applied("drift", other) is other
