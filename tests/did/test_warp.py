import math

import array_api_strict
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from scipy.fft import dstn

from bigkd.did.warp import displacement, jacobian, warp
from bigkd.errors import InputError
from bigkd.testing import no_compute


@pytest.fixture(scope="module")
def photos():
    """Smooth colour pictures (5, 12, 17, 3) in [0, 1]."""
    generator = np.random.default_rng(3)
    y, x = np.mgrid[0:1:12j, 0:1:17j]
    phase = generator.uniform(0, 6, (5, 1, 1, 3))
    return 0.5 + 0.5 * np.sin(5 * y[..., None] + 7 * x[..., None] + phase)


def warped_by_definition(image, seed, sample, temperature, cutoff):
    """Each point on its own, by bilinear interpolation."""
    (height, width), moved = image.shape[:2], np.empty_like(image)
    u = displacement((height, width), temperature, cutoff, seed, sample=sample)
    for row in range(height):
        for column in range(width):
            y = min(max(row + u[0, row, column] * (height - 1), 0), height - 1)
            x = min(max(column + u[1, row, column] * (width - 1), 0), width - 1)
            top, left = min(int(y), height - 2), min(int(x), width - 2)
            down, right = y - top, x - left
            moved[row, column] = (1 - down) * (
                (1 - right) * image[top, left] + right * image[top, left + 1]
            ) + down * ((1 - right) * image[top + 1, left] + right * image[top + 1, left + 1])
    return moved


@pytest.mark.parametrize(("temperature", "cutoff"), [(0.001, 2), (0.02, 1), (1.0, 3.5)])
def test_warp__is_bilinear_interpolation_at_displaced_points(photos, temperature, cutoff):
    moved = warp(photos, temperature, cutoff, 7)
    for sample, image in enumerate(photos):
        expected = warped_by_definition(image, 7, sample, temperature, cutoff)
        np.testing.assert_allclose(moved[sample], expected, atol=1e-12)


@pytest.mark.parametrize("cutoff", [1, 2, 3])
def test_displacement__has_the_waves_and_variances_of_the_formula(cutoff):
    side, temperature, n = 17, 0.25, 600
    fields = [displacement((side, side), temperature, cutoff, sample=at) for at in range(n)]
    inner = np.asarray(fields)[:, :, 1:-1, 1:-1]
    found = dstn(inner, type=1, axes=(2, 3)) / (side - 1) ** 2  # sum of c sin sin: its c
    variance = np.mean(found**2, axis=(0, 1))
    for i in range(1, side - 1):
        for j in range(1, side - 1):
            norm = math.hypot(i, j)
            expected = temperature / norm**2 if norm < cutoff + 0.5 else 0.0
            # 1200 squares of normal numbers: a relative standard error of 4 %
            assert variance[i - 1, j - 1] == pytest.approx(expected, rel=0.16, abs=1e-25)
    mixed = np.mean(found[:, 0, 0, 0] * found[:, 1, 0, 0])
    assert abs(mixed) < 4 * temperature / 2 / math.sqrt(n)


def test_displacement__is_zero_at_the_border_and_of_series_has_one_axis():
    field = displacement((9, 14), 3.0, 4)
    for border in (field[:, 0], field[:, -1], field[:, :, 0], field[:, :, -1]):
        assert not border.any()
    series = displacement((30,), 0.5, 3, 1)
    assert series.shape == (1, 30)
    assert series[0, [0, -1]].tolist() == [0.0, 0.0]
    waves = dstn(series[0, 1:-1], type=1) / 29
    assert np.abs(waves[:3]).min() > 1e-3
    assert np.abs(waves[3:]).max() < 1e-12


@pytest.mark.parametrize("shape", [(60, 80), (90,)])
def test_jacobian__is_the_determinant_of_differences(shape):
    u = displacement(shape, 0.01, 3, 5, sample=2)
    steps = [np.linspace(0, 1, n) for n in shape]
    derivative = np.empty((*shape, len(shape), len(shape)))
    for at in range(len(shape)):
        for by in range(len(shape)):
            slope = np.gradient(u[at], steps[by], axis=by, edge_order=2)
            derivative[..., at, by] = slope + (at == by)
    np.testing.assert_allclose(
        jacobian(shape, 0.01, 3, 5, sample=2), np.linalg.det(derivative), atol=0.02
    )


def test_jacobian__is_positive_for_weak_warps_and_not_for_strong_ones():
    share = {
        temperature: np.mean(
            [jacobian((40, 40), temperature, sample=at).min() > 0 for at in range(200)]
        )
        for temperature in (0.002, 0.0465, 1.0)
    }
    assert share[0.002] == 1.0
    assert 0.3 < share[0.0465] < 0.6
    assert share[1.0] < 0.02


def test_warp__of_temperature_zero_changes_nothing(photos):
    np.testing.assert_array_equal(warp(photos, 0.0), photos)


def test_warp__moves_a_sample_the_same_in_any_company(photos):
    moved = warp(photos, 0.01)
    np.testing.assert_array_equal(warp(photos[:3], 0.01), moved[:3])
    np.testing.assert_array_equal(warp(photos[0], 0.01), moved[0])
    np.testing.assert_array_equal(warp(photos[0, :, :, 1], 0.01), moved[0, :, :, 1])
    assert np.abs(warp(photos, 0.01, seed=1) - moved).max() > 0.01
    same = np.broadcast_to(photos[:1], photos.shape)
    assert np.abs(np.diff(warp(same, 0.01), axis=0)).max(axis=(1, 2, 3)).min() > 0.01


