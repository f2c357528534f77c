from itertools import count, islice

import dask.array as da
import numpy as np
import pytest
import video_data


def test_frames__are_in_colour_and_decoded_one_by_one(fetch):
    path = fetch(video_data.surveillance)
    first, second = islice(video_data.frames(path), 2)
    assert first.shape == second.shape == (576, 768, 3)
    assert first.dtype == "uint8"
    red, green, blue = first[400:, :200].mean(axis=(0, 1))  # a lawn
    assert green > red + 10 > blue + 20
    assert 0.1 < np.abs(first.astype(float) - second).mean() < 5.0


def test_frames__are_resampled_by_area(fetch):
    path = fetch(video_data.surveillance)
    whole = next(video_data.frames(path))
    small = next(video_data.frames(path, (144, 192)))
    assert small.shape == (144, 192, 3)
    blocks = whole.reshape(144, 4, 192, 4, 3).mean(axis=(1, 3))
    assert np.abs(small - blocks).mean() < 2.0


def test_surveillance__has_795_frames(fetch):
    path = fetch(video_data.surveillance)
    assert sum(1 for _ in video_data.frames(path, (36, 48))) == 795


def test_store_frames__writes_what_comes_and_reads_lazily(tmp_path):
    made = np.random.default_rng(0).integers(0, 256, (23, 10, 8, 3), dtype=np.uint8)
    for _ in range(2):
        stored = video_data.store_frames(iter(made), tmp_path / "video", at_once=10, lines=4)
    assert stored.dims == ("time", "y", "x", "channel")
    assert isinstance(stored.data, da.Array)
    assert stored.data.chunksize == (10, 4, 8, 3)
    np.testing.assert_array_equal(stored, made)


def test_store_frames__holds_no_more_than_a_chunk(tmp_path):
    taken = count()
    pictures = (np.full((4, 4, 3), next(taken), np.uint8) for _ in range(30))
    stored = video_data.store_frames(islice(pictures, 10), tmp_path / "video", at_once=5)
    assert stored.sizes["time"] == next(taken) == 10


def test_store_frames__needs_some(tmp_path):
    with pytest.raises(ValueError, match="no frames"):
        video_data.store_frames(iter(()), tmp_path / "video")
