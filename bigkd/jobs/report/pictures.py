"""Pictures that belong to a result, for its place in a report."""

from typing import Any

import numpy as np
import xarray as xr

from bigkd import finc
from bigkd.io.images import Picture, as_pictures

N_SHOTS = 12
"""Most pictures of one mode."""


def pictures_of(kind: str, result: xr.Dataset, images: Any = None) -> list[list[Picture]]:
    """Pictures of each mode's top rows, of each component, or of the background; else none.

    Parameters
    ----------
    kind
        Kind of the result.
    result
        What a comparison made.
    images
        Pictures of the test rows, for modes: anything that `bigkd.finc.contact_sheet` takes; None
        for no pictures.

    Raises
    ------
    InputError
        If `images` are not pictures, or too few.
    MissingDependencyError
        If Pillow is not installed: ``pip install 'bigkd[images]'``.
    """
    if kind == "modes" and images is not None:
        return finc.top_pictures(images, result, n_columns=N_SHOTS)
    if kind == "subspace" and result["component"].ndim in (3, 4):
        return [_drawn(one, float(np.nanmax(np.abs(one)))) for one in result["component"].values]
    if kind == "background":
        return [_drawn(result["background"].values, float(result.attrs["white"]), signed=False)]
    return []


def _drawn(values: np.ndarray[Any, Any], top: float, *, signed: bool = True) -> list[Picture]:
    shape = values.shape
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3, 4)):
        return []
    (line,) = as_pictures([values.reshape(1, -1)], shape, (-top if signed else 0.0, top))
    return line
