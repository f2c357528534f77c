"""How a history lies in its files: Zarr arrays along ``run``, and what vouches for each row.

The root's ``zarr.json`` holds the metadata of all arrays (Zarr's consolidated metadata), so that
one file says how many runs there are. Chunks hold 64 runs and are always written whole. Every row
has a digest of its content and of the digest before it.
"""

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import MemoryStore

from bigkd import __version__
from bigkd.errors import StoreError
from bigkd.io.bounds import require_room, require_small_frames

ROOT = "zarr.json"
RUN, RUN_ID, DIGEST = "run", "run_id", "run_digest"
HISTORY = "bigkd_history"
"""Attribute of the root: format, version, digest of the last row, checksum of the root itself."""

FORMAT = 1
CHUNK = 64
Kind: TypeAlias = Literal["number", "text", "time"]
Values: TypeAlias = dict[str, np.ndarray[Any, Any]]
_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_LONGEST_NAME = 200
_NAT = np.iinfo(np.int64).min
_TYPES: dict[Kind, str] = {"number": "float64", "text": "string", "time": "int64"}
_FILLS: dict[Kind, Any] = {"number": "NaN", "text": "", "time": int(_NAT)}
_TIME = {"units": "nanoseconds since 1970-01-01", "calendar": "proleptic_gregorian"}
_ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": True}}
_LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


class Column(NamedTuple):
    """A variable of the history: one value for each run, or one row of numbers."""

    kind: Kind
    dim: str | None
    attrs: Mapping[str, str]

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Its shape, where dimensions have these sizes."""
        return (sizes[RUN],) if self.dim is None else (sizes[RUN], sizes[self.dim])


class Layout(NamedTuple):
    """What the root says."""

    columns: Mapping[str, Column]
    sizes: Mapping[str, int]
    head: str
    """Digest of the last row."""

    before: Mapping[str, int]
    """Sizes before the last run was appended: arrays' own metadata may still say so."""

    added: tuple[str, ...] = ()
    """Variables that came with the last run: their own metadata may still be missing."""


EMPTY = Layout({}, {RUN: 0}, "", {RUN: 0})


def is_safe(name: str) -> bool:
    """Whether `name` can be that of a variable, and so of a folder."""
    return bool(_NAME.fullmatch(name)) and len(name) <= _LONGEST_NAME


def document(layout: Layout) -> bytes:
    """The root's metadata."""
    vouching: dict[str, Any] = {
        "format": FORMAT, "version": __version__, "head": layout.head,
        "before": dict(layout.before), "added": list(layout.added),
    }  # fmt: skip
    arrays = {
        name: metadata(column, layout.sizes) for name, column in sorted(layout.columns.items())
    }
    root = {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": {HISTORY: vouching},
        "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": arrays},
    }
    vouching["checksum"] = _checksum(root)
    return json.dumps(root, indent=1).encode()


def own_document(column: Column, sizes: Mapping[str, int]) -> bytes:
    """The metadata of a variable as they lie in its own file, where dimensions have these sizes."""
    return json.dumps(metadata(column, sizes), indent=1).encode()


def metadata(column: Column, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Zarr's metadata of a variable."""
    shape = column.shape(sizes)
    first = {"name": "vlen-utf8", "configuration": {}} if column.kind == "text" else _LITTLE
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": _TYPES[column.kind],
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": [CHUNK] * len(shape)},
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": _FILLS[column.kind],
        "codecs": [first, _ZSTD],
        "attributes": {**column.attrs, **(_TIME if column.kind == "time" else {})},
        "dimension_names": [RUN] if column.dim is None else [RUN, column.dim],
        "storage_transformers": [],
    }


