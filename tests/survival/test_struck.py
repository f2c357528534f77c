"""A run that is struck at a random moment, and run again: the same as if nothing had happened."""

import random
import signal

import pytest

from tests.survival.command import Harm
from tests.survival.harness import look, night

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

CODES = {
    "kill": (-signal.SIGKILL,), "interrupt": (130,), "terminate": (130,), "full": (4, 0),
}  # fmt: skip
PLAN = [
    (seed, seed % 2, how)
    for seed, how in enumerate(
        ["kill"] * 8 + ["full"] * 3 + ["interrupt", "terminate", "interrupt"]
    )
]


def moment(seed, changes):
    """A change of the run, drawn by the seed; of every third one of the last hundreds."""
    generator = random.Random(seed)
    first = 1 if seed % 3 else changes * 4 // 5
    return generator.randint(first, changes)


@pytest.mark.parametrize(("seed", "number", "how"), PLAN)
def test_struck__is_the_same_when_it_is_run_again(nights, evening, seed, number, how):
    expected, work = nights[number], evening(number)
    ended = night(work, Harm(how, moment(seed, expected.changes)))
    assert ended.code in CODES[how], ended.stderr
    assert "Traceback" not in ended.stderr
    if ended.code:  # else it was too late to do harm
        again = night(work)
        assert again.code == 0, again.stderr
    assert_same(look(work), expected.after)


def assert_same(found, expected):
    """Nothing lost, nothing else, nothing left over."""
    assert found.history == expected.history
    assert found.results == expected.results
    assert sorted(found.names ^ expected.names) == []
