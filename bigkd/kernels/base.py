"""What every kernel can do."""

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from bigkd.backends import namespace
from bigkd.kernels._rows import check_rows, positive
from bigkd.kernels.distances import map_tiles
from bigkd.kernels.frequencies import Sampling, draw_frequencies
from bigkd.protocols import Array


@dataclasses.dataclass(frozen=True)
class Kernel(ABC):
    """Positive definite kernel that depends on the distance between two rows only, K(x, x) = 1.

    A kernel is a small frozen value: compare it, hash it, pickle it, or store `name` and
    `parameters` and get it back with `from_parameters`. Parameters are finite and positive;
    anything else raises InputError.
    """

    name: ClassVar[str]
    """What a stored kernel is called."""

    length_name: ClassVar[str] = "length_scale"
    """Which parameter is the length, in the units of the rows."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = positive(f"{type(self).__name__}.{field.name}", getattr(self, field.name))
            object.__setattr__(self, field.name, value)

    def __call__(self, x: Array, y: Array) -> Array:
        """Kernel between every row of `x` and every row of `y`.

        Parameters
        ----------
        x
            Rows, shape ``(n, d)``, any real dtype.
        y
            Rows, shape ``(m, d)``, same namespace and device as `x`.

        Returns
        -------
        Array
            Shape ``(n, m)``, dimensionless, in ``[0, 1]``, exactly 1 for equal rows; float64 if
            either input is float64 or a wide integer, else float32.

        Raises
        ------
        ShapeError
            If `x` and `y` are not both two-dimensional with equal width.

        Notes
        -----
        Digits follow the spread of the rows, not their offset; see `squared_distances`. Beyond the
        result it needs a copy of `y` and a few tiles of about a million elements.
        """
        xp = namespace(x, y)
        check_rows(f"{type(self).__name__} kernel", xp, x, y)
        return map_tiles(self.of_squared, xp, x, y)

    @abstractmethod
    def of_squared(self, squared: Array) -> Array:
        """Kernel of squared distances, same shape and dtype."""

    @abstractmethod
    def _mixing(self, generator: np.random.Generator, n: int) -> np.ndarray[Any, Any]:
        """Draw a standard deviation for each of `n` frequencies, given which it is normal."""

    def frequencies(
        self, n_frequencies: int, width: int, *, seed: int = 0, sampling: Sampling = "iid"
    ) -> np.ndarray[Any, Any]:
        """Random frequencies w with E[cos(w.(x - y))] = K(x, y).

        Parameters
        ----------
        n_frequencies
            How many, `r`.
        width
            Width `d` of the rows.
        seed
            Equal seeds give equal frequencies; a non-negative integer.
        sampling
            ``"iid"`` draws each from the spectral density. ``"orthogonal"`` draws blocks of
            ``min(d, 1024)`` mutually orthogonal directions, each frequency with the same
            distribution as before [1]_: as unbiased, and of smaller variance for the Gaussian.

        Returns
        -------
        numpy.ndarray
            Shape ``(r, d)``, float64. The first `k` of them are what asking for `k` gives, so a
            feature map can be refined without starting over.

        References
        ----------
        .. [1] F. Yu et al., "Orthogonal Random Features", NeurIPS 2016.
        """
        return draw_frequencies(self._mixing, n_frequencies, width, seed=seed, sampling=sampling)

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters by name, as `from_parameters` takes them."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @property
    def length(self) -> float:
        """The length of the kernel, in the units of the rows."""
        return self.parameters[self.length_name]

    def with_length(self, length: float) -> Self:
        """Kernel of the same shape with another length."""
        return dataclasses.replace(self, **{self.length_name: length})

    def scaled(self, factor: float) -> Self:
        """Kernel of the same shape with its length multiplied by `factor`."""
        return self.with_length(self.length * positive("factor", factor))
