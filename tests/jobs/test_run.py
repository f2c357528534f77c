"""Jobs carried out."""

import json
import shutil

import numpy as np
import pytest
import xarray as xr

from bigkd import errors, finc
from bigkd.engine import graph, stripes
from bigkd.io import load_dataset
from bigkd.jobs import load_job, run_job
from bigkd.kernels import Gaussian

JOB = """\
modes:
  test: test.npy
  reference: {path: reference.npy, block_rows: 20}
  kernel: {name: gaussian, sigma: 3}
  n_frequencies: 50
  n_modes: 4
  n_top: 5
output:
  store: out/result.zarr
run:
  scheduler: sync
"""


@pytest.fixture
def job(rows):
    """Loads `JOB`, with lines added to its last part."""

    def changed(text=""):
        (rows / "job.yaml").write_text(JOB + text)
        return load_job(rows / "job.yaml")

    return changed


def test_run_job__stores_what_the_function_returns(job, rows):
    outcome = run_job(job())
    direct = finc.modes(
        np.load(rows / "test.npy"),
        np.load(rows / "reference.npy"),
        kernel=Gaussian(3.0),
        n_frequencies=50,
        n_modes=4,
        n_top=5,
        block_rows=20,
        scheduler="sync",
    )
    stored = load_dataset(rows / "out" / "result.zarr", kind="modes")
    xr.testing.assert_identical(stored, outcome.only.result)
    xr.testing.assert_allclose(stored, direct, rtol=1e-10, atol=1e-12)
    assert stored.attrs["test"] == "test.npy"
    assert int(stored["significant"].sum()) == 1
    assert {path.name for path in (rows / "out").iterdir()} == {"result.zarr"}


def test_run_job__replaces_an_earlier_result_unless_told_not_to(job, rows):
    run_job(job())
    run_job(job())
    kept = job().model_copy(update={"output": job().output.model_copy(update={"overwrite": False})})
    with pytest.raises(errors.InputError, match="exists already"):
        run_job(kept)


def test_run_job__never_replaces_a_folder_that_is_no_result(job, rows):
    (rows / "out" / "result.zarr").mkdir(parents=True)
    (rows / "out" / "result.zarr" / "dear.txt").touch()
    with pytest.raises(errors.InputError, match="left alone"):
        run_job(job())
    assert (rows / "out" / "result.zarr" / "dear.txt").exists()


def test_run_job__draws_a_sheet(job, rows):
    pytest.importorskip("PIL")
    np.save(rows / "pictures.npy", np.zeros((160, 6, 6), np.uint8))
    text = job().output.model_copy(
        update={"sheet": str(rows / "new" / "modes.html"), "images": str(rows / "pictures.npy")}
    )
    outcome = run_job(job().model_copy(update={"output": text}))
    assert outcome.only.sheet == rows / "new" / "modes.html"
    assert outcome.only.sheet.read_text().count("<figure>") == 4


def test_run_job__checks_the_pictures_before_the_work(job, rows):
    output = job().output.model_copy(update={"sheet": str(rows / "modes.png")})
    with pytest.raises(errors.InputError, match="images must have shape"):
        run_job(job().model_copy(update={"output": output}))
    assert not (rows / "out").exists()


def test_run_job__logs_progress(job, rows):
    run_job(job("  progress_log: logs/progress.jsonl\n"))
    lines = (rows / "logs" / "progress.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["label"] == "top rows of reference"


def test_run_job__resumes_to_the_same_bits(job, rows, monkeypatch):
    monkeypatch.setattr(stripes, "STRIPE_WORK", 500_000)
    whole = run_job(job()).only.result
    shutil.rmtree(rows / "out")
    restored = []
    original = graph.restore
    monkeypatch.setattr(
        graph, "restore", lambda *arguments: restored.append(1) or original(*arguments)
    )

    def stop(event):
        if event.label == "second moments of reference" and event.done > event.total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(job(), progress=stop)
    assert not (rows / "out" / "result.zarr").exists()
    assert not (rows / "out" / "result.zarr.lock").exists()
    assert not restored
    outcome = run_job(job(), resume=True)
    xr.testing.assert_identical(outcome.only.result, whole)
    assert outcome.n_resumed >= len(restored) > 1  # a sum may stand for several
    assert {path.name for path in (rows / "out").iterdir()} == {"result.zarr"}


def test_run_job__starts_anew_without_resume(job, rows, monkeypatch):
    monkeypatch.setattr(
        graph, "restore", lambda *_: pytest.fail("went on from an earlier run's checkpoints")
    )

    def stop(event):
        if event.label == "top rows of test":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(job(), progress=stop)
    assert (rows / "out" / "result.zarr.checkpoint").exists()
    assert run_job(job(), resume=False).n_resumed == 0


def test_run_job__refuses_an_output_that_another_job_writes(job):
    def meanwhile(event):
        with pytest.raises(errors.LockedError):
            run_job(job())

    run_job(job(), progress=meanwhile)
