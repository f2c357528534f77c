"""Dissimilarities of pairs of mapped data, and how mapped data are stored."""

from dataclasses import dataclass
from typing import ClassVar, Self

from bigkd.backends import namespace
from bigkd.did.choice import Strength
from bigkd.did.maps import ImageMaps
from bigkd.kernels._rows import tiles
from bigkd.linalg import Factors, PairValues, dissimilarities, factored, scratch_bytes
from bigkd.protocols import Array, Footprint, Rows

_RUN_BYTES = 32 * 2**20


@dataclass(frozen=True, kw_only=True)
class PairMeasure:
    """Eq. 12 for every pair of a reference and a searched datum, for every lambda.

    Attributes
    ----------
    strength
        Which lambdas, in which units.
    tolerance
        Relative error that may be traded for time.
    """

    strength: Strength
    tolerance: float

    def __call__(self, reference: Factors, searched: Factors) -> PairValues:
        """Values and rounding bounds, shape ``(n_lam, n_reference, n_searched)``.

        NaN where a datum has a map of zero: no position of it counts, or no value of it is near any
        landmark.
        """
        xp = namespace(reference.strength)
        lost = (reference.strength[:, 0] == 0)[:, None] | (searched.strength[:, 0] == 0)[None, :]
        if self.strength.scale == "unit":
            reference, searched = _of_norm_one(reference), _of_norm_one(searched)
        lams = xp.asarray(self.strength.lams, dtype=xp.float64)
        if self.strength.relative:
            largest = searched.strength[:, 0] ** 2
            lams = lams[:, None] * xp.where(largest > 0, largest, 1.0)[None, :]
        found = dissimilarities(reference, searched, lams, tolerance=self.tolerance)
        return PairValues(*(xp.where(lost[None, ...], xp.nan, part) for part in found))

    @classmethod
    def of(cls, strength: Strength, maps: ImageMaps) -> Self:
        """As accurate as `maps` are."""
        return cls(strength=strength, tolerance=1e-12 if maps.dtype == "float64" else 1e-8)

    def cost(self, shape: tuple[int, int]) -> int:
        """Multiply-adds of one pair of maps of `shape`, or as much time."""
        m_y, m_x = shape
        return m_y * m_x**2 // 2 + len(self.strength.lams) * 5 * m_x**3

    def scratch(self, shape: tuple[int, int], n_reference: int, n_searched: int) -> int:
        """Bytes of the temporaries of so many pairs."""
        rank = min(shape)
        own = (n_reference + n_searched) * shape[0] * rank * 8
        n_lams = len(self.strength.lams)
        return own + scratch_bytes(shape[0], rank, n_reference, n_searched, n_lams=n_lams)


@dataclass(frozen=True, kw_only=True)
class StoredMaps:
    """Factors of both maps of each datum, as one row of numbers: what pairs are made from."""

    maps: ImageMaps
    dtype: ClassVar[str] = "float64"

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of a row: both bases, both strengths."""
        m_y, rank = self.maps.shape[0], min(self.maps.shape)
        return (2 * rank * (m_y + 1),)

    def __call__(self, rows: Rows) -> Array:
        """Rows of factors, shape ``(n, *row_shape)``."""
        xp, step = namespace(rows.values), run_length(self.maps, 2)
        parts = []
        for run in tiles(rows.values.shape[0], step):
            maps = self.maps(rows.values[run, :])
            both = [factored(maps[:, at, ...]) for at in (0, 1)]
            flat = [xp.reshape(part.basis, (maps.shape[0], -1)) for part in both]
            parts.append(xp.concat([*flat, *(part.strength for part in both)], axis=1))
        return xp.concat(parts, axis=0)

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """Rows of factors, and what one run of data needs."""
        m_y, m_x = self.maps.shape
        step = run_length(self.maps, 2)
        return Footprint(
            state=n_rows * self.row_shape[0] * 8,
            scratch=self.maps.scratch(2) + 8 * step * m_y * m_x * 8,
            row_cost=self.maps.row_cost(2) + 12 * m_y * m_x**2,
        )


@dataclass(frozen=True, kw_only=True)
class StoredPairs:
    """Dissimilarities of every two rows of `StoredMaps`, whose maps have the shape `shape`."""

    shape: tuple[int, int]
    measure: PairMeasure

    @property
    def n_values(self) -> int:
        """Numbers of a pair: one for each lambda."""
        return len(self.measure.strength.lams)

    def __call__(self, left: Rows, right: Rows) -> Array:
        """Dissimilarities of `right` from the references `left`, ``(n_lam, n_left, n_right)``."""
        return self.measure(self._factors(left, 0), self._factors(right, 1)).value

    def footprint(self, n_left: int, n_right: int, itemsize: int) -> Footprint:
        """The tile, and what its pairs need."""
        return Footprint(
            state=self.n_values * n_left * n_right * 8,
            scratch=self.measure.scratch(self.shape, n_left, n_right),
            row_cost=self.measure.cost(self.shape),
        )

    def _factors(self, rows: Rows, side: int) -> Factors:
        xp = namespace(rows.values)
        n, m_y, rank = rows.values.shape[0], self.shape[0], min(self.shape)
        size, after = m_y * rank, 2 * m_y * rank + side * rank
        basis = xp.reshape(rows.values[:, side * size : (side + 1) * size], (n, m_y, rank))
        return Factors(basis, rows.values[:, after : after + rank])


def _of_norm_one(factors: Factors) -> Factors:
    xp = namespace(factors.strength)
    largest = factors.strength[:, :1]
    return factors._replace(strength=factors.strength / xp.where(largest > 0, largest, 1.0))


def run_length(maps: ImageMaps, n_sides: int) -> int:
    """Data whose maps are made and factored together: about 32 MB of them."""
    m_y, m_x = maps.shape
    return max(1, min(32, _RUN_BYTES // (n_sides * m_y * m_x * 8)))
