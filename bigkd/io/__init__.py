"""The only place that opens stores: rows to read, states and Datasets to keep."""

from bigkd.io.datasets import (
    is_store,
    load_dataset,
    remove_store,
    save_dataset,
    store_kind,
    stored_names,
)
from bigkd.io.history import append_run, load_history
from bigkd.io.image_folder import read_images
from bigkd.io.labelled import load_array, open_labelled
from bigkd.io.rows import open_rows
from bigkd.io.sampling import sample, sample_rows
from bigkd.io.sources import ArraySource, DaskSource, Source
from bigkd.io.states import (
    arrays_to_state,
    load_state,
    save_state,
    state_to_arrays,
    state_token,
)
from bigkd.io.tiled import TiledArray, open_tiled

__all__ = [
    "ArraySource",
    "DaskSource",
    "Source",
    "TiledArray",
    "append_run",
    "arrays_to_state",
    "is_store",
    "load_array",
    "load_dataset",
    "load_history",
    "load_state",
    "open_labelled",
    "open_rows",
    "open_tiled",
    "read_images",
    "remove_store",
    "sample",
    "sample_rows",
    "save_dataset",
    "save_state",
    "state_to_arrays",
    "state_token",
    "store_kind",
    "stored_names",
]
