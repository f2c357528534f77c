"""`bigkd history`, `bigkd status` and `bigkd report`, and the table at the end of `bigkd run`."""

import io
import json
import os
import shutil
import sys

import numpy as np
import pytest
from rich.console import Console

from bigkd.cli import run_tables
from bigkd.io import load_history
from bigkd.io.locks import lock
from bigkd.jobs import load_job, run_job
from bigkd.jobs.published import begun
from bigkd.jobs.report import read_history

JOB = """
comparisons:
  drift:
    distance: {x: test.npy, y: reference.npy, kernel: {name: gaussian, sigma: 3.0}, method: exact}
    fail_if: {above: LIMIT}
  new_modes:
    modes:
      test: test.npy
      reference: reference.npy
      kernel: {name: gaussian, sigma: 3.0}
      n_frequencies: 50
      n_modes: 3
    fail_if: {significant: true}
output: {store: nightly, history: history.zarr, report: nightly.html}
run: {scheduler: sync}
"""


def write_job(folder, *, limit=0.1, name="job.yaml"):
    (folder / name).write_text(JOB.replace("LIMIT", str(limit)), encoding="utf-8")
    return load_job(name)


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """Folder of a job that ran twice; nothing but the distance's threshold changed."""
    made = tmp_path_factory.mktemp("nights")
    generator = np.random.default_rng(0)
    shared = generator.normal(size=(300, 4))
    np.save(made / "test.npy", np.concatenate([shared[:100], shared[:60] + 20]))
    np.save(made / "reference.npy", shared[100:])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        for limit in (2.0, 0.1):
            run_job(write_job(made, limit=limit))
    return made


@pytest.fixture
def nights(two_runs, folder):
    """A copy of it as the working folder."""
    shutil.copytree(two_runs, folder, dirs_exist_ok=True)
    return folder


def test_run__ends_with_a_table_of_verdicts(folder, bigkd):
    write_job(folder)
    found = bigkd("run", "job.yaml", "--progress", "none")
    assert found.exit_code == 3
    first, second, _, *lines = found.stdout.splitlines()
    assert first == "It differs: drift and new_modes exceeded a threshold."
    assert second.startswith("Began ")
    assert second.endswith(" rows read, 0 reused.")
    drift = next(line for line in lines if line.startswith("drift"))
    assert "differs" in drift
    assert "> 0.1 " in drift
    assert "sure to every digit shown" in drift
    assert any("significant modes 1 > 0" in line for line in lines)


def test_run__says_in_the_table_what_failed(folder, bigkd):
    write_job(folder)
    np.save("test.npy", np.full((9, 4), np.nan))
    found = bigkd("run", "job.yaml", "--progress", "none")
    assert found.exit_code == 4
    assert found.stdout.startswith("It failed: drift and new_modes failed.")
    assert "drift failed: " in found.stderr
    assert "Wrote the results" not in found.stderr
    assert "drift failed      x: row 0" in bigkd("status", "job.yaml").stdout
    assert "is not finite" in bigkd("history", "job.yaml").stdout


def test_run__says_how_it_was_before(nights, bigkd):
    write_job(nights)
    again = bigkd("run", "job.yaml", "--progress", "none")
    drift = next(line for line in again.stdout.splitlines() if line.startswith("drift"))
    before = json.loads(bigkd("history", "job.yaml", "--json").stdout)["runs"][0]
    value = before["comparisons"]["drift"]["numbers"][0]["value"]
    assert f"{value:.4g} in 2 runs" in drift
    assert "Resumed" not in again.stderr


@pytest.mark.parametrize("width", [30, 80, 200])
def test_tables__are_whole_in_a_terminal_of_any_width(nights, monkeypatch, capsys, width):
    monkeypatch.setattr(run_tables, "stdout_console", lambda: Console(width=width, soft_wrap=True))
    account = read_history(load_history("history.zarr"))
    run_tables.print_runs(account.runs, 0)
    text = capsys.readouterr().out
    assert "…" not in text
    assert text.count("exceeded") == 3
    for name in ("rows read", "reused", "took", "new_modes", "drift"):
        assert name in text


def test_run__table_does_without_signs_that_the_terminal_lacks(folder, monkeypatch):
    record = run_job(write_job(folder))
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(run_tables, "stdout_console", lambda: Console(file=out, width=200))
    unjudged = [made._replace(judgements=(), verdict="fine") for made in record.comparisons]
    run_tables.print_run(record._replace(comparisons=tuple(unjudged), job="{}"))
    out.flush()
    text = out.buffer.getvalue().decode("ascii")
    assert "Nothing was judged" in text
    assert "+/-" in text


def test_history__is_a_line_for_each_comparison(nights, bigkd):
    found = bigkd("history", "history.zarr")
    assert found.exit_code == 0
    _, _, *lines = found.stdout.splitlines()
    assert [line[16:].split()[:2] for line in lines] == [
        ["fine", "drift"], ["exceeded", "new_modes"],
        ["exceeded", "drift"], ["exceeded", "new_modes"],
    ]  # fmt: skip
    assert " <= 2 " in lines[0]
    assert " > 0.1 " in lines[2]
    assert "significant modes 1 > 0" in lines[3]
    assert bigkd("history", "job.yaml").stdout == found.stdout


