"""Summaries of collections: made in one pass, stored, extended, and compared without the rows."""

from pathlib import Path
from typing import Any, Unpack

import numpy as np
import xarray as xr

from bigkd.engine import Options, Reduced, Tally, open_session, open_source, settings_of
from bigkd.errors import InputError
from bigkd.finc.features import FeatureChoice, FrequencyChoice, KernelChoice, resolve
from bigkd.finc.spec import FincSpec, FincState, spec_from, state_of
from bigkd.io import arrays_to_state, load_dataset, save_dataset, state_to_arrays
from bigkd.kernels import FourierFeatures, Sampling

KIND = "finc-summary"

_DIMS: dict[str, tuple[str, ...]] = {
    "moment.weight": (),
    "moment.outer": ("feature", "feature_other"),
    "mean.count": (),
    "mean.weight": (),
    "mean.total": ("feature",),
    "groups.weight": ("group",),
    "groups.outer": ("group", "noise_feature", "noise_feature_other"),
}


def summarize(
    rows: Any,
    *,
    kernel: KernelChoice = "auto",
    n_frequencies: FrequencyChoice = "auto",
    features: FourierFeatures | None = None,
    sampling: Sampling = "iid",
    frequency_tolerance: float = 0.01,
    seed: int = 0,
    like: xr.Dataset | None = None,
    out: str | Path | None = None,
    name: str = "rows",
    **options: Unpack[Options],
) -> xr.Dataset:
    """Summarise a collection in one pass, for comparison with others later.

    Parameters
    ----------
    rows
        As `test` of `bigkd.finc.modes`.
    kernel, n_frequencies, features, sampling, frequency_tolerance, seed
        As for `bigkd.finc.modes`; where something is chosen from a sample, it is one of these rows.
    like
        A summary to be comparable with: its features are used, and the arguments above must be
        left alone.
    out
        Store to write the summary to as well; an existing one is replaced.
    name
        What messages and comparisons call the collection.
    **options
        How rows are read and the pass runs: `bigkd.engine.Options`.

    Returns
    -------
    xarray.Dataset
        Sums over rows, in memory: of outer products of features, of features, and of outer products
        of the first few features by random group; and the frequencies. With r frequencies about
        ``32 r**2`` bytes, whatever the number of rows.

    Raises
    ------
    BigkdError
        As `bigkd.finc.modes`.
    """
    settings = settings_of(options)
    choice = FeatureChoice(
        kernel=kernel,
        n_frequencies=n_frequencies,
        features=features,
        sampling=sampling,
        frequency_tolerance=frequency_tolerance,
        seed=seed,
    )
    source = open_source(rows, options, name=name)
    if like is None:
        resolved = resolve(choice, [source])
        spec, about = resolved.spec, resolved.attrs
    elif choice == FeatureChoice():
        spec, about = open_summary(like)[0], {}
    else:
        raise InputError(
            "like=... fixes the features; leave out kernel, n_frequencies, features, sampling, "
            "frequency_tolerance and seed."
        )
    with open_session(settings) as session:
        reduced = session.reduce(spec.summary, source, label=f"summarising {name}")
    extra = {**about, "name": name, "n_skipped": source.skipped, "n_read": source.n_rows}
    summary = summary_dataset(spec, reduced, extra)
    if out is not None:
        save_dataset(summary, out, kind=KIND, overwrite=True)
    return summary


def add_rows(
    summary: xr.Dataset | str | Path,
    rows: Any,
    *,
    out: str | Path | None = None,
    **options: Unpack[Options],
) -> xr.Dataset:
    """Extend a summary by new rows; only these are read.

    Parameters
    ----------
    summary
        From `summarize`, or the path of one.
    rows
        The new rows, as in `summarize`.
    out
        Store to write the extended summary to; it may be the one that was read, which stays whole
        until the new one is.
    **options
        How rows are read and the pass runs: `bigkd.engine.Options`.

    Returns
    -------
    xarray.Dataset
        The summary of the old and the new rows; `summary` itself is left as it is.

    Raises
    ------
    ShapeError
        If the new rows have another width.
    BigkdError
        As `bigkd.finc.modes`.
    """
    settings = settings_of(options)
    before = load_summary(summary) if isinstance(summary, str | Path) else summary
    spec, state = open_summary(before)
    name = str(before.attrs["name"])
    source = open_source(rows, options, name=name)
    _require_width(spec, source.width, name)
    offset = int(before.attrs["n_read"])
    with open_session(settings) as session:
        new = session.reduce(spec.summary, source, label=f"adding rows to {name}", first_row=offset)
    old_tally = Tally(np.asarray(before.attrs["n_rows"]), np.asarray(before.attrs["n_dropped"]))
    tally = Tally(old_tally.rows + new.tally.rows, old_tally.dropped + new.tally.dropped)
    merged = Reduced(spec.summary.merge(tuple(state), new.state), tally)
    kept = {
        key: value
        for key, value in before.attrs.items()
        if key not in spec.attrs() and key not in ("n_rows", "n_dropped", "bigkd_version")
    }
    kept["n_skipped"] = int(kept["n_skipped"]) + source.skipped
    kept["n_read"] = offset + source.n_rows
    extended = summary_dataset(spec, merged, kept)
    if out is not None:
        save_dataset(extended, out, kind=KIND, overwrite=True)
    return extended


def load_summary(path: str | Path) -> xr.Dataset:
    """Read a summary that `summarize` wrote, checking every byte.

    Raises
    ------
    StoreError
        If it is absent, corrupted, of another kind, or of a newer format.
    """
    return load_dataset(path, kind=KIND)


def summary_dataset(spec: FincSpec, reduced: Reduced, extra: dict[str, Any]) -> xr.Dataset:
    """The state and all that is needed to go on from it, as a Dataset."""
    arrays = state_to_arrays(state_of(reduced))
    variables = {name: (_DIMS[name], value) for name, value in arrays.items()}
    frequencies = spec.features.frequencies
    variables["fourier_frequency"] = (("fourier", "column"), frequencies)
    attrs = {
        **spec.attrs(),
        **extra,
        "n_rows": int(reduced.tally.rows),
        "n_dropped": int(reduced.tally.dropped),
    }
    return xr.Dataset(variables, attrs=attrs)


def open_summary(summary: xr.Dataset) -> tuple[FincSpec, FincState]:
    """Spec and state of a summary.

    Raises
    ------
    InputError
        If it is not a summary.
    StoreError
        If a part of it has the wrong shape.
    """
    if not isinstance(summary, xr.Dataset) or "fourier_frequency" not in summary:
        raise InputError(
            f"expected a summary from bigkd.finc.summarize or load_summary; got "
            f"{type(summary).__name__}."
        )
    spec = spec_from(summary.attrs, summary["fourier_frequency"].values)
    template = state_of(spec.empty())
    return spec, arrays_to_state(template, {str(k): v.values for k, v in summary.items()})


def _require_width(spec: FincSpec, width: int, name: str) -> None:
    if spec.features.width != width:
        raise InputError(
            f"{name} was summarised with rows of {spec.features.width} elements; the new rows "
            f"have {width}."
        )
