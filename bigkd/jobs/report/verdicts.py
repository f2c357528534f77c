"""What is to be thought of a run, in a word."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from bigkd.jobs.report.reading import Outcome, Run
from bigkd.jobs.report.text import counted

State: TypeAlias = Literal["differs", "fine", "failed", "open"]

_DIFFERENCES = (
    "modes", "distance", "two-sample", "distance-matrix", "dissimilarity", "dissimilarities",
    "projection",
)  # fmt: skip
_WORDS: Mapping[State, tuple[str, str]] = {
    "differs": ("differs", "beyond its threshold"),
    "fine": ("does not differ", "within its threshold"),
    "failed": ("failed", "failed"),
    "open": ("no threshold set", "no threshold set"),
}
_HEADLINES: Mapping[State, str] = {
    "differs": "It differs",
    "fine": "It does not differ",
    "failed": "It failed",
    "open": "Nothing was judged",
}
_SAID: Mapping[State, str] = {
    "differs": "{} exceeded a threshold",
    "failed": "{} failed",
    "fine": "{} within thresholds",
    "open": "{} without a threshold",
}

_NAMED = 4


class Banner(NamedTuple):
    """The verdict on a run."""

    state: State
    headline: str
    sentence: str


def state(outcome: Outcome | None) -> State:
    """What a comparison came to."""
    if outcome is None:
        return "open"
    if outcome.verdict == "failed":
        return "failed"
    if outcome.verdict == "exceeded":
        return "differs"
    return "fine" if outcome.judged else "open"


def word(kind: str, outcome: Outcome | None) -> str:
    """What a comparison of this kind came to, as a verb where it says whether things differ."""
    if outcome is None:
        return "not made in this run"
    of_difference, of_other = _WORDS[state(outcome)]
    return of_difference if kind in _DIFFERENCES else of_other


def banner(run: Run) -> Banner:
    """The verdict on all comparisons of a run: one that differs weighs most."""
    found: dict[State, list[str]] = {"differs": [], "failed": [], "fine": [], "open": []}
    for name, outcome in run.outcomes.items():
        found[state(outcome)].append(name)
    said = [_SAID[one].format(_listed(names)) for one, names in found.items() if names]
    worst: State = next((one for one, names in found.items() if names), "open")
    beyond = {outcome.kind for outcome in run.outcomes.values() if state(outcome) == "differs"}
    headline = _HEADLINES[worst]
    if worst == "differs" and not beyond & {*_DIFFERENCES}:
        headline = "A threshold is exceeded"
    if worst == "differs" and found["failed"]:
        headline += ", and a comparison failed"
    return Banner(worst, headline, "; ".join(said) or "the run made no comparison")


def _listed(names: list[str]) -> str:
    if len(names) > _NAMED:
        return counted(len(names), "comparison")
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
