"""Scores of rows under modes: of the top rows, and of fresh rows."""

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import xarray as xr

from bigkd.backends import device, namespace
from bigkd.engine import ReadOptions, map_rows, open_source, settings_of
from bigkd.errors import InputError, ShapeError
from bigkd.kernels import FourierFeatures
from bigkd.protocols import Array


@dataclass(frozen=True, eq=False)
class ModeScores:
    """The map from rows to scores ``sqrt(r) u_i.phi(x)``, one for each mode."""

    features: FourierFeatures
    vectors: np.ndarray[Any, Any]  # (2r, modes)

    @property
    def width(self) -> int:
        """Width of the rows it takes."""
        return self.features.width

    @property
    def n_features(self) -> int:
        """Number of modes."""
        return int(self.vectors.shape[1])

    def __call__(self, x: Array) -> Array:
        """Scores, shape ``(n, modes)``, of rows of shape ``(n, width)``."""
        xp = namespace(x)
        features = self.features(x)
        scale = self.features.n_frequencies**0.5
        vectors = xp.asarray(self.vectors * scale, dtype=features.dtype, device=device(x))
        return features @ vectors


def score(
    rows: Any,
    modes: xr.Dataset,
    **options: Unpack[ReadOptions],
) -> xr.DataArray:
    """Score rows, fresh or not, under the modes of a result.

    Parameters
    ----------
    rows
        As `test` of `bigkd.finc.modes`, of the same width.
    modes
        From `bigkd.finc.modes` or `modes_from`; not of ``method="ken"``.
    **options
        How rows are read: `bigkd.engine.ReadOptions`. Under ``nonfinite="drop"`` rows that are not
        finite get NaN scores.

    Returns
    -------
    xarray.DataArray
        Lazy, dimensions ``(row, mode)``, float32 (float64 for float64 rows): the scores
        ``s_i(x) = sum_j u_i[2j-1] cos(w_j.x) + u_i[2j] sin(w_j.x)``. Blocks of rows are its chunks;
        write it with ``.to_zarr`` or take ``.compute()``.

    Raises
    ------
    InputError
        If `modes` holds no mode vectors.
    ShapeError
        If the rows have another width.
    """
    if "mode_vector" not in modes:
        raise InputError("modes holds no mode_vector; score needs a result of method='finc'.")
    settings = settings_of(options)
    source = open_source(rows, options, name="rows")
    features = FourierFeatures(modes["fourier_frequency"].values)
    if source.width != features.width:
        raise ShapeError(
            f"rows have {source.width} elements; the modes were found in rows of {features.width}."
        )
    scores = map_rows(
        ModeScores(features, modes["mode_vector"].values.T),
        source,
        width=modes.sizes["mode"],
        dtype=np.dtype(np.float64 if source.dtype.itemsize == 8 else np.float32),
        nonfinite=settings.nonfinite,
    )
    return xr.DataArray(
        scores,
        dims=("row", "mode"),
        name="score",
        attrs={"long_name": "score of the row under the mode, sqrt(r) u.phi(x)", "units": "1"},
    )