def test_history__last_runs_only(nights, bigkd):
    found = bigkd("history", "job.yaml", "--last", "1")
    assert found.stdout.startswith("1 earlier run left out")
    assert " > 0.1 " in found.stdout
    assert " <= 2 " not in found.stdout
    assert len(json.loads(bigkd("history", "job.yaml", "--last", 1, "--json").stdout)["runs"]) == 1
    assert bigkd("history", "job.yaml", "--last", 0).exit_code == 2


def test_history__as_json_has_every_number(nights, bigkd):
    before, after = json.loads(bigkd("history", "history.zarr", "--json").stdout)["runs"]
    assert (before["verdict"], before["exit_code"]) == ("exceeded", 3)
    assert after["time"].endswith("Z")
    numbers = {one["variable"]: one for one in after["comparisons"]["drift"]["numbers"]}
    distance = numbers["distance"]
    assert distance["value"] > distance["limit"] == 0.1
    assert distance["exceeded"]
    assert distance["lower"] <= distance["value"] <= distance["upper"]
    assert distance["standard_error"] is None
    assert after["comparisons"]["new_modes"]["rows_read"] + after["rows_reused"] > 0


def test_history__needs_one(folder, bigkd):
    assert bigkd("history", "nowhere.zarr").exit_code == 4
    (folder / "bare.yaml").write_text("distance: {x: test.npy, y: reference.npy}")
    found = bigkd("history", "bare.yaml")
    assert found.exit_code == 2
    assert "the job keeps no history; name one as output.history" in found.stderr


def test_status__before_and_after_a_run(folder, bigkd):
    job = write_job(folder)
    found = json.loads(bigkd("status", "job.yaml", "--json").stdout)
    assert found == {
        "running": None, "n_finished": 0, "interrupted": False, "last": None, "age_seconds": None,
    }  # fmt: skip
    assert "none is kept" in bigkd("status", "job.yaml").stdout
    run_job(job)
    found = json.loads(bigkd("status", "job.yaml", "--json").stdout)
    assert found["last"]["verdict"] == "exceeded"
    assert 0 <= found["age_seconds"] < 60
    assert not found["interrupted"]
    text = bigkd("status", "job.yaml").stdout
    assert "ago): It differs: drift and new_modes exceeded a threshold" in text
    assert [line.split()[0] for line in text.splitlines()] == [
        "running", "finished", "interrupted", "last",
    ]  # fmt: skip


def test_status__of_a_job_that_runs_names_its_process(nights, bigkd):
    with lock("nightly.lock"):
        found = json.loads(bigkd("status", "job.yaml", "--json").stdout)
        assert found["running"]["pid"] == os.getpid()
        assert found["running"]["since"].endswith("Z")
        assert f"by process {os.getpid()} on " in bigkd("status", "job.yaml").stdout
    assert json.loads(bigkd("status", "job.yaml", "--json").stdout)["running"] is None


def test_status__of_an_interrupted_run_says_that_it_waits(nights, bigkd):
    begun("nightly.checkpoint")
    assert json.loads(bigkd("status", "job.yaml", "--json").stdout)["interrupted"]
    assert "waits to be taken up" in bigkd("status", "job.yaml").stdout
    with lock("nightly.lock"):  # somebody did
        assert not json.loads(bigkd("status", "job.yaml", "--json").stdout)["interrupted"]


def test_status__changes_nothing(folder, bigkd):
    write_job(folder)
    before = sorted(path.name for path in folder.rglob("*"))
    bigkd("status", "job.yaml")
    assert sorted(path.name for path in folder.rglob("*")) == before


def test_report__is_made_again_without_a_run(nights, bigkd):
    written = (nights / "nightly.html").read_bytes()
    (nights / "nightly.html").unlink()
    found = bigkd("report", "job.yaml")
    assert found.exit_code == 0
    assert "Wrote the report to" in found.stderr
    assert (nights / "nightly.html").read_bytes() == written
    assert bigkd("report", "job.yaml", "--out", "other.html").exit_code == 0
    assert (nights / "other.html").read_bytes() == written


def test_run__without_matplotlib_is_refused_before_anything_is_made(folder, bigkd, monkeypatch):
    write_job(folder)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = bigkd("run", "job.yaml")
    assert found.exit_code == 2
    assert "pip install 'bigkd[report]'" in found.stderr
    assert not (folder / "nightly").exists()


@pytest.mark.parametrize(
    ("output", "arguments", "message"),
    [
        ("{history: history.zarr}", (), "the job names no report"),
        ("{history: history.zarr}", ("--out", "report.pdf"), "a report ends in .html"),
        ("{store: x}", ("--out", "report.html"), "the job keeps no history"),
    ],
)
def test_report__needs_a_history_and_a_place(folder, bigkd, output, arguments, message):
    job = f"distance: {{x: test.npy, y: reference.npy}}\noutput: {output}\n"
    (folder / "bare.yaml").write_text(job)
    found = bigkd("report", "bare.yaml", *arguments)
    assert found.exit_code == 2
    assert message in found.stderr
