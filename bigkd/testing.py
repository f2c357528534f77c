"""Checks for summaries, of this package or your own, and for laziness.

Nothing in bigkd imports this module. On rows whose elements are whole numbers every sum is exact,
so the laws are checked with ``==``: a tolerance would hide a wrong merge.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import dask
import numpy as np

from bigkd.backends import is_array, namespace, to_host
from bigkd.protocols import PairSummary, Rows, Summary

__all__ = ["assert_equal_states", "check_pair_laws", "check_summary_laws", "no_compute"]


def check_summary_laws(summary: Summary[Any], blocks: Sequence[Rows]) -> None:
    """Assert the laws of `bigkd.protocols` for every run of consecutive `blocks`, exactly.

    Parameters
    ----------
    summary
        One that claims ``exact``.
    blocks
        At least three blocks of rows with whole numbers, and whole weights if any; either all of
        them carry weights or none. They may have no rows. `update` must leave them as they are.

    Raises
    ------
    AssertionError
        If a law does not hold, or something is written to that must not be.

    Examples
    --------
    >>> from bigkd.summaries import Mean
    >>> rows = Rows(np.eye(6), np.arange(6))
    >>> check_summary_laws(Mean(width=6), [Rows(x, i) for x, i in zip(
    ...     np.split(rows.values, 3), np.split(rows.index, 3), strict=True)])
    """
    assert summary.exact, f"{summary} does not claim to keep the laws exactly."
    before = copy.deepcopy(list(blocks))

    def empty() -> Any:
        return summary.init(blocks[0].values)

    def of(*parts: Rows) -> Any:
        state = empty()
        for part in parts:  # update may work in the memory of its state: rebuilt for every use
            state = summary.update(state, part)
        return state

    whole = of(_joined(blocks))
    _check_merges(summary.merge, empty, [partial(of, part) for part in blocks], whole)
    assert_equal_states(of(*blocks), whole, "update(of(u), v) == of(concat(u, v))")
    for at in range(1, len(blocks)):
        left, right = of(_joined(blocks[:at])), of(_joined(blocks[at:]))
        law = f"merge(of(u), of(v)) == of(concat(u, v)), cut before block {at}"
        assert_equal_states(summary.merge(left, right), whole, law)
    for block, old in zip(blocks, before, strict=True):
        assert_equal_states(block, old, "update leaves its rows as they are")


def check_pair_laws(summary: PairSummary[Any], left: Sequence[Rows], right: Sequence[Rows]) -> None:
    """Assert the laws for sums over the pairs of `left` and `right`, and of `left` with itself.

    Parameters
    ----------
    summary
        One that claims ``exact``, of a symmetric function whose values are whole numbers.
    left, right
        Blocks of rows with whole numbers and whole weights, if any; at least two each.

    Raises
    ------
    AssertionError
        If a law does not hold, the mirror image of a tile is not accounted for, or something is
        written to that must not be.
    """
    assert summary.exact, f"{summary} does not claim to keep the laws exactly."
    before = copy.deepcopy([*left, *right])

    def empty() -> Any:
        return summary.init(left[0].values)

    def of(one: Rows, other: Rows, *, mirrored: bool = False, diagonal: bool = False) -> Any:
        return summary.update(empty(), one, other, mirrored=mirrored, diagonal=diagonal)

    whole = of(_joined(left), _joined(right))
    tiles = [(one, other) for one in left for other in right]
    _check_merges(summary.merge, empty, [partial(of, *tile) for tile in tiles], whole)
    square = of(_joined(left), _joined(left), diagonal=True)
    state = empty()
    for at, one in enumerate(left):
        state = summary.update(state, one, one, mirrored=False, diagonal=True)
        for other in left[at + 1 :]:
            state = summary.update(state, one, other, mirrored=True, diagonal=False)
    assert_equal_states(state, square, "a mirrored tile stands for its transpose as well")
    for block, old in zip([*left, *right], before, strict=True):
        assert_equal_states(block, old, "update leaves its rows as they are")


@contextmanager
def no_compute() -> Iterator[None]:
    """Fail if anything asks Dask to compute inside the block.

    Examples
    --------
    >>> import dask.array as da
    >>> with no_compute():
    ...     lazy = da.ones(3) + 1
    """

    def refuse(graph: Any, keys: Any, **options: Any) -> Any:
        raise AssertionError(f"something was computed while it should only be built: {keys}.")

    with dask.config.set(scheduler=refuse):
        yield


def assert_equal_states(found: Any, expected: Any, law: str) -> None:
    """Assert that two states have equal types, shapes, element types and values."""
    if is_array(expected):
        one, other = to_host(found), to_host(expected)
        assert one.dtype == other.dtype, f"{law}: {one.dtype} != {other.dtype}"
        np.testing.assert_array_equal(one, other, err_msg=law, strict=True)
    elif expected is None:
        assert found is None, f"{law}: {found!r} is not None"
    else:
        assert type(found) is type(expected), f"{law}: {type(found)} != {type(expected)}"
        for one, other in zip(found, expected, strict=True):
            assert_equal_states(one, other, law)


def _check_merges(
    merge: Callable[[Any, Any], Any],
    empty: Callable[[], Any],
    states: Sequence[Callable[[], Any]],
    whole: Any,
) -> None:
    """Assert that `merge` is associative, has a neutral element, and leaves its arguments alone."""
    for make in states:
        assert_equal_states(merge(empty(), make()), make(), "merge(init(u), a) == a")
        assert_equal_states(merge(make(), empty()), make(), "a == merge(a, init(u))")
    parts = [make() for make in states]
    forward, backward, paired = parts[0], parts[-1], list(parts)
    for part in parts[1:]:
        forward = merge(forward, part)
    for part in parts[-2::-1]:
        backward = merge(part, backward)
    while len(paired) > 1:
        joined = [merge(paired[at], paired[at + 1]) for at in range(0, len(paired) - 1, 2)]
        paired = joined + paired[2 * len(joined) :]
    for other in (forward, backward, paired[0]):
        assert_equal_states(other, whole, "merges in any tree give the state of all")
    for part, make in zip(parts, states, strict=True):
        assert_equal_states(part, make(), "merge leaves its arguments as they are")


def _joined(blocks: Sequence[Rows]) -> Rows:
    xp = namespace(blocks[0].values)

    def whole(parts: list[Any]) -> Any:
        return None if parts[0] is None else xp.concat(parts, axis=0)

    return Rows(*(whole(list(parts)) for parts in zip(*blocks, strict=True)))
