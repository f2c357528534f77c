"""``mmdpca`` and what is made of its result: subspaces that explain a distribution."""

from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import xarray as xr
from pydantic import Field

from bigkd import mmdpca
from bigkd.engine import Options
from bigkd.io import Source, load_array, load_dataset
from bigkd.io.images import as_pictures, html_page, sheet_path, write_sheet
from bigkd.jobs.base import Location, Part, Positive, Whole
from bigkd.jobs.comparisons.base import Draw, RowsComparisonPart
from bigkd.jobs.comparisons.representation import WeightsField
from bigkd.jobs.comparisons.tempered import GAUSS, TemperedKernelField
from bigkd.jobs.data import DataField, DataPart
from bigkd.mmdpca.backgrounds import Statistic
from bigkd.mmdpca.distance import Measuring
from bigkd.mmdpca.layout import open_data
from bigkd.mmdpca.projection import in_memory
from bigkd.mmdpca.setting import N_FREQUENCIES, N_LANDMARKS, N_POINTS, Method

SUBSPACE = "subspace"
"""Kind of the store of a fit."""


class OfRowsPart(RowsComparisonPart):
    """What is made of rows with named axes, or without."""

    dim: str | None = Field(
        default=None,
        description="axis that counts rows, where axes have names; sample, or else the first",
    )

    def _read(self, data: DataPart, name: str, options: Options) -> tuple[Any, Options]:
        """Rows as the functions of `bigkd.mmdpca` take them, and how they are read and run.

        A path whose store names axes stays one: tasks then read it without a graph of Dask.
        """
        how: Options = {**options, "dim": self.dim}
        opened = data.open_data(name)
        if isinstance(opened, Source):
            return opened, how
        return data.path, {**how, "block_rows": data.block_rows, "missing": data.missing}

    def _require_pictures(self, data: DataPart) -> None:
        """Refuse, before the long work, what cannot be drawn."""
        rows, how = self._read(data, "data", {})
        shape = open_data(rows, how).features.shape
        html_page([_pictures(np.zeros(shape), 1.0)], [""])


class SubspacePart(Part):
    """Which subspace."""

    kernel: TemperedKernelField = Field(
        default=GAUSS, description="kernel: gauss, laplace, poisson, kurtosis, or a mapping"
    )
    a: Positive = Field(
        default=1.0,
        description="scale of gauss, laplace and poisson; larger sees finer differences",
    )
    center: bool = Field(default=False, description="whether the mean row is taken from all first")
    weights: WeightsField = Field(
        default="none",
        description="weight of each feature: none, coslat for areas from latitudes, or a .npy file",
    )
    method: Method = Field(default="auto", description="how the subspace is found")
    n_landmarks: Whole = Field(default=N_LANDMARKS, description="landmarks of nystrom")
    n_frequencies: Whole = Field(
        default=N_FREQUENCIES, description="random frequencies of features"
    )
    n_directions: Whole | None = Field(
        default=None, description="directions of PCA that kernels of nystrom and moments see"
    )

    @property
    def subspace(self) -> dict[str, Any]:
        """The keywords of `bigkd.mmdpca.fit`; weights are read now."""
        found: dict[str, Any] = {name: getattr(self, name) for name in SubspacePart.model_fields}
        weights: Any = None if self.weights == "none" else self.weights
        if weights is not None and weights.endswith(".npy"):
            weights = load_array(weights, name="weights")
        return {**found, "kernel": self.kernel.build(), "weights": weights}


class MmdpcaPart(SubspacePart, OfRowsPart):
    """What `bigkd.mmdpca.fit` is asked for."""

    kind: ClassVar[str] = SUBSPACE
    sheet_name: ClassVar[str | None] = "pictures of the components"

    data: DataField = Field(description="the collection whose subspace is wanted")
    k: Whole = Field(description="number of components")
    n_points: Whole = Field(
        default=N_POINTS, description="random rows that others are paired with to measure MMDs"
    )
    mmd: bool = Field(default=True, description="whether to measure MMDs and bounds: a pass more")

    @property
    def judged(self) -> frozenset[str]:
        """Variables of the result that a threshold may be set for."""
        measured = {"mmd2", "explained_share"} if self.mmd else set()
        return frozenset({"subspace_error", *measured})

    def carry_out(self, options: Options) -> xr.Dataset:
        """What `bigkd.mmdpca.fit` returns."""
        rows, how = self._read(self.data, "data", options)
        found = mmdpca.fit(
            rows, k=self.k, n_points=self.n_points, mmd=self.mmd, seed=self.seed, **self.subspace,
            **how,
        )  # fmt: skip
        return found.assign_attrs(data=self.data.name)

    def drawing(self, images: str | None) -> Draw:
        """What draws the components, each as one picture; their mean grey is 0."""
        self._require_pictures(self.data)

        def draw(result: xr.Dataset, path: str) -> Path:
            component = result["component"].values
            lines = [
                _pictures(one, float(np.nanmax(np.abs(one))), signed=True) for one in component
            ]
            captions = [
                f"component {at + 1}: eigenvalue {float(one['eigenvalue']):.6g}, "
                f"{float(one['explained_share']):.2%} of the trace"
                for at, one in enumerate(result.isel(k=at) for at in range(len(component)))
            ]
            return write_sheet(sheet_path(path), lines, captions, title="Components")

        return draw


