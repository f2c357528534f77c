"""What the engine asks of a summary, and the laws a summary keeps.

A summary is a frozen *spec* (a dataclass: what to compute) apart from its *state* (a NamedTuple of
arrays: what was seen). With ``of(u) = update(init(u), u)``:

- ``merge(init(u), a) == a == merge(a, init(u))``
- ``merge(merge(a, b), c) == merge(a, merge(b, c))``
- ``update(of(u), v) == merge(of(u), of(v)) == of(concat(u, v))``

exactly, on integer-valued rows (`bigkd.testing.check_summary_laws`). A summary that cannot keep the
laws exactly says so with ``exact = False`` and is held to its own error bound instead.

`update` may work in the memory of the state it is given, so a caller goes on with what it returns.
`merge` never writes to its arguments: a scheduler may need them again.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

Array: TypeAlias = Any
"""An array of any namespace of the array API standard: NumPy, CuPy, array-api-strict."""

State = TypeVar("State")


class Rows(NamedTuple):
    """A run of rows of one collection."""

    values: Array
    """Shape ``(n, d)``."""

    index: Array
    """Shape ``(n,)``, int64: the position of each row in its collection."""

    weights: Array | None = None
    """Shape ``(n,)``, or None where every row counts once."""

    vectors: Array | None = None
    """Shape ``(n, c)``: a direction of each row, of length 1, such as the normal of a triangle."""


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """What a summary costs, as predicted before anything runs."""

    state: int
    """Bytes of one state."""

    scratch: int
    """Bytes of the largest temporaries of one `update`, beyond the rows and the state."""

    row_cost: int
    """Multiply-adds of one row, or of one pair of rows; tasks are cut by it."""


class Summary(Protocol[State]):
    """A small mergeable summary of rows."""

    @property
    def exact(self) -> bool:
        """Whether the laws hold exactly, or within the summary's own error bound."""
        ...

    def init(self, like: Array) -> State:
        """State of no rows, on the namespace and device of `like`."""
        ...

    def update(self, state: State, rows: Rows) -> State:
        """State after `rows`, too; may reuse the memory of `state`."""
        ...

    def merge(self, left: State, right: State) -> State:
        """State of both sets of rows; leaves its arguments as they are."""
        ...

    def finalize(self, state: State) -> Any:
        """What the summary is for."""
        ...

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """Cost of an update with `n_rows` rows whose elements have `itemsize` bytes."""
        ...


class PairSummary(Protocol[State]):
    """A sum, or another mergeable summary, over pairs of rows."""

    @property
    def exact(self) -> bool:
        """Whether the laws hold exactly, or within the summary's own error bound."""
        ...

    def init(self, like: Array) -> State:
        """State of no pairs, on the namespace and device of `like`."""
        ...

    def update(
        self, state: State, left: Rows, right: Rows, *, mirrored: bool, diagonal: bool
    ) -> State:
        """State after every pair of a row of `left` and a row of `right`, too.

        Of a collection paired with itself the engine visits each unordered pair of blocks once:
        `mirrored` tells that the tile stands for its transpose as well, `diagonal` that both are
        the same block, so that the tile already holds both orders of every pair.
        """
        ...

    def merge(self, left: State, right: State) -> State:
        """State of both sets of pairs; leaves its arguments as they are."""
        ...

    def finalize(self, state: State) -> Any:
        """What the summary is for."""
        ...

    def footprint(self, n_left: int, n_right: int, itemsize: int) -> Footprint:
        """Cost of an update with one tile of `n_left` by `n_right` pairs."""
        ...


class RowMap(Protocol):
    """A map from rows to rows of numbers that are stored."""

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of what one row becomes."""
        ...

    def __call__(self, rows: Rows) -> Array:
        """What `rows` become, shape ``(n, *row_shape)``, float64."""
        ...

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """Cost of `n_rows` rows; the state is what they become."""
        ...


class PairMap(Protocol):
    """Numbers of each pair of rows of two collections, which are stored."""

    @property
    def n_values(self) -> int:
        """Numbers of one pair."""
        ...

    def __call__(self, left: Rows, right: Rows) -> Array:
        """Numbers of every pair, shape ``(n_values, n_left, n_right)``, float64."""
        ...

    def footprint(self, n_left: int, n_right: int, itemsize: int) -> Footprint:
        """Cost of a tile of ``n_left`` by ``n_right`` pairs; the state is the tile."""
        ...


class FeatureMap(Protocol):
    """A map from rows of width `width` to rows of width `n_features`."""

    @property
    def width(self) -> int:
        """Width of the rows it takes."""
        ...

    @property
    def n_features(self) -> int:
        """Width of the rows it gives."""
        ...

    def __call__(self, x: Array) -> Array:
        """Features, shape ``(n, n_features)``, of rows of shape ``(n, width)``."""
        ...
