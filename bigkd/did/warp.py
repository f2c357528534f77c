"""Random smooth warps of images and series, of a strength that one number sets."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.ndimage import map_coordinates

from bigkd.backends import is_array, rng
from bigkd.did.layout import VALUE_DIMS
from bigkd.errors import InputError
from bigkd.linalg import Matrix

_SAMPLE = "sample"
_USUAL_DIMS: dict[int, tuple[str, ...]] = {
    1: ("time",),
    2: ("y", "x"),
    3: ("y", "x", "channel"),
    4: (_SAMPLE, "y", "x", "channel"),
}


def warp(
    images: Any,
    temperature: float,
    cutoff: float = 2.0,
    seed: int = 0,
    *,
    dim: Hashable | None = None,
    dims: Sequence[str] | None = None,
    value_dim: str | None = None,
) -> Any:
    """Images or series whose points are moved by random smooth displacements.

    Each sample is read at ``x + u(x)``, where u is its own `displacement`, by linear interpolation;
    positions beyond the border are read at the border.

    Parameters
    ----------
    images
        An `xarray.DataArray`; or a NumPy or Dask array with axes ``(y, x)``, ``(y, x, channel)``,
        ``(sample, y, x, channel)``, or those that `dims` names. Floating or whole numbers.
    temperature
        Strength, not negative; displacements grow with its root.
    cutoff
        Fineness, at least 1: waves whose numbers have a norm of less than ``cutoff + 1/2``.
    seed
        The displacement of a sample follows from it and the sample's number alone; that of a
        single image is that of sample 0.
    dim
        Dimension of a DataArray that counts samples; by default ``"sample"``, if there is one,
        else the first of three besides the values.
    dims
        Names of the axes of one datum, for arrays without labels: ``("time", "variable")`` for
        series. The array may have one axis more, the first, that counts samples.
    value_dim
        The axis whose elements move together; by default the one called ``"channel"``,
        ``"variable"`` or ``"band"``. All others are the grid, of one or two axes.

    Returns
    -------
    Same type as `images`
        Same shape, dtype and labels; lazy where `images` is. Whole numbers are rounded. NaN
        spreads to the points that are read less than one point away from it.

    Raises
    ------
    InputError
        If `temperature`, `cutoff` or `seed` cannot be used, or the axes cannot be told.

    Notes
    -----
    A warp is a diffeomorphism where `jacobian` is positive everywhere. With ``cutoff=2`` that holds
    for these shares of 1000 warps of 100 x 100 points: all at temperature 0.002, 99 % at 0.01, 86 %
    at 0.02, 46 % at 0.0465 (where Petrini et al. end their range), 15 % at 0.1, none at 1.

    Examples
    --------
    >>> image = np.arange(25.0).reshape(5, 5)
    >>> warp(image, 0.01, seed=1)[2].round(1)
    array([10. , 12.3, 12.7, 12.7, 14. ])
    """
    array, values = _opened(images, dim, dims, value_dim)
    sample, grid = _split(array, values, dim)
    _check([array.sizes[axis] for axis in grid], temperature, cutoff, seed)
    core = [*grid, *values]
    if array.chunks is not None:
        array = array.chunk(dict.fromkeys(core, -1))
    number = np.arange(array.sizes[sample[0]]) if sample else np.asarray(0)
    moved = xr.apply_ufunc(
        _moved,
        array,
        xr.DataArray(number, dims=sample, name=array.name),
        input_core_dims=[core, []],
        output_core_dims=[core],
        kwargs={"n_axes": len(grid), "strength": (temperature, cutoff, seed)},
        dask="parallelized",
        output_dtypes=[array.dtype],
        keep_attrs=True,
    ).transpose(*array.dims)
    return moved if isinstance(images, xr.DataArray) else moved.data


def displacement(
    shape: Sequence[int],
    temperature: float,
    cutoff: float = 2.0,
    seed: int = 0,
    *,
    sample: int = 0,
) -> Matrix:
    r"""Random smooth displacement of each point of a grid; 0 at the border.

    .. math:: u(x, y) = \sum_{i, j \ge 1,\; \sqrt{i^2 + j^2} < c + 1/2}
              C_{ij} \sin(i \pi x) \sin(j \pi y), \quad C_{ij} \sim N(0, T / (i^2 + j^2))

    Parameters
    ----------
    shape
        Points of the grid along each axis, one or two axes; they span the unit interval or square.
    temperature, cutoff, seed
        T and c above, and where the random numbers come from, as `warp` takes them.
    sample
        Number of the sample in its collection.

    Returns
    -------
    Matrix
        Shape ``(n_axes, *shape)``: the displacement along each axis, in units of the grid's side
        along it. With ``cutoff=2`` in the plane its expected square norm, averaged over the
        square, is ``0.45 * temperature``.

    Raises
    ------
    InputError
        If an argument cannot be used.

    Notes
    -----
    Petrini et al. sum over :math:`i^2 + j^2 \le c^2` in their text and over the norms below
    :math:`c + 1/2` in their code, with which the warps of the DID paper were made: three waves for
    ``c = 2``, where the text leaves one.

    References
    ----------
    .. [1] L. Petrini, A. Favero, M. Geiger and M. Wyart, "Relative stability toward diffeomorphisms
       indicates performance in deep nets", NeurIPS 2021, and github.com/pcsl-epfl/diffeomorphism.

    Examples
    --------
    >>> displacement((3, 3), 0.01)[0].round(3)
    array([[0.   , 0.   , 0.   ],
           [0.   , 0.009, 0.   ],
           [0.   , 0.   , 0.   ]])
    """
    _check(shape, temperature, cutoff, seed)
    weights = _weights(len(shape), temperature, cutoff, seed, sample)
    return _waves(weights, [_sines(n, weights.shape[1]) for n in shape])


def jacobian(
    shape: Sequence[int],
    temperature: float,
    cutoff: float = 2.0,
    seed: int = 0,
    *,
    sample: int = 0,
) -> Matrix:
    """Determinant of the derivative of ``x + u(x)`` at each point of a grid.

    Parameters
    ----------
    shape, temperature, cutoff, seed, sample
        As of the `displacement` u.

    Returns
    -------
    Matrix
        Of shape `shape`: by which factor the warp stretches areas, 1 where nothing moves. Where it
        is negative the warp folds, and is no diffeomorphism.

    Raises
    ------
    InputError
        If an argument cannot be used.

    Examples
    --------
    >>> bool(jacobian((50, 50), 0.001).min() > 0)
    True
    """
    _check(shape, temperature, cutoff, seed)
    n_axes = len(shape)
    weights = _weights(n_axes, temperature, cutoff, seed, sample)
    sines = [_sines(n, weights.shape[1]) for n in shape]
    slopes = [_slopes(n, weights.shape[1]) for n in shape]
    derivative = np.empty((*shape, n_axes, n_axes))
    for axis in range(n_axes):
        along = [slopes[at] if at == axis else sines[at] for at in range(n_axes)]
        derivative[..., axis] = np.moveaxis(_waves(weights, along), 0, -1)
    return np.asarray(np.linalg.det(derivative + np.eye(n_axes)))


def _moved(
    block: np.ndarray[Any, Any],
    number: np.ndarray[Any, Any],
    *,
    n_axes: int,
    strength: tuple[float, float, int],
) -> np.ndarray[Any, Any]:
    """Samples of these numbers, shape ``(*number.shape, *grid, *values)``, each warped."""
    grid = block.shape[number.ndim : number.ndim + n_axes]
    n_values = math.prod(block.shape[number.ndim + n_axes :])
    stack = block.reshape(number.size, *grid, n_values)
    moved = np.empty_like(stack)
    points = np.stack(np.meshgrid(*map(np.arange, grid), indexing="ij"))
    sides = np.reshape([n - 1 for n in grid], (n_axes, *[1] * n_axes))
    whole = block.dtype.kind in "iu"
    for at, sample in enumerate(number.ravel()):
        read = points + sides * displacement(grid, *strength, sample=int(sample))
        for value in range(n_values):
            exact = map_coordinates(
                stack[at, ..., value], read, np.float64, order=1, mode="nearest"
            )
            moved[at, ..., value] = np.rint(exact) if whole else exact
    return moved.reshape(block.shape)


def _weights(n_axes: int, temperature: float, cutoff: float, seed: int, sample: int) -> Matrix:
    """The C of the formula for each axis, shape ``(n_axes, n, ..., n)``; 0 beyond the cut-off."""
    waves = np.arange(1, math.floor(cutoff + 0.5) + 1)
    norms = np.sqrt(sum(part**2 for part in np.meshgrid(*[waves] * n_axes)))
    spread = np.where(norms < cutoff + 0.5, math.sqrt(temperature) / norms, 0.0)
    return spread * rng(seed, sample).standard_normal((n_axes, *spread.shape))


def _waves(weights: Matrix, along: list[Matrix]) -> Matrix:
    """Sum of products of waves, each of shape ``(wave, point)``, along the axes."""
    total = weights
    for waves in along:  # sums over the first axis of waves; points gather at the end
        total = np.tensordot(total, waves, axes=(1, 0))
    return total


def _sines(n: int, n_waves: int) -> Matrix:
    sines = np.sin(np.pi * np.outer(np.arange(1, n_waves + 1), np.linspace(0.0, 1.0, n)))
    sines[:, [0, -1]] = 0.0
    return sines


def _slopes(n: int, n_waves: int) -> Matrix:
    waves = np.pi * np.arange(1, n_waves + 1)[:, None]
    return np.asarray(waves * np.cos(waves * np.linspace(0.0, 1.0, n)))


def _opened(
    images: Any, dim: Hashable | None, dims: Sequence[str] | None, value_dim: str | None
) -> tuple[xr.DataArray, list[Hashable]]:
    """`images` with named axes, and those of the values: one or none."""
    if not isinstance(images, xr.DataArray):
        images = xr.DataArray(images, dims=_names(images, dims))
    known = images.chunks is not None or isinstance(images.data, np.ndarray)
    if not known or images.dtype.kind not in "fiu":
        raise InputError(
            f"images must be floating or whole numbers, of NumPy, Dask or xarray; got "
            f"{images.dtype} of {type(images.data).__name__}."
        )
    if value_dim is not None and value_dim not in images.dims:
        raise InputError(f"value_dim={value_dim!r} is not an axis of images: {images.dims}.")
    named = VALUE_DIMS if value_dim is None else (value_dim,)
    return images, [axis for axis in images.dims if axis in named and axis != dim]


def _names(images: Any, dims: Sequence[str] | None) -> tuple[str, ...]:
    """Names of the axes of an array without labels."""
    if not is_array(images) and not hasattr(images, "dask"):
        raise InputError(
            f"images must be an array or an xarray.DataArray; got {type(images).__name__}."
        )
    if dims is None and images.ndim in _USUAL_DIMS:
        return _USUAL_DIMS[images.ndim]
    if dims is None or isinstance(dims, str) or images.ndim - len(dims) not in (0, 1):
        raise InputError(
            f"dims must name each axis of one datum, as ('time', 'variable') or ('y', 'x'); images "
            f"have shape {images.shape}, dims is {dims!r}."
        )
    return (_SAMPLE, *dims)[-images.ndim :]


def _split(
    array: xr.DataArray, values: list[Hashable], dim: Hashable | None
) -> tuple[list[Hashable], list[Hashable]]:
    """The axis that counts samples, if there is one, and those of the grid."""
    if dim is not None and dim not in array.dims:
        raise InputError(f"dim={dim!r} is not a dimension of images, which has {array.dims}.")
    others = [axis for axis in array.dims if axis not in values]
    if dim is None and _SAMPLE in others:
        dim = _SAMPLE
    elif dim is None and len(others) == 3:
        dim = others[0]
    grid = [axis for axis in others if axis != dim]
    if len(values) > 1 or len(grid) not in (1, 2):
        raise InputError(
            f"images must have one axis that counts samples, or none, a grid of one or two axes, "
            f"and one axis of values, or none; got {array.dims}. Pass dim and value_dim."
        )
    return [] if dim is None else [dim], grid


def _check(shape: Sequence[int], temperature: float, cutoff: float, seed: int) -> None:
    if len(shape) not in (1, 2) or min(shape) < 1:
        raise InputError(f"a grid to warp has one or two axes of at least a point; got {shape}.")
    if not (math.isfinite(temperature) and temperature >= 0.0):
        raise InputError(f"temperature must be finite and not negative; got {temperature!r}.")
    if not (math.isfinite(cutoff) and cutoff >= 1.0):
        raise InputError(f"cutoff must be finite and at least 1; got {cutoff!r}.")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number and not negative; got {seed!r}.")
