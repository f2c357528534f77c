"""Sources and summaries that tell what the engine does with them."""

import os
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from bigkd.backends import rng
from bigkd.engine import Settings, open_session
from bigkd.io import Source
from bigkd.protocols import Array, Footprint
from bigkd.summaries import Joined, Mean, SecondMoment, TopRows


@dataclass(frozen=True, kw_only=True)
class Generated(Source):
    """Rows made from (seed, row number) when they are read; `log` counts the reads."""

    seed: int = 0
    log: Path | None = None

    def read_raw(self, start, stop):
        if self.log is not None:
            with open(self.log, "a", encoding="utf-8") as file:
                file.write(f"{start} {os.getpid()}\n")
        made = rng(self.seed, start).standard_normal((stop - start, *self.row_shape), np.float32)
        return made.astype(self.dtype, copy=False)

    def content(self):
        return f"generated from {self.seed}"

    def reads(self):
        """First rows of the blocks that were read, in order of time."""
        if not self.log.exists():
            return []
        return [int(line.split()[0]) for line in self.log.read_text().splitlines()]


@dataclass(frozen=True, kw_only=True)
class Unreadable(Source):
    """Rows that must not be read."""

    def read_raw(self, start, stop):
        raise AssertionError("something was read")

    def content(self):
        return "nothing"


def generated(n_rows, block_rows, *, width=3, dtype="float32", **options):
    bounds = (*range(0, n_rows, block_rows), n_rows)
    return Generated(
        name="rows", row_shape=(width,), dtype=np.dtype(dtype), bounds=bounds, **options
    )


def unreadable(n_rows, block_rows, *, width=3):
    bounds = (*range(0, n_rows, block_rows), n_rows)
    return Unreadable(name="rows", row_shape=(width,), dtype=np.dtype("f4"), bounds=bounds)


@dataclass(frozen=True)
class Project:
    """Scores of rows: their first two columns."""

    width: int
    n_features: int = 2

    def __call__(self, x: Array) -> Array:
        return np.asarray(x)[:, :2]


def everything(width):
    """Means, second moments and top rows, in one pass."""
    top = TopRows(scores=Project(width), n_top=4, work_features=2)
    return Joined(summaries=(Mean(width=width), SecondMoment(width=width), top))


def flat(state):
    """Every array of a state."""
    if isinstance(state, tuple):
        return [array for part in state for array in flat(part)]
    return [np.asarray(state)]


def assert_same_bits(one, other):
    one, other = flat(one), flat(other)
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()


def reduce(summary, source, *, label="pass", first_row=0, share=1.0, **settings):
    settings = {"scheduler": "sync", **settings}
    with open_session(Settings(**settings)) as session:
        return session.reduce(summary, source, label=label, first_row=first_row, share=share)


def reduce_pairs(summary, left, right=None, **settings):
    settings = {"scheduler": "sync", **settings}
    with open_session(Settings(**settings)) as session:
        return session.reduce_pairs(summary, left, right, label="pairs")


class Alive:
    """How many states of a `Census` exist, at every update and merge."""

    now: ClassVar[dict[int, weakref.ref]] = {}
    at_update: ClassVar[list[int]] = []
    at_merge: ClassVar[list[int]] = []

    @classmethod
    def forget(cls):
        cls.now.clear()
        cls.at_update.clear()
        cls.at_merge.clear()

    @classmethod
    def count(cls, array):
        """How many there are with `array`."""
        number = id(array)
        cls.now[number] = weakref.ref(array, lambda _: cls.now.pop(number, None))
        return len(cls.now)


class OneState(NamedTuple):
    array: np.ndarray


@dataclass(frozen=True)
class Census:
    """A summary that counts how many of its states exist at once."""

    exact: bool = True

    def init(self, like):
        del like
        return OneState(np.zeros(3))

    def update(self, state, rows):
        del rows
        Alive.at_update.append(Alive.count(state.array))
        return state

    def merge(self, left, right):
        merged = OneState(left.array + right.array)
        Alive.at_merge.append(Alive.count(merged.array))
        return merged

    def footprint(self, n_rows, itemsize):
        del n_rows, itemsize
        return Footprint(state=8, scratch=8, row_cost=1)
