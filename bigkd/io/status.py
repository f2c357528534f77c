"""What tells stored things from their changed selves, without reading them."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fsspec.core import url_to_fs

_TAGS = ("ETag", "etag", "md5Hash", "content_md5")
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created")


def file_status(path: str | Path) -> tuple[int, int]:
    """Size of a file, and when its content was changed, in nanoseconds.

    Not when anything about it was changed, as every backup by links does. So a file that is
    replaced by one of equal size and time is taken for the same.
    """
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def folder_status(folder: Path) -> list[tuple[str, int, int]]:
    """Path below `folder`, size and time of change of every file, in order; or of one file."""
    if folder.is_file():
        return [(folder.name, *file_status(folder))]
    root = os.fspath(folder)
    skipped = len(root.rstrip("/")) + 1
    return sorted((path[skipped:], size, changed) for path, size, changed in _files(root))


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of change of the files below; links are followed, each folder once."""
    seen, left = set(), [folder]
    while left:
        at = left.pop()
        about = os.stat(at)
        if (about.st_dev, about.st_ino) in seen:
            continue
        seen.add((about.st_dev, about.st_ino))
        with os.scandir(at) as entries:
            for entry in entries:
                if entry.is_dir():
                    left.append(entry.path)
                else:
                    status = entry.stat()
                    yield entry.path, status.st_size, status.st_mtime_ns


def object_status(
    found: Mapping[str, Mapping[str, Any]], root: str
) -> list[tuple[str, str]] | None:
    """Key below `root` and tag, or time of change, of every object; None if one has neither."""
    told = []
    for key, about in found.items():
        tags = [about.get(name) for name in (*_TAGS, *_TIMES)]
        if not any(tags):
            return None
        told.append((key.rpartition(root)[2].lstrip("/"), str([*tags, about.get("size")])))
    return sorted(told)


def url_status(url: str) -> list[tuple[str, str]] | None:
    """`object_status` of all that is below a URL; None where nobody tells."""
    try:
        files, root = url_to_fs(url, use_listings_cache=False)
        return object_status(files.find(root, detail=True), root.rstrip("/"))
    except Exception:  # every file system has its own types
        return None
