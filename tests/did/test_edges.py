"""Edges of what the functions take: all defined, all by definition."""

import threading

import dask.array as da
import numpy as np
import pytest
import xarray as xr

from bigkd import did
from bigkd.errors import EmptyInputError, InputError, ShapeError
from bigkd.kernels import Gaussian, Laplace
from tests.did import plain
from tests.did.test_dissimilarity import imagenet, smooth
from tests.did.test_promise import root

SHAPE = (12, 13)
FEW = {"lam": 1e-3, "x_landmarks": 4, "y_landmarks": 3}
F, G = smooth(0, SHAPE, 3), smooth(1, SHAPE, 3)


def found(f=F, g=G, **options):
    return did.dissimilarity(f, g, **{**FEW, **options})["dissimilarity"].values


def by_definition(f, g, x, weights, mask, lam=1e-3, x_landmarks=4, y_landmarks=3):
    """Of colours at positions x of these weights."""
    if isinstance(x_landmarks, int):
        x_landmarks = plain.position_grid(x_landmarks, x.shape[1])
    args = x, x_landmarks, plain.colour_grid(y_landmarks), plain.gaussian(1 / 6), plain.laplace(5)
    a = plain.map_of(imagenet(f), *args, weights * mask)
    b = plain.map_of(imagenet(g), *args, weights)
    return plain.residual(a, b, lam)


def evenly(shape):
    x = plain.positions(shape)
    return x, np.full(len(x), 4.0 / len(x)), plain.blackman(shape)


@pytest.mark.parametrize(
    "stored",
    [
        lambda x: x.astype(">f8"),
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x[::-1].copy()[::-1],
        lambda x: np.broadcast_to(x[..., None, :], (*x.shape[:2], 2, 3))[:, :, 0],
        lambda x: da.from_array(x, chunks=(5, 13, 1)),
        lambda x: xr.DataArray(x, dims=("y", "x", "channel")).transpose("channel", "y", "x"),
        lambda x: xr.DataArray(x, dims=("y", "x", "band"), coords={"time": 3, "run": "a"}),
        lambda x: xr.Dataset({name: (("y", "x"), x[..., at]) for at, name in enumerate("rgb")}),
    ],
)
def test_dissimilarity__does_not_depend_on_how_data_are_stored(stored):
    np.testing.assert_array_equal(found(stored(F), stored(G)), found())


@pytest.mark.parametrize("dtype", ["uint8", "int16", ">i2", "uint16", "int64", "float16"])
def test_dissimilarity__of_whole_numbers_is_that_of_floats(dtype):
    f, g = np.round(200 * F), np.round(200 * G)
    exact = found(f, g, normalize="standardize")
    narrow = found(f.astype(dtype), g.astype(dtype), normalize="standardize")
    np.testing.assert_allclose(narrow, exact, rtol=2e-5)


def test_dissimilarity__of_bools_is_that_of_zeros_and_ones():
    f, g = F > 0.5, G > 0.5
    np.testing.assert_allclose(found(f, g), found(1.0 * f, 1.0 * g), rtol=2e-5)


@pytest.mark.parametrize(
    "given",
    [F.astype(complex), F.astype(object), F.astype(np.longdouble), np.ma.masked_less(F, 0.5)],
)
def test_dissimilarity__refuses_what_are_no_numbers(given):
    with pytest.raises(InputError, match=r"^g (has elements of type|is a masked array)"):
        found(F, given)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (3, 2)])
def test_dissimilarity__of_very_small_images_is_by_definition(shape):
    f, g = F[: shape[0], : shape[1]], G[: shape[0], : shape[1]]
    axes = [np.linspace(-1, 1, n) if n > 1 else np.zeros(1) for n in shape]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    lines = [np.linspace(-1, 1, 4) if n > 1 else np.zeros(1) for n in shape]
    landmarks = np.stack(np.meshgrid(*lines, indexing="ij"), -1).reshape(-1, 2)
    expected = by_definition(f, g, x, np.full(len(x), 4 / len(x)), 1.0, x_landmarks=landmarks)
    assert found(f, g, mask=None)[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 5, 0)])
def test_dissimilarity__refuses_empty_images(shape):
    with pytest.raises(EmptyInputError):
        found(np.zeros(shape), np.zeros(shape))


