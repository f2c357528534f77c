"""Random Fourier features that keep their digits far from the origin."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bigkd.backends import compute_dtype, device, is_array, namespace, to_host
from bigkd.errors import EmptyInputError, InputError, ShapeError
from bigkd.kernels._rows import centre_of, check_rows, positive_integer, tiles
from bigkd.protocols import Array

_TILE_ROWS = 512
_PHASE_ROWS = 128
_TILE_ANGLES = 2**17
_NARROW = 16
_FEWEST_ROWS = 64


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    r"""Feature map whose inner products estimate a kernel.

    .. math:: \phi(x) = \sqrt{1/r}\,[\cos w_1 x, \dots, \cos w_r x, \sin w_1 x, \dots, \sin w_r x]

    so that :math:`\phi(x) \cdot \phi(y) = \frac1r \sum_k \cos w_k (x - y)` and
    :math:`\lVert\phi(x)\rVert = 1`.

    Parameters
    ----------
    frequencies
        The w above, shape ``(r, d)``, from `Kernel.frequencies`; kept as a read-only float64 copy
        on the host.

    Raises
    ------
    ShapeError
        If `frequencies` is not two-dimensional.
    InputError
        If it is empty, not finite, or not floating point.

    Examples
    --------
    >>> FourierFeatures(np.array([[1.0, 1.0]]))(np.array([[np.pi / 4, np.pi / 4]])).round(12)
    array([[0., 1.]])
    """

    frequencies: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        given = self.frequencies
        host = to_host(given) if is_array(given) else np.asarray(given)
        if host.ndim != 2:
            raise ShapeError(f"frequencies must have shape (r, d); got {host.shape}.")
        if host.size == 0:
            raise EmptyInputError(f"frequencies must have at least one element; got {host.shape}.")
        if not np.issubdtype(host.dtype, np.floating):
            raise InputError(f"frequencies must be floating point; got {host.dtype}.")
        if not np.isfinite(host).all():
            bad = np.count_nonzero(~np.isfinite(host))
            raise InputError(f"frequencies must be finite; {bad} of {host.size} are not.")
        host = np.array(host, dtype=np.float64, order="C")
        host.flags.writeable = False
        object.__setattr__(self, "frequencies", host)
        # Not a field: what was cast for one device is no part of the value, nor of its pickle.
        object.__setattr__(self, "_cast", {})

    def __reduce__(self) -> tuple[type[Self], tuple[np.ndarray[Any, Any]]]:
        return type(self), (self.frequencies,)

    @property
    def width(self) -> int:
        """Width `d` of the rows it takes."""
        return int(self.frequencies.shape[1])

    @property
    def n_frequencies(self) -> int:
        """Number of frequencies, `r`."""
        return int(self.frequencies.shape[0])

    @property
    def n_features(self) -> int:
        """Width ``2 r`` of the rows it gives."""
        return 2 * self.n_frequencies

    def head(self, k: int) -> Self:
        """Feature map of the first `k` frequencies."""
        k = positive_integer("k", k)
        if k > self.n_frequencies:
            raise InputError(f"k must be at most the {self.n_frequencies} frequencies; got {k}.")
        return type(self)(self.frequencies[:k])

    def __call__(self, x: Array) -> Array:
        r"""Features of `x`, all cosines and then all sines.

        Parameters
        ----------
        x
            Rows, shape ``(n, d)``, any real dtype.

        Returns
        -------
        Array
            Shape ``(n, 2 r)``; float64 for float64 and wide integers, else float32.

        Raises
        ------
        ShapeError
            If `x` is not two-dimensional or not of width `d`.

        Notes
        -----
        The phase is split about the mean c of the block, :math:`wx = w(x - c) + wc`. The first term
        is computed in the dtype of the result and errs by about
        :math:`\epsilon\lVert w\rVert\lVert x - c\rVert`: it follows the spread of the block and not
        its offset, and since c has the dtype of `x`, ``x - c`` is exact where offset exceeds
        spread. The second is one number for each frequency, computed in higher precision and
        reduced modulo :math:`2\pi` before it is rounded. A row that is not finite gives features
        that are not finite and leaves the others alone.

        Beyond the result it needs two tiles of 512 rows by `r` features and one by `d`.
        """
        xp = self._namespace_of(x)
        n, r = x.shape[0], self.n_frequencies
        dtype, on = compute_dtype(xp, x.dtype), device(x)
        out = xp.empty((n, 2 * r), dtype=dtype, device=on)
        if n == 0:
            return out
        weights = self._weights(xp, dtype, on)
        centre, phase = self._about(xp, x, dtype, on)
        scale = math.sqrt(1.0 / r)
        for rows in tiles(n, _TILE_ROWS):
            angle = (xp.astype(x[rows, :], dtype, copy=False) - centre) @ weights
            angle += phase
            out[rows, :r] = xp.cos(angle)
            out[rows, r:] = xp.sin(angle)
            out[rows, :] *= scale
        return out

    def weighted_sum(self, x: Array, strengths: Array) -> Array:
        r"""Features of `x` summed over its rows, :math:`\sum_i u_i \otimes \phi(x_i)`.

        Parameters
        ----------
        x
            Rows, shape ``(n, d)``, any real dtype.
        strengths
            The u above, shape ``(n, c)``.

        Returns
        -------
        Array
            Shape ``(c, 2 r)``, float64.

        Raises
        ------
        ShapeError
            If `x` is not two-dimensional or not of width `d`.

        Notes
        -----
        As accurate as the features themselves, which never exist: a tile of about a hundred
        thousand angles stays in cache, its sums are added in float64.
        """
        xp = self._namespace_of(x)
        n, r = x.shape[0], self.n_frequencies
        dtype, on = compute_dtype(xp, x.dtype), device(x)
        total = xp.zeros((strengths.shape[1], 2 * r), dtype=xp.float64, device=on)
        if n == 0:
            return total
        centre, phase = self._about(xp, x, dtype, on)
        weights, one = self._weights(xp, dtype, on), xp.ones((n, 1), dtype=dtype, device=on)
        strengths = xp.astype(strengths, dtype, copy=False)
        narrow = self.width <= _NARROW
        if narrow:  # the phase goes through the product, as the weight of one more column
            weights = xp.concat([weights, phase[None, :]], axis=0)
        for rows in tiles(n, self._tile_rows()):
            part = xp.astype(x[rows, :], dtype, copy=False) - centre
            if narrow:
                angle = xp.concat([part, one[rows, :]], axis=1) @ weights
            else:
                angle = part @ weights
                angle += phase
            own = strengths[rows, :].T
            total[:, :r] += own @ xp.cos(angle)
            total[:, r:] += own @ xp.sin(angle)
        return total * math.sqrt(1.0 / r)

    def _namespace_of(self, x: Array) -> Any:
        """Namespace of `x`, which must be rows of width `d`."""
        xp = namespace(x)
        check_rows("FourierFeatures", xp, x)
        if x.shape[1] != self.width:
            raise ShapeError(
                f"FourierFeatures of width {self.width} needs rows of that width; "
                f"got {tuple(x.shape)}."
            )
        return xp

    def _about(self, xp: Any, x: Array, dtype: Any, on: Any) -> tuple[Array, Array]:
        """Mean row of `x`, and the phase of every frequency there."""
        centre = centre_of(xp, x, dtype)
        return centre, xp.asarray(self._phase(to_host(centre)), dtype=dtype, device=on)

    def sum_elements(self, n_rows: int) -> int:
        """Elements of the temporaries of `weighted_sum` for `n_rows` rows."""
        tile = min(n_rows, self._tile_rows())
        return tile * (2 * self.n_frequencies + 2 * self.width + 2) + n_rows

    def _tile_rows(self) -> int:
        """Rows whose angles stay in cache; more of wide rows, whose product takes the time."""
        return max(_FEWEST_ROWS, _TILE_ANGLES // self.n_frequencies, min(512, 4 * self.width))

    def _weights(self, xp: Any, dtype: Any, on: Any) -> Array:
        """Frequencies as ``(d, r)`` in `dtype` on the device `on`; cast once."""
        key = (xp.__name__, str(dtype), str(on))
        cast: dict[tuple[str, str, str], Array] = self.__dict__["_cast"]
        if key not in cast:
            cast[key] = xp.asarray(self.frequencies, dtype=dtype, device=on).T
        return cast[key]

    def _phase(self, centre: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Phase of every frequency at `centre`, in ``[-pi, pi]``, shape ``(r,)``, float64.

        For a float64 centre the product is taken in long double, where the platform has one:
        float64 would leave an error of 1e-16 times the offset, which no later step can undo.
        """
        wide = np.longdouble if centre.dtype == np.float64 else np.float64
        centre = centre.astype(wide)
        phase = np.concatenate(
            [
                self.frequencies[piece].astype(wide, copy=False) @ centre
                for piece in tiles(self.n_frequencies, _PHASE_ROWS)
            ]
        )
        return np.asarray(np.arctan2(np.sin(phase), np.cos(phase)), dtype=np.float64)
