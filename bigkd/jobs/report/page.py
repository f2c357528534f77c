"""One page that holds a whole report."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np
import xarray as xr

from bigkd.errors import InputError
from bigkd.io.images import Picture
from bigkd.io.small_files import Folder
from bigkd.jobs.report import latest
from bigkd.jobs.report.charts import Chart, rows_chart, spectrum, timeline
from bigkd.jobs.report.reading import Account, Outcome, Run, read_history
from bigkd.jobs.report.text import clean, count, duration, moment
from bigkd.jobs.report.verdicts import banner, state, word

_RUNS_SHOWN = 30
_MOST_CHARTS = 4


class Section(NamedTuple):
    """One comparison."""

    anchor: str
    name: str
    kind: str
    state: str
    word: str
    outcome: Outcome | None
    """In the latest run."""

    of: tuple[str, ...]
    """What was compared."""

    charts: tuple[Chart, ...]
    modes: tuple[latest.Mode, ...]
    components: tuple[latest.Shot, ...]
    tables: tuple[latest.Table, ...]
    promises: tuple[tuple[str, str, str], ...]
    sureness: str
    choices: tuple[tuple[str, str], ...]
    is_old: bool
    """Whether the result is that of an earlier run."""


def write_report(
    path: str | Path,
    *,
    title: str,
    history: xr.Dataset,
    results: Mapping[str, xr.Dataset],
    kinds: Mapping[str, str],
    pictures: Mapping[str, Sequence[Sequence[Picture]]],
) -> Path:
    """Write a page of all runs of a job and of its latest results.

    The page holds everything that it shows, runs no scripts, and loads nothing. Equal arguments
    give equal bytes.

    Parameters
    ----------
    path
        File to write; an earlier one stays whole until this one is.
    title
        Its heading.
    history
        Every run, at least one, as `bigkd.io.load_history` reads it.
    results
        The latest result of each comparison that has one.
    kinds
        Kind of each comparison of the job, in the order in which they are shown.
    pictures
        Of comparisons, from `pictures_of`.

    Returns
    -------
    pathlib.Path
        `path`.

    Raises
    ------
    InputError
        If `history` has no run.
    MissingDependencyError
        If Matplotlib is not installed: ``pip install 'bigkd[report]'``; or Pillow, where there are
        pictures: ``pip install 'bigkd[images]'``.
    """
    if history.sizes.get("run", 0) == 0:
        raise InputError("history has no run; a report is of one at least.")
    account = read_history(history, tuple(kinds))
    times = np.array([run.time for run in account.runs], dtype="datetime64[ns]")
    sections = [
        _section(at, name, kinds[name], account, times, results.get(name), pictures.get(name, ()))
        for at, name in enumerate(kinds, start=1)
    ]
    text = _render(title, account, sections, _rows(account, times), _job(history))
    page = Path(path)
    Folder(page.parent).write({page.name: text.encode("utf-8")})
    return page


def _section(
    at: int,
    name: str,
    kind: str,
    account: Account,
    times: Any,
    result: xr.Dataset | None,
    pictures: Sequence[Sequence[Picture]],
) -> Section:
    outcome = account.runs[-1].outcomes.get(name)
    charts = _charts(f"chart{at}", account, name, times)
    attrs: Mapping[str, Any] = {} if outcome is None else outcome.parameters
    modes: list[latest.Mode] = []
    if result is not None:
        attrs = {key: result.attrs[key] for key in map(str, result.attrs)}
        if "eigenvalue" in result and result["eigenvalue"].ndim == 1 and result["eigenvalue"].size:
            dim = str(result["eigenvalue"].dims[0])
            charts.append(spectrum(result, dim, name=f"spectrum{at}"))
        modes = latest.modes(result, pictures) if kind == "modes" else []
    return Section(
        anchor=f"comparison-{at}",
        name=name,
        kind=kind.replace("-", " "),
        state=state(outcome),
        word=word(kind, outcome),
        outcome=outcome,
        of=tuple(latest.collections(attrs)),
        charts=tuple(charts),
        modes=tuple(modes),
        components=tuple(latest.components(result, pictures)) if result and not modes else (),
        tables=tuple(latest.tables(result)) if result else (),
        promises=tuple(latest.promises(result)) if result else (),
        sureness=latest.sureness(attrs),
        choices=tuple(latest.choices(attrs)),
        is_old=result is not None and (outcome is None or outcome.verdict == "failed"),
    )


def _charts(anchor: str, account: Account, name: str, times: Any) -> list[Chart]:
    if name not in account.chapters:
        return []
    chapter = account.chapters[name]
    return [
        timeline(series, times, chapter.verdicts, name=f"{anchor}-{number}")
        for number, series in enumerate(chapter.series[:_MOST_CHARTS], start=1)
    ]


def _rows(account: Account, times: Any) -> Chart | None:
    read = np.array([run.rows_read for run in account.runs])
    reused = np.array([run.rows_reused for run in account.runs])
    if not np.isfinite(read).any():
        return None
    return rows_chart(read, reused, times, name="rows")


def _job(history: xr.Dataset) -> str:
    text = history["job"].values[-1] if "job" in history else ""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (TypeError, ValueError):
        return ""


def _render(
    title: str, account: Account, sections: list[Section], rows: Chart | None, job: str
) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bigkd.jobs.report"),
        autoescape=True,
        finalize=clean,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"count": count, "duration": duration, "moment": moment}
    environment.globals |= {"state": state, "word": word}
    newest_first: list[Run] = [*reversed(account.runs)]
    last = newest_first[0]
    return environment.get_template("report.html").render(
        title=title,
        last=last,
        banner=banner(last),
        sections=sections,
        rows=rows,
        job=job,
        names=[*account.chapters],
        recent=newest_first[:_RUNS_SHOWN],
        earlier=newest_first[_RUNS_SHOWN:],
        n_runs=len(newest_first),
    )
