"""Jobs looked at, and not run."""

import json
import os
import shutil
import socket
from collections import namedtuple

import numpy as np
import psutil
import pytest
import zarr
from distributed import LocalCluster

from bigkd.engine import connections, pairs, session, stripes, tiles, timing
from bigkd.io import load_history
from bigkd.io.locks import lock
from bigkd.io.sources import FileSource
from bigkd.jobs import check, load_job, readiness, run_job

Usage = namedtuple("Usage", "total used free")
TAIL = "output: {store: out/result.zarr}\nrun: {scheduler: sync, keep_checkpoints: false}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Collections of many small blocks, each a task of its own, of which two are enough."""
    for module in (stripes, pairs):
        monkeypatch.setattr(module, "STRIPE_WORK", 2_000)
    monkeypatch.setattr(tiles, "TILE_WORK", 300_000)
    monkeypatch.setattr(timing, "READ_ROWS", 20)
    generator = np.random.default_rng(0)
    for name, n_rows in (("x", 300), ("y", 200)):
        rows = generator.uniform(-1, 1, size=(n_rows, 3)).astype("f4")
        rows[:2] = [[-1], [1]]  # the box of all rows
        zarr.create_array(str(tmp_path / f"{name}.zarr"), data=rows, chunks=(20, 3))
        np.save(tmp_path / f"{name}.npy", rows)
    np.save(tmp_path / "many.npy", generator.normal(size=(600, 12)) * np.arange(1, 13))
    np.save(tmp_path / "long.npy", generator.normal(size=(30, 2_000)).astype("f4"))
    np.save(tmp_path / "pictures.npy", generator.uniform(size=(80, 8, 8)).astype("f4"))
    np.save(tmp_path / "frames.npy", generator.integers(0, 255, size=(40, 20, 30)).astype("u1"))
    return tmp_path


@pytest.fixture
def load(folder):
    def from_text(text, tail=TAIL):
        (folder / "job.yaml").write_text(f"{text}\n{tail}")
        return load_job(folder / "job.yaml")

    return from_text


@pytest.fixture
def admitted(monkeypatch):
    """Plans of all passes of all sessions."""
    plans, admit = [], session.Session._admit

    def noted(self, plan):
        plans.append(plan)
        return admit(self, plan)

    monkeypatch.setattr(session.Session, "_admit", noted)
    return plans


@pytest.fixture
def read(monkeypatch):
    """Bytes that were read of `.npy` files, one after the other."""
    n_bytes, read_raw = [], FileSource.read_raw

    def counted(self, start, stop):
        n_bytes.append((stop - start) * self.row_bytes)
        return read_raw(self, start, stop)

    monkeypatch.setattr(FileSource, "read_raw", counted)
    return n_bytes


X, Y = "x: {path: x.npy, block_rows: 20}", "y: {path: y.npy, block_rows: 20}"
KERNEL = "kernel: {name: gaussian, sigma: 1}"
MANY = "data: {path: many.npy, block_rows: 20}, k: 2, n_points: 20"
SHAPES = "y_landmarks: 4, x_landmarks: 3, dims: [y, x]"
PICTURES = "collection: {path: pictures.npy, block_rows: 5}"
KINDS = {
    "modes": f"test: {X[3:]}, reference: {Y[3:]}, n_frequencies: 30",
    "distance exact": f"{X}, {Y}, {KERNEL}, method: exact",
    "distance rff": f"{X}, {Y}, {KERNEL}, method: rff, n_frequencies: 64, test: true",
    "distance nufft": f"{X}, {Y}, {KERNEL}, method: nufft",
    "distance coreset": f"{X}, {Y}, {KERNEL}, method: coreset, coreset_size: 50",
    "distance auto": f"{X}, {Y}, {KERNEL}",
    "two_sample": f"{X}, {Y}, {KERNEL}, method: features",
    "distance_matrix": f"collections: {{a: {X[3:]}, b: {Y[3:]}}}, {KERNEL}, method: rff, eps: 0.1",
    "coreset thin": f"data: {X[3:]}, size: 20, {KERNEL}",
    "coreset sample": f"data: {X[3:]}, size: 20, method: sample",
    "did_matrix": f"{PICTURES}, {SHAPES}",
    "did_nearest": f"query: {{path: pictures.npy, row: 3}}, {PICTURES}, k: 2, {SHAPES}",
    "mmdpca pairs": MANY,
    "mmdpca nystrom": f"{MANY}, method: nystrom, n_landmarks: 30",
    "mmdpca moments": f"{MANY}, method: moments, kernel: kurtosis",
    "mmdpca gram": "data: {path: long.npy, block_rows: 3}, k: 2",
    "mmdpca_distance sample": "data: {path: many.npy, block_rows: 20}, fit: fit.zarr, "
    "method: sample, n_points: 30",
    "mmdpca_project": "data: {path: many.npy, block_rows: 20}, fit: fit.zarr",
    "mmdpca_background": "frames: {path: frames.npy, block_rows: 3}, k: 2",
}


