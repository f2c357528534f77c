from typing import NamedTuple

import numpy as np
import pytest
import xarray as xr

from bigkd.backends import namespace
from bigkd.errors import StoreError
from bigkd.io import (
    arrays_to_state,
    load_state,
    save_dataset,
    save_state,
    state_to_arrays,
    state_token,
)
from bigkd.protocols import Rows
from bigkd.summaries import GroupedSecondMoment, Joined, Mean, SecondMoment
from bigkd.testing import assert_equal_states


class Inner(NamedTuple):
    count: object
    total: object


class Outer(NamedTuple):
    inner: Inner
    plain: tuple


def state(put, add=0):
    return Outer(
        Inner(put(np.asarray(3 + add)), put(np.arange(4.0) + add)),
        (put(np.ones((2, 3), "f4")), Inner(put(np.zeros(0)), put(np.array([True])))),
    )


def test_states__go_to_arrays_and_back(put):
    arrays = state_to_arrays(state(put))
    assert list(arrays) == [
        "inner.count", "inner.total", "plain.0", "plain.1.count", "plain.1.total",
    ]  # fmt: skip
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    found = arrays_to_state(state(put, 5), arrays)
    assert_equal_states(found, state(put), "back")
    assert namespace(found.inner.total) is namespace(state(put).inner.total)


def test_states__of_one_array():
    assert list(state_to_arrays(np.ones(2))) == ["value"]
    np.testing.assert_array_equal(arrays_to_state(np.zeros(2), {"value": np.ones(2)}), np.ones(2))


def test_states__are_stored(put, tmp_path):
    save_state(tmp_path / "x", state(put), token="a/1")
    assert_equal_states(load_state(tmp_path / "x", state(put, 5), token="a/1"), state(put), "x")
    save_state(tmp_path / "x", state(put, 1), token="a/2")  # a state is replaced without asking
    found = load_state(tmp_path / "x", state(put), token="a/2")
    assert_equal_states(found, state(put, 1), "x")


def test_states__can_be_gone_on_from(put, tmp_path):
    values = np.arange(12.0).reshape(4, 3)
    summary = Joined(
        summaries=(
            Mean(width=3), SecondMoment(width=3), GroupedSecondMoment(width=3, n_groups=2, seed=0)
        )
    )  # fmt: skip
    first, last = (Rows(put(values[at]), put(np.arange(4)[at])) for at in (np.s_[:2], np.s_[2:]))
    half = summary.update(summary.init(first.values), first)
    save_state(tmp_path / "x", half, token="t")
    loaded = load_state(tmp_path / "x", summary.init(first.values), token="t")
    assert_equal_states(summary.update(loaded, last), summary.update(half, last), "resumed")


def test_states__of_other_data_are_refused(tmp_path):
    save_state(tmp_path / "x", state(np.asarray), token="a")
    with pytest.raises(StoreError, match="other data or other parameters"):
        load_state(tmp_path / "x", state(np.asarray), token="b")


def test_states__of_another_shape_are_refused(tmp_path):
    save_state(tmp_path / "x", Inner(np.asarray(1), np.ones(3)), token="a")
    with pytest.raises(StoreError, match=r"'total'.*float64\(3,\); expected float64\(4,\)"):
        load_state(tmp_path / "x", Inner(np.asarray(1), np.ones(4)), token="a")
    with pytest.raises(StoreError, match=r"'count'.*int64\(\); expected float64\(\)"):
        load_state(tmp_path / "x", Inner(np.asarray(1.0), np.ones(3)), token="a")
    with pytest.raises(StoreError, match=r"no field 'inner.count'; it holds \['count', 'total'\]"):
        load_state(tmp_path / "x", state(np.asarray), token="a")


def test_states__replace_a_damaged_one(tmp_path):
    path = tmp_path / "x"
    for file, content in (("zarr.json", b"?"), ("zarr.json", b""), ("total/c/0", b"?")):
        save_state(path, Inner(np.asarray(1), np.ones(3)), token="a")
        (path / file).write_bytes(content)
        with pytest.raises(StoreError):
            load_state(path, Inner(np.asarray(1), np.ones(3)), token="a")
    save_state(path, Inner(np.asarray(2), np.ones(3)), token="a")
    found = load_state(path, Inner(np.asarray(0), np.ones(3)), token="a")
    assert int(found.count) == 2


def test_state_token__is_read_from_the_root_of_a_state(tmp_path):
    path = tmp_path / "x"
    save_state(path, Inner(np.asarray(1), np.ones(3)), token="a/1")
    (path / "total" / "zarr.json").write_bytes(b"?")
    assert state_token(path) == "a/1"
    (path / "zarr.json").write_bytes((path / "zarr.json").read_bytes().replace(b"a/1", b"a/2"))
    with pytest.raises(StoreError, match="does not match its checksum"):
        state_token(path)
    (path / "zarr.json").write_bytes(b'{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    with pytest.raises(StoreError, match=r"^\S*x has no bigkd manifest"):
        state_token(path)
    save_dataset(xr.Dataset(attrs={"token": "a/1"}), tmp_path / "y", kind="distance")
    with pytest.raises(StoreError, match="holds 'distance', and no state"):
        state_token(tmp_path / "y")
    with pytest.raises(StoreError):
        state_token(tmp_path / "nothing")
