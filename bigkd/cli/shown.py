"""How each kind of store is shown: as a table, and as JSON."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import xarray as xr

from bigkd.cli.coreset_tables import print_coreset
from bigkd.cli.did_tables import print_dissimilarities, print_dissimilarity, print_nearest
from bigkd.cli.distance_tables import print_distance, print_distances, print_test
from bigkd.cli.mmdpca_tables import (
    print_background,
    print_projection,
    print_scores,
    print_subspace,
)
from bigkd.cli.records import (
    background_record,
    comparison_record,
    coreset_record,
    dissimilarities_record,
    distances_record,
    modes_record,
    nearest_record,
    scalars_record,
    scores_record,
    subspace_record,
    summary_record,
)
from bigkd.cli.tables import print_comparison, print_modes, print_summary
from bigkd.io import load_dataset, open_tiled


class Shown(NamedTuple):
    """How one kind of store is shown."""

    record: Callable[[xr.Dataset], dict[str, Any]]
    table: Callable[[xr.Dataset], None]
    load: Callable[..., xr.Dataset] = load_dataset


SHOWN: Mapping[str, Shown] = {
    "modes": Shown(modes_record, print_modes),
    "comparison": Shown(comparison_record, print_comparison),
    "finc-summary": Shown(summary_record, print_summary),
    "distance": Shown(scalars_record, print_distance),
    "two-sample": Shown(scalars_record, print_test),
    "distance-matrix": Shown(distances_record, print_distances),
    "coreset": Shown(coreset_record, print_coreset),
    "dissimilarity": Shown(scalars_record, print_dissimilarity),
    "dissimilarities": Shown(dissimilarities_record, print_dissimilarities, open_tiled),
    "nearest": Shown(nearest_record, print_nearest),
    "subspace": Shown(subspace_record, print_subspace),
    "scores": Shown(scores_record, print_scores),
    "projection": Shown(scalars_record, print_projection),
    "background": Shown(background_record, print_background),
}
"""By kind."""


def load_shown(store: str, kind: str) -> xr.Dataset:
    """A stored result; one in tiles is opened."""
    return SHOWN[kind].load(store, kind=kind)


def record_of(result: xr.Dataset, kind: str) -> dict[str, Any]:
    """What a program reads."""
    return SHOWN[kind].record(result)


def print_result(result: xr.Dataset, kind: str) -> None:
    """Print what a person reads."""
    SHOWN[kind].table(result)
