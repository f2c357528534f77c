"""Histories and results to make reports of: small, and everything in them is plain to see."""

import json

import numpy as np
import xarray as xr

from bigkd.schema import DISTANCE, MODES, dataset

N_MODES = 3
KINDS = {"drift": "distance", "new_modes": "modes"}
ATTRS = {"x": "tonight.zarr", "y": "reference.zarr", "promise_kind": "probabilistic", "delta": 0.01}
HOSTILE = (
    '<script>document.title="owned"</script><img src=x onerror=alert(1)>" onmouseover="alert(1) '
    "</style></title></script>\x00\x1b[31m {{ 7 * 7 }} \u202eevil שלום عربي " + "wide" * 120
)


def distance_result(value=0.25, **attrs):
    """A result of kind ``distance``."""
    values = {
        "distance": value,
        "distance_lower": value - 0.03,
        "distance_upper": value + 0.04,
        "distance_squared": value**2,
        "promise": 0.002,
        "standard_error": np.nan,
    }
    found = dataset(DISTANCE, values, attrs={**ATTRS, "test_alpha": 0.05, **attrs})
    return found.assign(p_value=0.2, rejected=False)


def modes_result(eigenvalues=(0.2, 0.05, 0.01)):
    """A result of kind ``modes`` whose first mode is significant."""
    top = np.arange(N_MODES * 4).reshape(N_MODES, 4)
    top[2, 3] = -1
    values = {
        "eigenvalue": eigenvalues,
        "standard_error": (0.011, 0.012, 0.013),
        "p_value": (0.005, 0.6, 0.9),
        "significant": (True, False, False),
        "frequency_test": (0.21, 0.06, 0.02),
        "frequency_reference": (0.01, 0.01, 0.01),
        "noise_level": 0.09,
        "mmd2": 0.01,
        "top_index_test": top,
    }
    return dataset(MODES, values, attrs={"test": "tonight", "reference": "before", "alpha": 0.01})


def history(n, *, start=0, verdicts=None, limit=0.305, fail_if=None, messages=None):
    """A history of `n` runs of `KINDS`, whose distance grows from 0.2 by 0.01 a run.

    `verdicts` are those of drift that are not ``fine``, by run; a run that failed has NaN. The
    comparison new_modes comes with run `start`.
    """
    at = np.arange(n)
    said = np.array(["fine"] * n, dtype=object)
    for run, verdict in (verdicts or {}).items():
        said[run] = verdict
    lost = np.where(said == "failed", np.nan, 1.0)
    late = np.where(at < start, np.nan, 1.0)
    came = np.array(["" if run < start else "fine" for run in at], dtype=object)
    asked = {"above": limit} if fail_if is None else fail_if
    job = {"comparisons": {"drift": {"fail_if": asked}, "new_modes": {"fail_if": {}}}}
    text = {
        "run_id": [f"run-{run}" for run in at],
        "version": ["0.1.0"] * n,
        "job": [json.dumps(job)] * n,
        "verdict": said,
        "drift.kind": ["distance"] * n,
        "drift.verdict": said,
        "drift.message": messages or ["no room" if one == "failed" else "" for one in said],
        "drift.parameters": [json.dumps(distance_result().attrs)] * n,
        "new_modes.kind": ["modes" if one else "" for one in came],
        "new_modes.verdict": came,
        "new_modes.message": [""] * n,
        "new_modes.parameters": [json.dumps(modes_result().attrs)] * n,
    }
    distance = (0.2 + 0.01 * at) * lost
    numbers = {
        "seconds": 2.0 + at,
        "exit_code": [{"fine": 0, "exceeded": 3, "failed": 4}[one] for one in said],
        "drift.distance": distance,
        "drift.distance_lower": distance - 0.03,
        "drift.distance_upper": distance + 0.04,
        "drift.p_value": 0.2 * lost,
        "drift.rejected": 0.0 * lost,
        "drift.limit.distance": np.full(n, limit),
        "drift.rows_read": np.full(n, 100.0),
        "drift.rows_reused": 100.0 * at,
        "drift.seconds": np.full(n, 1.5),
        "new_modes.noise_level": 0.09 * late,
        "new_modes.mmd2": 0.01 * late,
        "new_modes.rows_read": 50.0 * late,
        "new_modes.rows_reused": 0.0 * late,
        "new_modes.seconds": 0.5 * late,
    }
    rows = {
        name: np.broadcast_to(modes_result()[name].values.astype(float), (n, N_MODES))
        for name in ("eigenvalue", "standard_error", "p_value", "significant")
    }
    found = {name: ("run", np.array(list(one), dtype=object)) for name, one in text.items()}
    found |= {name: ("run", np.asarray(one, dtype=np.float64)) for name, one in numbers.items()}
    for name, one in rows.items():
        found[f"new_modes.{name}"] = (("run", "new_modes.mode"), one * late[:, None])
    nights = np.datetime64("2026-01-01T03:00", "ns") + at * np.timedelta64(1, "D")
    return xr.Dataset({"time": ("run", nights), **found})
