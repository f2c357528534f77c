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
        Numbers of the features that count, shape ``(n,)``; None for all. The others are NaN in
        every row.
    mean
        What is taken from a row, shape ``(n,)``; None for nothing.
    scale
        What its features are multiplied by, shape ``(n,)``; None for nothing.
    nonfinite
        What becomes of rows with other NaN, where features are left out.
    """

    width: int
    kept: np.ndarray[Any, Any] | None = None
    mean: Matrix | None = field(default=None, repr=False)
    scale: Matrix | None = field(default=None, repr=False)
    nonfinite: NonFinite = "raise"

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
        values = xp.astype(rows.values, compute_dtype(xp, rows.values.dtype), copy=False)
        if self.kept is not None:
            rows, values = self._chosen(rows, values)
        if self.mean is not None:
            values = values - xp.asarray(self.mean, dtype=values.dtype, device=on)
        if self.scale is not None:
            values = values * xp.asarray(self.scale, dtype=values.dtype, device=on)
        return rows._replace(values=values)

    def _chosen(self, rows: Rows, values: Array) -> tuple[Rows, Array]:
        xp = namespace(values)
        kept = xp.asarray(self.kept, device=device(values))
        present = xp.sum(xp.astype(xp.isfinite(values), xp.int64), axis=1)
        values = xp.take(values, kept, axis=1)
        own = xp.sum(xp.astype(xp.isfinite(values), xp.int64), axis=1)
        self._refuse(rows.index, present > own, "has numbers in features that are NaN in the rows")
        lost = own < self.n_features
        if self.nonfinite == "raise":
            self._refuse(rows.index, lost, "is not finite in features that are in the rows")
        elif bool(xp.any(lost)):
            good = xp.nonzero(~lost)[0]
            values = xp.take(values, good, axis=0)
            rows = Rows(*(None if part is None else xp.take(part, good, axis=0) for part in rows))
        return rows, values

    def _refuse(self, index: Array, bad: Array, what: str) -> None:
        if bool(namespace(bad).any(bad)):
            row = to_host(index)[to_host(bad)][0]
            raise DataError(
                f"X: row {row} {what} sampled before it; expected features that are NaN in every "
                f"row (land) or in none. Pass nonfinite='drop' to leave such rows out, or fill the "
                f"gaps, as with xarray's interpolate_na."
            )

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
        own = self.summary.footprint(n_rows, itemsize)
        copies = 3 * n_rows * self.preparation.width * (4 if itemsize <= 4 else 8)
        return Footprint(state=own.state, scratch=own.scratch + copies, row_cost=own.row_cost)

    def _like(self, like: Array) -> Array:
        xp = namespace(like)
        shape, dtype = (1, self.preparation.n_features), compute_dtype(xp, like.dtype)
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
        own = self.summary.footprint(n_left, n_right, itemsize)
        copies = 3 * (n_left + n_right) * self.preparation.width * (4 if itemsize <= 4 else 8)
        return Footprint(state=own.state, scratch=own.scratch + copies, row_cost=own.row_cost)
