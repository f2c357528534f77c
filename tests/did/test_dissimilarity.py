import numpy as np
import pytest
import xarray as xr

from bigkd import did
from bigkd.kernels import Gaussian, Laplace, Matern
from tests.did import plain

LAMS = [1e-6, 1e-4, 1e-2]


def smooth(seed, shape, n_values):
    """Random colours in [0, 1] that change slowly over a grid."""
    generator = np.random.default_rng(seed)
    x = plain.positions(shape)
    waves = generator.normal(size=(6, x.shape[1])) * 3
    phases = x @ waves.T + generator.uniform(0, 6, 6)
    values = np.sin(phases) @ generator.normal(size=(6, n_values))
    return (0.5 + 0.5 * np.tanh(values)).reshape(*shape, n_values)


def expected(
    f, g, shape, k_x, k_y, x_landmarks, y_landmarks, lam, mask="blackman", form="residual"
):
    x = plain.positions(shape)
    volume = 1.0 if len(shape) == 1 else 2.0 ** len(shape)
    weights = np.full(len(x), volume / len(x))
    mu = plain.blackman(shape) if mask == "blackman" else np.ones(len(x))
    a = plain.map_of(f, x, x_landmarks, y_landmarks, k_x, k_y, weights * mu)
    b = plain.map_of(g, x, x_landmarks, y_landmarks, k_x, k_y, weights)
    return getattr(plain, form)(a, b, lam)


def imagenet(f):
    return (f.reshape(-1, 3) - plain.IMAGENET[0]) / plain.IMAGENET[1]


@pytest.mark.parametrize("shape", [(30, 30), (24, 37)])
@pytest.mark.parametrize("mask", ["blackman", None])
def test_dissimilarity__is_eq_12_for_images(shape, mask):
    f, g = smooth(0, shape, 3), smooth(1, shape, 3)
    found = did.dissimilarity(f, g, lam=LAMS, mask=mask, y_landmarks=5)["dissimilarity"]
    args = plain.gaussian(1 / 6), plain.laplace(5), plain.position_grid(10, 2), plain.colour_grid(5)
    for lam in LAMS:
        for form in ("residual", "push_through", "direct"):
            value = expected(imagenet(f), imagenet(g), shape, *args, lam, mask, form)
            loss = 1e-9 if form == "residual" else max(1e-9, 1e-13 / lam)
            assert float(found.sel(lam=lam)) == pytest.approx(value, rel=loss)


@pytest.mark.parametrize("n_values", [1, 3])
@pytest.mark.parametrize("mask", ["blackman", None])
def test_dissimilarity__is_eq_12_for_series(n_values, mask):
    f, g = 4 * smooth(2, (80,), n_values), 4 * smooth(3, (80,), n_values)
    y_landmarks = np.random.default_rng(0).uniform(0, 4, (40, n_values))
    found = did.dissimilarity(
        f, g, lam=LAMS, mask=mask, dims=("time", "variable"), normalize=None,
        x_kernel=Gaussian(0.1), x_landmarks=12, y_kernel=Laplace(0.5), y_landmarks=y_landmarks,
    )["dissimilarity"]  # fmt: skip
    for lam in LAMS:
        value = expected(
            f, g, (80,), plain.gaussian(0.1), plain.laplace(2), plain.position_grid(12, 1),
            y_landmarks, lam, mask,
        )  # fmt: skip
        assert float(found.sel(lam=lam)) == pytest.approx(value, rel=1e-9)


def test_dissimilarity__takes_any_kernel_of_positions():
    shape = (20, 22)
    f, g = smooth(0, shape, 3), smooth(1, shape, 3)
    kernel = Matern.sobolev(2.5, 2, 0.4)
    found = did.dissimilarity(f, g, x_kernel=kernel, x_landmarks=6, y_landmarks=4)
    value = expected(
        imagenet(f), imagenet(g), shape, kernel, plain.laplace(5),
        plain.position_grid(6, 2), plain.colour_grid(4), 1e-2,
    )  # fmt: skip
    assert float(found["dissimilarity"][0]) == pytest.approx(value, rel=1e-9)


