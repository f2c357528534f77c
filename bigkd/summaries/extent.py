"""How much there is of a weighted collection, and where."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bigkd.backends import device, namespace
from bigkd.kernels import Kernel
from bigkd.protocols import Array, Footprint, Rows
from bigkd.summaries.compose import tiles
from bigkd.summaries.embeddings import mass_of

_TILE_ROWS = 16_384


class ExtentState(NamedTuple):
    """What the promises of kernel distances are made of."""

    count: Array  # (), rows
    mass: Array  # (), sum of weights mu
    absolute: Array  # (), sum of |mu| |U|
    norm: Array  # (), sum of |mu| |U| sqrt(|K(x, x)|), which bounds the norm of the embedding
    squares: Array  # (), sum of (mu |U|)^2
    diagonal: Array  # (), sum of (mu |U|)^2 K(x, x)
    negative: Array  # (), the row with the most negative weight's number, -1 if there is none
    least: Array  # (), the least weight
    lower: Array  # (width,), least coordinates
    upper: Array  # (width,), largest coordinates


@dataclass(frozen=True, kw_only=True)
class Extent:
    """Mass, bounding box and diagonal of a weighted collection; rows without weights count 1."""

    width: int
    kernel: Kernel | None = None
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> ExtentState:
        """State of no rows, on the namespace and device of `like`."""
        xp, on = namespace(like), device(like)
        zero = xp.zeros((), dtype=xp.float64, device=on)
        far = xp.full((self.width,), xp.inf, dtype=xp.float64, device=on)
        return ExtentState(
            count=xp.zeros((), dtype=xp.int64, device=on),
            mass=zero,
            absolute=zero,
            norm=zero,
            squares=zero,
            diagonal=zero,
            negative=xp.asarray(-1, dtype=xp.int64, device=on),
            least=xp.asarray(xp.inf, dtype=xp.float64, device=on),
            lower=far,
            upper=-far,
        )

    def update(self, state: ExtentState, rows: Rows) -> ExtentState:
        """State after `rows`, shape ``(n, width)``, too."""
        for tile in tiles(rows, _TILE_ROWS):
            state = self.merge(state, self._of(tile))
        return state

    def _of(self, rows: Rows) -> ExtentState:
        xp, on = namespace(rows.values), device(rows.values)
        n_rows = rows.values.shape[0]
        weights = mass_of(rows)
        sizes = xp.abs(weights)
        if rows.vectors is not None:
            lengths = xp.sum(xp.astype(rows.vectors, xp.float64) ** 2, axis=1)
            sizes = sizes * xp.sqrt(lengths)
        with np.errstate(over="ignore"):  # told by what becomes of it
            squares, values = sizes * sizes, xp.ones_like(sizes)
        if self.kernel is not None:
            values = xp.astype(self.kernel.diagonal(rows.values), xp.float64)
        least = xp.min(weights)
        negative = xp.asarray(-1, dtype=xp.int64, device=on)
        if bool(least < 0):
            negative = rows.index[xp.argmin(weights)]
        return ExtentState(
            count=xp.asarray(n_rows, dtype=xp.int64, device=on),
            mass=xp.sum(weights),
            absolute=xp.sum(sizes),
            norm=xp.sum(sizes * xp.sqrt(xp.abs(values))),
            squares=xp.sum(squares),
            diagonal=xp.sum(squares * values),
            negative=negative,
            least=least,
            lower=xp.astype(xp.min(rows.values, axis=0), xp.float64),
            upper=xp.astype(xp.max(rows.values, axis=0), xp.float64),
        )

    def merge(self, left: ExtentState, right: ExtentState) -> ExtentState:
        """State of both sets of rows."""
        xp = namespace(left.mass)
        first = left.least <= right.least
        return ExtentState(
            count=left.count + right.count,
            mass=left.mass + right.mass,
            absolute=left.absolute + right.absolute,
            norm=left.norm + right.norm,
            squares=left.squares + right.squares,
            diagonal=left.diagonal + right.diagonal,
            negative=xp.where(first, left.negative, right.negative),
            least=xp.minimum(left.least, right.least),
            lower=xp.minimum(left.lower, right.lower),
            upper=xp.maximum(left.upper, right.upper),
        )

    def finalize(self, state: ExtentState) -> ExtentState:
        """The sums as they are."""
        return state

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """A tile of weights, and what the kernel's diagonal needs."""
        tile = min(n_rows, _TILE_ROWS)
        copied = 0
        if self.kernel is not None:
            copied = 2 if self.kernel.maximum == 1.0 else 3 * max(4, itemsize)
        return Footprint(
            state=16 * self.width + 64,
            scratch=tile * (64 + copied * self.width) + 64 * self.width,
            row_cost=8 + 4 * self.width,
        )
