r"""Feature maps of a kernel whose argument is compressed to a few directions.

Between two different rows, :math:`x \cdot y` is taken as :math:`Qx \cdot Qy`, with Q the leading
directions of PCA; lengths, and so :math:`|x|^2 + |y|^2 - 2\, Qx \cdot Qy`, are kept whole, as if
what Q leaves of one row were orthogonal to what it leaves of another. That is a positive definite
kernel :math:`\tilde H` of few variables, to which few features come near. Of a row with itself the
true H is known: what is missing, :math:`\delta_i = H(x_i, x_i) - |\phi(x_i)|^2 \ge 0`, enters
as :math:`\sum_i \delta_i x_i x_i^T`, of which the sum with Q is kept.
"""

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
    """

    kernel: Kernel
    y: Matrix
    lengths: Matrix
    mixing: Matrix

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
        return Landmarks(kernel=kernel, y=y, lengths=lengths, mixing=nothing)
    upper = whitening(gram, jitter=jitter * float(np.diagonal(gram).max())).upper
    turn, _ = np.linalg.qr(upper @ correlated)
    mixing = np.linalg.solve(upper, turn)
    return Landmarks(kernel=kernel, y=y, lengths=lengths, mixing=mixing)


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
    """The features of an expansion, and then what is missing times the row along Q.

    Attributes
    ----------
    kernel
        The H.
    basis
        Q, orthonormal columns, shape ``(n, q)``, as many as the expansion looks at.
    expansion
        The features.
    """

    kernel: Kernel
    basis: Matrix
    expansion: Expansion

    @property
    def width(self) -> int:
        """Width of the rows it takes."""
        return int(self.basis.shape[0])

    @property
    def n_features(self) -> int:
        """Width of the rows it gives."""
        return self.expansion.n_features + self.expansion.n_directions

    @property
    def work_features(self) -> int:
        """Numbers a row that it needs at once, beside its result."""
        return self.width + 2 * self.n_features + self.expansion.work

    @property
    def is_exact(self) -> bool:
        """Whether the features are those of H itself."""
        exact = isinstance(self.expansion, Monomials)
        return exact and self.expansion.n_directions == self.width

    def __call__(self, x: Array) -> Array:
        """Features, shape ``(n, n_features)``, of rows of shape ``(n, width)``."""
        y, features, unlike, lost = self._parts(x)
        return namespace(x).concat([features, (unlike + lost)[:, None] * y], axis=1)

    def main(self, x: Array) -> Array:
        """Features of the expansion alone, shape ``(n, expansion.n_features)``."""
        return self.expansion(x @ _like(x, self.basis), squared_lengths(x))

    def split(self, cross: Matrix) -> tuple[Matrix, Matrix]:
        """Sums of rows times features, and times what is missing."""
        at = self.expansion.n_features
        return cross[:, :at], cross[:, at:]

    def known(self, rows: Matrix) -> Matrix:
        """What landmarks added of themselves, though their features have it.

        Features are chosen so that, summed over the landmarks, the others have no part in their
        rows times features; what other rows add by themselves is then all that these add.

        Parameters
        ----------
        rows
            The landmarks, as rows, shape ``(m, width)``.

        Returns
        -------
        Matrix
            To be taken from the sum of what is missing times rows, shape ``(width, q)``.
        """
        y, _, _, lost = self._parts(rows)
        return np.asarray(rows.T @ (lost[:, None] * y))

    def _parts(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """Rows along Q, features, and what H of a row with itself has more than these.

        The last in two parts, not negative, each of shape ``(n,)``: more than the compressed
        kernel, and that more than the features.
        """
        xp = namespace(x)
        y, lengths = x @ _like(x, self.basis), squared_lengths(x)
        features, along = self.expansion(y, lengths), squared_lengths(y)
        own = values(self.kernel, lengths, xp.zeros_like(lengths))
        smooth = values(self.kernel, along, 2.0 * (lengths - along))
        lost = smooth - squared_lengths(features)
        return y, features, xp.clip(own - smooth, min=0.0), xp.clip(lost, min=0.0)


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
