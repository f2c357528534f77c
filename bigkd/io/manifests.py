"""What vouches for a store: its manifest, and checksums of everything else in it."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import xarray as xr
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync

from bigkd import __version__
from bigkd.errors import MissingDependencyError, StoreError
from bigkd.io.bounds import require_room
from bigkd.io.urls import plain_location

FORMAT = 1
MANIFEST = "bigkd_manifest"
UNFINISHED = "bigkd_unfinished"
"""Attribute of a store that is being written in tiles: what it is made from."""

_DOCUMENT = "zarr.json"
_CODECS = {
    "bytes",
    "crc32c",
    "zstd",
    "vlen-utf8",
}  # what this package writes; none of them runs code


def write_manifest(
    target: str, kind: str, dataset: xr.Dataset, *, tiled: str | None = None, token: str = ""
) -> None:
    """Vouch for the store at `target`, which holds `dataset`: the last write to it.

    Of an array that was written in tiles, `dataset` has the checksums of the tiles instead, and
    `token` names what it is made from.
    """
    group = zarr.open_group(target, mode="r+", zarr_format=3, use_consolidated=False)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "kind": kind,
        "version": __version__,
        "variables": {str(name): checksum(v) for name, v in dataset.variables.items()},
        "metadata": {
            str(name): hashlib.sha256(_read(group, f"{name}/{_DOCUMENT}")).hexdigest()
            for name in (*dataset.variables, *([] if tiled is None else [tiled]))
        },
    }
    if tiled is not None:
        manifest |= {"tiled": tiled, "token": token}
    document = json.loads(_read(group, _DOCUMENT))
    document["attributes"].pop(UNFINISHED, None)
    document["attributes"][MANIFEST] = manifest
    manifest["checksum"] = _document_checksum(document)
    buffer = default_buffer_prototype().buffer
    text = json.dumps(document, indent=2).encode()
    sync((group.store_path / _DOCUMENT).set(buffer.from_bytes(text)))


def read_manifest(target: str) -> Mapping[str, Any]:
    """Manifest of the finished store at `target`; the data are not looked at.

    Raises
    ------
    StoreError
        If there is no such store, it was not finished, it is of a newer format, or its metadata
        differ from their checksums.
    """
    group = _open(target)
    with _any_nonsense(target):
        _, manifest = _root(group, target)
        _require_whole(group, manifest, target)
        return manifest


def read_attributes(target: str) -> Mapping[str, Any]:
    """Attributes of the finished store at `target`, by its root alone; all else may be damaged.

    Raises
    ------
    StoreError
        If there is no such store, it was not finished, it is of a newer format, or its root is not
        as it was written.
    """
    group = _open(target)
    with _any_nonsense(target):
        document, _ = _root(group, target)
        attributes: dict[str, Any] = document["attributes"]
        return attributes


def read_document(store: Any) -> bytes:
    """Metadata of the root of a Zarr store as they lie there; nothing where there are none."""
    found = sync(store.get(_DOCUMENT, default_buffer_prototype()))
    return b"" if found is None else bytes(found.to_bytes())


def differing(dataset: xr.Dataset, manifest: Mapping[str, Any]) -> str:
    """Names of variables that are not what `manifest` vouches for; nothing if all are."""
    found = {str(name): checksum(variable) for name, variable in dataset.variables.items()}
    expected = manifest["variables"]
    differ = [name for name in {*found, *expected} if found.get(name) != expected.get(name)]
    return ", ".join(sorted(differ))


def corrupted(target: str, why: str) -> StoreError:
    """Error for a store whose content is not what was written."""
    return StoreError(
        f"{target} is corrupted ({why}). Restore it from a copy, or compute it again."
    )


def checksum(variable: xr.Variable) -> str:
    """SHA-256 of the type, dimensions, shape and values of `variable`."""
    values = np.asarray(variable.values)
    if values.dtype.kind in "OUT":
        label = "text"
        content: Any = json.dumps([str(text) for text in values.ravel().tolist()]).encode()
    else:
        if values.dtype.kind in "mM":  # read back in nanoseconds, whatever the unit was
            values = values.astype(f"{values.dtype.kind}8[ns]")
        little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
        label, content = little.dtype.str, little.reshape(-1).view(np.uint8)
    hashed = hashlib.sha256(f"{label}{variable.dims}{values.shape}".encode())
    hashed.update(content)
    return hashed.hexdigest()


def _open(target: str) -> Any:
    plain_location(target)
    try:
        return zarr.open_group(target, mode="r", zarr_format=3, use_consolidated=False)
    except ImportError as error:
        raise MissingDependencyError(
            f"reading {target} needs a package that is not installed ({error}); "
            f"pip install 'bigkd[s3]' for s3:// URLs."
        ) from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreError(
            f"{target} holds no bigkd store: nothing was written there, or it was not finished."
        ) from error
    except Exception as error:  # flipped bits make any kind of nonsense
        raise StoreError(
            f"{target} is not a readable Zarr store ({type(error).__name__}: {error})."
        ) from error


@contextmanager
def _any_nonsense(target: str) -> Iterator[None]:
    """Raise as StoreError whatever is raised: flipped bits make any kind of nonsense."""
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        raise corrupted(target, f"{type(error).__name__}: {error}") from error


def _read(group: Any, key: str) -> bytes:
    buffer = sync((group.store_path / key).get())
    if buffer is None:
        raise FileNotFoundError(f"{key} is missing")
    content: bytes = buffer.to_bytes()
    return content


def _document_checksum(document: Mapping[str, Any]) -> str:
    """SHA-256 of the root's metadata and the manifest, but for this checksum itself."""
    attributes = document["attributes"]
    manifest = {key: value for key, value in attributes[MANIFEST].items() if key != "checksum"}
    covered = {**document, "attributes": {**attributes, MANIFEST: manifest}}
    return hashlib.sha256(json.dumps(covered, sort_keys=True).encode()).hexdigest()


