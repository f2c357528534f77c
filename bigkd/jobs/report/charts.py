"""Charts of a report."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from bigkd.jobs.report.canvas import ALARM, INK, LINE, LOST, OTHER, drawing, svg
from bigkd.jobs.report.measures import Numbers, Series
from bigkd.jobs.report.text import count, counted, number

_MANY = 60
_FEW = 10
_VISIBLE = 0.005


class Key(NamedTuple):
    """One entry of a legend."""

    sign: str
    """What it is about, as a class of the style sheet."""

    text: str


class Chart(NamedTuple):
    """A drawing with what is to be said about it."""

    title: str
    svg: str
    keys: tuple[Key, ...]


def timeline(series: Series, times: Any, verdicts: Sequence[str], *, name: str) -> Chart:
    """A measure over the runs, from the first run that made the comparison."""
    first = next((at for at, verdict in enumerate(verdicts) if verdict), 0)
    shown = Series(series.measure, *(one[first:] for one in series[1:]))
    failed = np.array([verdict == "failed" for verdict in verdicts[first:]])
    keys = [Key("line", series.measure.label)]
    with drawing() as axes:
        _scale(axes, shown)
        keys += _doubt(axes, shown)
        _line(axes, shown)
        keys += _levels(axes, shown)
        keys += _marks(axes, shown, failed)
        _dates(axes, times[first:])
        label = _in_words(shown, failed)
        return Chart(_title(series), svg(axes, name=name, label=label), tuple(keys))


def rows_chart(read: Numbers, reused: Numbers, times: Any, *, name: str) -> Chart:
    """Rows that were read, and rows whose summaries were there, of each run."""
    known = [np.nan_to_num(one) for one in (read, reused)]
    edges = np.arange(len(read) + 1) - 0.5
    with drawing() as axes:
        axes.stairs(known[0], edges, fill=True, color=LINE)
        axes.stairs(known[0] + known[1], edges, baseline=known[0], fill=True, color=OTHER)
        axes.set_ylim(0, max(1.0, 1.05 * float((known[0] + known[1]).max())))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.yaxis.get_major_locator().set_params(nbins=4, integer=True)
        _dates(axes, times)
        label = (
            f"Rows of {counted(len(read), 'run')}: in the last {count(read[-1])} read, "
            f"{count(reused[-1])} reused."
        )
        keys = (Key("bar", "rows read"), Key("bar other", "rows reused from earlier runs"))
        return Chart("Rows read and reused", svg(axes, name=name, label=label), keys)


def spectrum(result: xr.Dataset, dim: str, *, name: str) -> Chart:
    """Eigenvalues with their standard errors, and the level that noise reaches."""
    value = result["eigenvalue"].values
    nothing = np.full(value.shape, np.nan)
    error = result["standard_error"].values if "standard_error" in result else nothing
    level = float(result["noise_level"]) if "noise_level" in result else math.nan
    strong = result["significant"].values.astype(bool) if "significant" in result else nothing > 0
    at = np.arange(value.size) + (0 if dim == "mode" else 1)
    keys = [Key("dot", "eigenvalue")]
    with drawing() as axes:
        axes.vlines(at, value - error, value + error, color=LINE, linewidth=1.2)
        axes.plot(at[~strong], value[~strong], "o", color=LINE, markersize=4.5)
        axes.plot(at[strong], value[strong], "D", color=ALARM, markersize=5.5)
        if np.isfinite(error).any():
            keys.append(Key("whisker", "± standard error"))
        if strong.any():
            keys.append(Key("diamond", "significant"))
        if math.isfinite(level):
            axes.axhline(level, color=INK, linewidth=1.1, linestyle=(0, (1, 1.5)))
            keys.append(Key("dotted", f"noise level {number(level)}"))
        _include_zero(axes, value, error)
        axes.set_xlim(at[0] - 0.6, at[-1] + 0.6)
        axes.xaxis.get_major_locator().set_params(integer=True, nbins=10)
        axes.set_xlabel(dim if dim == "mode" else "component")
        label = (
            f"Eigenvalues of {counted(value.size, dim if dim == 'mode' else 'component')}, from "
            f"{number(float(value[0]))} to {number(float(value[-1]))}."
        )
        return Chart("Spectrum of the latest result", svg(axes, name=name, label=label), (*keys,))


def _title(series: Series) -> str:
    label = series.measure.label
    return f"{label[0].upper()}{label[1:]}"


def _scale(axes: Any, series: Series) -> None:
    shown = [series.value, series.lower, series.upper, series.limit, series.level]
    shown += [series.value - series.error, series.value + series.error]
    found = np.concatenate(shown)
    found = found[np.isfinite(found)]
    if series.measure.logarithmic:
        positive = found[found > 0]
        axes.set_yscale("log")
        axes.set_ylim(0.6 * float(positive.min(initial=0.5)), 1.3)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        return
    low, high = float(found.min(initial=0.0)), float(found.max(initial=0.0))
    room = 0.08 * (high - low) or 1.0
    axes.set_ylim(low - (room if low < 0 else 0.0), high + room)
    axes.yaxis.get_major_locator().set_params(nbins=5, integer=series.measure.whole)


def _doubt(axes: Any, series: Series) -> list[Key]:
    bounded = np.isfinite(series.lower) & np.isfinite(series.upper)
    if bounded.any():
        low, high, words = series.lower, series.upper, "what its promise leaves"
    elif np.isfinite(series.error).any():
        low, high = series.value - series.error, series.value + series.error
        words = "± standard error"
    else:
        return []
    spread = high - low
    bottom, top = axes.get_ylim()
    if not (spread[np.isfinite(spread)] > _VISIBLE * (top - bottom)).any():
        return []
    at = np.arange(len(low))
    if len(at) > _MANY:
        axes.fill_between(at, low, high, color=LINE, alpha=0.25, linewidth=0)
        return [Key("band", words)]
    axes.vlines(at, low, high, color=LINE, alpha=0.45, linewidth=3.0)
    return [Key("whisker", words)]


def _line(axes: Any, series: Series) -> None:
    at, value = np.arange(len(series.value)), series.value
    axes.plot(at, value, color=LINE)
    there = np.isfinite(value)
    beside = np.append(there[1:], False) | np.append(False, there[:-1])
    dots = there & (~beside | (len(at) <= _MANY))
    axes.plot(at[dots], value[dots], "o", color=LINE, markersize=3.2)


def _levels(axes: Any, series: Series) -> list[Key]:
    edges = np.arange(len(series.value) + 1) - 0.5
    keys = []
    for values, dashes, colour, sign, words in (
        (series.level, (0, (1, 1.5)), INK, "dotted", series.measure.level_label),
        (series.limit, (0, (4, 2)), ALARM, "dashed", "threshold"),
    ):
        known = values[np.isfinite(values)]
        if known.size:
            axes.stairs(values, edges, baseline=None, color=colour, linestyle=dashes, linewidth=1.2)
            keys.append(Key(sign, f"{words} {number(float(known[-1]))}"))
    return keys


def _marks(axes: Any, series: Series, failed: Any) -> list[Key]:
    keys = []
    at, beyond = np.arange(len(series.value)), series.exceeded
    if beyond.any():
        axes.plot(at[beyond], series.value[beyond], "D", color=ALARM, markersize=4.6)
        keys.append(Key("diamond", f"threshold exceeded ({beyond.sum():,})"))
    if failed.any():
        bottom = axes.get_xaxis_transform()
        axes.plot(
            at[failed], np.full(failed.sum(), 0.045), "x", color=LOST, markersize=5.5,
            markeredgewidth=1.8, transform=bottom, clip_on=False,
        )  # fmt: skip
        axes.vlines(at[failed], 0, 1, color=LOST, alpha=0.35, linewidth=0.8, transform=bottom)
        keys.append(Key("cross", f"failed ({failed.sum():,})"))
    return keys


def _include_zero(axes: Any, value: Any, error: Any) -> None:
    spread = np.concatenate([value - np.nan_to_num(error), value + np.nan_to_num(error), [0.0]])
    low, high = float(np.nanmin(spread)), float(np.nanmax(spread))
    room = 0.08 * (high - low) or 1.0
    axes.set_ylim(low - (room if low < 0 else 0.0), high + room)
    axes.yaxis.get_major_locator().set_params(nbins=5)


def _dates(axes: Any, times: Any) -> None:
    """A few dates below the runs, which stand in their order, whatever clocks said."""
    n = len(times)
    at = np.unique(np.linspace(0, n - 1, 3 if n < _FEW else 4).round().astype(int))
    known = times[~np.isnat(times)]
    span = known.max() - known.min() if known.size else np.timedelta64(0, "s")
    unit = "D" if span > np.timedelta64(3, "D") else "m"
    words = ["?" if np.isnat(times[one]) else str(times[one].astype(f"M8[{unit}]")) for one in at]
    labels = axes.set_xticks(at, [text.replace("T", "\n") for text in words])
    for tick, side in ((labels[0], "left"), (labels[-1], "right")):
        if len(labels) > 1:
            tick.label1.set_horizontalalignment(side)
    axes.set_xlim(-0.6, n - 0.4)


def _in_words(series: Series, failed: Any) -> str:
    known = series.value[np.isfinite(series.value)]
    said = [
        f"{_title(series)} of {counted(len(series.value), 'run')}: the last {number(known[-1])}, "
        f"the least {number(known.min())}, the largest {number(known.max())}"
    ]
    limits = series.limit[np.isfinite(series.limit)]
    if limits.size:
        beyond = int(series.exceeded.sum())
        said.append(f"threshold {number(limits[-1])}, exceeded in {counted(beyond, 'run')}")
    if failed.any():
        said.append(f"failed in {counted(int(failed.sum()), 'run')}")
    return "; ".join(said) + "."
