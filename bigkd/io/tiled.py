"""Arrays larger than memory, written tile by tile by the tasks that make them.

A tile is what one task makes: one chunk of a Zarr array, or several, which nobody else writes. Its
SHA-256 is written after it, as an element of a second array: a tile without one was not finished. A
store that is being written says what it is made from, and nobody vouches for it. On a local disk it
is a folder beside the final one, whose name it takes when it is whole. An interrupted call is taken
up wherever it stopped.
"""

import hashlib
import itertools
import json
import math
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from bigkd.errors import InputError, StoreError
from bigkd.io.bounds import require_decodable
from bigkd.io.datasets import (
    plain_text,
    portable_text,
    refuse_existing,
    remove_store,
    swap,
    write_variables,
)
from bigkd.io.manifests import (
    MANIFEST,
    UNFINISHED,
    corrupted,
    differing,
    read_manifest,
    write_manifest,
)
from bigkd.io.urls import plain_location
from bigkd.io.zarr_rows import DIGESTS

DONE = "tiles_done"
"""The same while it is written: a chunk for each tile, of the tile's writer."""

_CONFIGURED = threading.Lock()  # Zarr's configuration is one for all threads

At = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class TiledArray:
    """An array that is being written; small, and the same on every worker.

    Attributes
    ----------
    path
        Where it is to be, whole: a folder, or a URL.
    name, dims
        Of the variable.
    shape, tile, chunk
        Of the array, of one tile, and of one chunk of a tile; those at the ends are smaller. A
        tile is cut into chunks along its first axis.
    token
        What it is made from: work done under another one is begun anew.
    compressed
        Whether tiles are worth compressing.
    """

    path: str
    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    tile: tuple[int, ...]
    chunk: tuple[int, ...]
    token: str
    compressed: bool = True

    @property
    def grid(self) -> tuple[int, ...]:
        """Tiles along each axis."""
        return tuple(-(-n // size) for n, size in zip(self.shape, self.tile, strict=True))

    @property
    def work_path(self) -> str:
        """Where it is while it is written."""
        return partial_path(self.path)

    @property
    def data_path(self) -> str:
        """Where the bare array is while it is written."""
        return f"{self.work_path}/{self.name}"

    def region(self, at: At) -> tuple[slice, ...]:
        """The part of the array that a tile is."""
        parts = zip(at, self.tile, self.shape, strict=True)
        return tuple(slice(i * size, min((i + 1) * size, n)) for i, size, n in parts)

    def begin(self, *, overwrite: bool = False) -> dict[At, bytes]:
        """Make the arrays, or find them; the digests of tiles that were finished before.

        Raises
        ------
        InputError
            If something else is at the path.
        StoreError
            If nothing can be written there.
        """
        refuse_existing(self.path, overwrite=overwrite)
        if self.work_path != self.path:
            refuse_existing(self.work_path, overwrite=True)
        try:
            with _quietly():
                group = self._resumed()
                return self._digests(group or self._made())
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be written: {error}. Pass a place that this process and all "
                f"workers can write to."
            ) from error

    def write(self, at: At, parts: Iterable[Any]) -> None:
        """Write one tile, given as runs along the first axis, and then that it is finished.

        Raises
        ------
        StoreError
            If the disk is full, or this worker may not write there.
        """
        hashed, region = hashlib.sha256(), self.region(at)
        start = region[0].start
        try:
            group = self._group()
            with _CONFIGURED, zarr.config.set({"array.write_empty_chunks": True}):
                array = group[self.name]
            for part in parts:
                values = np.ascontiguousarray(part, dtype=np.float64)
                array[(slice(start, start + values.shape[0]), *region[1:])] = values
                hashed.update(_bytes(values))
                start += values.shape[0]
            group[DONE][at] = np.frombuffer(hashed.digest(), np.uint8)
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be written: {error}. Make room, or pass a place that all "
                f"workers can write to; finished tiles are kept."
            ) from error

    def is_whole(self, at: At, digest: bytes) -> bool:
        """Whether a tile is what its writer wrote.

        One of nothing but NaN does not count: it looks like one that is missing.
        """
        hashed, missing = hashlib.sha256(), True
        try:
            array = self._group()[self.name]
            rows, *others = self.region(at)
            for start in range(rows.start, rows.stop, self.chunk[0]):
                stop = min(start + self.chunk[0], rows.stop)
                values = np.ascontiguousarray(array[(slice(start, stop), *others)])
                hashed.update(_bytes(values))
                missing = missing and bool(np.isnan(values).all())
        except Exception:  # damaged chunks raise whatever their codec does
            return False
        return not missing and hashed.digest() == digest

    def finish(
        self, dataset: xr.Dataset, *, kind: str, attrs: Mapping[str, Any] | None = None
    ) -> None:
        """Put `dataset`, small variables and attributes, beside the array, and vouch for all.

        `attrs` are those of the array, such as its ``long_name``. On a local disk what was at the
        path before stays whole until then.

        Raises
        ------
        StoreError
            If a tile is not finished.
        """
        group = self._group()
        found = self._digests(group)
        absent = math.prod(self.grid) - len(found)
        if absent:
            raise StoreError(f"{self.path}: {absent} tiles were not written. Run it again.")
        digests = np.zeros((*self.grid, 32), np.uint8)
        for at, digest in found.items():
            digests[at] = np.frombuffer(digest, np.uint8)
        dataset = portable_text(dataset)
        with _quietly():
            if DIGESTS not in group:
                _create_digests(group, DIGESTS, self._digest_dims, self.grid, self.grid)
            group[DIGESTS][...] = digests
            for name in sorted(set(group) - {self.name, DIGESTS}):
                del group[name]
            group[self.name].attrs.put(dict(attrs or {}))
            write_variables(
                dataset.assign_attrs({UNFINISHED: self._made_from}), self.work_path, mode="a"
            )
        vouched = dataset.assign({DIGESTS: (self._digest_dims, digests)})
        write_manifest(self.work_path, kind, vouched, tiled=self.name, token=self._made_from)
        if self.work_path != self.path:
            swap(Path(self.work_path), Path(self.path))

    @property
    def _made_from(self) -> str:
        return json.dumps([self.token, self.name, self.dims, self.shape, self.tile, self.chunk])

    def _group(self) -> Any:
        return zarr.open_group(self.work_path, mode="r+", zarr_format=3, use_consolidated=False)

    def _resumed(self) -> Any:
        """The group that an interrupted call of the same content left, vouched for no more."""
        try:
            group = self._group()
            attributes = group.attrs.asdict()
            token = attributes.get(UNFINISHED) or attributes[MANIFEST]["token"]
            if token != self._made_from or group[self.name].shape != self.shape:
                return None
        except Exception:  # nothing there, or damaged metadata
            return None
        group.attrs.put({UNFINISHED: token})
        if DONE not in group:
            self._create_done(group)
        return group

    def _made(self) -> Any:
        """A new group. At each moment it is known as an unfinished one of this package."""
        if self.work_path != self.path:
            remove_store(self.work_path)
            Path(self.work_path).parent.mkdir(parents=True, exist_ok=True)
        group = zarr.open_group(
            self.work_path, mode="a", zarr_format=3, use_consolidated=False,
            attributes={UNFINISHED: "begun"},
        )  # fmt: skip
        group.attrs.put({UNFINISHED: "begun"})  # whatever was there before
        for name in sorted(group):
            del group[name]
        codec = ZstdCodec(level=1, checksum=True) if self.compressed else Crc32cCodec()
        group.create_array(
            self.name, shape=self.shape, chunks=self.chunk, dtype="float64", compressors=[codec],
            dimension_names=self.dims, fill_value=math.nan, overwrite=True,
        )  # fmt: skip
        self._create_done(group)
        group.attrs.put({UNFINISHED: self._made_from})
        return group

    def _create_done(self, group: Any) -> None:
        _create_digests(group, DONE, self._digest_dims, self.grid, (1,) * len(self.grid))

    @property
    def _digest_dims(self) -> tuple[str, ...]:
        return (*(f"{dim}_tile" for dim in self.dims), "byte")

    def _digests(self, group: Any) -> dict[At, bytes]:
        """Digests of the finished tiles; those from before where no later ones are."""
        found = np.zeros((*self.grid, 32), np.uint8)
        for name in (DIGESTS, DONE):
            if name in group:
                one = _readable(group[name], self.grid)
                found = np.where(one.any(axis=-1, keepdims=True), one, found)
        tiles = itertools.product(*map(range, self.grid))
        return {at: found[at].tobytes() for at in tiles if found[at].any()}


