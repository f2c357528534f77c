import tracemalloc

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

from bigkd import mmdpca
from bigkd.errors import DataError, InputError
from bigkd.kernels import Gaussian
from bigkd.mmdpca import backgrounds
from tests.mmdpca import plain
from tests.mmdpca.plain import KERNELS, Plain

FLOAT32 = 3e-6  # relative: integers of few bits are projected in float32


def background(frames, **options):
    return mmdpca.background(frames, **{"k": 3, "scheduler": "sync", **options})


def video(n_frames=15, shape=(6, 7, 3)):
    """A scene in changing light that something dark crosses, uint8."""
    rng = np.random.default_rng(0)
    scene = rng.integers(60, 200, shape)
    light = 1.0 + 0.1 * np.sin(np.arange(n_frames))
    frames = scene * light.reshape(-1, *(1,) * len(shape))
    for at, frame in enumerate(frames):
        frame[1:4, at % shape[1]] = 15.0
    return np.rint(frames + rng.normal(0.0, 2.0, frames.shape)).astype(np.uint8)


def by_definition(frames, kernel, *, k=3, a=1.0, white=255.0, statistic=np.median, **choices):
    """Every projected frame, and then the statistic."""
    rows = frames.reshape(len(frames), -1) / white
    fit = Plain(rows, k, KERNELS.get(kernel, kernel), a=a, **choices)
    projected = fit.rows @ plain.projector(fit.vectors) / fit.root + fit.mean
    picture = np.full(rows.shape[1], np.nan)
    picture[fit.kept] = statistic(projected, axis=0) * white
    return picture.reshape(frames.shape[1:])


@pytest.mark.parametrize("n_frames", [14, 15])
@pytest.mark.parametrize("kernel", KERNELS)
def test_background__is_the_median_of_projected_frames(kernel, n_frames):
    frames = video(n_frames)
    for dtype, rtol in ((np.uint8, FLOAT32), (np.float64, 1e-10)):
        found = background(frames.astype(dtype), kernel=kernel, white=255.0)
        assert found.dims == ("y", "x", "channel")
        assert found.dtype == "float64"
        np.testing.assert_allclose(found, by_definition(frames, kernel), rtol=rtol)


@pytest.mark.parametrize("kernel", ["gauss", "laplace", "poisson"])
def test_background__counts_levels_in_whites(kernel):
    frames = video()
    found = background(frames, kernel=kernel, a=25.0)
    np.testing.assert_allclose(found, by_definition(frames, kernel, a=25.0), rtol=FLOAT32)
    other = background(frames / 255.0, kernel=kernel, a=25.0)
    np.testing.assert_allclose(found, 255.0 * other, rtol=FLOAT32)
    for same in (
        background(frames.astype(np.float64), kernel=kernel, a=25.0, white=255.0),
        background(frames.astype(np.uint16) * 257, kernel=kernel, a=25.0) / 257.0,
    ):
        np.testing.assert_allclose(found, same, rtol=FLOAT32)
    raw = background(frames, kernel=kernel, a=25.0, white=1.0)
    np.testing.assert_allclose(raw, by_definition(frames, kernel, a=25.0, white=1.0), rtol=FLOAT32)


def test_background__leaves_other_kernels_as_they_are():
    frames = video()
    found = background(frames, kernel=Gaussian(80.0))
    h = plain.gauss(1, 1.0 / (2.0 * 80.0**2))
    expected = by_definition(frames, lambda n, a: h, white=1.0)
    np.testing.assert_allclose(found, expected, rtol=FLOAT32)
    assert "a" not in found.attrs


def test_background__of_pca_is_that_of_singular_vectors():
    frames = video()
    found = background(frames, kernel=mmdpca.HigherMoments((0.0, 1.0)))
    rows = frames.reshape(len(frames), -1).astype(np.float64)
    left, sizes, right = np.linalg.svd(rows, full_matrices=False)
    projected = (left[:, :3] * sizes[:3]) @ right[:3]
    np.testing.assert_allclose(found.values.ravel(), np.median(projected, axis=0), rtol=FLOAT32)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_background__takes_means_off_and_weighs_pixels(center, statistic):
    frames = video(12, (5, 4))
    weights = np.linspace(0.5, 2.0, 20).reshape(5, 4)
    found = background(frames, statistic=statistic, center=center, weights=weights)
    expected = by_definition(
        frames, "gauss", statistic=getattr(np, statistic), center=center, weights=weights
    )
    assert found.dims == ("y", "x")
    np.testing.assert_allclose(found, expected, rtol=FLOAT32)


