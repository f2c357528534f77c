"""Datasets in Zarr, whole or not at all: results, summaries and checkpoints are written here.

A store carries a manifest in its root attributes: format, kind, the version that wrote it, and the
SHA-256 of every variable. The manifest is written last and, on a local disk, the finished folder
is renamed into place, so that a reader meets a complete store or none. Reading checks every byte
against the manifest. Nothing is ever unpickled.
"""

import hashlib
import os
import shutil
import uuid
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr
from zarr.codecs import ZstdCodec

from bigkd import __version__
from bigkd.errors import InputError, StoreError

FORMAT = 1
MANIFEST = "bigkd_manifest"


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
        Replace a store that is there already; it stays whole until the new one is.

    Raises
    ------
    InputError
        If something is at `path` and `overwrite` is False.
    """
    dataset = _portable_text(dataset.load())
    target = str(path)
    if "://" in target:
        _refuse_existing(_exists_remote(target), target, overwrite)
        _write(dataset, target, kind)
        return
    final = Path(target)
    _refuse_existing(final.exists(), target, overwrite)
    final.parent.mkdir(parents=True, exist_ok=True)
    fresh = final.with_name(f".{final.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        _write(dataset, str(fresh), kind)
        _swap(fresh, final)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def load_dataset(path: str | Path, *, kind: str) -> xr.Dataset:
    """Read a store that `save_dataset` wrote, into memory, and check every variable.

    Raises
    ------
    StoreError
        If there is no such store, it was not finished, it is of another kind or a newer format,
        or a variable differs from its checksum.
    """
    target = str(path)
    try:
        attrs = dict(zarr.open_group(target, mode="r").attrs)
    except (FileNotFoundError, zarr.errors.BaseZarrError, ValueError, KeyError) as error:
        raise StoreError(f"{target} is not a readable Zarr store: {error}") from error
    manifest = _manifest(attrs, target, kind)
    try:
        dataset = xr.open_zarr(target, consolidated=False, chunks=None).load()
    except Exception as error:  # codecs raise their own types on flipped bits
        raise StoreError(
            f"{target} is corrupted: {error}. Restore it from a copy, or compute it again."
        ) from error
    found = _checksums(dataset)
    expected = manifest["checksums"]
    bad = sorted(name for name in expected if found.get(name) != expected[name])
    if bad or set(found) != set(expected):
        names = bad or sorted(set(found) ^ set(expected))
        raise StoreError(
            f"{target} is corrupted: {', '.join(names)} does not match its checksum. Restore it "
            f"from a copy, or compute it again."
        )
    del dataset.attrs[MANIFEST]
    loaded: xr.Dataset = dataset
    return loaded


def is_store(path: str | Path) -> bool:
    """Whether a finished store of this package is at the local `path`."""
    try:
        return MANIFEST in zarr.open_group(str(path), mode="r").attrs
    except (FileNotFoundError, zarr.errors.BaseZarrError, ValueError, KeyError):
        return False


def remove_store(path: str | Path) -> None:
    """Delete a local store, or nothing where there is none."""
    shutil.rmtree(path, ignore_errors=True)


def _manifest(attrs: Mapping[str, Any], target: str, kind: str) -> Mapping[str, Any]:
    manifest = attrs.get(MANIFEST)
    if not isinstance(manifest, dict):
        raise StoreError(
            f"{target} has no bigkd manifest: it was not written by bigkd, or not finished."
        )
    if manifest.get("format") != FORMAT:
        raise StoreError(
            f"{target} has format {manifest.get('format')!r}, written by bigkd "
            f"{manifest.get('version')}; this is bigkd {__version__}, which reads format {FORMAT}. "
            f"Use the version that wrote it, or compute it again."
        )
    if manifest.get("kind") != kind:
        raise StoreError(
            f"{target} holds {manifest.get('kind')!r}; expected {kind!r}. Was another path meant?"
        )
    if not isinstance(manifest.get("checksums"), dict):
        raise StoreError(f"{target} is corrupted: its manifest has no checksums.")
    return manifest


def _write(dataset: xr.Dataset, target: str, kind: str) -> None:
    codec = ZstdCodec(level=1, checksum=True)
    names = [*dataset.data_vars, *dataset.coords]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata")
        dataset.to_zarr(
            target,
            mode="w",
            zarr_format=3,
            consolidated=False,
            write_empty_chunks=True,
            encoding={name: {"compressors": [codec]} for name in names},
        )
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "kind": kind,
            "version": __version__,
            "checksums": _checksums(dataset),
        }
        zarr.open_group(target, mode="r+").attrs[MANIFEST] = manifest
        zarr.consolidate_metadata(target)


def _portable_text(dataset: xr.Dataset) -> xr.Dataset:
    """Text of variable length: Zarr's format says nothing of NumPy's fixed-length text."""
    text = {name: v.astype(object) for name, v in dataset.variables.items() if v.dtype.kind == "U"}
    return dataset.assign({name: (v.dims, v.values, v.attrs) for name, v in text.items()})


def _checksums(dataset: xr.Dataset) -> dict[str, str]:
    return {str(name): _checksum(variable) for name, variable in dataset.variables.items()}


def _checksum(variable: xr.Variable) -> str:
    values = np.asarray(variable.values)
    if values.dtype.kind in "OUT":
        content: Any = "\0".join(map(str, values.ravel().tolist())).encode()
        label = "text"
    else:
        content = np.ascontiguousarray(values).data.cast("B") if values.size else b""
        label = values.dtype.newbyteorder("<").str
    hashed = hashlib.sha256(f"{label}{variable.dims}{values.shape}".encode())
    hashed.update(content)
    return hashed.hexdigest()


def _refuse_existing(exists: bool, target: str, overwrite: bool) -> None:
    if exists and not overwrite:
        raise InputError(f"{target} exists already; pass overwrite=True to replace it.")


def _exists_remote(target: str) -> bool:
    try:
        zarr.open_group(target, mode="r")
    except (FileNotFoundError, zarr.errors.BaseZarrError):
        return False
    return True


def _swap(fresh: Path, final: Path) -> None:
    """Put `fresh` at `final`; what was there goes only once the new store is in place."""
    if not final.exists():
        os.rename(fresh, final)
        return
    old = final.with_name(f".{final.name}.{uuid.uuid4().hex[:8]}.old")
    os.rename(final, old)
    os.rename(fresh, final)
    shutil.rmtree(old, ignore_errors=True)
