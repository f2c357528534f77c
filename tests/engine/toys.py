"""Toy functions of rows and of pairs that tell when they are called."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr
import zarr

from bigkd.backends import namespace
from bigkd.engine import Settings, open_session
from bigkd.io import open_tiled
from bigkd.protocols import Footprint

X = np.random.default_rng(0).normal(size=(50, 3))
Y = np.random.default_rng(1).normal(size=(23, 3))


def noted(log, text):
    if log is not None:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{text} {os.getpid()}\n")


def notes(log):
    """What was noted, in order; and nothing is left."""
    lines = Path(log).read_text().split("\n")[:-1] if Path(log).exists() else []
    Path(log).unlink(missing_ok=True)
    return [line.rpartition(" ")[0] for line in lines]


class Log(str):
    """A path that plays no part in what a function makes, nor in its name."""

    __slots__ = ()

    def __repr__(self):
        return "log"


@dataclass(frozen=True, kw_only=True)
class Powers:
    """The first two powers of each row."""

    width: int = 3
    factor: float = 1.0
    cost: int = 1
    log: Log | None = None

    @property
    def row_shape(self):
        return (2, self.width)

    def __call__(self, rows):
        noted(self.log, f"{rows.index[0]}:{rows.index[-1] + 1}")
        xp = namespace(rows.values)
        return self.factor * xp.stack([rows.values, rows.values**2], axis=1)

    def footprint(self, n_rows, itemsize):
        del itemsize
        return Footprint(state=n_rows * 16 * self.width, scratch=100, row_cost=self.cost)


@dataclass(frozen=True, kw_only=True)
class Products:
    """Inner products of two rows, and their squared distances."""

    cost: int = 1
    factor: float = 1.0
    n_values: int = 2
    log: Log | None = None

    def __call__(self, left, right):
        noted(self.log, f"{left.index[0]}:{left.index[-1] + 1} {right.index[0]}")
        xp = namespace(left.values)
        squares = xp.sum((left.values[:, None, :] - right.values[None, :, :]) ** 2, axis=-1)
        return self.factor * xp.stack([left.values @ right.values.T, squares])

    def footprint(self, n_left, n_right, itemsize):
        del itemsize
        return Footprint(state=16 * n_left * n_right, scratch=100, row_cost=self.cost)


ROWS, PAIRS = Powers(cost=160), Products(cost=100)


def store_rows(source, path, function=ROWS, scheduler="sync", **options):
    with open_session(Settings(scheduler=scheduler, **options)) as session:
        return session.store_rows(function, source, str(path), label="rows")


def store_pairs(left, right, path, function=PAIRS, scheduler="sync", **options):
    own = {key: options.pop(key) for key in ("overwrite",) if key in options}
    with open_session(Settings(scheduler=scheduler, **options)) as session:
        array = session.store_pairs(
            function,
            left,
            right,
            str(path),
            label="pairs",
            name="d",
            dims=("kind", "a", "b"),
            **own,
        )
    array.finish(xr.Dataset(coords={"kind": ["inner", "squared"]}), kind="pairs")
    return open_tiled(array.path, kind="pairs")


def read(array):
    return zarr.open_array(array.data_path, mode="r")[:]


def powers(x):
    return np.stack([x, x**2], axis=1)


def products(x, y):
    return np.stack([x @ y.T, ((x[:, None] - y[None]) ** 2).sum(-1)])
