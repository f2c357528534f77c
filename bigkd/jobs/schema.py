"""A job file: what to make, where the results go, and how it runs.

What is made is a key such as ``modes`` or ``distance``: one at the top, or one in each of several
named ``comparisons``. Keys and defaults are those of the Python functions.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    ValidationInfo,
    field_validator,
    model_validator,
)

from bigkd.config import STALL_SECONDS
from bigkd.jobs.base import Bytes, KeyProblem, Location, Part, Positive, SchedulerName
from bigkd.jobs.clusters import ClusterPart
from bigkd.jobs.clusters.here import LocalPart
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
from bigkd.jobs.rows import named_data
from bigkd.jobs.thresholds import ThresholdsPart

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


def _named(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError(
            f"must be a name of at most 64 letters, digits, - and _ that begins with a letter; got "
            f"{value!r}"
        )
    return value


Name: TypeAlias = Annotated[str, AfterValidator(_named)]
"""What the user calls data or a comparison; part of file names."""

_NAMES: dict[str, JsonValue] = {"propertyNames": {"pattern": f"^{_NAME.pattern}$"}}


class SheetPart(Part):
    """A picture of a result."""

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
            raise KeyProblem(("sheet",), f"must end in .html or .png; got {self.sheet!r}")
        if self.images is not None and self.sheet is None:
            raise KeyProblem(("images",), "is for a sheet; name the sheet's file, too")
        return self


class OutputPart(SheetPart):
    """Where results go."""

    store: Location | None = Field(
        default=None,
        description="Zarr store of the result; of several comparisons the folder of their stores",
    )
    overwrite: bool = Field(default=True, description="replace an earlier result")
    history: Location | None = Field(
        default=None, description="Zarr store that every run adds a row to"
    )
    report: Location | None = Field(
        default=None, description="page on the history and the latest results: .html"
    )
    keep_summaries: bool | None = Field(
        default=None,
        description="whether summaries of rows are kept for the next run, which then reads only "
        "what is new; by default where there are comparisons or a history",
    )

    @field_validator("report")
    @classmethod
    def _page(cls, value: str | None) -> str | None:
        if value is not None and (Path(value).suffix != ".html" or "://" in value):
            raise ValueError(f"must be a local file that ends in .html; got {value!r}")
        return value


class RunPart(Part):
    """How a job runs; nothing here changes the result."""

    scheduler: SchedulerName | None = Field(
        default=None, description="sync, threads, local, or the address of a cluster"
    )
    checkpoint: Location | None = Field(
        default=None, description="folder of finished work; beside the store by default"
    )
    keep_checkpoints: bool = Field(
        default=True, description="whether finished work is kept until the run has ended well"
    )
    memory_limit: Bytes | None = Field(default=None, description="bytes that one task may use")
    progress_log: Location | None = Field(
        default=None, description="file that progress is appended to, a line of JSON each"
    )
    stall_seconds: Positive = Field(
        default=STALL_SECONDS, description="how long a cluster may finish nothing"
    )


class WhatPart(Part):
    """One thing to make."""

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
    fail_if: ThresholdsPart = Field(
        default=ThresholdsPart(), description="when the result counts as a difference: exit code 3"
    )

    @property
    def key(self) -> str | None:
        """Key of what is made; None if nothing is."""
        return next((key for key in COMPARISONS if getattr(self, key) is not None), None)

    @property
    def comparison(self) -> ComparisonPart:
        """The one thing that is made."""
        found: ComparisonPart = getattr(self, str(self.key))
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


class EntryPart(WhatPart, SheetPart):
    """One comparison: what is made, when that counts as a difference, and a picture of it."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.key is None:
            raise ValueError(f"expected one of {', '.join(COMPARISONS)}: what is made")
        _require_fitting(self, self, ())
        return self


