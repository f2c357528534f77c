"""`bigkd check`."""

import json

import numpy as np
import pytest

JOB = """\
comparisons:
  drift:
    distance: {x: test.npy, y: reference.npy, kernel: {name: gaussian, sigma: 2}, method: rff,
      n_frequencies: 64}
    fail_if: {above: 1}
  modes: {modes: {test: test.npy, reference: reference.npy, n_frequencies: 20}}
output: {store: nightly, history: history.zarr}
cluster: {kind: local, n_workers: 2, memory_limit: 2 GB}
"""


@pytest.fixture
def check(folder, bigkd):
    def run(text=JOB, *options):
        (folder / "job.yaml").write_text(text)
        before = sorted(folder.rglob("*"))
        done = bigkd("check", "job.yaml", *options)
        assert sorted(folder.rglob("*")) == before
        return done

    return run


def test_check__prints_the_plan(check):
    done = check()
    assert done.exit_code == 0, done.output
    assert not done.stderr
    assert done.stdout.startswith("Runs on: local, 2 workers, 2 threads, 1.6 GB for a task\n")
    for text in ("summing over x", "top rows of reference", "between passes", "In all: 6 passes"):
        assert text in done.stdout
    assert done.stdout.endswith("Nothing stands in its way.\n")


def test_check__prints_the_plan_for_programs(check):
    found = json.loads(check(JOB, "--json").stdout)
    assert found["exit_code"] == 0
    assert not found["problems"]
    assert found["cluster"]["thread_bytes"] == 1_600_000_000
    assert list(found["comparisons"]) == ["drift", "modes"]
    drift = found["comparisons"]["drift"]
    assert [one["label"] for one in drift["passes"]] == ["summing over x", "summing over y"]
    assert drift["passes"][0]["bytes_read"] == 160 * 4 * 8
    assert found["seconds"] > drift["seconds"] > drift["passes"][0]["cost"]["seconds"] > 0


def test_check__ends_with_2_and_says_all_that_is_wrong(check):
    done = check(JOB.replace("n_workers: 2", "n_workers: 0").replace("above: 1", "rejected: true"))
    assert done.exit_code == 2
    assert "cluster.n_workers" in done.stderr
    assert "drift" in done.stderr
    assert not done.stdout


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (("memory_limit: 2 GB", "memory_limit: 30 MB"), 2, "one task needs 0.03 GB"),
        (("x: test.npy", "x: broken.npy"), 4, "drift: x: row 7 (row 7 of block 0) is not finite"),
        (("x: test.npy", "x: absent.npy"), 4, "absent.npy does not exist"),
    ],
)
def test_check__ends_as_the_run_would(check, folder, change, code, message):
    rows = np.zeros((20, 4))
    rows[7] = np.nan
    np.save(folder / "broken.npy", rows)
    done = check(JOB.replace(*change))
    assert done.exit_code == code
    assert "Problem: " in done.stderr
    assert message in done.stderr
    assert "Nothing stands in its way" not in done.stdout
    assert "drift: not planned to its end" in done.stdout
    assert "no pass: done here" not in done.stdout


def test_check__plans_for_another_place(check):
    assert check(JOB, "--scheduler", "sync").stdout.startswith("Runs on: sync, 1 thread, ")
