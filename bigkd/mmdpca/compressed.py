r"""Feature maps of a kernel whose argument is compressed to a few directions.

Between two different rows, :math:`x \cdot y` is taken as :math:`Qx \cdot Qy`, with Q the leading
directions of PCA; lengths, and so :math:`|x|^2 + |y|^2 - 2\, Qx \cdot Qy`, are kept whole, as if
what Q leaves of one row were orthogonal to what it leaves of another. That is a positive definite
kernel :math:`\tilde H` of few variables, to which few features come near. Of a row with itself the
true H is known: what is missing, :math:`\delta_i = H(x_i, x_i) - |\phi(x_i)|^2 \ge 0`, enters
as :math:`\sum_i \delta_i x_i x_i^T`, of which the sum with Q is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import Any, Protocol

import numpy as np

from bigkd.backends import device, namespace
from bigkd.kernels import Kernel, Polynomial
from bigkd.linalg import Matrix, whitening
from bigkd.mmdpca.values import squared_lengths, values, values_between
from bigkd.protocols import Array


_NOTHING = 1e-7


class Expansion(Protocol):
    """Features of the compressed kernel."""

    @property
    def n_directions(self) -> int:
        """Leading directions that it looks at."""
        ...

    @property
    def n_features(self) -> int:
        """How many features it has."""
        ...

    @property
    def work(self) -> int:
        """Numbers a row that it needs at once."""
        ...

    def __call__(self, y: Array, lengths: Array) -> Array:
        """Features, shape ``(n, n_features)``.

        Of rows whose parts along the directions are `y`, shape ``(n, n_directions)``, and whose
        squared lengths are `lengths`, shape ``(n,)``.
        """
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Landmarks:
    r"""Nyström features: :math:`\tilde H` with landmarks, whitened.

    Of those features only combinations are kept that the landmarks themselves are correlated with:
    others add nothing to the sum of rows times features.

    Attributes
    ----------
    kernel
        The H.
    y
        Landmarks along the directions, shape ``(m, n_directions)``.
    lengths
        Their squared lengths, shape ``(m,)``.
    mixing
        Shape ``(m, n_features)``.
    covered
        Share of the compressed kernel of other rows with themselves that all features hold.
    """

    kernel: Kernel
    y: Matrix
    lengths: Matrix
    mixing: Matrix
    covered: float

    @property
    def n_directions(self) -> int:
        """Leading directions that it looks at."""
        return int(self.y.shape[1])

    @property
    def n_features(self) -> int:
        """How many features it has."""
        return int(self.mixing.shape[1])

    @property
    def work(self) -> int:
        """Numbers a row that it needs at once."""
        return 4 * int(self.y.shape[0])

    def __call__(self, y: Array, lengths: Array) -> Array:
        """Features, shape ``(n, n_features)``."""
        own, square, mixing = (_like(y, part) for part in (self.y, self.lengths, self.mixing))
        return values_between(self.kernel, y @ own.T, lengths, square) @ mixing


def landmarks(
    kernel: Kernel,
    y: Matrix,
    lengths: Matrix,
    correlated: Matrix,
    *,
    others: tuple[Matrix, Matrix],
    jitter: float,
) -> Landmarks:
    """Nyström features of landmarks.

    Parameters
    ----------
    kernel
        The H.
    y, lengths
        The landmarks along the directions, and their squared lengths.
    correlated
        The landmarks along more directions, shape ``(m, p)``: at most p features are kept.
    others
        Other rows as ``(y, lengths)``, which tell what the landmarks leave out.
    jitter
        Added to the diagonal of the landmarks' matrix, as a share of its largest entry.

    Returns
    -------
    Landmarks
        Their features' inner products are nowhere more than the compressed kernel, as matrices.
    """
    gram = values_between(kernel, y @ y.T, lengths, lengths)
    gram = (gram + gram.T) / 2.0
    own = values(kernel, lengths, np.zeros_like(lengths))
    if not np.diagonal(gram).max() > _NOTHING * own.max():  # H is next to 0 between any two rows
        nothing = np.zeros((len(y), 1))
        return Landmarks(kernel=kernel, y=y, lengths=lengths, mixing=nothing, covered=1.0)
    upper = whitening(gram, jitter=jitter * float(np.diagonal(gram).max())).upper
    turn, _ = np.linalg.qr(upper @ correlated)
    mixing = np.linalg.solve(upper, turn)
    return Landmarks(
        kernel=kernel,
        y=y,
        lengths=lengths,
        mixing=mixing,
        covered=_covered(kernel, y, lengths, upper, *others),
    )


def _covered(
    kernel: Kernel, y: Matrix, lengths: Matrix, upper: Matrix, other: Matrix, lengths_of: Matrix
) -> float:
    """Share of the other rows' kernel with themselves that landmarks hold, by squared length."""
    if not len(other):
        return 1.0
    across = values_between(kernel, y @ other.T, lengths, lengths_of)
    held = (np.linalg.solve(upper.T, across) ** 2).sum(axis=0)
    along = squared_lengths(other)
    smooth = values(kernel, along, 2.0 * (lengths_of - along))
    total = float(lengths_of @ smooth)
    return min(1.0, float(lengths_of @ held) / total) if total > 0.0 else 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Monomials:
    r"""Monomials of :math:`Qx`: exactly the features of a polynomial of :math:`Qx \cdot Qy`.

    Attributes
    ----------
    kernel
        The polynomial.
    n_directions
        Leading directions that it looks at.
    """

    kernel: Polynomial
    n_directions: int

    @property
    def n_features(self) -> int:
        """How many features it has."""
        orders = [at for at, value in enumerate(self.kernel.coefficients) if value]
        return sum(comb(self.n_directions + order - 1, order) for order in orders)

    @property
    def work(self) -> int:
        """Numbers a row that it needs at once."""
        return 3 * self.n_features

    def __call__(self, y: Array, lengths: Array) -> Array:
        """Features, shape ``(n, n_features)``."""
        del lengths
        xp = namespace(y)
        columns = [
            xp.stack(self._of_order(y, order, value), axis=1)
            for order, value in enumerate(self.kernel.coefficients)
            if value
        ]
        return xp.concat(columns, axis=1)

    def _of_order(self, y: Array, order: int, coefficient: float) -> list[Array]:
        xp = namespace(y)
        found = []
        for chosen in combinations_with_replacement(range(self.n_directions), order):
            product = xp.full((y.shape[0],), _strength(chosen, coefficient), dtype=y.dtype)
            for at in chosen:
                product = product * y[:, at]
            found.append(product)
        return found


