"""Exit codes and messages when something is wrong, in this process."""

import shutil

import numpy as np
import pytest
import xarray as xr
import zarr

from bigkd import errors, finc
from bigkd.cli import job_commands

FAST = ("--kernel", "gaussian:3", "--n-frequencies", "50", "--scheduler", "sync")


def spoilt(folder):
    """Collections with one fault each."""
    good = np.load("test.npy")
    np.save("wide.npy", np.zeros((30, 5)))
    np.save("flat.npy", good[:, 0])
    np.save("none.npy", good[:0])
    np.save("text.npy", good.astype(str))
    bad = good.copy()
    bad[23, 1] = np.nan
    np.save("nan.npy", bad)
    (folder / "not.npy").write_text("hello")
    (folder / "not.zarr").mkdir()
    array = zarr.create_array("gap.zarr", shape=good.shape, chunks=(20, 4), dtype=good.dtype)
    array[:] = good
    shutil.rmtree("gap.zarr/c/3")
    xr.Dataset({"a": (("x", "y"), good), "b": (("x", "y"), good)}).to_zarr(
        "two.zarr", consolidated=False
    )


@pytest.mark.parametrize(
    ("test", "arguments", "code", "message"),
    [
        ("nowhere.npy", [], 4, "test: nowhere.npy does not exist"),
        ("not.npy", [], 4, "not.npy cannot be read as a .npy file"),
        ("not.zarr", [], 4, "not.zarr is not a collection of rows"),
        ("two.zarr", [], 2, "two.zarr is a Zarr group with 2 arrays of two or more dimensions"),
        ("flat.npy", [], 2, "test has shape (160,)"),
        ("none.npy", [], 2, "test is empty: 0 rows"),
        ("wide.npy", [], 2, "test has rows of 5 elements (shape (5,)) and reference of 4"),
        ("text.npy", [], 2, "test has elements of type <U"),
        ("nan.npy", [], 4, "test: row 23 (row 23 of block 0) is not finite"),
        ("gap.zarr", [], 4, "test: 1 of 8 chunks"),
        ("test.npy", ["--rho", "-1"], 2, "--rho must be greater than or equal to 0; got -1.0."),
        ("test.npy", ["--rho", "nan"], 2, "--rho must be a finite number"),
        ("test.npy", ["--kernel", "gaussian:0"], 2, "--kernel must be greater than 0; got 0.0."),
        ("test.npy", ["--kernel", "gaussian:-1"], 2, "--kernel must be greater than 0"),
        ("test.npy", ["--bandwidth-factor", "2"], 2, "--kernel has a factor"),
        ("test.npy", ["--kernel", "triangle:1"], 2, "--kernel has the name 'triangle', which must"),
        ("test.npy", ["--n-modes", "101"], 2, "n_modes=101 is more than the 100 features"),
        ("test.npy", ["--n-modes", "0"], 2, "--n-modes must be greater than or equal to 1"),
        ("test.npy", ["--n-frequencies", "0"], 2, "--n-frequencies must be 'auto' or a whole"),
        ("test.npy", ["--n-frequencies", "x"], 2, "'x' is neither auto nor a whole number"),
        ("test.npy", ["--alpha", "1"], 2, "--alpha must be less than 1"),
        ("test.npy", ["--seed", "-1"], 2, "--seed must be greater than or equal to 0"),
        ("test.npy", ["--scheduler", "slurm"], 2, "--scheduler must be 'sync'"),
        ("test.npy", ["--memory-limit", "lots"], 2, "--memory-limit must be a positive number"),
        ("test.npy", ["--memory-limit", "1 kB"], 2, "one task needs"),
        ("test.npy", ["--block-rows", "0"], 2, "--block-rows must be greater than or equal to 1"),
        ("test.npy", ["--sheet", "a.pdf"], 2, "the picture's file must end in .html or .png"),
        ("test.npy", ["--sheet", "a.png"], 2, "images must have shape"),
        ("test.npy", ["--resume"], 2, "nothing to resume from: name the store with --out"),
        ("test.npy", ["--n-mods", "3"], 2, "No such option '--n-mods'"),
        ("test.npy", ["--out", "/proc/none/x.zarr"], 4, "cannot be made"),
    ],
)
def test_modes__refuses(bigkd, folder, test, arguments, code, message):
    spoilt(folder)
    done = bigkd("modes", test, "reference.npy", *FAST, *arguments)
    assert done.exit_code == code
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.output
    assert done.stderr.strip().count("\n\n") <= 1  # a usage line and a paragraph at most


@pytest.mark.parametrize(
    ("test", "arguments"),
    [
        ("nan.npy", ["--nonfinite", "drop"]),
        ("gap.zarr", ["--missing", "skip"]),
        ("gap.zarr", ["--missing", "fill"]),
    ],
)
def test_modes__copes_when_told_how(bigkd, folder, test, arguments):
    spoilt(folder)
    assert bigkd("modes", test, "reference.npy", *FAST, *arguments).exit_code == 0


def test_modes__says_when_too_little_is_given(bigkd):
    done = bigkd("modes", "test.npy")
    assert done.exit_code == 2
    assert "Missing argument 'REFERENCE'" in done.stderr


def test_run__names_the_key_and_the_line(bigkd, folder):
    (folder / "job.yaml").write_text("modes:\n  test: test.npy\n  references: reference.npy\n")
    done = bigkd("run", "job.yaml")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "job.yaml, line 3: modes.references is not a key here. Did you mean reference?" in (
        done.stderr
    )


@pytest.mark.parametrize("command", ["show", "add-rows"])
def test_stores__damaged_or_foreign_ones_are_refused(bigkd, folder, command):
    bigkd("summarize", "test.npy", "--out", "a.zarr", *FAST)
    rest = ["test.npy"] if command == "add-rows" else []
    spoilt(folder)
    for path in ("nowhere.zarr", "not.zarr", "two.zarr"):
        assert bigkd(command, path, *rest).exit_code == 4
    chunk = next((folder / "a.zarr" / "moment.outer" / "c").rglob("[0-9]"))
    chunk = chunk if chunk.is_file() else next(p for p in chunk.rglob("*") if p.is_file())
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)
    done = bigkd(command, "a.zarr", *rest)
    assert done.exit_code == 4
    assert "a.zarr is corrupted" in done.stderr


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (errors.ClusterError("workers are gone."), 5, "Error: workers are gone."),
        (errors.LockedError("held by another."), 75, "Error: held by another."),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (OSError(28, "No space left on device"), 4, "the system refused: [Errno 28] No space"),
        (ZeroDivisionError("oops"), 1, "Internal error: ZeroDivisionError: oops. For the traceba"),
    ],
)
def test_main__exit_codes(bigkd, folder, monkeypatch, error, code, message):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(job_commands, "run_job", fail)
    done = bigkd("modes", "test.npy", "reference.npy")
    assert done.exit_code == code
    assert message in done.stderr
    assert "Traceback" not in done.output
    debugged = bigkd("--debug", "modes", "test.npy", "reference.npy")
    assert debugged.exit_code == code
    assert "Traceback" in debugged.stderr


def test_modes__interrupted_says_how_to_go_on(bigkd, folder, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(finc, "modes", stop)
    pair = ("modes", "test.npy", "reference.npy")
    with_store = bigkd(*pair, "--out", "result.zarr")
    assert with_store.exit_code == 130
    assert "0 finished segments are kept in result.zarr.checkpoint. Run the same" in (
        with_store.stderr
    )
    assert "with --out, or --checkpoint, the next run could be resumed" in bigkd(*pair).stderr
    assert not (folder / "result.zarr.lock").exists()
