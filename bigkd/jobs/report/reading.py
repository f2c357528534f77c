"""A history, run by run: what reports and tables of the terminal are made from."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from bigkd.jobs.report.measures import Measure, Numbers, Series, series_of
from bigkd.jobs.report.text import count, number

VERDICTS = ("fine", "exceeded", "failed")


class Reading(NamedTuple):
    """One number of one run, how sure it is, and the threshold in force."""

    measure: Measure
    number: float
    lower: float
    upper: float
    """What its promise leaves; NaN where there is none."""

    probability: float
    """Of the number being between those."""

    error: float
    """Its standard error; NaN where there is none."""

    limit: float
    """NaN where no threshold was set."""

    exceeded: bool

    @property
    def label(self) -> str:
        """What it is."""
        return self.measure.label

    @property
    def value(self) -> str:
        """The number as text."""
        return count(self.number) if self.measure.whole else number(self.number)

    @property
    def doubt(self) -> str:
        """How sure it is; empty where nothing is known."""
        if math.isfinite(self.lower) and math.isfinite(self.upper):
            low, high = number(self.lower), number(self.upper)
            if low == high:
                return "sure to every digit shown"
            sure = "for sure" if self.probability == 1 else f"with probability {self.probability:g}"
            return f"between {low} and {high} {sure}"
        return f"± {number(self.error)} (standard error)" if self.error > 0 else ""

    @property
    def rule(self) -> str:
        """The threshold in words; empty where there is none."""
        if not math.isfinite(self.limit):
            return ""
        if self.measure.whole and self.limit == 0:
            return "must be none"
        return f"must be {self.measure.wanted} {number(self.limit)}"

    @property
    def against(self) -> str:
        """The number and the threshold, in short."""
        is_none_of_none = self.measure.whole and self.limit == 0 and not self.exceeded
        if is_none_of_none or not math.isfinite(self.limit):
            return self.value
        return f"{self.value} {self.measure.sign(self.exceeded)} {number(self.limit)}"


class Outcome(NamedTuple):
    """One comparison of one run."""

    name: str
    kind: str
    verdict: str
    """``fine``, ``exceeded``, ``failed``; empty if the run did not make it."""

    judged: bool
    """Whether a threshold was set."""

    message: str
    parameters: Mapping[str, Any]
    readings: tuple[Reading, ...]
    """Those with a threshold first, and the exceeded ones before the others."""

    rows_read: float
    rows_reused: float
    seconds: float

    @property
    def main(self) -> Reading | None:
        """The number to look at first."""
        return self.readings[0] if self.readings else None

    @property
    def shown(self) -> tuple[Reading, ...]:
        """The readings with a threshold, or else the main one."""
        return tuple(one for one in self.readings if one.rule) or self.readings[:1]


class Run(NamedTuple):
    """One run of a job."""

    at: int
    time: np.datetime64
    went_back: bool
    """Whether the clock says that it began before the run before it."""

    run_id: str
    seconds: float
    version: str
    version_changed: bool
    exit_code: float
    verdict: str
    outcomes: Mapping[str, Outcome]

    @property
    def rows_read(self) -> float:
        """Rows that were read, in all comparisons together."""
        return _total(outcome.rows_read for outcome in self.outcomes.values())

    @property
    def rows_reused(self) -> float:
        """Rows whose summaries an earlier run had kept."""
        return _total(outcome.rows_reused for outcome in self.outcomes.values())


class Chapter(NamedTuple):
    """One comparison in all runs."""

    name: str
    series: tuple[Series, ...]
    verdicts: tuple[str, ...]


class Account(NamedTuple):
    """A whole history."""

    runs: tuple[Run, ...]
    chapters: Mapping[str, Chapter]


def read_history(history: xr.Dataset, names: Sequence[str] = ()) -> Account:
    """Every run and every comparison of `history`, those of `names` first and in their order."""
    history = history.load()
    stored = {str(key)[: -len(".verdict")] for key in history if str(key).endswith(".verdict")}
    in_order = [*(name for name in names if name in stored), *sorted(stored - {*names})]
    columns = {name: _Columns(history, name) for name in in_order}
    n_runs = history.sizes["run"]
    times = _times(history, n_runs)
    versions = [_text(history, "version", at) for at in range(n_runs)]
    runs = tuple(
        Run(
            at=at,
            time=times[at],
            went_back=at > 0 and bool(times[at] < times[at - 1]),
            run_id=_text(history, "run_id", at),
            seconds=_number(history, "seconds", at),
            version=versions[at],
            version_changed=at > 0 and versions[at] != versions[at - 1],
            exit_code=_number(history, "exit_code", at),
            verdict=_text(history, "verdict", at),
            outcomes={
                name: outcome
                for name in in_order
                if (outcome := columns[name].outcome(at)).verdict in VERDICTS
            },
        )
        for at in range(n_runs)
    )
    chapters = {
        name: Chapter(name, tuple(columns[name].series), tuple(columns[name].verdicts))
        for name in in_order
    }
    return Account(runs, chapters)


class _Columns:
    """Everything a history has of one comparison."""

    def __init__(self, history: xr.Dataset, name: str) -> None:
        self.history, self.name = history, name
        n_runs = history.sizes["run"]
        self.verdicts = [_text(history, f"{name}.verdict", at) for at in range(n_runs)]
        self.parameters = [
            _mapping(_text(history, f"{name}.parameters", at)) for at in range(n_runs)
        ]
        self.asked = [_asked(_text(history, "job", at), name) for at in range(n_runs)]
        alpha = _alphas(self.parameters)
        self.series = [_with_yes_or_no(one, self.asked) for one in series_of(history, name, alpha)]

    def outcome(self, at: int) -> Outcome:
        history, name = self.history, self.name
        readings = [] if self.verdicts[at] == "failed" else list(self._readings(at))
        readings.sort(key=lambda one: (not one.exceeded, not one.rule))
        return Outcome(
            name=name,
            kind=_text(history, f"{name}.kind", at),
            verdict=self.verdicts[at],
            judged=bool(self.asked[at]) or any(one.rule for one in readings),
            message=_text(history, f"{name}.message", at),
            parameters=self.parameters[at],
            readings=tuple(readings),
            rows_read=_number(history, f"{name}.rows_read", at),
            rows_reused=_number(history, f"{name}.rows_reused", at),
            seconds=_number(history, f"{name}.seconds", at),
        )

    def _readings(self, at: int) -> Iterator[Reading]:
        parameters = self.parameters[at]
        is_sure = parameters.get("promise_kind") != "probabilistic"
        for series in self.series:
            if math.isfinite(series.value[at]):
                yield Reading(
                    measure=series.measure,
                    number=float(series.value[at]),
                    lower=float(series.lower[at]),
                    upper=float(series.upper[at]),
                    probability=1.0 if is_sure else 1.0 - float(parameters.get("delta", math.nan)),
                    error=float(series.error[at]),
                    limit=float(series.limit[at]),
                    exceeded=bool(series.exceeded[at]),
                )


def _with_yes_or_no(series: Series, asked: Sequence[Mapping[str, Any]]) -> Series:
    """`series` with the thresholds that are yes or no, as numbers."""
    measure = series.measure
    if measure.variable == "significant":
        wanted = np.array([bool(one.get("significant")) for one in asked])
        return series._replace(limit=np.where(wanted, 0.0, np.nan))
    if measure.variable == "p_value" and measure.over is None:
        wanted = np.array([bool(one.get("rejected")) for one in asked])
        return series._replace(
            limit=np.where(wanted, series.level, np.nan),
            level=np.where(wanted, np.nan, series.level),
        )
    return series


def _asked(job: str, name: str) -> Mapping[str, Any]:
    """``fail_if`` of a comparison, as the job of a run has it."""
    document = _mapping(job)
    comparisons = document.get("comparisons")
    part = comparisons.get(name) if comparisons and isinstance(comparisons, dict) else document
    asked = part.get("fail_if") if isinstance(part, dict) else None
    if not isinstance(asked, dict):
        return {}
    return {key: at for key, at in asked.items() if at is not None and at is not False}


def _alphas(parameters: Sequence[Mapping[str, Any]]) -> Numbers:
    found = [one.get("test_alpha", one.get("alpha")) for one in parameters]
    return np.array([x if isinstance(x, int | float) else math.nan for x in found], dtype=float)


def _mapping(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _times(history: xr.Dataset, n_runs: int) -> Any:
    if "time" not in history or history["time"].dtype.kind != "M":
        return np.full(n_runs, "NaT", dtype="datetime64[ns]")
    return history["time"].values.astype("datetime64[ns]")


def _text(history: xr.Dataset, name: str, at: int) -> str:
    found = history[name].values[at] if name in history else ""
    return found if isinstance(found, str) else ""


def _number(history: xr.Dataset, name: str, at: int) -> float:
    if name not in history or history[name].dtype.kind not in "biuf":
        return math.nan
    return float(history[name].values[at])


def _total(parts: Any) -> float:
    known = [part for part in parts if math.isfinite(part)]
    return sum(known) if known else math.nan
