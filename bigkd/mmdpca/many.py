"""A collection of many rows, prepared, and passes over it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bigkd.backends import compute_dtype, rng
from bigkd.engine import Session
from bigkd.errors import DataError, EmptyInputError
from bigkd.io import Source, sample
from bigkd.linalg import Matrix
from bigkd.mmdpca.rows import Preparation, Prepared, PreparedPairs
from bigkd.protocols import Rows, Summary

_STREAM = 0x6F726465  # keeps these numbers apart from other uses of a seed


@dataclass(frozen=True, kw_only=True)
class Many:
    """A collection whose rows are prepared, and the passes over it."""

    session: Session
    source: Source
    preparation: Preparation

    def reduce(self, summary: Summary[Any], label: str) -> Any:
        """State after all prepared rows."""
        prepared = Prepared(preparation=self.preparation, summary=summary)
        return self._session().reduce(prepared, self.source, label=label).state

    def reduce_pairs(self, summary: Any, label: str) -> Any:
        """State after all pairs of prepared rows."""
        prepared = PreparedPairs(preparation=self.preparation, summary=summary)
        return self._session().reduce_pairs(prepared, self.source, label=label).state

    def rows(self, n_rows: int, seed: int) -> Matrix:
        """Some prepared rows, on the host in float64."""
        some = sample(self.source, n_rows, seed=seed, finite=self.preparation.kept is None)
        # In an order of their own: those of a sample are in the order of the collection.
        order = rng(seed, _STREAM).permutation(len(some.values))
        values = some.values[order]
        values = values[np.isfinite(values[:, self.columns]).all(axis=1)]
        if not len(values):
            raise EmptyInputError(
                f"{self.source.name}: none of {len(some.values)} sampled rows is finite in all "
                f"features that are finite in some."
            )
        return np.asarray(self.preparation(Rows(values, np.arange(len(values)))).values)

    def widened(self) -> "Many":
        """The same in float64."""
        return replace(self, preparation=replace(self.preparation, wide=True))

    @property
    def eps(self) -> float:
        """Spacing of the numbers that are computed with."""
        wide = self.preparation.wide
        return float(np.finfo(np.float64 if wide else compute_dtype(np, self.source.dtype)).eps)

    @property
    def columns(self) -> Any:
        """The features that count."""
        return slice(None) if self.preparation.kept is None else self.preparation.kept

    def finite(self, sums: Matrix) -> Matrix:
        """`sums` of products of rows, refused where these overflowed.

        Raises
        ------
        DataError
            If a number is not finite.
        """
        if not np.isfinite(sums).all():
            raise DataError(
                f"{self.source.name}: products of its numbers overflow; expected numbers whose "
                f"squares are finite. Divide the data by their largest value."
            )
        return sums

    def counts(self, n_rows: int) -> dict[str, int]:
        """Rows that were used and left out, for the result."""
        return {"n_rows": n_rows, "n_dropped": self.source.n_rows - n_rows}

    def _session(self) -> Session:
        """A session that leaves rows that are not finite to the preparation, where it knows."""
        if self.preparation.kept is None:
            return self.session
        return replace(self.session, settings=replace(self.session.settings, nonfinite="keep"))