def test_dissimilarity__of_a_mask_of_nothing_is_an_error():
    with pytest.raises(InputError, match="zero everywhere"):
        found(F[:2], G[:2])
    with pytest.raises(InputError, match="zero everywhere"):
        found(mask=np.zeros(SHAPE))


@pytest.mark.parametrize("other", [0.4, 0.7])
def test_dissimilarity__of_constant_images_is_by_definition(other):
    f, g = np.full((*SHAPE, 3), 0.4), np.full((*SHAPE, 3), other)
    assert found(f, g)[0] == pytest.approx(by_definition(f, g, *evenly(SHAPE)), rel=1e-9)
    flat = np.full(50, 7.0)  # standardised without a spread
    one = did.dissimilarity(flat, flat, lam=0.1, dims=("time",), mask=None)
    squared = float(one["norm_searched"]) ** 2
    assert squared > 0
    assert float(one["dissimilarity"][0]) == pytest.approx(0.1 * squared / (squared + 0.1))


@pytest.mark.parametrize(("x_landmarks", "y_landmarks"), [(1, 1), (1, 3), (4, 1), (4, 2), (7, 2)])
def test_dissimilarity__of_few_landmarks_is_by_definition(x_landmarks, y_landmarks):
    grid = plain.position_grid(x_landmarks, 2) if x_landmarks > 1 else np.zeros((1, 2))
    args = (evenly(SHAPE)[0], grid, plain.colour_grid(y_landmarks))
    if y_landmarks == 1:
        args = (*args[:2], (np.full((1, 3), 0.5) - plain.IMAGENET[0]) / plain.IMAGENET[1])
    kernels = plain.gaussian(1 / 6), plain.laplace(5)
    weights = evenly(SHAPE)[1]
    a = plain.map_of(imagenet(F), *args, *kernels, weights * plain.blackman(SHAPE))
    b = plain.map_of(imagenet(G), *args, *kernels, weights)
    value = found(x_landmarks=x_landmarks, y_landmarks=y_landmarks)[0]
    assert value == pytest.approx(plain.residual(a, b, 1e-3), rel=1e-9)


def test_dissimilarity__of_more_landmarks_than_pixels_is_by_definition():
    expected = by_definition(F[:5, :5], G[:5, :5], *evenly((5, 5)), x_landmarks=8)
    assert found(F[:5, :5], G[:5, :5], x_landmarks=8)[0] == pytest.approx(expected, rel=1e-8)


def test_dissimilarity__counts_the_landmarks_that_data_have():
    f, g = np.round(F), np.round(G)  # all eight corners of the cube of colours
    one = did.dissimilarity(f, g, **{**FEW, "y_landmarks": "data:500"})
    assert one.attrs["y_landmarks"] == "8 points of the data"
    np.testing.assert_allclose(one["dissimilarity"], found(f, g, y_landmarks=2), rtol=1e-9)


def test_dissimilarity__of_coinciding_landmarks_reports_what_it_added():
    once = np.array([[0.3, 0.4, 0.5], [0.6, 0.5, 0.4]])
    twice = did.dissimilarity(F, G, **{**FEW, "y_landmarks": np.concatenate([once, once])})
    assert 0 < twice.attrs["y_jitter"] < 1e-12
    np.testing.assert_allclose(twice["dissimilarity"], found(y_landmarks=once), rtol=1e-9)


def test_dissimilarity__of_extreme_lambdas_is_by_definition():
    lams = [1.0, 1e-12, 1e6, 1e-8]
    several = did.dissimilarity(F, G, **{**FEW, "lam": lams})["dissimilarity"]
    assert several["lam"].values.tolist() == lams
    for lam in lams:
        expected = by_definition(F, G, *evenly(SHAPE), lam=lam)
        assert float(several.sel(lam=lam)) == pytest.approx(expected, rel=1e-8)
        np.testing.assert_allclose(several.sel(lam=lam), found(lam=lam)[0], rtol=1e-10)


def field(values, **coords):
    return xr.DataArray(values, dims=("lat", "lon", "channel"), coords=coords)


