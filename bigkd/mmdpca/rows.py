"""Rows as kernels see them: features chosen, centred, weighted."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bigkd.backends import compute_dtype, device, namespace, to_host
from bigkd.engine import NonFinite
from bigkd.errors import DataError
from bigkd.linalg import Matrix
from bigkd.protocols import Array, Footprint, PairSummary, Rows, Summary


@dataclass(frozen=True, kw_only=True, eq=False)
class Preparation:
    """What is done to every row before a kernel sees it.

    Attributes
    ----------
    width
        Features of a row as stored.
    kept
        Numbers of the features that count, shape ``(n,)``; None for all.
    absent
        Numbers of those that are NaN in every row; None for none.
    mean
        What is taken from a row, shape ``(n,)``; None for nothing.
    scale
        What its features are multiplied by, shape ``(n,)``; None for nothing.
    nonfinite
        What becomes of rows with other NaN, where features are left out.
    name
        What messages call the rows.
    wide
        Whether rows are cast to float64, whatever they are.
    """

    width: int
    kept: np.ndarray[Any, Any] | None = None
    absent: np.ndarray[Any, Any] | None = None
    mean: Matrix | None = field(default=None, repr=False)
    scale: Matrix | None = field(default=None, repr=False)
    nonfinite: NonFinite = "raise"
    name: str = "X"
    wide: bool = False

    @property
    def n_features(self) -> int:
        """Features that count."""
        return self.width if self.kept is None else int(self.kept.size)

    def __call__(self, rows: Rows) -> Rows:
        """`rows` in the precision of computation, without those that are left out.

        Raises
        ------
        DataError
            If a row is NaN where others are not and that is not allowed, or the reverse.
        """
        xp, on = namespace(rows.values), device(rows.values)
        dtype = xp.float64 if self.wide else compute_dtype(xp, rows.values.dtype)
        values = xp.astype(rows.values, dtype, copy=False)
        if self.kept is not None:
            rows, values = self._chosen(rows, values)
        if self.mean is not None:
            values = values - xp.asarray(self.mean, dtype=values.dtype, device=on)
        if self.scale is not None:
            values = values * xp.asarray(self.scale, dtype=values.dtype, device=on)
        return rows._replace(values=values)

    def _chosen(self, rows: Rows, values: Array) -> tuple[Rows, Array]:
        xp, on = namespace(values), device(values)
        odd = xp.zeros((values.shape[0],), dtype=xp.bool, device=on)
        if self.absent is not None:
            other = xp.take(values, xp.asarray(self.absent, device=on), axis=1)
            odd = xp.any(~xp.isnan(other), axis=1)
        values = xp.take(values, xp.asarray(self.kept, device=on), axis=1)
        lost = ~xp.all(xp.isfinite(values), axis=1)
        if self.nonfinite == "raise":
            self._refuse(rows.index, odd, "has numbers in features that are NaN in the rows")
            self._refuse(rows.index, lost, "is not finite in features that are in the rows")
        elif bool(xp.any(lost | odd)):
            good = xp.nonzero(~(lost | odd))[0]
            values = xp.take(values, good, axis=0)
            rows = Rows(*(None if part is None else xp.take(part, good, axis=0) for part in rows))
        return rows, values

    def _refuse(self, index: Array, bad: Array, what: str) -> None:
        if bool(namespace(bad).any(bad)):
            row = to_host(index)[to_host(bad)][0]
            raise DataError(
                f"{self.name}: row {row} {what} sampled before; expected features that are NaN in "
                f"every row (land) or in none. Pass nonfinite='drop' to leave such rows out, or "
                f"fill the gaps, as with xarray's interpolate_na."
            )

    def itemsize(self, itemsize: int) -> int:
        """Bytes of a number that is computed with."""
        return 8 if self.wide or itemsize > 4 else 4

    def back(self, values: Matrix) -> Matrix:
        """Values of the features that count, among NaN for the others: shape ``(..., width)``."""
        if self.kept is None:
            return values
        out = np.full((*values.shape[:-1], self.width), np.nan)
        out[..., self.kept] = values
        return out


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A summary of prepared rows."""

    preparation: Preparation
    summary: Summary[Any]

    @property
    def exact(self) -> bool:
        """Whether the summary keeps the laws exactly."""
        return self.summary.exact

    def init(self, like: Array) -> Any:
        """State of no rows."""
        return self.summary.init(self._like(like))

    def update(self, state: Any, rows: Rows) -> Any:
        """State after `rows`, too."""
        rows = self.preparation(rows)
        return self.summary.update(state, rows) if rows.index.shape[0] else state

    def merge(self, left: Any, right: Any) -> Any:
        """State of both sets of rows."""
        return self.summary.merge(left, right)

    def finalize(self, state: Any) -> Any:
        """What the summary is for."""
        return self.summary.finalize(state)

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """That of the summary, and copies of the rows."""
        itemsize = self.preparation.itemsize(itemsize)
        own = self.summary.footprint(n_rows, itemsize)
        copies = 3 * n_rows * self.preparation.width * itemsize
        return Footprint(state=own.state, scratch=own.scratch + copies, row_cost=own.row_cost)

    def _like(self, like: Array) -> Array:
        xp = namespace(like)
        shape = (1, self.preparation.n_features)
        dtype = xp.float64 if self.preparation.wide else compute_dtype(xp, like.dtype)
        return xp.zeros(shape, dtype=dtype, device=device(like))


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedPairs:
    """A summary of pairs of prepared rows."""

    preparation: Preparation
    summary: PairSummary[Any]

    @property
    def exact(self) -> bool:
        """Whether the summary keeps the laws exactly."""
        return self.summary.exact

    def init(self, like: Array) -> Any:
        """State of no pairs."""
        return self.summary.init(like)

    def update(self, state: Any, left: Rows, right: Rows, *, mirrored: bool, diagonal: bool) -> Any:
        """State after every pair of a row of `left` and a row of `right`, too."""
        one = self.preparation(left)
        other = one if diagonal else self.preparation(right)
        return self.summary.update(state, one, other, mirrored=mirrored, diagonal=diagonal)

    def merge(self, left: Any, right: Any) -> Any:
        """State of both sets of pairs."""
        return self.summary.merge(left, right)

    def finalize(self, state: Any) -> Any:
        """What the summary is for."""
        return self.summary.finalize(state)

    def footprint(self, n_left: int, n_right: int, itemsize: int) -> Footprint:
        """That of the summary, and copies of the rows."""
        itemsize = self.preparation.itemsize(itemsize)
        own = self.summary.footprint(n_left, n_right, itemsize)
        copies = 3 * (n_left + n_right) * self.preparation.width * itemsize
        return Footprint(state=own.state, scratch=own.scratch + copies, row_cost=own.row_cost)
