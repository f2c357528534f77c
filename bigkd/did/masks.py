"""Masks: how much each position of the reference counts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bigkd.backends import is_array, to_host
from bigkd.errors import InputError, ShapeError
from bigkd.linalg import Matrix

Mask = Any
"""What a user may pass as a mask: ``"blackman"``, None, or an array of the grid's shape."""


def blackman(t: Matrix) -> Matrix:
    r"""Blackman window: 0 at both ends, 1 in the middle.

    .. math:: \mu(t) = 0.42 - 0.5 \cos 2\pi t + 0.08 \cos 4\pi t

    Parameters
    ----------
    t
        Positions in [0, 1], any shape.

    Returns
    -------
    Matrix
        In [0, 1], shape of `t`.

    References
    ----------
    .. [1] A. V. Oppenheim, R. W. Schafer and J. R. Buck, "Discrete-Time Signal Processing", 1999.

    Examples
    --------
    >>> blackman(np.linspace(0, 1, 5)).round(2)
    array([0.  , 0.34, 1.  , 0.34, 0.  ])
    """
    window = 0.42 - 0.5 * np.cos(2 * np.pi * t) + 0.08 * np.cos(4 * np.pi * t)
    return np.clip(window, 0.0, None)  # the ends come out as -1.4e-17


def mask_of(mask: Mask, axes: Sequence[Matrix]) -> Matrix:
    """Weight of each position of a grid.

    Parameters
    ----------
    mask
        ``"blackman"``, the product of a Blackman window along each axis; None, weight 1
        everywhere; or an array of numbers or bools that are not negative, on any device.
    axes
        Positions along each axis of the grid, from 0 at one end of the domain to 1 at the other.

    Returns
    -------
    Matrix
        Of the grid's shape, finite and nowhere negative, with a positive weight somewhere.

    Raises
    ------
    ShapeError
        If the array has another shape.
    InputError
        If it is none of the above, has elements that are negative or not finite, or is zero
        everywhere, as the Blackman window of an axis of two points, both of them ends.
    """
    shape = tuple(axis.size for axis in axes)
    if mask is None:
        return np.ones(shape)
    if isinstance(mask, str) and mask == "blackman":
        weights = np.ones(())
        for axis in axes:
            weights = np.multiply.outer(weights, blackman(axis))
    elif is_array(mask):
        weights = _given(to_host(mask), shape)
    else:
        raise InputError(f"mask must be 'blackman', None or an array; got {mask!r}.")
    if not weights.any():
        raise InputError(
            f"mask is zero everywhere on the grid of shape {shape}, so that nothing would be "
            f"compared. Pass a mask with positive weights, or mask=None for weight 1 everywhere."
        )
    return weights


def _given(mask: np.ndarray[Any, Any], shape: tuple[int, ...]) -> Matrix:
    if mask.shape != shape:
        raise ShapeError(
            f"mask must have one weight for each position of the grid, shape {shape}; got shape "
            f"{mask.shape}."
        )
    if mask.dtype.kind not in "fiub":
        raise InputError(f"mask must hold real numbers or bools; got {mask.dtype}.")
    weights = mask.astype(np.float64)
    bad = int(np.sum(~(np.isfinite(weights) & (weights >= 0.0))))
    if bad:
        raise InputError(
            f"mask must be finite and not negative; {bad} of its {mask.size} weights are not. "
            f"Use 0 where positions are to be left out."
        )
    return weights