def read_layout(content: bytes, target: str) -> Layout:
    """What the root's metadata say, checked.

    Raises
    ------
    StoreError
        If they are not those of a history, of a newer format, or damaged.
    """
    try:
        root = json.loads(content)
        vouching = root["attributes"][HISTORY]
    except (ValueError, TypeError, KeyError) as error:
        if f'"{HISTORY}"'.encode() in content:
            raise damaged(target, f"its {ROOT} cannot be read: {error}") from error
        raise StoreError(
            f"{target} is not a history of bigkd, and is left alone. Name another one."
        ) from error
    if not isinstance(vouching, dict) or vouching.get("checksum") != _checksum(root):
        raise damaged(target, f"its {ROOT} does not match its checksum")
    if vouching["format"] != FORMAT:
        raise StoreError(
            f"{target} has format {vouching['format']!r}, written by bigkd {vouching['version']}; "
            f"this is bigkd {__version__}, which knows format {FORMAT}. Use the version that wrote "
            f"it, or begin another history."
        )
    try:
        layout = _layout(root["consolidated_metadata"]["metadata"], vouching)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise damaged(target, f"its {ROOT} is none that bigkd writes: {error}") from error
    arrays = {name: metadata(column, layout.sizes) for name, column in layout.columns.items()}
    require_room(target, arrays, lazy="")
    return layout


