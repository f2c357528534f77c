"""What one run of a job found: what the history keeps and reports show."""

from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import xarray as xr

Verdict: TypeAlias = Literal["fine", "exceeded", "failed"]
"""Of a comparison: within its thresholds, or not, or not made at all."""


class Judgement(NamedTuple):
    """A variable of a result against a threshold."""

    threshold: str
    """Key of ``fail_if``."""

    variable: str
    limit: float | None
    """None of thresholds that are yes or no."""

    value: float
    exceeded: bool


class ComparisonRecord(NamedTuple):
    """One comparison of a run."""

    name: str
    kind: str
    verdict: Verdict
    message: str
    """Why it failed; empty where it did not."""

    result: xr.Dataset | None
    judgements: tuple[Judgement, ...]
    store: str | None
    sheet: Path | None
    rows_read: int
    rows_reused: int
    """Rows whose summaries an earlier run had kept."""

    seconds: float


class RunRecord(NamedTuple):
    """One run of a job."""

    run_id: str
    time: np.datetime64
    """When it began, UTC, in nanoseconds."""

    seconds: float
    version: str
    job: str
    """The job as JSON."""

    exit_code: int
    comparisons: tuple[ComparisonRecord, ...]
    n_resumed: int = 0
    """Finished segments and tiles that were there when it began."""

    trouble: str = ""
    """Why the history or the report was not written; empty where they were."""

    @property
    def verdict(self) -> Verdict:
        """The worst of all comparisons."""
        found = {comparison.verdict for comparison in self.comparisons}
        if "failed" in found:
            return "failed"
        return "exceeded" if "exceeded" in found else "fine"

    @property
    def only(self) -> ComparisonRecord:
        """The comparison of a job that makes one."""
        (only,) = self.comparisons
        return only