class MmdpcaProjectPart(OfRowsPart):
    """What `bigkd.mmdpca.project` is asked for."""

    kind: ClassVar[str] = "scores"

    data: DataField = Field(description="the rows to project")
    fit: Location = Field(description="store of a result of mmdpca")

    @property
    def judged(self) -> frozenset[str]:
        """Variables of the result that a threshold may be set for."""
        return frozenset()

    def carry_out(self, options: Options) -> xr.Dataset:
        """What `bigkd.mmdpca.project` returns, in memory."""
        rows, how = self._read(self.data, "data", options)
        scores = in_memory(mmdpca.project(rows, load_dataset(self.fit, kind=SUBSPACE), **how), how)
        return scores.to_dataset().assign_attrs(data=self.data.name, fit=_last(self.fit))


class MmdpcaDistancePart(OfRowsPart):
    """What `bigkd.mmdpca.mmd_to_projection` is asked for."""

    kind: ClassVar[str] = "projection"

    data: DataField = Field(description="the rows to compare with their projections")
    fit: Location = Field(description="store of a result of mmdpca")
    method: Measuring = Field(
        default="auto", description="all pairs of rows, or all rows with some drawn at random"
    )
    n_points: Whole = Field(default=N_POINTS, description="rows that sample draws")

    @property
    def judged(self) -> frozenset[str]:
        """Variables of the result that a threshold may be set for."""
        return frozenset({"mmd2"})

    def carry_out(self, options: Options) -> xr.Dataset:
        """What `bigkd.mmdpca.mmd_to_projection` returns."""
        rows, how = self._read(self.data, "data", options)
        found = mmdpca.mmd_to_projection(
            rows, load_dataset(self.fit, kind=SUBSPACE), method=self.method,
            n_points=self.n_points, seed=self.seed, **how,
        )  # fmt: skip
        return found.assign_attrs(data=self.data.name, fit=_last(self.fit))


class MmdpcaBackgroundPart(SubspacePart, OfRowsPart):
    """What `bigkd.mmdpca.background` is asked for."""

    kind: ClassVar[str] = "background"
    sheet_name: ClassVar[str | None] = "picture"

    frames: DataField = Field(description="frames of a video: a Zarr or .npy array, or pictures")
    k: Whole = Field(default=5, description="number of components")
    statistic: Statistic = Field(
        default="median", description="what is taken over time, of the projected frames"
    )
    white: Positive | None = Field(
        default=None,
        description="level that counts as 1 for a; the largest of 8- and 16-bit frames, else 1",
    )

    @property
    def judged(self) -> frozenset[str]:
        """Variables of the result that a threshold may be set for."""
        return frozenset()

    def carry_out(self, options: Options) -> xr.Dataset:
        """What `bigkd.mmdpca.background` returns."""
        rows, how = self._read(self.frames, "frames", options)
        found = mmdpca.background(
            rows, k=self.k, statistic=self.statistic, white=self.white, seed=self.seed,
            **self.subspace, **how,
        )  # fmt: skip
        attrs = {**found.attrs, "frames": self.frames.name}
        return found.drop_attrs().to_dataset().assign_attrs(attrs)

    def drawing(self, images: str | None) -> Draw:
        """What draws the background, in the levels of the frames."""
        self._require_pictures(self.frames)

        def draw(result: xr.Dataset, path: str) -> Path:
            picture = result["background"].values
            line = _pictures(picture, float(result.attrs["white"]))
            return write_sheet(sheet_path(path), [line], [self.frames.name], title="Background")

        return draw


def _pictures(values: Any, top: float, *, signed: bool = False) -> list[Any]:
    """One picture: black at 0, or at ``-top`` where values have signs; white at `top`."""
    (line,) = as_pictures([values.reshape(1, -1)], values.shape, (-top if signed else 0.0, top))
    return cast("list[Any]", line)


def _last(path: str) -> str:
    """Last part of a path."""
    return path.rstrip("/").rpartition("/")[2]