@pytest.mark.parametrize("kind", KINDS)
def test_check__plans_what_a_run_does_and_reads_little(kind, load, folder, admitted, read):
    if "fit.zarr" in KINDS[kind]:
        run_job(load(f"mmdpca: {{{MANY}}}", TAIL.replace("out/result", "fit")))
    job = load(f"{kind.split()[0]}: {{{KINDS[kind]}}}")
    before = sorted(folder.rglob("*"))
    admitted.clear()
    read.clear()

    found = check.check_job(job)

    planned, few = admitted.copy(), sum(read)
    assert not found.problems
    assert sorted(folder.rglob("*")) == before
    assert found.where.n_threads == 1
    admitted.clear()
    read.clear()
    run_job(job)
    assert planned == admitted
    (comparison,) = found.comparisons
    assert [(one.label, one.n_tasks, one.bytes_read, one.task_bytes) for one in comparison.passes
            if one.task_bytes] == [
        (one.label, one.n_tasks, one.bytes_read, one.task_bytes) for one in admitted
    ]  # fmt: skip
    assert all(one.cost is not None and one.cost.seconds > 0 for one in comparison.passes)
    assert few <= 0.6 * sum(read)


def test_check__of_one_pair_does_it(load):
    found = check.check_job(
        load("did: {f: {path: pictures.npy, row: 0}, g: {path: pictures.npy, row: 1}, "
             "dims: [y, x]}")
    )  # fmt: skip
    assert not found.passes
    assert found.seconds > 0
    assert not found.problems


SAMPLES = """\
  odd: {coreset: {data: broken, size: 5, method: sample}}
  lost: {coreset: {data: absent, size: 5, method: sample}}
"""
NIGHTS = """\
data:
  tonight: {path: x.zarr, block_rows: 100}
  reference: {path: y.zarr, block_rows: 100}
comparisons:
  drift:
    distance: {x: tonight, y: reference, method: rff, n_frequencies: 64}
    fail_if: {above: 1}
  modes:
    modes: {test: tonight, reference: reference, n_frequencies: 20, n_top: 0}
output: {store: nightly, history: history.zarr}
run: {scheduler: sync}
"""


def test_check__counts_what_is_kept_from_the_night_before(load, folder):
    first = check.check_job(load(NIGHTS, ""))
    assert [one.share_kept for one in first.passes] == [0.0] * 4
    assert all(one.bytes_kept > 0 for one in first.passes)
    run_job(load(NIGHTS, ""))
    zarr.open_array(str(folder / "x.zarr"), mode="a").append(np.ones((100, 3), "f4"))
    before = sorted(folder.rglob("*"))

    found = check.check_job(load(NIGHTS, ""))

    assert not found.problems
    assert sorted(folder.rglob("*")) == before
    assert [one.share_kept for one in found.passes] == [0.75, 1.0, 0.75, 1.0]
    assert [one.bytes_read for one in found.passes] == [1200, 0, 1200, 0]
    night = run_job(load(NIGHTS, ""))
    assert [one.rows_read for one in night.comparisons] == [100, 100]


def test_check__tells_everything_that_is_wrong_at_once(load, folder, monkeypatch):
    history = folder / "history.zarr"
    run_job(load(NIGHTS, ""))
    kept = load_history(history)
    assert kept["drift.kind"].values[-1] == "distance"
    (folder / "taken.html").mkdir()
    np.save(folder / "x.npy", np.full((300, 3), np.nan))
    me = psutil.Process()
    holder = {
        "host": socket.gethostname(), "pid": me.pid, "token": "t", "beats": 0,
        "began": me.create_time() - psutil.boot_time(), "machine": "",
    }  # fmt: skip
    (folder / "nightly.lock").write_text(json.dumps(holder))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 10**9, 10))
    found = check.check_job(
        load(
            NIGHTS.replace("drift:\n    distance", "drift:\n    two_sample")
            .replace(", method: rff, n_frequencies: 64", "")
            .replace("above: 1", "rejected: true")
            .replace("data:", "data:\n  broken: x.npy\n  absent: nothing.zarr")
            .replace("  modes:\n    ", f"{SAMPLES}  modes:\n    sheet: taken.html\n    ")
            .replace("n_top: 0", "n_top: 2"),
            "",
        )
    )  # fmt: skip
    said = "\n".join(problem.message for problem in found.problems)
    for part in (
        "taken.html exists already",
        "nightly.lock is held by process",
        "drift was distance and is two-sample",
        f"the disk of {folder}",
    ):
        assert part in said, said
    assert found.exit_code == 2