def test_dissimilarity__of_float32_data_is_near_that_of_float64():
    f, g = smooth(0, (40, 40), 3), smooth(1, (40, 40), 3)
    exact = did.dissimilarity(f, g, lam=LAMS)["dissimilarity"]
    found = did.dissimilarity(f, g, lam=LAMS, dtype="float32")["dissimilarity"]
    np.testing.assert_allclose(found, exact, rtol=2e-5)


def test_dissimilarity__takes_bytes_for_colours():
    f, g = (np.round(255 * smooth(at, (25, 25), 3)).astype(np.uint8) for at in (0, 1))
    found = did.dissimilarity(f, g, dtype="float64")["dissimilarity"]
    assert float(found[0]) == pytest.approx(
        float(did.dissimilarity(f / 255, g / 255)["dissimilarity"][0]), rel=1e-12
    )


def test_dissimilarity__keeps_to_its_identities():
    f, g = smooth(0, (30, 30), 3), smooth(1, (30, 30), 3)
    lams = np.geomspace(1e-7, 1e3, 11)
    same = did.dissimilarity(f, f, lam=lams, mask=None)
    squared = float(same["norm_searched"]) ** 2
    np.testing.assert_allclose(same["dissimilarity"], lams * squared / (squared + lams), rtol=1e-9)
    other = did.dissimilarity(f, g, lam=lams)
    values = other["dissimilarity"].values
    assert (np.diff(values) >= 0).all()
    assert (np.diff(values / lams) <= 0).all()
    assert (values >= 0).all()
    assert (values <= float(other["norm_reference"]) ** 2 * (1 + 1e-12)).all()


def test_dissimilarity__in_unit_scale_divides_maps_by_their_norms():
    f, g = smooth(0, (30, 30), 3), smooth(1, (30, 30), 3)
    plainly = did.dissimilarity(f, g, lam=1e-3, relative=True)
    unit = did.dissimilarity(f, g, lam=1e-3, scale="unit")
    ratio = plainly["dissimilarity"] / plainly["norm_reference"] ** 2
    assert float(unit["dissimilarity"][0]) == pytest.approx(float(ratio[0]), rel=1e-10)


def test_dissimilarity__knows_the_rate_of_the_paper():
    f, g = smooth(0, (16, 16), 3), smooth(1, (16, 16), 3)
    found = did.dissimilarity(f, g, lam="rate")
    assert float(found["lam"][0]) == 256**-0.25


def test_dissimilarity__of_labelled_fields_follows_their_coordinates():
    uneven = np.linspace(0, 1, 300) ** 1.5
    points = np.linspace(-1, 1, 30)[:, None]
    weights = np.gradient(uneven)

    def field(t):
        return xr.DataArray(np.sin(5 * t), dims="time", coords={"time": t})

    def found(one, other, **more):
        pair = field(one), field(other) ** 2
        found = did.dissimilarity(*pair, lam=1e-3, normalize=None, y_landmarks=points, **more)
        return float(found["dissimilarity"][0])

    finely = found(np.linspace(0, 1, 2000), np.linspace(0, 1, 2000))
    assert found(uneven, uneven, weights=weights) == pytest.approx(finely, rel=0.01)


def test_dissimilarity__weighs_missing_values_with_zero_if_told_to():
    f, g = smooth(0, (20, 20), 3), smooth(1, (20, 20), 3)
    holed = g.copy()
    holed[3:8, 5:9, 1] = np.nan
    with pytest.raises(ValueError, match="nan='zero_weight'"):
        did.dissimilarity(f, holed)
    weights = np.ones((20, 20))
    weights[3:8, 5:9] = 0
    found = did.dissimilarity(f, holed, nan="zero_weight", lam=1e-3)
    x = plain.positions((20, 20))
    share = 4.0 / 400
    args = (
        x,
        plain.position_grid(10, 2),
        plain.colour_grid(8),
        plain.gaussian(1 / 6),
        plain.laplace(5),
    )
    a = plain.map_of(imagenet(f), *args, share * plain.blackman((20, 20)))
    b = plain.map_of(imagenet(g), *args, share * weights.ravel())
    assert float(found["dissimilarity"][0]) == pytest.approx(plain.residual(a, b, 1e-3), rel=1e-9)