def test_background__reads_videos_lazily(tmp_path):
    frames = video(20, (12, 8, 3))
    expected = background(frames)
    zarr.create_array(tmp_path / "video.zarr", data=frames, chunks=(5, 4, 8, 3))
    np.save(tmp_path / "video.npy", frames)
    lazy = da.from_array(frames, chunks=(20, 4, 8, 3))
    for same in (
        tmp_path / "video.zarr",
        str(tmp_path / "video.npy"),
        zarr.open_array(tmp_path / "video.zarr", mode="r"),
        lazy,
        lazy.rechunk((6, -1, -1, -1)),
    ):
        found = background(same)
        assert found.dims == ("y", "x", "channel")
        np.testing.assert_allclose(found, expected, rtol=FLOAT32)
    threads = background(lazy, scheduler="threads")
    np.testing.assert_array_equal(threads, background(lazy))


def test_background__keeps_names_and_coordinates():
    frames = xr.DataArray(
        video(12, (5, 4)),
        {"lat": np.linspace(60.0, 20.0, 5), "lon": np.arange(4) * 10.0},
        ("time", "lat", "lon"),
    )
    found = background(frames.transpose("lat", "time", "lon"), dim="time")
    assert found.name == "background"
    assert found.dims == ("lat", "lon")
    assert set(found.coords) == {"lat", "lon"}
    xr.testing.assert_equal(found["lat"], frames["lat"])
    np.testing.assert_allclose(found, background(frames.values), rtol=FLOAT32)


@pytest.mark.parametrize(
    ("shape", "dims"),
    [((9,), ("feature",)), ((3, 2, 2, 2), ("feature_0", "feature_1", "feature_2", "feature_3"))],
)
def test_background__of_what_is_no_frame_has_features(shape, dims):
    rows = np.random.default_rng(0).normal(5.0, 1.0, (8, *shape))
    assert background(rows).dims == dims


def test_background__is_nan_where_every_frame_is():
    frames = video(12, (5, 4)).astype(np.float64)
    frames[:, 1, 2] = np.nan
    found = background(frames, white=255.0)
    np.testing.assert_array_equal(found.isnull(), np.isnan(frames[0]))
    np.testing.assert_allclose(found, by_definition(frames, "gauss"), rtol=FLOAT32)


def test_background__leaves_out_frames_if_told():
    frames = video(12, (5, 4)).astype(np.float64)
    frames[4, 0, 0] = np.nan
    with pytest.raises(DataError, match="nonfinite='drop'"):
        background(frames, white=255.0)
    found = background(frames, white=255.0, nonfinite="drop")
    expected = background(np.delete(frames, 4, axis=0), white=255.0)
    np.testing.assert_allclose(found, expected, rtol=FLOAT32)
    assert found.attrs["n_frames"] == 11


def test_background__says_how_it_was_made():
    found = background(video(), kernel="laplace", a=5.0, statistic="mean")
    attrs = found.attrs
    made = {"kernel": "laplace", "a": 5.0, "white": 255.0, "statistic": "mean", "n_frames": 15}
    assert {name: attrs[name] for name in made} == made


def test_background__is_the_same_for_any_run_of_pixels(monkeypatch):
    frames = video(16)
    whole = background(frames)
    monkeypatch.setattr(backgrounds, "BLOCK_BYTES", 8 * 16 * 5)
    np.testing.assert_allclose(background(frames), whole, rtol=1e-12)


def test_background__never_holds_all_projected_frames():
    n_frames, shape = 120, (400, 500)
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (n_frames, *shape), dtype=np.uint8)
    tracemalloc.start()
    try:
        background(frames, k=2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.75 * 8 * frames.size


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
def test_medians__are_numpys(n):
    rows = np.random.default_rng(n).integers(0, 4, (50, n)).astype(np.float64)
    np.testing.assert_array_equal(backgrounds._medians(rows.copy()), np.median(rows, axis=1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistic": "mode"}, "statistic must be 'median' or 'mean'"),
        ({"white": 0.0}, "white must be a finite positive number"),
        ({"white": np.inf}, "white must be a finite positive number"),
        ({"kernel": "normal"}, "kernel must be one of"),
        ({"k": 0}, "k must"),
        ({"a": -1.0}, "a must be a finite positive number; got -1.0"),
        ({"kernel": "kurtosis", "a": 2.0}, "a goes with the kernels"),
    ],
)
def test_background__refuses_what_it_cannot_use(options, message):
    with pytest.raises(InputError, match=message):
        background(video(), **options)