def test_warp__rounds_whole_numbers_and_keeps_floats(photos):
    pixels = np.round(photos * 255).astype(np.uint8)
    pixels.flags.writeable = False
    moved = warp(pixels, 0.01)
    assert moved.dtype == np.uint8
    exact = warp(pixels.astype(np.float64), 0.01)
    np.testing.assert_array_equal(moved, np.rint(exact))
    single = warp(photos.astype(np.float32), 0.01)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, warp(photos, 0.01), atol=1e-6)


def test_warp__keeps_labels_and_finds_the_axes(photos):
    array = xr.DataArray(
        photos,
        dims=("sample", "y", "x", "channel"),
        coords={"sample": list("abcde"), "y": np.arange(12.0), "channel": list("rgb")},
        name="photos",
        attrs={"units": "1"},
    )
    moved = warp(array, 0.01)
    xr.testing.assert_identical(moved, array.copy(data=warp(photos, 0.01)))
    turned = array.transpose("channel", "x", "sample", "y")
    xr.testing.assert_identical(
        warp(turned, 0.01).transpose(*array.dims), array.copy(data=_swapped(photos))
    )
    frames = array.isel(channel=0, drop=True).rename(sample="time")
    np.testing.assert_array_equal(warp(frames, 0.01), moved.values[..., 0])
    np.testing.assert_array_equal(warp(frames, 0.01, dim="time"), moved.values[..., 0])
    bands = array.rename(sample="band").isel(channel=0, drop=True)
    np.testing.assert_array_equal(warp(bands, 0.01, dim="band"), moved.values[..., 0])
    levels = array.rename(channel="level")
    np.testing.assert_array_equal(warp(levels, 0.01, value_dim="level"), moved.values)


def _swapped(photos):
    """Warped where x is the first axis of the grid: as it comes."""
    return warp(photos.transpose(0, 2, 1, 3), 0.01).transpose(0, 2, 1, 3)


def test_warp__of_chunks_is_lazy_and_the_same(photos):
    lazy = da.from_array(photos, chunks=(2, 5, 9, 1))
    with no_compute():
        moved = warp(lazy, 0.01)
        labelled = warp(xr.DataArray(lazy, dims=("sample", "y", "x", "channel")), 0.01)
    assert isinstance(moved, da.Array)
    assert moved.chunks[0] == (2, 2, 1)
    np.testing.assert_array_equal(moved, warp(photos, 0.01))
    np.testing.assert_array_equal(labelled, warp(photos, 0.01))


def test_warp__of_series_moves_time_alone():
    times = np.linspace(0, 1, 200)
    series = np.stack([np.stack([times, 2 * times], axis=1)] * 3)
    moved = warp(series, 0.002, dims=("time", "variable"))
    for sample in range(3):
        shifted = times + displacement((200,), 0.002, sample=sample)[0]
        assert shifted.min() >= 0
        np.testing.assert_allclose(moved[sample, :, 0], shifted, atol=1e-12)
        np.testing.assert_allclose(moved[sample, :, 1], 2 * shifted, atol=1e-12)
    np.testing.assert_array_equal(warp(series[0, :, 0], 0.002), moved[0, :, 0])
    np.testing.assert_array_equal(warp(series[0], 0.002, dims=("time", "variable")), moved[0])


def test_warp__spreads_nan_to_what_is_read_from_it():
    image = np.ones((30, 30))
    image[10, 12] = np.nan
    missing = np.isnan(warp(image, 0.002))
    u = displacement((30, 30), 0.002) * 29 + np.mgrid[0:30, 0:30]
    near = (np.abs(u[0] - 10) < 1) & (np.abs(u[1] - 12) < 1)
    assert near.any()
    assert missing[near].all()
    assert missing.sum() <= near.sum() + 2


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 9, 3), (2, 2, 1), (0, 4, 4, 3)])
def test_warp__of_very_small_images_is_defined(shape):
    image = np.random.default_rng(0).random(shape)
    moved = warp(image, 0.1)
    assert moved.shape == shape
    if shape[:2] in ((1, 1), (2, 2)):
        np.testing.assert_array_equal(moved, image)


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_warp__refuses_temperatures(photos, value):
    with pytest.raises(InputError, match="temperature must be finite and not negative"):
        warp(photos, value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cutoff": 0.9}, "cutoff must be finite and at least 1; got 0.9"),
        ({"cutoff": math.nan}, "cutoff must be finite"),
        ({"seed": -1}, "seed must be a whole number and not negative; got -1"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"dims": ("y", "x")}, r"shape \(5, 12, 17, 3\), dims is \('y', 'x'\)"),
        ({"dims": "yx"}, "dims must name each axis"),
        ({"dims": ("a", "b", "c")}, "a grid of one or two axes"),
        ({"value_dim": "colour"}, "value_dim='colour' is not an axis"),
    ],
)
def test_warp__refuses_options(photos, options, message):
    with pytest.raises(InputError, match=message):
        warp(photos, 0.01, **options)


def test_warp__refuses_what_is_no_image(photos):
    with pytest.raises(InputError, match="got list"):
        warp([[1.0]], 0.01)
    with pytest.raises(InputError, match="whole numbers, of NumPy, Dask or xarray; got bool"):
        warp(photos > 0.5, 0.01)
    array = xr.DataArray(photos, dims=("sample", "y", "x", "channel"))
    with pytest.raises(InputError, match="dim='frame' is not a dimension"):
        warp(array, 0.01, dim="frame")
    with pytest.raises(InputError, match="a grid of one or two axes"):
        warp(array.rename(channel="z"), 0.01)
    with pytest.raises(InputError, match="of NumPy, Dask or xarray; got"):
        warp(array_api_strict.asarray(photos), 0.01)
    with pytest.raises(InputError, match="one or two axes of at least a point"):
        displacement((3, 4, 5), 0.01)
    with pytest.raises(InputError, match="dims must name"):
        warp(np.zeros((1,) * 5), 0.01)