def whole_path(path: str | Path) -> str:
    """`path` as workers in other folders find it; URLs as they are."""
    location = plain_location(path)
    return location.rstrip("/") if "://" in location else str(Path(path).absolute())


def scratch_path(path: str | Path) -> str:
    """Where to keep what the store that is to be at `path` is made from."""
    location = str(path)
    return f"{location.rstrip('/')}.scratch" if "://" in location else _hidden(location, "scratch")


def partial_path(path: str | Path) -> str:
    """Where the store that is to be at `path` is while it is written: there, on object stores."""
    return str(path) if "://" in str(path) else _hidden(path, "partial")


def _hidden(path: str | Path, what: str) -> str:
    if Path(path).name in ("", ".."):
        raise InputError(f"{path} is a folder of other things; name a store that is made in it.")
    return str(Path(path).with_name(f".{Path(path).name}.{what}"))


def _readable(digests: Any, grid: At) -> np.ndarray[Any, Any]:
    """The digests as they lie there; those that are damaged count as none."""
    try:
        return np.asarray(digests[...])
    except Exception:  # cut short, for one
        found = np.zeros((*grid, 32), np.uint8)
        for at in np.ndindex(grid):
            with suppress(Exception):
                found[at] = digests[at]
        return found


def _create_digests(
    group: Any, name: str, dims: tuple[str, ...], grid: At, chunk: tuple[int, ...]
) -> None:
    group.create_array(
        name, shape=(*grid, 32), chunks=(*chunk, 32), dtype="uint8", compressors=None,
        fill_value=0, dimension_names=dims, overwrite=True,
    )  # fmt: skip