@pytest.mark.parametrize("order", [1, -1])
def test_dissimilarity__weighs_latitudes_by_their_areas(order):
    lat, lon = np.linspace(-75, 85, 12)[::order], np.linspace(0, 330, 13)
    weights = np.repeat(np.cos(np.deg2rad(lat)), 13)
    x, _, mask = evenly(SHAPE)
    expected = by_definition(F, G, x, 4 * weights / weights.sum(), mask)
    pair = (field(one, lat=lat, lon=lon) for one in (F, G))
    assert found(*pair, weights="coslat")[0] == pytest.approx(expected, rel=1e-9)


def test_dissimilarity__follows_uneven_labels_weights_and_masks_in_any_order():
    generator = np.random.default_rng(0)
    lat, lon = 40 + np.linspace(0, 1, 12) ** 2, np.linspace(3, -3, 13) ** 3
    axes = [2 * (one - one[0]) / (one[-1] - one[0]) - 1 for one in (lat, lon)]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    weights, mask = generator.random((2, *SHAPE))
    share = 4 * weights.ravel() / weights.sum()
    expected = by_definition(F, G, x, share, mask.ravel())
    labelled = [xr.DataArray(part.T, dims=("lon", "lat")) for part in (weights, mask)]
    pair = [field(one, lat=lat, lon=lon) for one in (F, G)]
    value = found(*pair, weights=labelled[0], mask=labelled[1])
    assert value[0] == pytest.approx(expected, rel=1e-9)


def test_dissimilarity__counts_times_from_the_first():
    days = np.cumsum([0, 1, 1, 7, 2, 9, 1, 30, 3, 3])
    times = np.datetime64("2020-02-27", "ns") + days.astype("timedelta64[D]")

    def series(label, values):
        return xr.DataArray(values[:10, 0, 0], dims="time", coords={"time": label})

    options = {"lam": 1e-3, "mask": None}
    dated, counted = (
        did.dissimilarity(series(label, F), series(label, G), **options)["dissimilarity"]
        for label in (times, days)
    )
    np.testing.assert_allclose(dated, counted, rtol=1e-12)
    evenly_spread = did.dissimilarity(F[:10, 0, 0], G[:10, 0, 0], dims=("time",), **options)
    assert abs(float(evenly_spread["dissimilarity"][0] / counted[0]) - 1) > 1e-3


def test_dissimilarity__of_other_coordinates_is_an_error():
    lat = np.linspace(-75, 85, 12)
    with pytest.raises(InputError, match=r"other coordinates along 'lat'.*interp_like"):
        found(field(F, lat=lat), field(G, lat=lat + 1))
    with pytest.raises(InputError, match="other coordinates along 'lat'"):
        found(field(F, lat=lat), field(G, lat=lat)[::-1])
    with pytest.raises(ShapeError, match="a grid of 12 x 13 and g one of 12 x 12"):
        found(F, G[:, 1:])


def test_dissimilarity__of_volumes_is_by_definition():
    shape = (5, 6, 7)
    f, g = (smooth(at, shape, 1)[..., 0] for at in (0, 1))
    axis = np.linspace(min(f.min(), g.min()), max(f.max(), g.max()), 9)[:, None]
    value = did.dissimilarity(
        f, g, lam=1e-3, dims=("z", "y", "x"), x_landmarks=3, y_landmarks=9, normalize=None
    )["dissimilarity"]
    x = plain.positions(shape)
    args = x, plain.position_grid(3, 3), axis, plain.gaussian(1 / 6), plain.laplace(5)
    share = np.full(len(x), 8 / len(x))
    a = plain.map_of(f.reshape(-1, 1), *args, share * plain.blackman(shape))
    b = plain.map_of(g.reshape(-1, 1), *args, share)
    assert float(value[0]) == pytest.approx(plain.residual(a, b, 1e-3), rel=1e-9)


def test_dissimilarity__of_twenty_channels_is_by_definition():
    f, g = smooth(0, (9, 8), 20), smooth(1, (9, 8), 20)
    landmarks = np.random.default_rng(0).random((30, 20))
    value = did.dissimilarity(
        f, g, lam=1e-3, x_landmarks=4, y_landmarks=landmarks, y_kernel=Laplace(2.0), normalize=None
    )["dissimilarity"]
    x, share, mask = evenly((9, 8))
    args = x, plain.position_grid(4, 2), landmarks, plain.gaussian(1 / 6), plain.laplace(0.5)
    a = plain.map_of(f.reshape(-1, 20), *args, share * mask)
    b = plain.map_of(g.reshape(-1, 20), *args, share)
    assert float(value[0]) == pytest.approx(plain.residual(a, b, 1e-3), rel=1e-9)
    default = did.dissimilarity(f, g, lam=1e-3)
    assert default.attrs["y_landmarks"] == "144 points of the data"