class Job(WhatPart):
    """A whole job file."""

    version: Literal[1] = Field(default=1, description="format of the job file")
    data: dict[Name, Any] = Field(
        default={},
        description="collections by name, to be used in the comparisons",
        json_schema_extra=_NAMES,
    )
    comparisons: dict[Name, EntryPart] = Field(
        default={}, description="several things to make, by name", json_schema_extra=_NAMES
    )
    output: OutputPart = OutputPart()
    cluster: ClusterPart | None = Field(
        default=None,
        description="where it runs; by default worker processes on this machine where there are "
        "comparisons, threads otherwise",
    )
    run: RunPart = RunPart()

    def entries(self) -> dict[str, EntryPart]:
        """What is made, by name; a single thing is called by its key."""
        if self.comparisons:
            return dict(self.comparisons)
        key = str(self.key)
        what: dict[str, Any] = {key: getattr(self, key), "fail_if": self.fail_if}
        output = self.output
        return {key: EntryPart(**what, sheet=output.sheet, images=output.images)}

    def store_of(self, name: str) -> str | None:
        """Store of the result of an entry."""
        store = self.output.store
        return (
            store if store is None or not self.comparisons else f"{store.rstrip('/')}/{name}.zarr"
        )

    @property
    def place(self) -> ClusterPart | None:
        """The cluster to open; None where `RunPart.scheduler` says it, or for threads."""
        if self.cluster is None and self.run.scheduler is None and self.comparisons:
            return LocalPart(kind="local")
        return self.cluster

    @property
    def keeps_summaries(self) -> bool:
        """Whether the next run shall find the summaries of this one."""
        kept, store = self.output.keep_summaries, self.output.store or self.run.checkpoint
        wanted = bool(self.comparisons or self.output.history) if kept is None else kept
        return wanted and store is not None and self.run.keep_checkpoints

    @model_validator(mode="wrap")
    @classmethod
    def _by_name(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Data in the place of their names; all of them used, where nothing else is wrong."""
        found, unused = with_data(values)
        job = handler(found)
        for name, meant in unused.items():
            hint = f" Perhaps {meant!r}, which is no name of data, means it" if meant else ""
            raise KeyProblem(("data", name), f"is used by nothing; leave it out.{hint}")
        return job

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.comparisons:
            self._require_several()
        elif self.key is None:
            raise ValueError(
                f"expected comparisons, or one of {', '.join(COMPARISONS)}: what the job makes"
            )
        else:
            _require_fitting(self, self.output, ("output",))
        if self.cluster is not None and self.run.scheduler is not None:
            raise KeyProblem(
                ("run", "scheduler"), "and cluster both say where it runs; leave one out"
            )
        if self.output.report is not None and self.output.history is None:
            raise KeyProblem(
                ("output", "report"), "is a page on a history; name output.history, too"
            )
        return self

    def _require_several(self) -> None:
        if self.key is not None:
            raise KeyProblem((self.key,), "stands beside comparisons; put it there under a name")
        if self.fail_if.given:
            raise KeyProblem(("fail_if",), "is for each of the comparisons; put it there")
        if self.output.sheet is not None:
            raise KeyProblem(("output", "sheet"), "is for each of the comparisons; put it there")


def _require_fitting(what: WhatPart, sheet: SheetPart, at: tuple[str, ...]) -> None:
    """Raise ValueError for thresholds of what is not made, or a picture of it."""
    made = what.comparison
    for name, needed in what.fail_if.unjudged(made.judged).items():
        raise KeyProblem(("fail_if", name), f"is for comparisons that make {needed}")
    if sheet.sheet is None:
        return
    if made.sheet_name is None:
        raise KeyProblem(
            (*at, "sheet"),
            "is a picture of modes, of did, of mmdpca or of a background; none of them is made",
        )
    if what.modes is not None and what.modes.n_top == 0:
        raise KeyProblem(
            ("modes", "n_top"), "must be at least 1: a contact sheet shows the top rows"
        )
    if what.did is not None and len(what.did.lams) != 1:
        raise KeyProblem(("did", "lam"), "must be one number for a picture of what matches")
    if what.modes is None and sheet.images is not None:
        raise KeyProblem((*at, "images"), "is for modes; leave it out")


def with_data(values: Any) -> tuple[Any, dict[str, str]]:
    """Values of a job with its data in the place of their names.

    Also the names that nothing uses, each with a path of the job that is spelled nearly so.
    """
    if not isinstance(values, Mapping) or not isinstance(values.get("data"), Mapping):
        return values, {}
    data, entries = values["data"], values.get("comparisons")
    used: set[str] = set()
    found = _with_data(values, data, used)
    if isinstance(entries, Mapping):
        found["comparisons"] = {
            name: _with_data(entry, data, used) for name, entry in entries.items()
        }
    paths = [word for word in used if word not in data]
    return found, {
        name: "".join(get_close_matches(str(name), paths, n=1)) for name in data if name not in used
    }


def _with_data(values: Any, data: Mapping[str, Any], used: set[str]) -> Any:
    """`values` of an entry with the collections that it names; notes in `used` what it says."""
    if not isinstance(values, Mapping):
        return values
    return {
        key: named_data(COMPARISONS[key], part, data, used) if key in COMPARISONS else part
        for key, part in values.items()
    }
