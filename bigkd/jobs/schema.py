"""A job file: what to make, where the results go, and how it runs.

What a job makes is a key of its own at the top, such as ``modes`` or ``distance``; a job makes
exactly one. Keys and defaults are those of the Python functions.
"""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from bigkd.config import STALL_SECONDS
from bigkd.jobs.base import Bytes, Location, Part, Positive, SchedulerName
from bigkd.jobs.comparisons import (
    COMPARISONS,
    ComparisonPart,
    CoresetPart,
    DidMatrixPart,
    DidNearestPart,
    DidPart,
    DistanceMatrixPart,
    DistancePart,
    MmdpcaBackgroundPart,
    MmdpcaDistancePart,
    MmdpcaPart,
    MmdpcaProjectPart,
    ModesPart,
    TwoSamplePart,
)


class OutputPart(Part):
    """Where results go."""

    store: Location | None = Field(default=None, description="Zarr store of the result")
    overwrite: bool = Field(default=True, description="replace an earlier result")
    sheet: Location | None = Field(
        default=None,
        description="picture of the modes' top rows, of what matches in did, of the components of "
        "mmdpca or of a background: .html or .png",
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
    modes: ModesPart | None = Field(
        default=None, description="modes that one collection has more of than another"
    )
    distance: DistancePart | None = Field(
        default=None, description="how far apart two collections are"
    )
    two_sample: TwoSamplePart | None = Field(
        default=None, description="whether two collections come from one source"
    )
    distance_matrix: DistanceMatrixPart | None = Field(
        default=None, description="how far apart every two of many collections are"
    )
    coreset: CoresetPart | None = Field(
        default=None, description="few rows that stand for a collection"
    )
    did: DidPart | None = Field(
        default=None, description="how far one datum is from smooth deformations of another"
    )
    did_matrix: DidMatrixPart | None = Field(
        default=None, description="how far all data are from smooth deformations of others"
    )
    did_nearest: DidNearestPart | None = Field(
        default=None, description="data that are nearest to smooth deformations of a query"
    )
    mmdpca: MmdpcaPart | None = Field(
        default=None, description="the subspace that explains a collection"
    )
    mmdpca_project: MmdpcaProjectPart | None = Field(
        default=None, description="coordinates of rows in such a subspace"
    )
    mmdpca_distance: MmdpcaDistancePart | None = Field(
        default=None, description="how far rows are from their projections on such a subspace"
    )
    mmdpca_background: MmdpcaBackgroundPart | None = Field(
        default=None, description="what most frames of a video have in common"
    )
    output: OutputPart = OutputPart()
    run: RunPart = RunPart()

    @property
    def comparison(self) -> ComparisonPart:
        """The one thing that the job makes."""
        found: ComparisonPart = next(filter(None, (getattr(self, key) for key in COMPARISONS)))
        return found

    @field_validator(*COMPARISONS, mode="before")
    @classmethod
    def _only_one(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse a second thing to make, and a key without anything behind it."""
        if value is None:
            raise ValueError("must be a mapping of keys to values; got nothing")
        for other in COMPARISONS:
            if info.data.get(other) is not None:
                raise ValueError(f"stands beside {other}; a job makes one thing, so leave one out")
        return value

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if all(getattr(self, key) is None for key in COMPARISONS):
            raise ValueError(f"expected one of {', '.join(COMPARISONS)}: what the job makes")
        if self.output.sheet is None:
            return self
        if self.comparison.sheet_name is None:
            raise ValueError(
                "output.sheet is a picture of modes, of did, of mmdpca or of a background; the job "
                "makes none of them"
            )
        if self.modes is not None and self.modes.n_top == 0:
            raise ValueError("a contact sheet shows the top rows; modes.n_top must be at least 1")
        if self.did is not None and len(self.did.lams) != 1:
            raise ValueError("asks for a picture of what matches, which is of one lam; give one")
        if self.modes is None and self.output.images is not None:
            raise ValueError("has output.images, which is for modes; leave it out")
        return self
