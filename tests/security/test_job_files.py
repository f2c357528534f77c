"""Job files from others: plain values, nothing is run, and nothing is written where it must not."""

import json
import os
import re
import time
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner

from bigkd.cli import commands
from bigkd.errors import InputError, JobFileError
from bigkd.jobs import load_job, run_job
from bigkd.jobs.places import locations, require_apart

BEGIN = "modes:\n  test: a.npy\n  reference: b.npy\n"
NINES = "9" * 5000
DEEP = 20_000

DOCUMENTS = {
    "python object": BEGIN + "  seed: !!python/object/apply:os.mkdir [CANARY]\n",
    "python name": BEGIN + "  seed: !!python/name:os.system ''\n",
    "python module": BEGIN + "  seed: !!python/module:antigravity ''\n",
    "own tag": BEGIN + "  seed: !run {command: touch CANARY}\n",
    "tagged key": "!!python/object:os.mkdir CANARY: 1\n",
    "tagged document": "!!python/object/apply:os.mkdir\nargs: [CANARY]\n",
    "binary": BEGIN + "  seed: !!binary aGVsbG8=\n",
    "set": BEGIN + "  columns: !!set {a, b}\n",
    "alias": "a: &a [x]\nb: *a\n",
    "laughs": "a: &a [x, x]\n"
    + "\n".join(f"{b}: &{b} [*{a}, *{a}]" for a, b in pairwise("abcdefghi")),
    "alias of itself": "a: &a [*a]\n",
    "merge key": "a: &a {x: 1}\nmodes: {<<: *a}\n",
    "merge key of a mapping": "modes: {<<: {test: a.npy}, reference: b.npy}\n",
    "deep list": "[" * DEEP,
    "deep mapping": "{a: " * DEEP,
    "deep blocks": "\n".join(" " * depth + "a:" for depth in range(2000)),
    "two documents": f"{BEGIN}---\n{BEGIN}",
    "large number": BEGIN + f"  seed: {NINES}\n",
    "large octal": BEGIN + f"  seed: 0{'7' * 5000}\n",
    "large base 60": BEGIN + f"  seed: 1{':59' * 2000}\n",
    "large exponent": BEGIN + "  rho: 1e999999999\n",
    "no day": BEGIN + "  seed: 2026-13-45\n",
    "control characters": BEGIN + "  seed: \x07\x1b[31m\n",
    "NUL": BEGIN + "  seed: \0\n",
    "NUL in a path": 'modes: {test: "a\\0b", reference: b.npy}\n',
    "surrogate": 'modes: {test: a, reference: b, seed: "\\ud800"}\n',
    "directive": "%YAML 9.9\n---\n" + BEGIN,
    "enormous": BEGIN + "#" + "x" * 3_000_000,
    "long key": f"{'k' * 100_000}: 1\n",
    "tab": "modes:\n\ttest: a\n",
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_load__refuses_soon_and_runs_nothing(tmp_path, name):
    canary = tmp_path / "ran"
    path = tmp_path / "job.yaml"
    path.write_text(DOCUMENTS[name].replace("CANARY", str(canary)), encoding="utf-8")
    began = time.process_time()
    with pytest.raises(JobFileError) as caught:
        load_job(path)
    assert time.process_time() - began < 5
    assert not canary.exists()
    assert len(str(caught.value)) < 10_000
    assert not re.search("[\0\x07\x1b]", str(caught.value))


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * DEEP,
        "a = " + "{a=" * DEEP,
        ".".join("a" * 3000) + " = 1",
        "[" + ".".join("a" * 3000) + "]",
        f"a = {NINES}",
        f"a = 0x{'f' * 5000}",
        "a = 1979-05-27T07:32:00Z",
        "a = inf",
        "\0",
        "a = 1\na = 2",
    ],
)
def test_load__refuses_toml_soon(tmp_path, text):
    path = tmp_path / "job.toml"
    path.write_text(text)
    began = time.process_time()
    with pytest.raises(JobFileError):
        load_job(path)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b"\xef\xbb\xbf", b"", b"\x80", BEGIN.encode("utf-16"), BEGIN.encode("utf-32")],
)
@pytest.mark.parametrize("suffix", [".yaml", ".toml"])
def test_load__refuses_other_encodings(tmp_path, content, suffix):
    (tmp_path / f"job{suffix}").write_bytes(content)
    with pytest.raises(JobFileError):
        load_job(tmp_path / f"job{suffix}")


def test_load__refuses_what_is_no_file(tmp_path):
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "link.yaml")
    for path in (*tmp_path.iterdir(), "x" * 5000 + ".yaml", "a\0b.yaml"):
        with pytest.raises(JobFileError):
            load_job(path)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with data, and with a folder of a user's own work, where jobs are run."""
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(40, 3)))
    np.save(tmp_path / "b.npy", np.random.default_rng(1).normal(size=(40, 3)))
    (tmp_path / "home" / "work").mkdir(parents=True)
    (tmp_path / "home" / "work" / "thesis").write_text("all my work")
    monkeypatch.chdir(tmp_path / "home")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


MODES = "modes: {test: ../a.npy, reference: ../b.npy, kernel: {name: gaussian, sigma: 1.0},"
MODES += " n_frequencies: 20}\nrun: {scheduler: sync}\n"