def chunk_keys(name: str, shape: tuple[int, ...]) -> list[str]:
    """Keys of all chunks of an array."""
    grid = [range(-(-size // CHUNK)) for size in shape]
    return ["/".join((name, "c", *map(str, at))) for at in itertools.product(*grid)]


def tail_keys(name: str, shape: tuple[int, ...]) -> list[str]:
    """Keys of those chunks of an array that hold its last row."""
    last = f"{name}/c/{(shape[0] - 1) // CHUNK}"
    return [key for key in chunk_keys(name, shape) if key == last or key.startswith(f"{last}/")]


def decode(layout: Layout, files: Mapping[str, bytes], target: str, *, start: int = 0) -> Values:
    """Values of all variables from row `start` on, read from the chunks in `files`.

    Times come as whole nanoseconds, text as objects. Chunks that are not there hold nothing.

    Raises
    ------
    StoreError
        If a chunk cannot be decoded, or not in the memory that is free; the message names it.
    """
    require_small_frames(target, files)
    buffer = default_buffer_prototype().buffer
    group = _group(layout, {key: buffer.from_bytes(content) for key, content in files.items()})
    found = {}
    for name, column in layout.columns.items():
        try:
            found[name] = _plain(group[name][start:], column.kind)
        except Exception as error:  # codecs raise their own types on flipped bits
            bad = _first_bad(group[name], name, files)
            raise damaged(target, f"{bad} cannot be decoded: {error}") from error
    return found


def encode(layout: Layout, values: Values, *, start: int, old: Layout) -> dict[str, bytes]:
    """All chunks that `layout` has and `old` has not, or that hold rows from `start` on, by key.

    `values` are the rows from `start` on, the first row of a chunk; before it there is nothing in
    chunks that `old` has not.
    """
    written: dict[str, Any] = {}
    group = _group(layout, written)
    for name, column in layout.columns.items():
        array = group[name]
        array[start:] = values[name]
        if start and name not in old.columns:
            array[:start] = fills(column, start, layout.sizes)
        elif start and column.dim is not None:
            known = -(-old.sizes[column.dim] // CHUNK) * CHUNK
            if known < layout.sizes[column.dim]:
                array[:start, known:] = np.nan
    return {key: buffer.to_bytes() for key, buffer in written.items() if "/c/" in key}


def fills(column: Column, n: int, sizes: Mapping[str, int]) -> np.ndarray[Any, Any]:
    """`n` rows of nothing."""
    shape = column.shape({**sizes, RUN: n})
    if column.kind == "text":
        return np.full(shape, "", dtype=object)
    return np.full(shape, np.nan if column.kind == "number" else _NAT)


def digests(values: Values, columns: Mapping[str, Column], before: str) -> Iterator[str]:
    """Digest of each row: of the one before it, `before` at first, and of what is in it.

    With the digests that are in `values` themselves where there are some, so that after a damaged
    row the others can be told to be whole.
    """
    names = sorted(set(columns) - {DIGEST})
    stored = values.get(DIGEST)
    for row in range(len(values[RUN_ID])):
        hashed = hashlib.sha256(before.encode())
        for name in names:
            content = _content(values[name][row], columns[name].kind)
            if content:
                hashed.update(f"{name}\0{columns[name].kind}\0{len(content)}\0".encode() + content)
        before = hashed.hexdigest()
        yield before
        before = before if stored is None else str(stored[row])


def damaged(target: str, why: str) -> StoreError:
    """Error for a history that is not as it was written."""
    return StoreError(f"{target} is damaged ({why}). It is left as it is: restore it from a copy.")


def _content(value: Any, kind: Kind) -> bytes:
    """Bytes of one value of a row; none where there is nothing, whatever its width is by now."""
    if kind == "text":
        return str(value).encode("utf-8", "surrogatepass")
    if kind == "time":
        return b"" if value == _NAT else int(value).to_bytes(8, "little", signed=True)
    numbers = np.atleast_1d(np.where(np.isnan(value), np.nan, value)).astype("<f8")
    last = np.flatnonzero(~np.isnan(numbers))
    return numbers[: last[-1] + 1].tobytes() if last.size else b""


def _layout(arrays: Mapping[str, Any], vouching: Mapping[str, Any]) -> Layout:
    columns, sizes = {}, {RUN: 0}
    kinds: dict[str, Kind] = {type_: kind for kind, type_ in _TYPES.items()}
    for name, found in arrays.items():
        _, *others = found["dimension_names"]
        kind = kinds[found["data_type"]]
        own = _TIME if kind == "time" else {}
        attrs = {key: text for key, text in found["attributes"].items() if key not in own}
        column = Column(kind, others[0] if others else None, attrs)
        sizes.update(zip(found["dimension_names"], found["shape"], strict=True))
        columns[name] = column
    for name, column in columns.items():
        if not is_safe(name) or metadata(column, sizes) != arrays[name]:
            raise ValueError(f"{name!r} is not as it should be")
    before = {str(dim): int(size) for dim, size in vouching["before"].items()}
    return Layout(columns, sizes, str(vouching["head"]), before, tuple(vouching["added"]))


def _group(layout: Layout, files: dict[str, Any]) -> Any:
    """A group in memory, of which `files` are the chunks; its metadata are added to them."""
    buffer = default_buffer_prototype().buffer
    files[ROOT] = buffer.from_bytes(document(layout))
    with zarr.config.set({"array.write_empty_chunks": True}):
        group = zarr.open_group(MemoryStore(files), mode="r+", zarr_format=3, use_consolidated=True)
        return {name: group[name] for name in layout.columns}


def _plain(values: Any, kind: Kind) -> np.ndarray[Any, Any]:
    if kind == "text":
        return np.array(values.tolist(), dtype=object).reshape(values.shape)
    return np.asarray(values)


def _first_bad(array: Any, name: str, files: Mapping[str, bytes]) -> str:
    """Key of the first chunk that cannot be decoded."""
    for key in chunk_keys(name, array.shape):
        at = tuple(int(part) for part in key.removeprefix(f"{name}/c/").split("/"))
        try:
            if key in files:
                array.get_block_selection(at)
        except Exception:  # whatever the codec raises
            return key
    return name


def _checksum(root: Mapping[str, Any]) -> str:
    """SHA-256 of the root's metadata, but for this checksum itself."""
    vouching = {**root["attributes"][HISTORY]}
    vouching.pop("checksum", None)
    covered = {**root, "attributes": {**root["attributes"], HISTORY: vouching}}
    return hashlib.sha256(json.dumps(covered, sort_keys=True).encode()).hexdigest()
