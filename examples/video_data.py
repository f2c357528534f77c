"""A real video for the examples; fetched, kept and checked as in `data`. Needs PyAV.

==============  ======================  ========================================================
`surveillance`  Debian ``opencv-doc``   79.5 s of people who cross a car park (``vtest.avi``);
                                        Apache-2.0 and BSD-3-Clause
==============  ======================  ========================================================

``pip install av`` brings PyAV and the decoders that it needs.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import av
import numpy as np
import xarray as xr
import zarr
from data import Package, package_file

DIMS = ("time", "y", "x", "channel")

OPENCV_VIDEO = Package(
    client="apt-get",
    name="opencv-doc",
    folder="opencv-video",
    within="usr/share/doc/opencv-doc/examples/data",
    files={"vtest.avi": "45cddc9490be69345cbdab64ca583be65987e864ca408038e648db99e10516cf"},
)


def surveillance() -> Path:
    """The file of a video with 795 frames of 576 x 768 pixels, ten a second."""
    return package_file(OPENCV_VIDEO, "vtest.avi")


def frames(path: Path, size: tuple[int, int] | None = None) -> Iterator[np.ndarray]:
    """Frames of a video in order, RGB, shape ``(y, x, 3)``, uint8; one at a time is decoded.

    Parameters
    ----------
    path
        A file that FFmpeg reads.
    size
        Height and width that frames are resampled to, by area.
    """
    with av.open(path) as video:
        for frame in video.decode(video=0):
            if size is None:
                yield frame.to_ndarray(format="rgb24")
            else:
                height, width = size
                yield frame.to_ndarray(
                    format="rgb24", height=height, width=width, interpolation="AREA"
                )


def store_frames(
    pictures: Iterator[np.ndarray], path: Path, *, at_once: int = 50, lines: int = 50
) -> xr.DataArray:
    """Write frames to a Zarr store as they come; what is read back is lazy.

    Parameters
    ----------
    pictures
        Arrays of one shape ``(y, x, 3)``, uint8.
    path
        A folder, which is replaced.
    at_once
        Frames that are held before they are written, and in each chunk.
    lines
        Lines of a frame in each chunk: runs of pixels are read in all frames.

    Returns
    -------
    xarray.DataArray
        ``(time, y, x, channel)``, uint8, the time without labels.
    """
    group = zarr.open_group(path, mode="w")
    array = None
    while batch := list(islice(pictures, at_once)):
        part = np.stack(batch)
        if array is None:
            array = group.create_array(
                "frames",
                shape=(0, *part.shape[1:]),
                chunks=(at_once, min(lines, part.shape[1]), *part.shape[2:]),
                dtype=part.dtype,
                dimension_names=DIMS,
            )
        array.append(part, axis=0)
    if array is None:
        raise ValueError(f"there are no frames to write to {path}.")
    return xr.open_zarr(path, chunks={}, consolidated=False)["frames"]