def test_check__goes_on_to_the_data_where_the_job_itself_is_sound(load, folder):
    np.save(folder / "x.npy", np.full((300, 3), np.nan))
    text = (
        "data: {broken: x.npy, absent: nothing.zarr, sound: y.npy}\ncomparisons:\n"
        f"{SAMPLES}  sound: {{coreset: {{data: sound, size: 5, method: sample}}}}\n"
    )
    found = check.check_job(load(text, "run: {scheduler: sync}"))
    assert [problem.exit_code for problem in found.problems] == [4, 4]
    assert found.problems[0].message.startswith("odd: data: row 0")
    assert "nothing.zarr does not exist" in found.problems[1].message
    assert found.exit_code == 4
    assert [bool(one.passes) for one in found.comparisons] == [True, False, True]


def test_check__refuses_what_a_worker_has_no_memory_for(load):
    found = check.check_job(
        load(f"modes: {{{KINDS['modes']}}}\noutput: {{store: out.zarr}}",
             "run: {scheduler: sync, memory_limit: 1 MB}\n")
    )  # fmt: skip
    (problem,) = found.problems
    assert "second moments of test: one task needs 0.03 GB" in problem.message
    assert found.exit_code == 2
    assert found.passes[0].cost is None


@pytest.mark.parametrize(
    ("cluster", "n_processes", "n_threads"),
    [
        ("{kind: local, n_workers: 3, threads_per_worker: 2, memory_limit: 8 GB}", 3, 6),
        ("{kind: local, n_workers: 4}", 4, 4),
    ],
)
def test_check__knows_what_a_cluster_will_have(load, cluster, n_processes, n_threads):
    where = check.where_of(load(f"modes: {{{KINDS['modes']}}}\ncluster: {cluster}", ""))
    assert (where.n_processes, where.n_threads) == (n_processes, n_threads)
    assert where.distributed
    if "8 GB" in cluster:
        assert where.thread_bytes == int(0.8 * 8e9 // 2)


def test_check__asks_a_cluster_that_is_there(load):
    with LocalCluster(
        n_workers=2, threads_per_worker=2, processes=False, protocol="tcp://",
        dashboard_address="127.0.0.1:0", memory_limit="1 GB",
    ) as cluster:  # fmt: skip
        address = cluster.scheduler_address
        where = check.where_of(
            load(f"modes: {{{KINDS['modes']}}}", f"run: {{scheduler: '{address}'}}")
        )
    assert (where.n_processes, where.n_threads) == (2, 4)
    assert where.thread_bytes == int(0.8 * (10**9 // 2))


def test_check__says_that_no_cluster_answers(load, monkeypatch):
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 0.5)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        found = check.check_job(
            load(
                f"modes: {{{KINDS['modes']}}}", f"cluster: {{kind: address, address: '{address}'}}"
            )
        )
    assert found.exit_code == 5
    assert "no Dask scheduler answers" in found.problems[0].message
    assert found.where is None


def test_check__finds_a_folder_that_cannot_be_written(load, folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, _: path != folder)
    found = check.check_job(load(f"coreset: {{{KINDS['coreset sample']}}}"))
    (problem, *_) = found.problems
    assert problem.message == (
        f"output.store: {folder}/out/result.zarr cannot be written; {folder} is not writable."
    )
    assert found.exit_code == 4


def test_require_room__adds_up_what_goes_to_one_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(20, 10, 10))
    for sizes, n_problems in (((4, 6), 0), ((5, 6), 1)):
        problems = readiness.Problems()
        readiness.require_room(
            {str(tmp_path / "new" / str(at)): size for at, size in enumerate(sizes)}, problems
        )
        assert [problem.exit_code for problem in problems] == [4] * n_problems


@pytest.mark.parametrize("held", ["out/result.zarr", "kept"])
def test_require_ready__tells_of_every_lock_that_is_held(load, folder, held):
    job = load(
        f"modes: {{{KINDS['modes']}}}",
        "output: {store: out/result.zarr}\nrun: {checkpoint: kept, scheduler: sync}\n",
    )
    problems, path = readiness.Problems(), folder / f"{held}.lock"
    with lock(path):
        readiness.require_ready(job, problems)
        holder = json.loads(path.read_bytes())
    assert [problem.exit_code for problem in problems] == [75]
    assert f"{held}.lock is held by process {os.getpid()}" in problems.pop().message
    path.write_text(json.dumps({**holder, "began": 1.0}))  # the number is another process's now
    readiness.require_ready(job, problems)
    assert problems == []