def test_dissimilarity__gives_a_point_no_weight_if_one_channel_is_missing():
    holed, missing = G.copy(), np.zeros(SHAPE, dtype=bool)
    missing[2:5, 6:9] = True
    holed[missing, 1] = np.inf
    x, share, mask = evenly(SHAPE)
    args = x, plain.position_grid(4, 2), plain.colour_grid(3), plain.gaussian(1 / 6)
    a = plain.map_of(imagenet(F), *args, plain.laplace(5), share * mask)
    b = plain.map_of(imagenet(G), *args, plain.laplace(5), share * ~missing.ravel())
    expected = plain.residual(a, b, 1e-3)
    assert found(F, holed, nan="zero_weight")[0] == pytest.approx(expected, rel=1e-9)


def test_dissimilarity__draws_landmarks_from_its_seed():
    values = [found(y_landmarks="random:40", seed=seed)[0] for seed in (0, 0, 1)]
    assert values[0] == values[1] != values[2]


def test_dissimilarity__has_the_same_bits_on_many_threads():
    values = []
    threads = [
        threading.Thread(target=lambda: values.append(found(y_landmarks=5)[0])) for _ in range(4)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(values) == 4
    assert set(values) == {found(y_landmarks=5)[0]}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": "unit"},
        {"relative": True},
        {"scale": "unit", "relative": True},
        {"x_landmarks": np.random.default_rng(1).uniform(-1, 1, (9, 2))},
    ],
)
def test_match__has_norm_one_and_attains_the_dissimilarity(options):
    generator = np.random.default_rng(0)
    lat, lon = 40 + np.linspace(0, 1, 12) ** 2, np.linspace(3, -3, 13)
    axes = [2 * (one - one[0]) / (one[-1] - one[0]) - 1 for one in (lat, lon)]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    weights, mask = generator.random((2, *SHAPE))
    share = 4 * weights.ravel() / weights.sum()
    options = {**FEW, "weights": weights, "mask": mask, **options}
    pair = [field(one, lat=lat, lon=lon) for one in (F, G)]
    one = did.match(*pair, **options)
    np.testing.assert_array_equal(one["lat"], lat)
    np.testing.assert_array_equal(one["lon"], lon)
    assert one["h"].dims == one["q"].dims == ("lat", "lon")
    given = options["x_landmarks"]
    landmarks = plain.position_grid(4, 2) if isinstance(given, int) else given
    kernel = plain.gaussian(1 / 6)
    args = x, landmarks, plain.colour_grid(3), kernel, plain.laplace(5)
    a = plain.map_of(imagenet(F), *args, share * mask.ravel())
    b = plain.map_of(imagenet(G), *args, share)
    if options.get("scale") == "unit":
        a, b = a / np.linalg.norm(a, 2), b / np.linalg.norm(b, 2)
    lam = 1e-3 * (np.linalg.norm(b, 2) ** 2 if options.get("relative") else 1.0)
    white = np.linalg.cholesky(kernel(landmarks, landmarks)).T
    h, q = (
        white @ np.linalg.lstsq(kernel(x, landmarks), one[name].values.ravel(), rcond=None)[0]
        for name in "hq"
    )
    assert h @ h == pytest.approx(1.0, rel=1e-9)
    attained = np.sum((a @ h - b @ q) ** 2) + lam * q @ q
    assert attained == pytest.approx(plain.residual(a, b, lam), rel=1e-9)
    assert float(one["dissimilarity"]) == pytest.approx(attained, rel=1e-9)
    alone = did.dissimilarity(*pair, **options)["dissimilarity"]
    assert float(one["dissimilarity"]) == pytest.approx(float(alone[0]), rel=1e-9)
    assert float(one["h"].max()) == float(np.abs(one["h"]).max())


def test_match__makes_the_largest_value_of_h_positive():
    for seed in range(6):
        one = did.match(smooth(seed, SHAPE, 3), smooth(seed + 50, SHAPE, 3), **FEW)
        assert float(one["h"].max()) == float(np.abs(one["h"]).max())


