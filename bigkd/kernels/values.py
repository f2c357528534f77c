"""Values of a kernel between rows and others that stay the same, call after call."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bigkd.backends import compute_dtype, device, namespace
from bigkd.errors import InputError, ShapeError
from bigkd.kernels import fused
from bigkd.kernels._rows import check_rows, tiles
from bigkd.kernels.forms import PRODUCT_WIDTH, form_of
from bigkd.kernels.numpy_sums import Problem, in_units, numbers_of, problem_of
from bigkd.protocols import Array

_TILE_ELEMENTS = 2**20

Function = Callable[[Array, Array], Array]


class _Plan(NamedTuple):
    """What the compiled loop takes besides `x` and `out`."""

    problem: Problem
    fill: fused.Fill
    columns: np.ndarray[Any, Any]
    reach: Any
    numbers: np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class KernelValues:
    r"""Kernel between any rows `x` and given rows `y`: ``KernelValues(kernel, y)(x)``.

    .. math:: V_{ij} = K(x_i, y_j)

    Made for a matrix product with V, tile by tile: `y` is prepared once, and no value is subnormal.
    What is smaller than the smallest normal number is 0, since subnormal factors slow a product
    down many times.

    Parameters
    ----------
    kernel
        A kernel of this package, or any function of two row blocks, of shapes ``(n, d)`` and
        ``(m, d)``, that returns shape ``(n, m)``.
    y
        Rows, shape ``(m, d)``, any real dtype; copied.
    dtype
        Dtype of the values and of their computation: float32 or float64, as `numpy.dtype` takes it.
        Unless given it follows `y`: float64 for float64 and wide integers, else float32.

    Raises
    ------
    ShapeError
        If `y` is not two-dimensional.
    InputError
        If `y` is complex, or `dtype` is neither.

    Notes
    -----
    NumPy rows of width below 16 and Gaussian, Laplace, Matérn (nu = 1/2, 3/2, 5/2), inverse
    multiquadric, triangle and Epanechnikov kernels are computed by compiled loops, from the
    differences of coordinates. With unit roundoff u (6e-8 in float32, 1.1e-16 in float64) the
    relative error of a value K is below :math:`((d + 10)\,|\ln K| + \beta + 16)\,u`, beta being
    that of an inverse multiquadric and 0 otherwise (what is seen stays below
    :math:`5\,(1 + |\ln K|)\,u`); the absolute error of triangle and Epanechnikov is below
    ``(d + 10) u``. Equal rows give 1, and values below 1e-26 (float32) or 1e-295 (float64)
    may be 0. All of this is about rows of `dtype`: float64 rows are rounded before they are taken
    in float32. A call costs a few microseconds and a copy of `x`.

    Whatever else is ``kernel(x, y)``, about 2^20 values at a time, cast to `dtype`. So are, in
    float64, narrow NumPy rows that are not finite, or further from 0 than 2^40 (float64: 2^495)
    lengths of the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from bigkd.kernels import Laplace
    >>> values = KernelValues(Laplace(5.0), np.array([[3.0, 4.0], [0.0, 0.0]]))
    >>> values(np.zeros((1, 2))).round(8)
    array([[0.36787944, 1.        ]])
    """

    kernel: Function
    y: Array
    dtype: Any = None

    def __post_init__(self) -> None:
        xp = namespace(self.y)
        check_rows("KernelValues", xp, self.y)
        y = xp.asarray(self.y, copy=True)
        if isinstance(y, np.ndarray):
            y.flags.writeable = False
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "dtype", _dtype(xp, y, self.dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kernel, self.y, self.dtype)

    def __call__(self, x: Array, out: Array | None = None) -> Array:
        """Kernel between every row of `x` and every row of `y`.

        Parameters
        ----------
        x
            Rows, shape ``(n, d)``, any real dtype, same namespace and device as `y`.
        out
            Where the values are written, apart from the memory of `x`: an array of shape
            ``(n, m)`` and of `dtype`, in NumPy C-contiguous. A new one unless given.

        Returns
        -------
        Array
            `out`: shape ``(n, m)``, dimensionless, C-contiguous in NumPy.

        Raises
        ------
        ShapeError
            If `x` is not two-dimensional or not as wide as `y`, or `out` has another shape.
        InputError
            If `x` is complex, or `out` has another dtype or may not be written in one piece.
        """
        host = isinstance(x, np.ndarray) and isinstance(self.y, np.ndarray)
        xp: Any = np if host else namespace(x, self.y)
        check_rows("KernelValues", xp, x, self.y)
        out = self._out(xp, x, out)
        if 0 in out.shape or (host and self._filled(x, out)):
            return out
        xp, y, function = namespace(x, self.y), self.y, self.kernel
        dtype = getattr(xp, self.dtype.name)
        if host and self._narrow:
            x = x.astype(np.float64)
            function = function if self.dtype == np.float64 else self._in_float64
        with np.errstate(over="ignore"):  # of distances between rows whose value is 0
            for rows in tiles(x.shape[0], max(1, _TILE_ELEMENTS // y.shape[0])):
                out[rows, :] = _normal(xp, function(x[rows, :], y), dtype)
        return out

    @cached_property
    def _narrow(self) -> bool:
        """Whether there is a compiled loop for rows like `y`, if they are not too far away."""
        return form_of(self.kernel) is not None and 0 < self.y.shape[1] < PRODUCT_WIDTH

    @cached_property
    def _plan(self) -> _Plan | None:
        """How a compiled loop takes `y`; None if it does not."""
        problem = problem_of(self.kernel, self.y, self.y, self.dtype) if self._narrow else None
        if problem is None or problem.dtype != self.dtype:
            return None
        return _Plan(
            problem=problem,
            fill=problem.form.loops.fills[self.dtype],
            columns=np.ascontiguousarray(in_units(problem, self.y).T)[None],
            reach=self.dtype.type(problem.reach),
            numbers=numbers_of(problem),
        )

    def _filled(self, x: Any, out: Any) -> bool:
        """Whether a compiled loop filled `out`."""
        if (plan := self._plan) is None:
            return False
        with np.errstate(over="ignore"):  # infinity is not within reach
            x = in_units(plan.problem, x)
        return plan.fill(x, plan.columns, plan.reach, plan.numbers, out)

    def _in_float64(self, x: Array, y: Array) -> Array:
        return KernelValues(self.kernel, y, np.float64)(x)

    def _out(self, xp: Any, x: Array, given: Array | None) -> Array:
        """`given`, if it fits, or a new array."""
        shape = x.shape[0], self.y.shape[0]
        dtype = getattr(xp, self.dtype.name)
        if given is None:
            return xp.empty(shape, dtype=dtype, device=device(x))
        if tuple(given.shape) != shape:
            raise ShapeError(
                f"out must have shape {shape}, rows of x by rows of y; got {tuple(given.shape)}."
            )
        if given.dtype != dtype:
            raise InputError(f"out must be of the values' dtype, {self.dtype}; got {given.dtype}.")
        if isinstance(given, np.ndarray) and not given.flags.carray:
            raise InputError(
                "out must be C-contiguous, aligned and writable. Leave it out and copy the result."
            )
        return given


def _dtype(xp: Any, y: Array, given: Any) -> np.dtype[Any]:
    """Dtype of the values."""
    if given is None:
        given = "float64" if compute_dtype(xp, y.dtype) == xp.float64 else "float32"
    dtype: np.dtype[Any] = np.dtype(given)
    if dtype not in (np.float32, np.float64):
        raise InputError(f"dtype must be float32 or float64; got {dtype}.")
    return dtype


def _normal(xp: Any, given: Array, dtype: Any) -> Array:
    """`given` in `dtype`, with 0 for what is subnormal."""
    given = xp.astype(given, dtype, copy=False)
    tiny = xp.abs(given) < xp.finfo(dtype).smallest_normal
    return xp.where(tiny, xp.zeros_like(given), given)
