r"""What features leave out of a kernel, seen from the subspace that they led to.

With F the features and :math:`B B^T` what was summed of rows by themselves, the subspace is that of
:math:`\tilde H_f = N^{-2} (X^T F F^T X + B B^T)`. Here is :math:`(H_f - \tilde H_f) V`, estimated
with some rows drawn at random: of a row with itself everything is known.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from bigkd.backends import device, namespace
from bigkd.kernels import FourierFeatures, Kernel
from bigkd.kernels._rows import tiles
from bigkd.linalg import Matrix
from bigkd.mmdpca.compressed import CompressedFeatures
from bigkd.mmdpca.points import Points
from bigkd.mmdpca.values import squared_lengths, values, values_between
from bigkd.protocols import Array, Footprint, Rows

_TILE_ROWS = 1024


class ResidualSums(NamedTuple):
    """Sums over rows."""

    count: Array  # (), rows seen
    others: Array  # (width, k), rows times what features lack of their pairs with points
    own: Array  # (width, k), rows times what features lack of them with themselves


@dataclass(frozen=True, kw_only=True, eq=False)
class Residual:
    """Rows times what features leave out, times the coordinates of other rows.

    Attributes
    ----------
    kernel
        The H.
    features
        What it was approximated by.
    vectors
        Orthonormal columns of the subspace, shape ``(n, k)``.
    points
        Rows drawn at random.
    """

    kernel: Kernel
    features: CompressedFeatures | FourierFeatures
    vectors: Matrix
    points: Points
    exact: ClassVar[bool] = True

    def init(self, like: Array) -> ResidualSums:
        """State of no rows."""
        xp, on = namespace(like), device(like)
        zeros = xp.zeros(self.vectors.shape, dtype=xp.float64, device=on)
        count = xp.zeros((), dtype=xp.int64, device=on)
        return ResidualSums(count, zeros, xp.zeros_like(zeros))

    def update(self, state: ResidualSums, rows: Rows) -> ResidualSums:
        """State after `rows`, too; adds into the memory of `state`."""
        xp, on = namespace(rows.values), device(rows.values)
        count, others, own = state
        points, vectors, shares = (
            xp.asarray(part, dtype=rows.values.dtype, device=on)
            for part in (self.points.values, self.vectors, 1.0 / self.points.chance)
        )
        index = xp.asarray(self.points.index, device=on)
        held, squares = self._main(points), squared_lengths(points)
        strengths = (shares / xp.sum(shares))[:, None] * (points @ vectors)
        for part in tiles(rows.values.shape[0], _TILE_ROWS):
            x = rows.values[part, :]
            features, lengths = self._main(x), squared_lengths(x)
            lacking = values_between(self.kernel, x @ points.T, lengths, squares)
            lacking = lacking - features @ held.T
            same = rows.index[part][:, None] == index[None, :]
            lacking = xp.where(same, xp.zeros_like(lacking), lacking)
            others += x.T @ (lacking @ strengths)
            missing = values(self.kernel, lengths, xp.zeros_like(lengths))
            missing = missing - squared_lengths(features)
            own += x.T @ (missing[:, None] * (x @ vectors))
        return ResidualSums(count + rows.values.shape[0], others, own)

    def merge(self, left: ResidualSums, right: ResidualSums) -> ResidualSums:
        """State of both sets of rows."""
        return ResidualSums(*(one + other for one, other in zip(left, right, strict=True)))

    def finalize(self, state: ResidualSums) -> Array:
        """``(H_f - X^T F F^T X / N^2) V``, shape ``(width, k)``."""
        n = int(state.count)
        return (max(0, n - 1) * state.others + state.own) / n**2

    def footprint(self, n_rows: int, itemsize: int) -> Footprint:
        """The points and vectors, two products, and what a tile of rows needs."""
        width, k = self.vectors.shape
        m, n_tile = self.points.index.size, min(n_rows, _TILE_ROWS)
        work: Any = getattr(self.features, "work_features", 3 * self.features.n_features)
        wide = 4 if itemsize <= 4 else 8
        return Footprint(
            state=16 * width * k + 8,
            scratch=wide * (m * width + 4 * width * k + (n_tile + m) * (6 * m + work + width)),
            row_cost=m * (width + self.features.n_features + 20) + width * self.features.n_features,
        )

    def _main(self, x: Array) -> Array:
        if isinstance(self.features, CompressedFeatures):
            return self.features.main(x)
        return self.features(x)
