"""Small files of a folder or a bucket, each of which is replaced as a whole or not at all.

In a folder a file is written beside its final place, forced to the disk and renamed into it. In a
bucket of S3 an object is written on condition that it is still the one that was seen
(``If-Match``), or still absent (``If-None-Match``). Other object stores can only be asked to create
what is not there.
"""

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from fsspec.core import url_to_fs

from bigkd.errors import LockedError, MissingDependencyError, StoreError
from bigkd.io.urls import plain_location

_AT_ONCE = 16
_CHANGED = {"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "409", "412"}


class Files(Protocol):
    """Small files under one place, by their keys: paths with ``/`` from there."""

    def is_empty(self) -> bool:
        """Whether nothing is there."""

    def read(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Contents of those of `keys` that are there."""

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Replace files, or make them; when it returns they outlive a loss of power."""


class Folder:
    """Files of a local folder. One process at a time may write them: see `bigkd.io.locks`."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def is_empty(self) -> bool:
        """Whether nothing is there, or only what a killed process left of its first write."""
        if not self.path.is_dir():
            return not os.path.lexists(self.path)
        return all(name.name == ".zarr.json.partial" for name in self.path.iterdir())

    def read(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Contents of those of `keys` that are there."""
        found = {}
        for key in keys:
            with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                found[key] = (self.path / key).read_bytes()
        return found

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Replace files one after the other.

        Raises
        ------
        OSError
            If the disk is full or may not be written; files are then old or new, none is torn.
        """
        folders = {self.path.parent, self.path}
        for key, content in contents.items():
            path = self.path / key
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_whole(path, content)
            folders.update(parent for parent in path.parents if self.path in parent.parents)
        for folder in folders:
            _sync_folder(folder)


class Bucket:
    """Objects below a URL; what others change meanwhile is not overwritten, on S3.

    Whatever the client of an object store raises, its methods raise OSError.

    Raises
    ------
    MissingDependencyError
        If the package that speaks with the object store is not installed.
    StoreError
        If that package cannot use the URL, or what the environment says of the server.
    """

    def __init__(self, url: str) -> None:
        location = plain_location(url)
        try:
            with _asked(url):
                self._fs, root = url_to_fs(location, use_listings_cache=False)
        except ImportError as error:
            raise MissingDependencyError(
                f"{url} needs a package that is not installed ({error}); "
                f"pip install 'bigkd[s3]' for s3:// URLs."
            ) from error
        self.url, self._root = url, root.rstrip("/")
        protocols = self._fs.protocol
        self.is_conditional = "s3" in ((protocols,) if isinstance(protocols, str) else protocols)
        self._seen: dict[str, str] | None = None

    def is_empty(self) -> bool:
        """Whether no object is there; what `write` may replace is what is there now."""
        self._seen = self._versions()
        return not self._seen

    def read(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Contents of those of `keys` that are there, read side by side."""
        keys = list(keys)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = dict(zip(keys, pool.map(self._get, keys), strict=True))
        return {key: content for key, content in found.items() if content is not None}

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Replace objects that are as they were at the first write or `is_empty`, side by side.

        Raises
        ------
        LockedError
            If somebody else changed one of them meanwhile.
        OSError
            If the object store refuses.
        """
        seen = self._seen = self._versions() if self._seen is None else self._seen
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            done = list(pool.map(lambda key: self.put(key, contents[key], seen.get(key)), contents))
        changed = [key for key, version in zip(contents, done, strict=True) if version is None]
        if changed:
            raise LockedError(
                f"{self.url}: {', '.join(changed)} was changed by another process, which writes "
                f"there too. Run it again."
            )
        seen.update({key: str(version) for key, version in zip(contents, done, strict=True)})

    def version(self, key: str) -> str | None:
        """What tells the content of an object from others, or None where there is none."""
        try:
            with _asked(self.url):
                return str(self._fs.info(f"{self._root}/{key}").get("ETag", ""))
        except FileNotFoundError:
            return None

    def put(self, key: str, content: bytes, version: str | None) -> str | None:
        """Write an object if it is still `version`, or absent for None; its version, or None.

        A write whose answer was lost counts as done if the object has this content.
        """
        path = f"{self._root}/{key}"
        condition: dict[str, Any] = {"mode": "create"} if version is None else {}
        if version is not None and self.is_conditional:
            condition = {"IfMatch": version}
        try:
            with _asked(self.url):
                answer = self._fs.pipe_file(path, content, **condition)
        except OSError as error:
            if not _is_change(error):
                raise
            now = self.version(key)
            return now if self._get(key) == content else None
        return str(answer["ETag"]) if isinstance(answer, Mapping) else self.version(key)

    def require_conditions(self, key: str) -> None:
        """Try whether writes of the object `key`, which is there, are refused as they must be.

        There are servers that speak S3 and do not look at conditions: on them two processes could
        both hold a lock.

        Raises
        ------
        StoreError
            If one is not refused.
        """
        tried = {"If-None-Match": None, "If-Match": f'"{"0" * 32}"'}
        ignored = [name for name, tag in tried.items() if self.put(key, b"", tag) is not None]
        if ignored:
            raise StoreError(
                f"{self.url}: the server does not look at {' and '.join(ignored)}, so that it "
                f"cannot keep two runs from writing at once. Use one that does, as S3 and "
                f"SeaweedFS do, or write to a disk; what is only read may stay there."
            )

    def delete(self, key: str) -> None:
        """Delete an object, or nothing where there is none."""
        with suppress(FileNotFoundError), _asked(self.url):
            self._fs.rm_file(f"{self._root}/{key}")

    def _get(self, key: str) -> bytes | None:
        try:
            with _asked(self.url):
                return bytes(self._fs.cat_file(f"{self._root}/{key}"))
        except FileNotFoundError:
            return None

    def _versions(self) -> dict[str, str]:
        try:
            with _asked(self.url):
                found = self._fs.find(self._root, detail=True)
        except FileNotFoundError:
            return {}
        skipped = len(self._root) + 1
        keys = {path[skipped:]: str(info.get("ETag", "")) for path, info in found.items()}
        return {key: tag for key, tag in keys.items() if key and not key.endswith("/")}


def files_at(path: str | Path) -> Files:
    """The files under a path or a URL."""
    return Bucket(str(path).rstrip("/")) if "://" in str(path) else Folder(path)


def write_record(files: Files, key: str, content: Mapping[str, Any]) -> None:
    """Write what can be JSON, with a checksum."""
    record = {"content": content, "sha256": _checksum(content)}
    files.write({key: json.dumps(record, indent=1, sort_keys=True).encode()})


def read_record(files: Files, key: str) -> dict[str, Any] | None:
    """What `write_record` wrote; empty where there is nothing, None where it is something else."""
    found = files.read([key])
    if not found:
        return {}
    try:
        record = json.loads(found[key])
        content = record["content"]
        is_whole = isinstance(content, dict) and record["sha256"] == _checksum(content)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return content if is_whole else None


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@contextmanager
def _asked(url: str) -> Iterator[None]:
    """Raise as StoreError what is no OSError."""
    try:
        yield
    except (ImportError, OSError):
        raise
    except Exception as error:  # object stores raise what their clients do
        raise StoreError(
            f"{url} cannot be reached: {type(error).__name__}: {error}. Are credentials missing, "
            f"or is the server's address wrong?"
        ) from error


def _write_whole(path: Path, content: bytes) -> None:
    fresh = path.with_name(f".{path.name}.partial")
    try:
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that have no such call
            raise
    finally:
        os.close(folder)


def _is_change(error: OSError) -> bool:
    """Whether a write was refused because of its condition."""
    answer = getattr(error.__cause__, "response", None) or {}
    refused = str(answer.get("Error", {}).get("Code", "")) in _CHANGED
    return refused or isinstance(error, FileExistsError)