def open_tiled(path: str | Path, *, kind: str) -> xr.Dataset:
    """A finished array, and what lies beside it: as Dask arrays of its tiles, checked when read.

    Raises
    ------
    StoreError
        If there is no such store, it was not finished, it is of another kind, a tile is missing, or
        anything but the tiles differs from its checksum; on reading, if a tile does.
    """
    target = whole_path(path)
    manifest = read_manifest(target)
    if manifest["kind"] != kind or "tiled" not in manifest:
        raise StoreError(
            f"{target} holds {manifest['kind']!r}; expected {kind!r} in tiles. Was another path "
            f"meant?"
        )
    name = manifest["tiled"]
    try:
        require_decodable(target, lazy=name)
        everything = xr.open_zarr(target, zarr_format=3, consolidated=False, chunks=None)
        dataset = everything.drop_vars(name).load()
        differ = differing(dataset, manifest)
        array: Any = zarr.open_group(target, mode="r", use_consolidated=False)[name]
        absent = array.nchunks - array.nchunks_initialized
        sizes = () if absent else _tile_sizes(manifest, array)
    except StoreError:
        raise
    except Exception as error:  # codecs raise their own types on flipped bits
        raise corrupted(target, f"{type(error).__name__}: {error}") from error
    if differ or absent:
        raise corrupted(
            target,
            f"{differ} does not match its checksum" if differ else f"{absent} chunks are missing",
        )
    tiles = da.map_blocks(
        _read_tile, target, name, manifest["checksum"], chunks=sizes,
        dtype=np.float64, meta=np.empty((0,) * array.ndim),
    )  # fmt: skip
    del dataset.attrs[MANIFEST]
    described = xr.Variable(everything[name].dims, tiles, everything[name].attrs)
    return plain_text(dataset.drop_vars(DIGESTS, errors="ignore")).assign({name: described})


def _tile_sizes(manifest: Any, array: Any) -> tuple[tuple[int, ...], ...]:
    """Sizes of the tiles along each axis, as Dask counts them: a tile is one chunk, or several."""
    tile = json.loads(manifest["token"])[4]
    if any(size < least for size, least in zip(tile, array.chunks, strict=True)):
        raise ValueError(f"tiles of {tile} in chunks of {array.chunks}")
    return tuple(
        tuple(min(size, n - start) for start in range(0, n, size))
        for n, size in zip(array.shape, tile, strict=True)
    )


def _read_tile(
    target: str, name: str, version: str, block_info: dict[Any, Any] | None = None
) -> np.ndarray[Any, Any]:
    """One tile of a finished store, which is `version`, checked."""
    del version  # names the Dask array, so that what is rewritten gets another name
    assert block_info is not None
    own = block_info[None]
    at, region = tuple(own["chunk-location"]), tuple(slice(*ends) for ends in own["array-location"])
    try:
        group: Any = zarr.open_group(target, mode="r", zarr_format=3, use_consolidated=False)
        step, key = group[name].chunks[0], group[name].metadata.encode_chunk_key
        runs = range(region[0].start // step, -(-region[0].stop // step))
        require_decodable(target, [f"{name}/{key((run, *at[1:]))}" for run in runs])
        values = np.ascontiguousarray(group[name][region])
        whole = hashlib.sha256(_bytes(values)).digest() == group[DIGESTS][at].tobytes()
    except Exception as error:  # codecs raise their own types on flipped bits
        raise corrupted(target, f"tile {at} of {name}: {error}") from error
    if not whole:
        raise corrupted(target, f"tile {at} of {name} does not match its checksum")
    return values


def _bytes(values: np.ndarray[Any, Any]) -> Any:
    return np.ascontiguousarray(values, dtype="<f8").reshape(-1).view(np.uint8)


@contextmanager
def _quietly() -> Iterator[None]:
    """Without Zarr's warnings of consolidated metadata, and of what half a deletion leaves."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata")
        warnings.filterwarnings("ignore", message=r"Object at .* is not recognized")
        yield
