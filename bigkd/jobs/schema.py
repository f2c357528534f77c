"""A job file: which comparison to make, where its results go, and how it runs.

A comparison is a key of its own at the top, ``modes`` so far; a job makes exactly one. Keys and
defaults are those of the Python functions.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from bigkd.config import STALL_SECONDS
from bigkd.engine import NonFinite
from bigkd.io import Source, open_rows
from bigkd.io.zarr_rows import Missing
from bigkd.jobs.base import Bytes, Count, Location, Part, Positive, SchedulerName, Whole
from bigkd.jobs.kernels import AUTO, KernelField
from bigkd.kernels import Sampling


class RowsPart(Part):
    """A collection of rows, and how it is read."""

    path: Location = Field(description="Zarr, .npy or Parquet: a path or URL")
    columns: list[str] | None = Field(default=None, description="columns of Parquet files")
    block_rows: Whole | None = Field(default=None, description="rows of one read")
    missing: Missing = Field(default="raise", description="what an absent Zarr chunk means")

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    def open(self, name: str) -> Source:
        """The rows, not read yet; messages call them `name`."""
        return open_rows(
            self.path,
            name=name,
            columns=None if self.columns is None else tuple(self.columns),
            block_rows=self.block_rows,
            missing=self.missing,
        )


def _spelled_out(value: Any) -> Any:
    """A path is short for a mapping with nothing but the path."""
    if isinstance(value, Mapping | RowsPart):
        return value
    if isinstance(value, str) and value:
        return {"path": value}
    raise ValueError(f"must be a path, or a mapping with a path; got {value!r}")


RowsField: TypeAlias = Annotated[RowsPart, BeforeValidator(_spelled_out)]


class FeaturesPart(Part):
    """The feature map, and what goes through it."""

    kernel: KernelField = Field(default=AUTO, description="kernel, or rule that chooses one")
    n_frequencies: Count = Field(default="auto", description="number of random frequencies")
    sampling: Sampling = Field(default="iid", description="how frequencies are drawn")
    frequency_tolerance: Positive = Field(
        default=0.01, description="relative error that n_frequencies = auto aims at"
    )
    seed: int = Field(default=0, ge=0, description="seed of every random choice")
    nonfinite: NonFinite = Field(
        default="raise", description="what to do with rows that hold NaN or infinities"
    )


class ChoicesPart(Part):
    """Which modes count."""

    rho: float = Field(
        default=1.0, ge=0, description="how many times more frequent than in the reference"
    )
    n_modes: Whole = Field(default=10, description="modes to return, significant or not")
    alpha: float = Field(
        default=0.01, gt=0, lt=1, description="probability that noise alone gives a mode"
    )
    n_draws: Whole = Field(default=199, description="noise spectra behind the p-values")


class ModesPart(ChoicesPart, FeaturesPart):
    """What `bigkd.finc.modes` is asked for."""

    test: RowsField = Field(description="the collection whose modes are wanted")
    reference: RowsField = Field(description="the collection to compare it with")
    method: Literal["finc", "ken"] = Field(
        default="finc", description="random features, or the exact spectrum of small data"
    )
    n_top: int = Field(default=25, ge=0, description="top rows of each mode; 0 saves a pass")


class OutputPart(Part):
    """Where results go."""

    store: Location | None = Field(default=None, description="Zarr store of the result")
    overwrite: bool = Field(default=True, description="replace an earlier result")
    sheet: Location | None = Field(
        default=None, description="contact sheet of the top rows: .html or .png"
    )
    images: Location | None = Field(
        default=None, description="pictures of the test rows, if they are not the rows themselves"
    )

    @model_validator(mode="after")
    def _sheet(self) -> Self:
        if self.sheet is not None and Path(self.sheet).suffix not in (".html", ".png"):
            raise ValueError(f"has a sheet that must end in .html or .png; got {self.sheet!r}")
        if self.images is not None and self.sheet is None:
            raise ValueError("has images, which are for a sheet; name the sheet's file, too")
        return self


class RunPart(Part):
    """How a job runs; nothing here changes the result."""

    scheduler: SchedulerName | None = Field(
        default=None, description="sync, threads, local, or the address of a cluster"
    )
    checkpoint: Location | None = Field(
        default=None, description="folder of finished work; beside the store by default"
    )
    keep_checkpoints: bool = Field(default=True, description="whether finished work is kept")
    memory_limit: Bytes | None = Field(default=None, description="bytes that one task may use")
    progress_log: Location | None = Field(
        default=None, description="file that progress is appended to, a line of JSON each"
    )
    stall_seconds: Positive = Field(
        default=STALL_SECONDS, description="how long a cluster may finish nothing"
    )


class Job(Part):
    """A whole job file."""

    version: Literal[1] = Field(default=1, description="format of the job file")
    modes: ModesPart = Field(description="a comparison: modes that one collection has more of")
    output: OutputPart = OutputPart()
    run: RunPart = RunPart()

    @model_validator(mode="after")
    def _sheet_needs_rows(self) -> Self:
        if self.output.sheet is not None and self.modes.n_top == 0:
            raise ValueError("a contact sheet shows the top rows; modes.n_top must be at least 1")
        return self
