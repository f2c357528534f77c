import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from bigkd.cli import commands

# 16 reads, 8 segments a pass; a read takes as long as on a slow disk.
_SLOW = """
import sys, time
from bigkd.cli import main
from bigkd.engine import stripes
from bigkd.io.sources import FileSource
stripes.STRIPE_WORK = 100_000
fast = FileSource.read_raw
def slow(self, start, stop):
    time.sleep(float(sys.argv[1]))
    return fast(self, start, stop)
FileSource.read_raw = slow
main(sys.argv[2:])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Working folder with two collections; the test set has a mode that the reference lacks."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    shared = generator.normal(size=(300, 4))
    test = np.concatenate([shared[:100], 20 + generator.normal(size=(60, 4))])
    np.save("test.npy", test)
    np.save("reference.npy", shared[100:])
    return tmp_path


@pytest.fixture
def bigkd():
    """Runs the command line in this process."""
    return lambda *arguments: CliRunner().invoke(commands, [str(a) for a in arguments])


@pytest.fixture
def start(folder):
    """Starts the command line in a process of its own, with slow reads."""
    started = []

    def run(*arguments, pause=0.0):
        process = subprocess.Popen(
            [sys.executable, "-c", _SLOW, str(pause), *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()
