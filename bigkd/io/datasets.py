"""Datasets in Zarr, whole or not at all: results, summaries and checkpoints are written here.

A store carries a manifest in its root attributes: format, kind, the version that wrote it, and the
SHA-256 of every variable, of its metadata, and of the attributes. The manifest is written last and,
on a local disk, the finished folder is renamed into place, so that a reader meets a complete store
or none. Reading checks every byte against the manifest. Nothing is ever unpickled.
"""

import glob
import os
import shutil
import uuid
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr
import zarr
from zarr.codecs import ZstdCodec
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore

from bigkd.errors import InputError, StoreError
from bigkd.io.bounds import require_decodable
from bigkd.io.manifests import (
    MANIFEST,
    UNFINISHED,
    corrupted,
    differing,
    read_document,
    read_manifest,
    write_manifest,
)
from bigkd.io.urls import plain_location

_TEXT = np.dtype("O", metadata={"element_type": str})  # as xarray marks text, even if empty


def save_dataset(
    dataset: xr.Dataset, path: str | Path, *, kind: str, overwrite: bool = False
) -> None:
    """Write `dataset` to a new Zarr store at `path`, all or nothing.

    Parameters
    ----------
    dataset
        Small enough for memory; lazy variables are computed.
    path
        Folder, or URL of an object store.
    kind
        What it is, as the reader will ask for it: ``"modes"``, ``"finc-summary"``.
    overwrite
        Replace a store of this package that is there already. On a local disk it stays whole until
        the new one is; on an object store, which cannot rename, it is removed first.

    Raises
    ------
    InputError
        If something is at `path` and `overwrite` is False, or it is not a store of this package.
    """
    dataset = portable_text(dataset.load())
    target = str(path)
    refuse_existing(target, overwrite=overwrite)
    if "://" in target:
        write_variables(dataset, target)
        write_manifest(target, kind, dataset)
        return
    final = Path(target)
    final.parent.mkdir(parents=True, exist_ok=True)
    fresh = final.with_name(f".{final.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        write_variables(dataset, str(fresh))
        write_manifest(str(fresh), kind, dataset)
        swap(fresh, final)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def load_dataset(path: str | Path, *, kind: str) -> xr.Dataset:
    """Read a store that `save_dataset` wrote, into memory, and check every byte.

    Raises
    ------
    StoreError
        If there is no such store, it was not finished, it is of another kind or a newer format,
        or anything in it differs from its checksum.
    """
    target = str(path)
    manifest = read_manifest(target)
    if manifest["kind"] != kind:
        raise StoreError(
            f"{target} holds {manifest['kind']!r}; expected {kind!r}. Was another path meant?"
        )
    if "tiled" in manifest:
        raise StoreError(
            f"{target} holds {manifest['tiled']} in tiles, which may be larger than memory. Open "
            f"it, with xarray.open_zarr({target!r})."
        )
    try:
        require_decodable(target)
        dataset = xr.open_zarr(target, zarr_format=3, consolidated=False, chunks=None).load()
        differ = differing(dataset, manifest)
    except StoreError:
        raise
    except Exception as error:  # codecs raise their own types on flipped bits
        raise corrupted(target, f"{type(error).__name__}: {error}") from error
    if differ:
        raise corrupted(target, f"{differ} does not match its checksum")
    del dataset.attrs[MANIFEST]
    names = [name for name in manifest["variables"] if name in dataset.data_vars]
    in_order = {name: dataset[name].variable for name in names}
    return plain_text(dataset.drop_vars(in_order).assign(in_order))


def store_kind(path: str | Path) -> str:
    """Which kind of store of this package is at `path`.

    Raises
    ------
    StoreError
        If there is none, or it was not finished.
    """
    return str(read_manifest(str(path))["kind"])


def is_store(path: str | Path) -> bool:
    """Whether a finished store of this package, with metadata as written, is at `path`."""
    try:
        read_manifest(str(path))
    except StoreError:
        return False
    return True


def stored_names(folder: str | Path) -> set[str]:
    """Names of what is in a folder of stores, or below a URL; nothing where there is none."""
    if "://" in str(folder):
        return {name.rstrip("/") for name in sync(_listed(_remote(str(folder))))}
    try:
        return set(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return set()


def _remote(url: str, *, read_only: bool = False) -> FsspecStore:
    """The store at a URL, listed anew each time: another process may have written there."""
    how = {"use_listings_cache": False}
    return FsspecStore.from_url(url, storage_options=how, read_only=read_only)


async def _has_objects(store: FsspecStore) -> bool:
    """Whether there is more than the empty key that marks a folder for some servers."""
    async for key in store.list_prefix(""):
        if key.strip("/") not in ("", store.path.strip("/")):
            return True
    return False


async def _listed(store: FsspecStore) -> list[str]:
    return [name async for name in store.list_dir("")]


def remove_store(path: str | Path) -> None:
    """Delete everything at `path`, or nothing where there is nothing."""
    if "://" in plain_location(path):
        sync(_remote(str(path)).delete_dir(""))
    else:
        if os.path.islink(path) or os.path.isfile(path):
            os.unlink(path)
        shutil.rmtree(path, ignore_errors=True)


def write_variables(dataset: xr.Dataset, target: str, *, mode: Literal["w", "a"] = "w") -> None:
    """Write `dataset` to a store, alone or beside what is there; nobody vouches for it yet."""
    codec = ZstdCodec(level=1, checksum=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata")
        dataset.to_zarr(
            target,
            mode=mode,
            zarr_format=3,
            consolidated=False,
            write_empty_chunks=True,
            encoding={name: {"compressors": [codec]} for name in dataset.variables},
        )
        zarr.consolidate_metadata(target)


def portable_text(dataset: xr.Dataset) -> xr.Dataset:
    """Text of variable length: Zarr's format says nothing of NumPy's fixed-length text."""
    text = {}
    for name, variable in dataset.variables.items():
        if variable.dtype.kind in "UOT":
            values = np.asarray(variable.values, dtype=_TEXT)
            odd = [value for value in values.ravel() if not isinstance(value, str)]
            if odd:
                raise InputError(
                    f"variable {name!r} holds Python objects of type {type(odd[0]).__name__}; "
                    f"stores hold numbers, times and text."
                )
            text[name] = (variable.dims, values, variable.attrs)
    return dataset.assign(text)


def plain_text(dataset: xr.Dataset) -> xr.Dataset:
    """Text as NumPy's own ``str`` type, of fixed length."""
    return dataset.assign(
        {
            name: (variable.dims, _fixed_length(variable.values), variable.attrs)
            for name, variable in dataset.variables.items()
            if variable.dtype.kind in "OT"
        }
    )


def _fixed_length(text: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.array(text.tolist(), dtype=np.str_).reshape(text.shape)


def _state(target: str) -> str:
    """Whether there is ``"nothing"`` at `target`, a store of this package, or something ``"else"``.

    A store with damaged data or attributes is still one: it may be replaced. One that is
    ``"unfinished"`` is nobody's result.
    """
    if "://" in target:
        store: Any = _remote(target, read_only=True)
        empty = not sync(_has_objects(store))
    else:
        path = Path(target)
        empty = not os.path.lexists(path) or (path.is_dir() and not any(path.iterdir()))
        store = LocalStore(path, read_only=True) if path.is_dir() else None
    if empty or store is None:
        return "nothing" if empty else "else"
    document = read_document(store)
    if f'"{MANIFEST}"'.encode() in document:
        return "store"
    return "unfinished" if f'"{UNFINISHED}"'.encode() in document else "else"


def refuse_existing(target: str, *, overwrite: bool) -> None:
    """Refuse to write where something is already, unless it is a store to be replaced.

    Raises
    ------
    InputError
        If so.
    """
    state = _state(plain_location(target))
    if state == "store" and not overwrite:
        raise InputError(f"{target} exists already; pass overwrite=True to replace it.")
    if state == "else":
        raise InputError(
            f"{target} exists and was not written by bigkd, which replaces only its own stores. "
            f"Choose another path, or delete it first."
        )
    if "://" not in target and os.path.islink(target):
        raise InputError(
            f"{target} is a symbolic link, which bigkd does not write through or replace. Name "
            f"the place that it points to."
        )


def swap(fresh: Path, final: Path) -> None:
    """Put `fresh` at `final`; what was there goes only once the new store is in place."""
    _replace(fresh, final)
    hidden = f".{glob.escape(final.name)}.{'[0-9a-f]' * 8}.old"
    for old in final.parent.glob(hidden):  # of a call that was killed
        if _state(str(old)) == "store":
            shutil.rmtree(old, ignore_errors=True)


def _replace(fresh: Path, final: Path) -> None:
    if not final.exists():
        os.rename(fresh, final)
        return
    old = final.with_name(f".{final.name}.{uuid.uuid4().hex[:8]}.old")
    os.rename(final, old)
    try:
        os.rename(fresh, final)
    except OSError:
        os.rename(old, final)
        raise
    shutil.rmtree(old, ignore_errors=True)