@pytest.mark.parametrize(
    "store",
    ["/", ".", "..", "work", "work/thesis", "../a.npy", "../a.npy/x", "~", "work/../work", ""],
)
def test_run__writes_no_result_over_what_is_there(home, store):
    before = {path: path.read_bytes() for path in home.parent.rglob("*") if path.is_file()}
    (home / "job.yaml").write_text(MODES + f"output: {{store: '{store}'}}\n")
    found = CliRunner().invoke(commands, ["run", "job.yaml"])
    assert found.exit_code in (2, 4), found.output
    assert "Internal" not in found.output
    assert {path: path.read_bytes() for path in before} == before


def test_locations__finds_paths_and_nothing_else(tmp_path):
    (tmp_path / "job.yaml").write_text(
        "distance_matrix:\n  collections: {a: a.npy, b: {path: s3://b/x, weights: w.npy}}\n"
        "output: {store: out}\nrun: {scheduler: threads, memory_limit: 1 GiB}\n"
    )
    assert dict(locations(load_job(tmp_path / "job.yaml"))) == {
        "distance_matrix.collections.a.path": str(tmp_path / "a.npy"),
        "distance_matrix.collections.b.path": "s3://b/x",
        "distance_matrix.collections.b.weights": str(tmp_path / "w.npy"),
        "output.store": str(tmp_path / "out"),
    }


@pytest.mark.parametrize(
    ("read", "written", "fine"),
    [
        ("data.zarr", "data.zarr", False),
        ("data.zarr", "./sub/../data.zarr/", False),
        ("data.zarr", "data.zarr/x", False),
        ("data.zarr/x", "data.zarr", False),
        ("link", "data.zarr", False),
        ("data.zarr", "link/x", False),
        ("s3://bucket/x/", "s3://bucket/x", False),
        ("s3://bucket/x", "s3://bucket/x/", False),
        ("s3://bucket/x", "s3://bucket/x/y", False),
        ("data.zarr", "data.zarr.result", True),
        ("s3://bucket/x", "s3://bucket/xy", True),
        ("data.zarr", "elsewhere/data.zarr", True),
    ],
)
def test_require_apart__keeps_results_off_the_data(tmp_path, monkeypatch, read, written, fine):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.zarr").mkdir()
    (tmp_path / "link").symlink_to("data.zarr")
    if fine:
        require_apart({"modes.test": read}, {"output.store": written})
        return
    with pytest.raises(InputError, match=r"output.store .* over or into modes.test"):
        require_apart({"modes.test": read}, {"output.store": written})


@pytest.mark.parametrize(
    ("read", "key"),
    [
        ("new.png", "new.sheet"),
        ("log.jsonl", "run.progress_log"),
        ("kept", "run.checkpoint"),
        ("h.zarr", "output.history"),
        ("r.html", "output.report"),
    ],
)
@pytest.mark.parametrize("images", [False, True])
def test_run_job__keeps_all_that_it_writes_off_the_data(tmp_path, read, key, images):
    test, shown = ("a.npy", read) if images else (read, "a.npy")
    (tmp_path / "job.yaml").write_text(
        f"comparisons:\n  new:\n    modes: {{test: {test}, reference: b.npy}}\n"
        f"    sheet: new.png\n    images: {shown}\n"
        f"output: {{store: out, history: h.zarr, report: r.html}}\n"
        f"run: {{checkpoint: kept, progress_log: log.jsonl}}\n"
    )
    with pytest.raises(InputError, match=f"{key} .*over or into new.*{read}"):
        run_job(load_job(tmp_path / "job.yaml"))


def test_run_job__has_no_history_in_the_place_of_a_result(tmp_path):
    (tmp_path / "job.yaml").write_text(
        "comparisons:\n  new:\n    modes: {test: a.npy, reference: b.npy}\n"
        "output: {store: out, history: out/new.zarr}\n"
    )
    with pytest.raises(InputError, match=r"output.history and new's store are both"):
        run_job(load_job(tmp_path / "job.yaml"))


def test_require_apart__wants_places_that_differ(tmp_path):
    require_apart({}, {"store": "x", "history": "y"})
    with pytest.raises(InputError, match="store and history are both"):
        require_apart({}, {"store": "x", "history": "x"})
    require_apart({"data": "folder/x"}, {"run.checkpoint": "folder"})


NAMES = ["../x", "a/b", "a\\b", "..", ".", "", ".x", "-x", "_x", "9x", "a b", "a\nb", "a\0b", "a.b",
         "x" * 65, "é", "a\u202eb", "~", "$HOME", "con:", "%2e%2e", "a*"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["comparisons", "data"])
def test_load__refuses_names_that_could_lead_elsewhere(tmp_path, name, kind):
    rows = {name: "a.npy"} if kind == "data" else {"rows": "a.npy"}
    test = next(iter(rows))
    made = {"modes": {"test": test, "reference": "b.npy"}}
    document = {"data": rows, "comparisons": {name if kind == "comparisons" else "x": made}}
    (tmp_path / "job.yaml").write_text(json.dumps(document))
    with pytest.raises(JobFileError, match="must be a name of at most 64 letters"):
        load_job(tmp_path / "job.yaml")
