"""Two weighted collections, as a kernel distance sees them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from bigkd.backends import to_host
from bigkd.engine import Reduced, open_source
from bigkd.errors import DataError, EmptyInputError, InputError, ShapeError
from bigkd.io import Source
from bigkd.summaries import ExtentState

SHAPE_KIND = "shape"
_LEAST_MASS = 1e-150


class Measured(NamedTuple):
    """What one pass tells of a collection; weights are divided by their sum if normalized."""

    n: int
    n_dropped: int
    mass: float  # sum of weights as given
    total: float  # W, sum of |mu| |U|
    norm: float  # sum of |mu| |U| sqrt(|K(x, x)|): W for kernels with K(x, x) = 1
    squares: float  # sum of (mu |U|)^2
    diagonal: float  # sum of (mu |U|)^2 K(x, x)
    scale: float  # what weights as given are divided by
    lower: np.ndarray[Any, Any]
    upper: np.ndarray[Any, Any]


def measured(source: Source, reduced: Reduced, extent: ExtentState, *, normalize: bool) -> Measured:
    """The numbers of `extent`, on the host.

    Raises
    ------
    DataError
        If weights should be probabilities and one is negative.
    EmptyInputError
        If weights are all zero.
    """
    host = ExtentState(*(to_host(part) for part in extent))
    if normalize and host.least < 0:
        raise DataError(
            f"{source.name}: row {int(host.negative)} has the weight {float(host.least):g}; "
            f"probabilities must not be negative. Pass normalize=False for signed weights."
        )
    if float(host.absolute) == 0.0:
        raise EmptyInputError(
            f"{source.name}: the weights of its {int(host.count)} rows are all zero; expected a "
            f"positive total."
        )
    scale = float(host.mass) if normalize else 1.0
    if not _LEAST_MASS < float(host.absolute) < 1.0 / _LEAST_MASS:
        raise DataError(
            f"{source.name}: its weights sum to {float(host.absolute):g}, whose square leaves the "
            f"range of float64. Divide them by their largest."
        )
    return Measured(
        n=int(host.count),
        n_dropped=int(reduced.tally.dropped),
        mass=float(host.mass),
        total=float(host.absolute) / scale,
        norm=float(host.norm) / scale,
        squares=float(host.squares) / scale**2,
        diagonal=float(host.diagonal) / scale**2,
        scale=scale,
        lower=host.lower,
        upper=host.upper,
    )


def open_collection(
    data: Any, options: Mapping[str, Any], *, name: str, weights: Any = None, vectors: Any = None
) -> Source:
    """`data` opened, with weights and vectors; a shape of `bigkd.shapes` brings its own.

    Raises
    ------
    InputError
        If weights or vectors are given for a shape as well.
    BigkdError
        As `bigkd.io.open_rows`.
    """
    if isinstance(data, xr.Dataset) and data.attrs.get("bigkd_kind") == SHAPE_KIND:
        if weights is not None or vectors is not None:
            raise InputError(
                f"{name} is a shape, which has weights and vectors of its own; pass "
                f"{name}['point'] to give others."
            )
        weights, vectors = data["weight"].values, None
        if "vector" in data:
            vectors = data["vector"].values
        data = data["point"].values
    return open_source(data, options, name=name, weights=weights, vectors=vectors)


def require_comparable(sources: Sequence[Source]) -> int:
    """Number of components of the vectors of all `sources`; 1 where there are none.

    Raises
    ------
    ShapeError
        If rows or vectors have different widths.
    """
    first = sources[0]
    for other in sources[1:]:
        if other.width != first.width:
            raise ShapeError(
                f"{first.name} has rows of {first.width} elements (shape {first.row_shape}) and "
                f"{other.name} of {other.width} (shape {other.row_shape}); they must be equal."
            )
        widths = [_vector_width(source) for source in (first, other)]
        if widths[0] != widths[1]:
            raise ShapeError(
                f"{first.name} has vectors of {widths[0] or 'no'} components and {other.name} of "
                f"{widths[1] or 'no'}; they must be equal."
            )
    return _vector_width(first) or 1


def _vector_width(source: Source) -> int:
    return 0 if source.vectors is None else source.vectors.width
