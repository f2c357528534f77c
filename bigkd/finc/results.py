"""Results on disk."""

from pathlib import Path

import xarray as xr

from bigkd.io import load_dataset, save_dataset

KIND = "modes"


def save_modes(modes: xr.Dataset, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a result of `bigkd.finc.modes` to a Zarr store, all or nothing.

    Plain `xarray.open_zarr` reads it; `load_modes` checks it as well.

    Parameters
    ----------
    modes
        From `bigkd.finc.modes` or `modes_from`.
    path
        Folder, or URL of an object store.
    overwrite
        Replace a store of this package that is there already.

    Raises
    ------
    InputError
        If something is at `path` that may not be replaced.
    """
    save_dataset(modes, path, kind=KIND, overwrite=overwrite)


def load_modes(path: str | Path) -> xr.Dataset:
    """Read a result that `save_modes` or the command line wrote, checking every byte.

    Raises
    ------
    StoreError
        If it is absent, corrupted, of another kind, or of a newer format.
    """
    return load_dataset(path, kind=KIND)
