"""Pictures in files, one a row: folders of PNG, JPEG, WebP, BMP and TIFF."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Literal

import numpy as np
import xarray as xr

from bigkd.errors import BigkdError, DataError, InputError, ShapeError, StoreError
from bigkd.io.optional import require
from bigkd.io.sources import Source, digest, even_bounds, rows_per_block
from bigkd.io.status import file_status, folder_status

Colours = Literal["RGB", "L"]

SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff"))

_STORES = ("zarr.json", ".zarray", ".zgroup")
_EIGHT_BITS = frozenset(("1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "CMYK", "YCbCr"))
_WITH_ALPHA = frozenset(("LA", "La", "PA", "RGBA", "RGBa"))
_ORIENTATION = 0x0112


@dataclass(frozen=True, kw_only=True)
class ImageSource(Source):
    """Pictures of one size, decoded inside the task that needs them.

    Attributes
    ----------
    folder
        Where they are.
    labels
        Path of each below `folder`, in the order of the rows.
    resampled
        Whether pictures of another size are resampled; they are refused otherwise.
    """

    folder: Path
    labels: tuple[str, ...] = field(repr=False)
    resampled: bool

    def read_raw(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        """Pictures ``start:stop``, shape ``(stop - start, y, x, channel)``."""
        rows = np.empty((stop - start, *self.row_shape), dtype=np.uint8)
        for at, label in enumerate(self.labels[start:stop]):
            rows[at] = self._pixels(label)
        return rows

    def _pixels(self, label: str) -> np.ndarray[Any, Any]:
        height, width, channels = self.row_shape
        with _opened(self.folder / label, self.name) as image:
            picture = _upright(image)
            if not self.resampled and picture.size != (width, height):
                raise DataError(
                    f"{self.name}: {label} is {picture.height} x {picture.width} and was "
                    f"{height} x {width} before. Was it changed after it was opened?"
                )
            picture = _over_white(picture).convert("RGB" if channels == 3 else "L")
            if picture.size != (width, height):
                resampling = require("PIL.Image", extra="images").Resampling
                picture = picture.resize((width, height), resampling.BILINEAR)
            return np.asarray(picture).reshape(self.row_shape)

    def content(self) -> str:
        """Digest of the paths, sizes and times of change."""
        return self._seen(0, len(self.labels))

    def contents(self, ranges: Sequence[tuple[int, int]]) -> list[str]:
        """Digests of the pictures that the rows are."""
        return [self._seen(start, stop) for start, stop in ranges]

    def _seen(self, start: int, stop: int) -> str:
        seen = [(label, *file_status(self.folder / label)) for label in self.labels[start:stop]]
        return digest("images", self.folder.resolve(), seen)


def image_source(
    path: str | Path,
    *,
    name: str,
    image_size: tuple[int, int] | None = None,
    mode: Colours = "RGB",
    block_rows: int | None = None,
) -> ImageSource:
    """Pictures of a folder and the folders in it, in the order of their paths; or one picture.

    Parameters
    ----------
    path
        Folder, or file. Files and folders whose names begin with a dot are passed over, and so are
        files with other suffixes than `SUFFIXES`.
    name
        What messages call it.
    image_size
        Height and width that every picture is resampled to, whatever its proportions: linearly,
        over as many pixels as one of the new ones covers. By default all must be of one size, for
        which the head of every file is read, some 20 microseconds each.
    mode
        ``"RGB"`` for three channels, where grey pictures have equal ones; ``"L"`` for one, the
        luminance. What is transparent is laid over white, and the orientation that a camera noted
        is heeded. Of files with several pictures the first is taken.
    block_rows
        Pictures of one read; by default about 32 MB.

    Raises
    ------
    ShapeError
        If pictures differ in size, and `image_size` is not given.
    InputError
        If an option cannot be used, or pixels have more than 8 bits, which Pillow would cut off.
    StoreError
        If there is no picture.
    DataError
        If a file cannot be read as a picture.
    MissingDependencyError
        If Pillow is not installed: ``pip install 'bigkd[images]'``.
    """
    path = Path(path).absolute()
    _check(image_size, mode)
    folder = path.parent if path.is_file() else path
    labels = (path.name,) if path.is_file() else _pictures(path)
    if not labels:
        raise StoreError(
            f"{name}: {path} is not a folder with pictures; expected files named "
            f"*{', *'.join(sorted(SUFFIXES))}."
        )
    height, width = image_size or _common_size(folder, labels, name)
    row_shape = (height, width, 3 if mode == "RGB" else 1)
    rows = block_rows or rows_per_block(int(np.prod(row_shape, dtype=np.int64)))
    return ImageSource(
        name=name,
        row_shape=row_shape,
        dtype=np.dtype(np.uint8),
        bounds=even_bounds(len(labels), rows),
        folder=folder,
        labels=labels,
        resampled=image_size is not None,
    )


def read_images(
    path: str | Path, *, image_size: tuple[int, int] | None = None, mode: Colours = "RGB"
) -> xr.DataArray:
    """Pictures of a folder, or one picture, in memory.

    `bigkd.io.open_rows` reads a folder block by block where it is larger.

    Parameters
    ----------
    path, image_size, mode
        As of `image_source`, and with the same errors.

    Returns
    -------
    xarray.DataArray
        ``(sample, y, x, channel)``, uint8; the paths below the folder label the samples.
    """
    source = image_source(path, name=str(path), image_size=image_size, mode=mode)
    pixels = source.read_raw(0, source.n_rows)
    return xr.DataArray(
        pixels, dims=("sample", "y", "x", "channel"), coords={"sample": list(source.labels)}
    )


def holds_pictures(path: Path) -> bool:
    """Whether `path` is a picture, or a folder with one somewhere in it that is no Zarr store."""
    if path.is_file():
        return path.suffix.lower() in SUFFIXES
    if any((path / marker).exists() for marker in _STORES):
        return False
    return any(_is_picture(file) for _, _, files in os.walk(path) for file in files)


def _pictures(folder: Path) -> tuple[str, ...]:
    if not folder.is_dir():
        return ()
    return tuple(
        PurePath(path).as_posix() for path, _, _ in folder_status(folder) if _is_picture(path)
    )


def _is_picture(path: str) -> bool:
    parts = PurePath(path)
    return parts.suffix.lower() in SUFFIXES and not any(
        part.startswith(".") for part in parts.parts
    )


def _check(image_size: tuple[int, int] | None, mode: str) -> None:
    if mode not in ("RGB", "L"):
        raise InputError(f"mode must be 'RGB' or 'L'; got {mode!r}.")
    sides = image_size if image_size is not None else (1, 1)
    whole = isinstance(sides, tuple | list) and len(sides) == 2
    if not whole or not all(isinstance(n, int | np.integer) and n > 0 for n in sides):
        raise InputError(
            f"image_size must be a height and a width, each at least 1; got {image_size!r}."
        )


def _common_size(folder: Path, labels: tuple[str, ...], name: str) -> tuple[int, int]:
    """Height and width of all pictures, by their heads."""
    height, width = _size(folder / labels[0], name)
    for label in labels[1:]:
        other = _size(folder / label, name)
        if other != (height, width):
            raise ShapeError(
                f"{name}: pictures differ in size: {labels[0]} is {height} x {width} and {label} "
                f"is {other[0]} x {other[1]}; expected one size. Pass "
                f"image_size=(height, width) to resample them all, as "
                f"image_size=({height}, {width}) or, on the command line, --image-size "
                f"{height},{width}."
            )
    return height, width


def _size(path: Path, name: str) -> tuple[int, int]:
    with _opened(path, name) as image:
        on_its_side = _orientation(image) in (5, 6, 7, 8)
        if on_its_side and image.format == "TIFF":  # Pillow's versions differ in when they turn it
            image.load()
            on_its_side = False
        return (image.width, image.height) if on_its_side else (image.height, image.width)


@contextmanager
def _opened(path: Path, name: str) -> Iterator[Any]:
    """The picture at `path`, not decoded yet."""
    pillow = require("PIL.Image", extra="images")
    try:
        with pillow.open(path) as image:
            if image.mode not in _EIGHT_BITS:
                raise InputError(
                    f"{name}: {path} has pixels of mode {image.mode!r}; expected 8 bits a channel. "
                    f"Convert it, or read it with another library and pass the array."
                )
            yield image
    except (BigkdError, MemoryError):
        raise
    except Exception as error:  # every decoder has its own types
        raise DataError(
            f"{name}: {path} cannot be read as a picture ({type(error).__name__}: {error}). "
            f"Replace it, or take it out of the folder."
        ) from error


def _orientation(image: Any) -> int:
    """How the camera was held, 1 if upright; a PNG tells only ahead of its pixels."""
    if image.format == "PNG" and "exif" not in image.info:
        return 1
    return int(image.getexif().get(_ORIENTATION, 1))


def _upright(image: Any) -> Any:
    if _orientation(image) == 1:
        return image
    return require("PIL.ImageOps", extra="images").exif_transpose(image)


def _over_white(image: Any) -> Any:
    if image.mode not in _WITH_ALPHA and "transparency" not in image.info:
        return image
    pillow = require("PIL.Image", extra="images")
    white = pillow.new("RGBA", image.size, "white")
    return pillow.alpha_composite(white, image.convert("RGBA"))
