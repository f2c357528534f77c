"""Whatever happens to a store's files, reading it gives what was written, or StoreError."""

import shutil
from contextlib import suppress

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from bigkd.errors import BigkdError, StoreError
from bigkd.io import (
    TiledArray,
    append_run,
    is_store,
    load_dataset,
    load_history,
    load_state,
    open_rows,
    open_tiled,
    save_dataset,
    save_state,
    store_kind,
)
from tests.security.fuzzing import damage, examples
from tests.security.hostile import KIND, sign, sign_history, small

randoms = st.randoms(use_true_random=False)


def write_dataset(path, number):
    save_dataset(small().assign(x=("r", np.arange(300.0) + number)), path, kind=KIND)


def read_dataset(path):
    return load_dataset(path, kind=KIND)


STATE = (np.zeros(()), np.zeros((2, 3), np.int64), (np.zeros(0), np.zeros(70, np.float32)))


def write_state(path, number):
    state = (np.asarray(1.0 + number), np.full((2, 3), number), (np.ones(0), np.ones(70, "f4")))
    save_state(path, state, token="t")


def read_state(path):
    count, outer, (nothing, many) = load_state(path, STATE, token="t")
    parts = {"count": count, "outer": outer, "nothing": nothing, "many": many}
    return xr.Dataset({
        name: ([f"{name}{axis}" for axis in range(part.ndim)], part) for name, part in parts.items()
    })  # fmt: skip


def write_tiles(path, number):
    array = TiledArray(
        path=str(path), name="d", dims=("a", "b"), shape=(7, 5), tile=(4, 5), chunk=(2, 5),
        token="t",
    )  # fmt: skip
    array.begin()
    for at in ((0, 0), (1, 0)):
        array.write(at, [np.random.default_rng(number).normal(size=(7, 5))[array.region(at)]])
    array.finish(xr.Dataset(coords={"a": list("abcdefg")}, attrs={"n": number}), kind=KIND)


def read_tiles(path):
    return open_tiled(path, kind=KIND).compute(scheduler="sync")


def write_history(path, number):
    for run in range(3):
        found = {"x": 1.5 * run + number, "t": f"run {run}", "p": ("mode", np.arange(2.0 + run))}
        append_run(path, xr.Dataset(found), run_id=f"{number}-{run}")


STORES = {
    "history": (write_history, load_history),
    "dataset": (write_dataset, read_dataset),
    "state": (write_state, read_state),
    "tiles": (write_tiles, read_tiles),
}


@pytest.fixture(scope="module", params=STORES)
def pair(request, tmp_path_factory):
    """Two stores of one layout, what they hold, and how they are read."""
    write, read = STORES[request.param]
    folder = tmp_path_factory.mktemp("stores")
    for number in (0, 1):
        write(folder / f"{number}.zarr", number)
    paths = [folder / f"{number}.zarr" for number in (0, 1)]
    return paths, [read(path) for path in paths], read


def harmed(pair, random, times):
    (path, other), _, _ = pair
    victim = path.parent / "victim.zarr"
    shutil.rmtree(victim, ignore_errors=True)
    shutil.copytree(path, victim)
    for _ in range(times):
        damage(victim, other, random)
    return victim


@pytest.mark.filterwarnings("ignore")
@examples(60)
@given(random=randoms, times=st.integers(1, 3))
def test_stores__damaged_are_whole_or_refused(pair, random, times):
    _, contents, read = pair
    path = harmed(pair, random, times)
    try:
        found = read(path)
    except StoreError:
        return
    assert any(found.identical(content) for content in contents)


@pytest.mark.filterwarnings("ignore")
@examples(60)
@given(random=randoms, times=st.integers(1, 3))
def test_stores__damaged_with_matching_checksums_raise_nothing_else(pair, random, times):
    _, _, read = pair
    path = harmed(pair, random, times)
    with suppress(Exception):  # what is left of it may not be one that can be signed
        sign(path)
    with suppress(Exception):
        sign_history(path)
    with suppress(StoreError):
        read(path)
    with suppress(StoreError):
        store_kind(path)
    assert isinstance(is_store(path), bool)


@pytest.mark.filterwarnings("ignore")
@examples(60)
@given(random=randoms, times=st.integers(1, 2))
def test_rows__of_damaged_stores_raise_nothing_but_errors_of_bigkd(pair, random, times):
    path = harmed(pair, random, times)
    with suppress(BigkdError):
        source = open_rows(path, name="rows", missing=random.choice(["raise", "skip", "fill"]))
        source.read(random.randrange(source.n_blocks))