def _root(group: Any, target: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metadata of the root, and the manifest in them, as they were written."""
    document = json.loads(_read(group, _DOCUMENT))
    manifest = document["attributes"].get(MANIFEST)
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
    if manifest.get("checksum") != _document_checksum(document):
        raise corrupted(target, f"its {_DOCUMENT} does not match its checksum")
    if not (isinstance(manifest["kind"], str) and isinstance(manifest["variables"], dict)):
        raise corrupted(target, "its manifest is not one")
    return document, manifest


def _require_whole(group: Any, manifest: Mapping[str, Any], target: str) -> None:
    """Raise StoreError unless all other metadata are as they were written, and safe to read."""
    strangers = sync(_strangers(group, set(manifest["metadata"])))
    if strangers:
        raise corrupted(target, f"{', '.join(strangers)} is not in its manifest")
    documents = {}
    for name, expected in manifest["metadata"].items():
        found = _read(group, f"{name}/{_DOCUMENT}")
        if hashlib.sha256(found).hexdigest() != expected:
            raise corrupted(target, f"the metadata of {name} do not match their checksum")
        documents[name] = json.loads(found)
        codecs = {codec["name"] for codec in documents[name]["codecs"]}
        if codecs - _CODECS:
            raise StoreError(
                f"{target}: {name} is stored with {', '.join(sorted(codecs - _CODECS))}, which "
                f"bigkd never writes and does not read."
            )
    require_room(target, documents, lazy=manifest.get("tiled", ""))


async def _strangers(group: Any, known: set[str]) -> list[str]:
    """Names of what is in `group`, with metadata of its own, and is not `known`."""
    place = group.store_path
    names = [name async for name in place.store.list_dir(place.path)]
    return [
        name
        for name in sorted(set(names) - known - {_DOCUMENT})
        if await (place / name / _DOCUMENT).exists()
    ]
