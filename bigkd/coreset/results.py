"""Coresets as Datasets."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from bigkd.backends import to_host
from bigkd.engine import Session, Tally
from bigkd.io import Source
from bigkd.schema import CORESET, dataset
from bigkd.summaries import Points


def coreset_dataset(
    points: Points, values: Mapping[str, Any], attrs: Mapping[str, Any]
) -> xr.Dataset:
    """Dataset of `points` and of `values`, further variables of the schema."""
    found: xr.Dataset = dataset(
        CORESET,
        {
            "index": to_host(points.index),
            "weight": to_host(points.weights),
            "rows": to_host(points.values),
            **values,
        },
        attrs={**attrs, "n_points": int(points.index.shape[0])},
    )
    return found


def about(source: Source, tally: Tally, session: Session) -> dict[str, Any]:
    """What was read, for the attributes of a result."""
    return {
        "n_rows": int(tally.rows),
        "n_dropped": int(tally.dropped),
        "n_skipped": source.skipped,
        "nonfinite": session.settings.nonfinite,
        "weighted": source.weights is not None,
    }


def by_row(points: Points, *others: Any) -> tuple[Any, ...]:
    """`points`, and arrays beside them, on the host and in the order of row numbers."""
    order = np.argsort(to_host(points.index), kind="stable")
    hosts = [to_host(part)[order] for part in points]
    return Points(*hosts), *(np.asarray(other)[order] for other in others)
