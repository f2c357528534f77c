"""Rows of the history: what is kept of a run, under which name."""

import json

import numpy as np
import pytest
import xarray as xr

from bigkd.io import append_run, load_history
from bigkd.jobs.history import run_dataset
from bigkd.jobs.published import publish
from bigkd.jobs.records import ComparisonRecord, Judgement, RunRecord

RESULT = xr.Dataset(
    {
        "mmd2": ((), np.float32(0.5), {"long_name": "distance", "units": "1"}),
        "n_pairs": ((), np.int64(5)),
        "rejected": ((), True),
        "eigenvalue": ("mode", [3.0, 2.0]),
        "significant": ("mode", [True, False]),
        "label": ("mode", ["a", "b"]),
        "word": ((), "text"),
        "when": ((), np.datetime64("2026-01-01", "ns")),
        "mode_vector": (("mode", "feature"), np.zeros((2, 2))),
        "score": ("row", np.zeros(65)),
        "few": ("few_rows", np.arange(64)),
        "seconds": ((), -1.0),
        "odd name": ((), 1.0),
        "profile": ("../dim", [1.0]),
        "kinds": ("kind", [1.0]),
    },
    coords={"mode": [0, 1]},
    attrs={
        "bandwidth": np.float64(1.5), "shape": np.arange(2), "kernel": "gaussian",
        "seed": np.int64(3), "unbounded": np.inf, "sure": np.bool_(True),
        "nested": {"a": (1, None)},
    },
)  # fmt: skip


def drift(result=RESULT, **changes):
    whole = ComparisonRecord(
        name="drift", kind="distance", verdict="exceeded", message="", result=result,
        judgements=(
            Judgement("above", "mmd2", 0.1, 0.5, True),
            Judgement("rejected", "rejected", None, 1.0, True),
        ),
        store="/somewhere/drift.zarr", sheet=None, rows_read=10, rows_reused=90, seconds=1.5,
    )  # fmt: skip
    return whole._replace(**changes)


def record(*comparisons, run_id="20260301-0200"):
    return RunRecord(
        run_id=run_id, time=np.datetime64("2026-03-01T02:00:00.5", "ms"), seconds=3.0,
        version="0.1.0", job='{"run": {}}', exit_code=3, comparisons=comparisons,
    )  # fmt: skip


FAILED = drift(
    None, name="modes-2", kind="modes", verdict="failed", message="no rows", judgements=(),
    rows_read=0, rows_reused=0,
)  # fmt: skip


def test_run_dataset__keeps_numbers_under_the_name_of_their_comparison():
    row = run_dataset(record(drift(), FAILED))
    plain = {str(name): v.values[()] for name, v in row.items() if v.ndim == 0}
    parameters = json.loads(plain.pop("drift.parameters"))
    assert plain == {
        "time": np.datetime64("2026-03-01T02:00:00.5", "ns"), "run_id": "20260301-0200",
        "seconds": 3.0, "version": "0.1.0", "exit_code": 3.0, "verdict": "failed",
        "job": '{"run": {}}',
        "drift.kind": "distance", "drift.verdict": "exceeded", "drift.message": "",
        "drift.rows_read": 10.0, "drift.rows_reused": 90.0, "drift.seconds": 1.5,
        "drift.limit.mmd2": 0.1, "drift.judged.mmd2": 0.5, "drift.mmd2": 0.5,
        "drift.n_pairs": 5.0, "drift.rejected": 1.0,
        "modes-2.kind": "modes", "modes-2.verdict": "failed", "modes-2.message": "no rows",
        "modes-2.parameters": "{}", "modes-2.rows_read": 0.0, "modes-2.rows_reused": 0.0,
        "modes-2.seconds": 1.5,
    }  # fmt: skip
    assert parameters == {
        "bandwidth": 1.5, "shape": [0, 1], "kernel": "gaussian", "seed": 3, "unbounded": None,
        "sure": True, "nested": {"a": [1, None]},
    }  # fmt: skip
    short = {str(name): v for name, v in row.items() if v.ndim}
    assert {name: v.dims for name, v in short.items()} == {
        "drift.eigenvalue": ("drift.mode",), "drift.significant": ("drift.mode",),
        "drift.few": ("drift.few_rows",),
    }  # fmt: skip
    np.testing.assert_array_equal(short["drift.significant"], [1.0, 0.0])
    numbers = [v for v in row.values() if v.dtype.kind not in "UM"]
    assert {v.dtype for v in numbers} == {np.dtype(np.float64)}


def test_history__of_runs_is_read_back(tmp_path):
    path = tmp_path / "h.zarr"
    nights = {
        "one": record(drift(), FAILED, run_id="one"),
        "two": record(drift(None, verdict="failed", judgements=()), run_id="two"),
        "three": record(drift(RESULT.isel(mode=[0])), run_id="three"),
    }
    for name, night in nights.items():
        assert append_run(path, run_dataset(night), run_id=name)
        assert not append_run(path, run_dataset(night), run_id=name)
    found = load_history(path)
    assert found["run_id"].values.tolist() == list(nights)
    assert found["drift.verdict"].values.tolist() == ["exceeded", "failed", "exceeded"]
    assert found["modes-2.message"].values.tolist() == ["no rows", "", ""]
    np.testing.assert_array_equal(found["drift.mmd2"], [0.5, np.nan, 0.5])
    np.testing.assert_array_equal(found["drift.limit.mmd2"], [0.1, np.nan, 0.1])
    nan = np.nan
    np.testing.assert_array_equal(found["drift.eigenvalue"], [[3, 2], [nan, nan], [3, nan]])
    assert found["drift.mmd2"].attrs == {"long_name": "distance", "units": "1"}
    assert found["time"].dtype == "datetime64[ns]"


JOB = "modes: {test: a.npy, reference: b.npy}\noutput: {history: h.zarr}\n"


def test_publish__of_a_run_that_is_there_adds_it_if_it_found_something_else(load, tmp_path):
    job, less = load(JOB), RESULT.isel(mode=[0]).assign(mmd2=np.nan)
    publish(job, record(drift(), run_id="one"))
    for _ in range(2):
        assert publish(job, record(drift(less), run_id="two")).run_id == "two"
    other = publish(job, record(drift(less.assign(n_pairs=6)), run_id="two")).run_id
    found = load_history(tmp_path / "h.zarr")
    assert found["run_id"].values.tolist() == ["one", "two", other]
    assert found["drift.n_pairs"].values.tolist() == [5.0, 5.0, 6.0]


def test_publish__of_trouble_has_its_exit_code_unless_a_comparison_failed(load, tmp_path):
    (tmp_path / "h.zarr").write_text("something else")
    for comparison, code in ((drift(), 4), (FAILED, 2)):
        night = record(comparison, run_id=f"with-{code}")._replace(exit_code=2)
        done = publish(load(JOB), night)
        assert (done.exit_code, done.trouble[:27]) == (code, "The history was not written")


@pytest.mark.parametrize("text", ["\udcff", "<b>", 'a"\n', "\0"])
def test_history__takes_any_message(tmp_path, text):
    path = tmp_path / "h.zarr"
    append_run(path, run_dataset(record(FAILED._replace(message=f"a {text} b"))), run_id="one")
    append_run(path, run_dataset(record(FAILED, run_id="two")), run_id="two")
    expected = f"a {text} b".replace("\udcff", "?")
    assert load_history(path)["modes-2.message"].values.tolist() == [expected, "no rows"]
