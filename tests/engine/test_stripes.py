from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bigkd.config import HELD_BYTES, MAX_STRIPES, STRIPE_BYTES, STRIPE_WORK
from bigkd.engine import checkpoints
from bigkd.engine.graph import join_tree
from bigkd.engine.stripes import (
    CHAPTER_SEGMENTS,
    LONGEST_SEGMENT,
    SINGLE_SEGMENTS,
    Stripe,
    cut_chapters,
    cut_segments,
    cut_stripes,
    held_states,
    some_of,
)
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


@given(n=st.integers(1, 500), more=st.integers(0, 500), share=st.floats(1e-4, 1.0))
def test_some_stripes__are_as_many_as_asked_for_and_spread_evenly(n, more, share):
    stripes = [Stripe(at, at + 1) for at in range(n + more)]
    few = some_of(stripes[:n], share)
    assert few[0].first == 0
    assert share * n <= len(few) <= share * n + 1 + 1e-9 * n
    assert some_of(stripes, share)[: len(few)] == few
    gaps = {later.first - earlier.first for earlier, later in pairwise(few)}
    assert gaps <= {int(1 / share), int(1 / share) + 1}
    assert some_of(stripes, 1.0) == stripes


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


@given(sizes=block_sizes, width=widths, row_cost=costs, share=st.floats(0, 1))
def test_stripes__of_rows_that_were_there_stay_when_rows_are_added(sizes, width, row_cost, share):
    before = sizes[: max(1, int(share * len(sizes)))]
    *whole, last = cut_stripes(source(before, width), row_cost=row_cost)
    grown = cut_stripes(source(sizes, width), row_cost=row_cost)
    assert grown[: len(whole)] == whole
    assert grown[len(whole)].first == last.first
    assert grown[len(whole)].last >= last.last


def test_stripes__of_long_passes_grow_so_that_graphs_stay_small():
    stripes = cut_stripes(source([1] * 28_000, 4), row_cost=STRIPE_WORK)
    lengths = [len(stripe.blocks) for stripe in stripes]
    assert lengths[:MAX_STRIPES] == [1] * MAX_STRIPES
    assert lengths[MAX_STRIPES : 2 * MAX_STRIPES] == [2] * MAX_STRIPES
    assert set(lengths[2 * MAX_STRIPES : -1]) == {4}


@given(n=st.integers(1, 5_000), more=st.integers(0, 500))
def test_segments__are_whole_subtrees_and_stay_when_stripes_are_added(n, more):
    segments = cut_segments(n)
    assert [stripe for segment in segments for stripe in segment] == list(range(n))
    for segment in segments[:-1]:
        size = len(segment)
        assert size & (size - 1) == 0
        assert segment.start % size == 0
        assert size <= LONGEST_SEGMENT
        assert size**2 <= max(1, segment.start)
    assert cut_segments(n + more)[: len(segments) - 1] == segments[:-1]


@given(n=st.integers(1, 3_000), more=st.integers(0, 500))
def test_chapters__cover_every_segment_once_and_stay_when_segments_are_added(n, more):
    chapters = cut_chapters(n)
    assert [segment for chapter in chapters for segment in chapter] == list(range(n))
    assert max(map(len, chapters)) <= CHAPTER_SEGMENTS
    assert len(chapters) <= 64 + n // CHAPTER_SEGMENTS
    assert cut_chapters(n + more)[: len(chapters) - 1] == chapters[:-1]


def join(left, right):
    return f"({left}{right})"


def plain_tree(parts):
    """The pairwise tree by its definition: halves at the largest power of two."""
    if len(parts) == 1:
        return parts[0]
    half = 1 << (len(parts) - 1).bit_length() - 1
    return join(plain_tree(parts[:half]), plain_tree(parts[half:]))


@given(n=st.integers(1, 600))
def test_join_tree__is_the_pairwise_tree_in_and_across_segments(n):
    parts = [f"{at}." for at in range(n)]
    whole = join_tree(parts, [1] * n, join)
    segments = cut_segments(n)
    own = [join_tree(parts[s.start : s.stop], [1] * len(s), join) for s in segments]
    across = join_tree(own, [len(segment) for segment in segments], join)
    assert whole == across == plain_tree(parts)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 64, 65, 200, 450])
@pytest.mark.usefixtures("small_stripes")
def test_held_states__are_what_one_thread_holds(n, kept, exact, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "save_state", lambda path, state, token: None)
    Alive.forget()
    reduce(Census(exact), generated(n, 1), checkpoint=tmp_path if kept else None)
    updating, merging = held_states(n, exact=exact)
    assert len(Alive.at_update) == n
    assert max(Alive.at_update) == updating <= held_states(n, exact=exact, kept=True)[0]
    assert max(Alive.at_merge, default=0) == merging


def test_held_states__of_exact_summaries_do_not_grow():
    assert {held_states(n, exact=True) for n in range(6, 400, 7)} == {(3, 3)}
    assert {held_states(n, exact=True) for n in range(410, 20_000, 70)} == {(4, 4)}
    assert held_states(4_096, exact=False) == (13, 14)


def test_bounds__of_generated_rows():
    assert list(pairwise(generated(10, 4).bounds)) == [(0, 4), (4, 8), (8, 10)]


def test_held_states__are_one_more_where_an_earlier_call_kept_some():
    assert held_states(1, exact=True, kept=True) == (2, 0)
    assert held_states(1, exact=False, kept=True) == (1, 0)
    assert (held_states(4, exact=True), held_states(4, exact=True, kept=True)) == ((2, 3), (3, 3))
    assert held_states(400, exact=False, kept=True) == held_states(400, exact=False)
    last = max(n for n in range(1, 1000) if len(cut_segments(n)) == SINGLE_SEGMENTS + 1)
    assert [held_states(n, exact=True) for n in (last, last + 1)] == [(3, 3), (4, 4)]