def _strength(chosen: tuple[int, ...], coefficient: float) -> float:
    """Root of the coefficient of a monomial squared, in ``coefficient * (x.y)**order``."""
    repeats = [chosen.count(at) for at in set(chosen)]
    ways = factorial(len(chosen)) / np.prod([factorial(count) for count in repeats] or [1])
    return float(np.sqrt(coefficient * ways))


def n_monomials(n_directions: int, kernel: Polynomial) -> int:
    """Number of features of `Monomials`."""
    return Monomials(kernel=kernel, n_directions=n_directions).n_features


@dataclass(frozen=True, kw_only=True, eq=False)
class CompressedFeatures:
    """For each expansion its features, and then what is missing times the row along Q.

    Attributes
    ----------
    kernel
        The H.
    basis
        Q, orthonormal columns, shape ``(n, q)``.
    expansions
        Each looks at as many of the columns as it says.
    """

    kernel: Kernel
    basis: Matrix
    expansions: tuple[Expansion, ...]

    @property
    def width(self) -> int:
        """Width of the rows it takes."""
        return int(self.basis.shape[0])

    @property
    def n_features(self) -> int:
        """Width of the rows it gives."""
        return sum(part.n_features + part.n_directions for part in self.expansions)

    def __call__(self, x: Array) -> Array:
        """Features, shape ``(n, n_features)``, of rows of shape ``(n, width)``."""
        xp = namespace(x)
        y, lengths = x @ _like(x, self.basis), squared_lengths(x)
        columns = []
        for part in self.expansions:
            some = y[:, : part.n_directions]
            features = part(some, lengths)
            unlike, lost = self._missing(some, lengths, features)
            columns += [features, (unlike + lost)[:, None] * some]
        return xp.concat(columns, axis=1)

    def known(self, rows: Matrix, at: int) -> Matrix:
        """What the landmarks of an expansion added of themselves, though its features have it.

        Features are chosen so that, summed over the landmarks, the others have no part in their
        rows times features; what other rows add by themselves is then all that these add.

        Parameters
        ----------
        rows
            The landmarks, as rows, shape ``(m, width)``.
        at
            Which expansion.

        Returns
        -------
        Matrix
            To be taken from the sum of what is missing times rows, shape
            ``(width, n_directions)``.
        """
        part = self.expansions[at]
        y, lengths = (rows @ self.basis)[:, : part.n_directions], squared_lengths(rows)
        _, lost = self._missing(y, lengths, part(y, lengths))
        return np.asarray(rows.T @ (lost[:, None] * y))

    def _missing(self, y: Array, lengths: Array, features: Array) -> tuple[Array, Array]:
        """What H of a row with itself has more than the compressed kernel, and that than features.

        Not negative, each of shape ``(n,)``.
        """
        xp, along = namespace(y), squared_lengths(y)
        own = values(self.kernel, lengths, xp.zeros_like(lengths))
        smooth = values(self.kernel, along, 2.0 * (lengths - along))
        lost = smooth - squared_lengths(features)
        return xp.clip(own - smooth, min=0.0), xp.clip(lost, min=0.0)

    @property
    def work_features(self) -> int:
        """Numbers a row that it needs at once, beside its result."""
        return self.width + 2 * self.n_features + max(part.work for part in self.expansions)

    def parts(self, cross: Matrix) -> Sequence[tuple[Matrix, Matrix]]:
        """Sums of rows times features, and times what is missing, of each expansion."""
        found, start = [], 0
        for part in self.expansions:
            middle = start + part.n_features
            stop = middle + part.n_directions
            found.append((cross[:, start:middle], cross[:, middle:stop]))
            start = stop
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Sketch:
    """Rows along some directions: the sum of rows times that is C times the directions."""

    directions: Matrix

    @property
    def width(self) -> int:
        """Width of the rows it takes."""
        return int(self.directions.shape[0])

    @property
    def n_features(self) -> int:
        """Width of the rows it gives."""
        return int(self.directions.shape[1])

    def __call__(self, x: Array) -> Array:
        """Shape ``(n, n_features)``."""
        return x @ _like(x, self.directions)


def _like(x: Array, array: Matrix) -> Any:
    return namespace(x).asarray(array, dtype=x.dtype, device=device(x))
