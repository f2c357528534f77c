"""What a store would take in memory, by its own word: asked before anything of it is decoded."""

import asyncio
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import psutil
from zarr.abc.store import RangeByteRequest
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore

from bigkd.errors import StoreError

_POINTER = 8  # of text, and of whatever else has no size of its own
_MAGIC = b"\x28\xb5\x2f\xfd"  # of a Zstandard frame
_HEAD = 18  # its longest header, with the magic number
_LENGTHS = {0: 0, 1: 2, 2: 4, 3: 8}  # of the field that tells its decoded size, by its flag


def require_room(target: str, documents: Mapping[str, Mapping[str, Any]], *, lazy: str) -> None:
    """Raise StoreError unless arrays of these metadata fit into the memory that is free.

    Parameters
    ----------
    target
        Where they are, for the message.
    documents
        Their metadata, by name.
    lazy
        The one of which only chunks are ever in memory; empty if there is none.
    """
    for name, document in documents.items():
        size = _item_bytes(document["data_type"])
        chunk = math.prod(document["chunk_grid"]["configuration"]["chunk_shape"]) * size
        whole = 0 if name == lazy else math.prod(document["shape"]) * size
        require_free(target, name, max(chunk, whole))


def require_decodable(target: str, keys: Iterable[str] | None = None, *, lazy: str = "") -> None:
    """Raise StoreError if a compressed chunk of a store says it is larger than free memory.

    The first bytes of each of `keys` are read, by default of all but those of the array `lazy`.
    """
    store: Any = (
        FsspecStore.from_url(target, read_only=True)
        if "://" in target
        else LocalStore(target, read_only=True)
    )
    require_small_frames(target, sync(_heads(store, keys, lazy)))


def require_small_frames(target: str, heads: Mapping[str, bytes]) -> None:
    """Raise StoreError if a compressed chunk, of which these are the first bytes, is too large."""
    for key, head in heads.items():
        if head[:4] == _MAGIC:
            require_free(target, key, _decoded_bytes(head))


def require_free(target: str, name: str, n_bytes: int) -> None:
    """Raise StoreError unless `n_bytes` of memory are free for the part `name` of a store."""
    free = int(psutil.virtual_memory().available)
    if n_bytes > free:
        raise StoreError(
            f"{target}: {name} says that it takes {n_bytes:,} bytes, and {free:,} are free. Is it "
            f"damaged, or from somebody who means harm? Otherwise read it with more memory."
        )


def _item_bytes(data_type: Any) -> int:
    try:
        return np.dtype(data_type).itemsize if isinstance(data_type, str) else _POINTER
    except TypeError:
        return _POINTER


async def _heads(store: Any, keys: Iterable[str] | None, lazy: str) -> dict[str, bytes]:
    """First bytes of some chunks, read side by side."""
    if keys is None:
        keys = [key async for key in store.list() if not (lazy and key.startswith(f"{lazy}/"))]
    keys = [key for key in keys if not key.endswith("zarr.json")]
    buffer, first = default_buffer_prototype(), RangeByteRequest(0, _HEAD)
    found = await asyncio.gather(*(store.get(key, buffer, first) for key in keys))
    pairs = zip(keys, found, strict=True)
    return {key: b"" if head is None else bytes(head.to_bytes()) for key, head in pairs}


def _decoded_bytes(head: bytes) -> int:
    """Decoded size that the header of a Zstandard frame tells, RFC 8878.

    Without end where it tells none, which this package never writes.
    """
    descriptor = head[4] if len(head) > 4 else 0
    single, flag = bool(descriptor & 0x20), descriptor >> 6
    length = 1 if single and flag == 0 else _LENGTHS[flag]
    if not length:
        return sys.maxsize
    at = 5 + (not single) + (0, 1, 2, 4)[descriptor & 3]
    size = int.from_bytes(head[at : at + length], "little")
    return size + 256 if length == 2 else size
