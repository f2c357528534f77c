"""Two growing stores, a job that compares them every night, and what must be the same then."""

import hashlib
import multiprocessing
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zarr
from zarr.codecs import ZstdCodec

from bigkd.io import load_history
from tests.cluster.harm import send, wait_until_stopped
from tests.survival.command import STREAMS, run

JOB = """\
data:
  tonight: {path: tonight.zarr, block_rows: 20}
  reference: {path: reference.zarr, block_rows: 20}
comparisons:
  drift:
    distance: {x: tonight, y: reference, n_frequencies: 30}
    fail_if: {above: 0.2}
  new_modes:
    modes: {test: tonight, reference: reference, n_frequencies: 20, n_modes: 2, n_top: 3}
  stand_ins:
    coreset: {data: tonight, size: 6, kernel: {name: gaussian, sigma: 3.0}, n_frequencies: 20}
output: {store: nightly, history: history.zarr, report: nightly.html}
run: {scheduler: SCHEDULER}
"""
RESULTS = ("drift", "new_modes", "stand_ins")
CHANGING = ("time", "run_id", "seconds", "job", "rows_read", "rows_reused")
CHUNK = 20


def rows(number, seed):
    """Rows of two clusters."""
    generator = np.random.default_rng(seed)
    return generator.normal(size=(number, 4)) + 4.0 * generator.integers(2, size=(number, 1))


def make_data(folder):
    """The stores of the first night."""
    for name, number, dtype, seed in (("tonight", 60, "f4", 1), ("reference", 70, "f8", 2)):
        array = zarr.create_array(
            folder / f"{name}.zarr", shape=(number, 4), chunks=(CHUNK, 4), dtype=dtype,
            compressors=[ZstdCodec(checksum=True)],
        )  # fmt: skip
        array[:] = rows(number, seed)


def grow(folder, number=30, seed=3):
    """Rows that arrived during the day."""
    array = zarr.open_array(folder / "tonight.zarr")
    start = array.shape[0]
    array.resize((start + number, 4))
    array[start:] = rows(number, seed)


def write_job(folder, scheduler="sync"):
    (folder / "job.yaml").write_text(JOB.replace("SCHEDULER", scheduler))


class Ended(NamedTuple):
    """How a run ended."""

    code: int
    stdout: str
    stderr: str
    changes: int


_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.survival.command"])


class Running(NamedTuple):
    """A run that goes on."""

    process: Any
    streams: str

    def signal(self, number):
        send([self.process.pid], number)

    def until_stopped(self):
        """Wait until it has stopped itself, as `Harm` says."""
        wait_until_stopped(self.process.pid)

    def finish(self, timeout=180):
        """How it ended."""
        self.process.join(timeout)
        assert not self.process.is_alive(), "the run hangs"
        out, err, changes = (
            path.read_text() if path.exists() else ""
            for path in (Path(self.streams) / name for name in STREAMS)
        )
        shutil.rmtree(self.streams)
        return Ended(self.process.exitcode, out, err, int(changes or 0))


def start(folder, harm=None, arguments=("run", "job.yaml")):
    """The command line as a process; forked from one that has imported bigkd, which takes long."""
    streams = tempfile.mkdtemp()
    process = _CONTEXT.Process(target=run, args=(list(arguments), folder, harm, streams))
    process.start()
    return Running(process, streams)


def night(folder, harm=None, arguments=("run", "job.yaml")):
    """One run of the job, as cron would start it."""
    return start(folder, harm, arguments).finish()


class Seen(NamedTuple):
    """What a run left, but for what changes with time."""

    names: frozenset[str]
    results: dict[str, str]
    history: str


def look(folder):
    """What is in `folder` after a run."""
    names = frozenset(str(path.relative_to(folder)) for path in folder.rglob("*"))
    results = {name: digest_of(folder / "nightly" / f"{name}.zarr") for name in RESULTS}
    return Seen(names, results, history_of(folder))


def digest_of(store):
    """Of all names and bytes in a store."""
    hashed = hashlib.sha256()
    for path in sorted(path for path in Path(store).rglob("*") if path.is_file()):
        hashed.update(f"{path.relative_to(store)}\n".encode())
        hashed.update(path.read_bytes())
    return hashed.hexdigest()


def history_of(folder):
    """The history as text, without what changes from run to run."""
    found = load_history(folder / "history.zarr")
    drop = [name for name in found.variables if str(name).rpartition(".")[2] in CHANGING]
    values = found.drop_vars(drop)
    return "\n".join(f"{name}: {v.values.tolist()}" for name, v in sorted(values.variables.items()))


def copy_of(folder, target):
    """A fresh copy, with the times of change of all files."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target, symlinks=True)
    return target