def of_the_kernels(f, g, lam, sigma, length, mask):
    """Eq. 12 before landmarks, by the eigenvectors of Gram matrices, which are singular."""
    x, n = plain.positions(f.shape[:-1]), mask.size
    values = np.concatenate([f, g]).reshape(2 * n, -1)
    half_x = root(plain.gaussian(sigma)(x, x))
    half_y = root(plain.laplace(1 / length)(values, values))
    share = np.full((n, 1), 4 / n)
    a = half_y[:n].T @ (share * mask.reshape(n, 1) * half_x)
    return plain.residual(a, half_y[n:].T @ (share * half_x), lam)


def test_promise__counts_values_of_the_searched_image_that_landmarks_miss():
    f, g, mask = np.zeros((9, 9, 2)), np.full((9, 9, 2), 0.3), np.ones((9, 9))
    one = did.dissimilarity(
        f, g, lam=1e-2, promise=True, normalize=None, mask=None, x_landmarks=9,
        y_kernel=Laplace(0.5), y_landmarks=np.zeros((1, 2)),
    )  # fmt: skip
    value = of_the_kernels(f, g, 1e-2, 1 / 6, 0.5, mask)
    assert float(one["lost_reference"]) < 1e-4
    assert float(one["dissimilarity"][0]) < 0.9 * value
    assert float(one["lower"][0]) <= value <= float(one["upper"][0])


def test_promise__counts_places_of_the_searched_image_that_landmarks_miss():
    f, g, mask = np.full((9, 9, 2), 9.0), np.full((9, 9, 2), -9.0), np.zeros((9, 9))
    f[4, 2], g[4, 6], mask[4, 2] = 0.0, 0.0, 1.0
    place = np.array([[0.0, -0.5]])
    one = did.dissimilarity(
        f, g, lam=1e-6, promise=True, normalize=None, mask=mask, x_landmarks=place,
        x_kernel=Gaussian(0.2), y_kernel=Laplace(0.5), y_landmarks=np.zeros((1, 2)),
    )  # fmt: skip
    value = of_the_kernels(f, g, 1e-6, 0.2, 0.5, mask)
    assert float(one["lost_reference"]) < 1e-6
    assert float(one["dissimilarity"][0]) > 100 * value
    assert float(one["lower"][0]) <= value <= float(one["upper"][0])


def test_promise__sums_over_all_pairs_of_many_positions():
    series = np.random.default_rng(0).random(4700)
    one = did.dissimilarity(
        series, series, promise=True, dims=("time",), mask=None, normalize=None, y_landmarks=2,
        x_landmarks=5, y_kernel=Laplace(0.4),
    )  # fmt: skip
    x, values, share = plain.positions((4700,)), series[:, None], np.full(4700, 1 / 4700)
    kernels = plain.gaussian(1 / 6), plain.laplace(2.5)
    ends = np.array([[series.min()], [series.max()]])
    kept = np.sum(plain.map_of(values, x, plain.position_grid(5, 1), ends, *kernels, share) ** 2)
    squared = share @ (kernels[0](x, x) * kernels[1](values, values)) @ share
    assert float(one["lost_searched"]) == pytest.approx((squared - kept) ** 0.5, rel=1e-9)


def test_results__are_written_and_read_as_netcdf(tmp_path):
    lat = np.linspace(-75, 85, 12)
    pair = [field(one, lat=lat) for one in (F, G)]
    times = np.array(["2020-01-01", "2021-01-01"], "datetime64[ns]")
    both = xr.concat(pair, "time").assign_coords(time=times)
    results = [
        did.dissimilarity(*pair, promise=True, weights="coslat", **FEW),
        did.match(*pair, mask=np.ones(SHAPE), **FEW),
        did.matrix(both, scheduler="sync", **FEW),
        did.nearest(pair[0], both, k=2, scheduler="sync", **FEW),
    ]
    for at, result in enumerate(results):
        result.to_netcdf(tmp_path / f"{at}.nc", engine="h5netcdf")
        with xr.open_dataset(tmp_path / f"{at}.nc", engine="h5netcdf") as read:
            xr.testing.assert_equal(read, result)
            assert list(read.attrs) == list(result.attrs)
