import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from bigkd.cli import commands

# 16 reads, 8 segments a pass; before the read of a given number it stops itself.
_COUNTED = """
import itertools, os, signal, sys
from bigkd.cli import main
from bigkd.engine import stripes
from bigkd.io.sources import FileSource
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run with `&`
stripes.STRIPE_WORK = 100_000
read, numbers = FileSource.read_raw, itertools.count(1)
def counted(self, start, stop):
    if next(numbers) == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGSTOP)
    return read(self, start, stop)
FileSource.read_raw = counted
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
    """Starts the command line in a process of its own, which may stop itself before a read."""
    started = []

    def run(*arguments, stop_at=0):
        process = subprocess.Popen(
            [sys.executable, "-c", _COUNTED, str(stop_at), *arguments],
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
