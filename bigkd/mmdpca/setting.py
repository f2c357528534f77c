"""What a fit is asked for, and the choice of a method from shapes alone."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from bigkd.errors import InputError
from bigkd.kernels import Polynomial
from bigkd.mmdpca.compressed import n_monomials
from bigkd.mmdpca.kernels import Tempered, tempered

Method: TypeAlias = Literal["auto", "gram", "pairs", "nystrom", "features", "moments"]

METHODS = get_args(Method)

N_LANDMARKS = 1000
N_FREQUENCIES = 1000
N_POINTS = 256
N_DIRECTIONS = 16
"""Directions that monomials are made of, where there are too many features for all."""

MOST_WORK = 3e11
"""Multiply-adds that an exact method may take, where it is chosen: some seconds."""

MOST_ROWS = 4000
"""Rows whose matrices are decomposed whole, where that is chosen."""

MOST_MONOMIALS = 2000
"""Monomials of all features that are summed, where that is chosen."""

_MOST_FEATURES = 4000
_LANDMARK_BYTES = 2**28


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a fit is asked for."""

    k: int
    kernel: Any
    a: float
    center: bool
    method: Method
    n_landmarks: int
    n_frequencies: int
    n_directions: int | None
    n_points: int
    mmd: bool
    seed: int

    def tempered(self, n_features: int) -> Tempered:
        """The kernel on rows of `n_features`."""
        return tempered(self.kernel, self.a, n_features)

    @property
    def directions(self) -> int:
        """Directions of PCA that the argument of the kernel is compressed to."""
        return self.k + 30 if self.n_directions is None else self.n_directions

    def landmarks(self, n_rows: int, n_features: int) -> int:
        """Landmarks that there are rows, and memory, for."""
        fit = max(2 * self.directions, _LANDMARK_BYTES // (8 * n_features))
        return min(self.n_landmarks, n_rows, fit)


def choose_method(question: Question, n_rows: int, n_features: int) -> str:
    """The method that was asked for; ``"auto"`` sees shapes and the kernel only.

    Raises
    ------
    InputError
        If the kernel does not allow the method.
    """
    kernel = question.tempered(n_features).kernel
    polynomial = isinstance(kernel, Polynomial)
    if question.method == "moments" and not polynomial:
        raise InputError(
            f"method='moments' needs a kernel with finitely many moments, such as 'kurtosis'; got "
            f"{question.kernel!r}. Leave the method open, or pass method='nystrom'."
        )
    if question.method == "features" and not kernel.has_spectrum:
        raise InputError(
            f"method='features' needs a kernel with a spectrum, such as 'gauss'; got "
            f"{question.kernel!r}. Leave the method open."
        )
    if question.method != "auto":
        return question.method
    if n_rows <= min(n_features, MOST_ROWS):
        return "gram"
    if isinstance(kernel, Polynomial) and n_monomials(n_features, kernel) <= MOST_MONOMIALS:
        return "moments"
    if n_features <= _MOST_FEATURES and 2.0 * n_features * n_rows**2 <= MOST_WORK:
        return "pairs"
    return "moments" if polynomial else "nystrom"
