from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bigkd.config import HELD_BYTES, MAX_STRIPES, STRIPE_BYTES, STRIPE_WORK
from bigkd.engine import checkpoints
from bigkd.engine.stripes import cut_segments, cut_stripes, held_states
from bigkd.engine.tasks import merge_all
from bigkd.io import ArraySource, DaskSource
from tests.engine.helpers import Alive, Census, Unreadable, generated, reduce

block_sizes = st.lists(st.integers(1, 5_000), min_size=1, max_size=200)
widths = st.integers(1, 20_000)
costs = st.integers(0, 10**10)


def source(sizes, width, kind=Unreadable, **options):
    bounds = tuple(int(at) for at in np.cumsum([0, *sizes]))
    return kind(name="x", row_shape=(width,), dtype=np.dtype("f4"), bounds=bounds, **options)


@given(sizes=block_sizes, width=widths, row_cost=costs)
def test_stripes__cover_every_block_once_in_order(sizes, width, row_cost):
    stripes = cut_stripes(source(sizes, width), row_cost=row_cost)
    assert [block for stripe in stripes for block in stripe.blocks] == list(range(len(sizes)))
    assert all(len(stripe.blocks) for stripe in stripes)
    assert len(stripes) <= MAX_STRIPES


@example(sizes=[199, 797, 797], width=1, row_cost=761421316)
@given(sizes=block_sizes, width=widths, row_cost=costs)
def test_stripes__are_about_as_long_as_they_may_be(sizes, width, row_cost):
    rows = source(sizes, width)
    most = max(1, min(STRIPE_WORK // (row_cost + 4 * width), STRIPE_BYTES // (4 * width)))
    stripes = cut_stripes(rows, row_cost=row_cost)
    taken = [rows.bounds[stripe.last] - rows.bounds[stripe.first] for stripe in stripes]
    assert max(taken) <= most + max(sizes) + 2
    if rows.n_rows <= most:
        assert len(stripes) == 1


@given(sizes=block_sizes, width=widths, row_cost=costs)
def test_stripes__depend_on_the_blocks_and_the_cost_only(sizes, width, row_cost):
    one = cut_stripes(source(sizes, width), row_cost=row_cost)
    array = np.broadcast_to(np.float32(0), (sum(sizes), width))
    other = cut_stripes(source(sizes, width, ArraySource, array=array), row_cost=row_cost)
    assert one == other


def test_stripes__of_dask_arrays_hold_little():
    sizes, width = [1_000] * 1_000, 768
    stripes = cut_stripes(source(sizes, width, DaskSource, array=None), row_cost=0)
    most = max(len(stripe.blocks) for stripe in stripes)
    assert most * 1_000 * 4 * width <= HELD_BYTES + 1_000 * 4 * width
    assert len(cut_stripes(source(sizes, width), row_cost=0)) < len(stripes)


def test_stripes__are_no_more_than_the_graph_can_take():
    stripes = cut_stripes(source([1] * 10_000, 4), row_cost=STRIPE_WORK)
    assert len(stripes) == MAX_STRIPES
    lengths = [len(stripe.blocks) for stripe in stripes]
    assert set(lengths) <= {2, 3}


@given(n=st.integers(1, MAX_STRIPES))
def test_segments__cover_every_stripe_once_and_are_whole_subtrees(n):
    segments = cut_segments(n)
    assert [stripe for segment in segments for stripe in segment] == list(range(n))
    size = len(segments[0])
    assert size & (size - 1) == 0
    assert all(len(segment) == size for segment in segments[:-1])
    assert len(segments) <= max(4, 4 * size) <= 128
    assert n == 1 or size == 1 or n > size**2


def join(left, right):
    return f"({left}{right})"


def plain_tree(parts):
    """The pairwise tree by its definition: halves at the largest power of two."""
    if len(parts) == 1:
        return parts[0]
    half = 1 << (len(parts) - 1).bit_length() - 1
    return join(plain_tree(parts[:half]), plain_tree(parts[half:]))


@given(n=st.integers(1, 600))
def test_merge_all__of_inexact_states_is_the_pairwise_tree_in_and_across_segments(n):
    parts = [f"{at}." for at in range(n)]
    whole = merge_all(parts, join, exact=False)
    own = [merge_all(parts[s.start : s.stop], join, exact=False) for s in cut_segments(n)]
    assert whole == merge_all(own, join, exact=False) == plain_tree(parts)


def test_merge_all__of_exact_states_folds_from_the_left():
    assert merge_all(list("abcd"), join, exact=True) == "(((ab)c)d)"
    assert merge_all(["a"], join, exact=True) == "a"


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 64, 65, 200, 300])
@pytest.mark.usefixtures("small_stripes")
def test_held_states__are_what_one_thread_holds(n, kept, exact, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "save_state", lambda path, state, token: None)
    Alive.forget()
    reduce(Census(exact), generated(n, 1), checkpoint=tmp_path if kept else None)
    updating, merging = held_states(n, exact=exact)
    assert len(Alive.at_update) == n
    assert max(Alive.at_update) == updating
    assert max(Alive.at_merge, default=0) == merging


def test_held_states__of_exact_summaries_do_not_grow():
    assert {held_states(n, exact=True) for n in range(5, MAX_STRIPES, 7)} == {(3, 3)}
    assert held_states(MAX_STRIPES, exact=False) == (13, 14)


def test_bounds__of_generated_rows():
    assert list(pairwise(generated(10, 4).bounds)) == [(0, 4), (4, 8), (8, 10)]
