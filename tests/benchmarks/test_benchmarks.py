"""Every measure runs, at tiny sizes; `python -m tests.benchmarks.run` measures for real."""

import math

import pytest

from tests.benchmarks.measure import TINY, machine
from tests.benchmarks.run import MEASURES, table


@pytest.mark.parametrize("name", MEASURES)
def test_measure__runs(benchmark, name):
    lines = benchmark.pedantic(MEASURES[name], args=(TINY,), rounds=1)

    assert all(math.isfinite(line.value) and line.value >= 0 for line in lines)
    assert table(lines).row_count == len(lines) > 0


def test_machine__names_the_blas():
    assert "BLAS" in machine()
