from dataclasses import replace

import numpy as np
import pytest

from bigkd.backends import to_host
from bigkd.did.choice import Choice, strength_of
from bigkd.did.layout import open_data
from bigkd.did.pairs import PairMeasure, StoredMaps, StoredPairs
from bigkd.did.setting import choose
from bigkd.errors import DataError
from bigkd.kernels import Gaussian, Matern
from bigkd.protocols import Rows
from tests.did import plain


def images(n=5, shape=(18, 21)):
    return np.random.default_rng(0).random((n, *shape, 3))


def setting_of(data, **choice):
    opened = open_data(data, {}, name="data", dims=None, value_dim=None)
    return choose([opened], ("data",), Choice(**choice))


def by_definition(data, x_landmarks, y_landmarks, k_x, mask):
    shape = data.shape[1:3]
    x = plain.positions(shape)
    weights = np.full(len(x), 4.0 / len(x))
    return [
        [
            plain.map_of(
                (one.reshape(-1, 3) - plain.IMAGENET[0]) / plain.IMAGENET[1],
                x, x_landmarks, y_landmarks, k_x, plain.laplace(5), weights * mu,
            )
            for mu in (mask, 1.0)
        ]
        for one in data
    ]  # fmt: skip


@pytest.mark.parametrize("y_landmarks", [4, 9])
def test_maps__are_eqs_10_and_11(y_landmarks):
    data = images()
    maps = setting_of(data, y_landmarks=y_landmarks).maps
    found = maps(data.reshape(5, -1))
    expected = by_definition(
        data, plain.position_grid(10, 2), plain.colour_grid(y_landmarks), plain.gaussian(1 / 6),
        plain.blackman((18, 21)),
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("x_landmarks", ["random:30", np.linspace(-0.9, 0.9, 12).reshape(6, 2)])
@pytest.mark.parametrize("kernel", [Gaussian(0.4), Matern(1.5, 0.5)])
def test_maps__do_not_need_a_product_of_kernels(x_landmarks, kernel):
    data = images(2)
    setting = setting_of(data, x_landmarks=x_landmarks, x_kernel=kernel, y_landmarks=3, jitter=1e-9)
    found = setting.maps(data.reshape(2, -1))
    direct = setting.maps.x_factors[0] @ setting.maps.x_inverse
    x = plain.positions((18, 21))
    assert direct.shape == (len(x), setting.maps.shape[1])
    projected = direct @ direct.T  # of the kernel, on the landmarks
    np.testing.assert_allclose(np.diagonal(projected) <= 1.0 + 1e-9, True)
    values = (data[0].reshape(-1, 3) - plain.IMAGENET[0]) / plain.IMAGENET[1]
    grid = plain.colour_grid(3)
    r_y = np.linalg.cholesky(plain.laplace(5)(grid, grid) + 1e-9 * np.eye(27)).T
    b = np.linalg.solve(r_y.T, plain.laplace(5)(grid, values)) * (4.0 / len(x)) @ direct
    np.testing.assert_allclose(found[0, 1], b, atol=1e-10)


def test_maps__in_pieces_are_those_of_long_series():
    series = np.random.default_rng(1).normal(size=(2, 5000))
    opened = open_data(series, {}, name="data", dims=("time",), value_dim=None)
    maps = choose([opened], ("data",), Choice(normalize=None, x_landmarks=9, y_landmarks=7)).maps
    found = maps(series)
    grid = np.linspace(series.min(), series.max(), 7)[:, None]
    expected = plain.map_of(
        series[1][:, None], plain.positions((5000,)), plain.position_grid(9, 1), grid,
        plain.gaussian(1 / 6), plain.laplace(5), np.full(5000, 1 / 5000),
    )  # fmt: skip
    np.testing.assert_allclose(found[1, 1], expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_maps__are_the_same_on_every_namespace(put, dtype):
    data = images(3)
    data[1, 2:4, 5:9] = np.nan
    setting = setting_of(data, y_landmarks=3, dtype=dtype, nan="zero_weight")
    strength = strength_of([1e-2, 1e-4], relative=True, scale="unit", n_points=9)
    stored = StoredMaps(maps=setting.maps)
    pairs = StoredPairs(shape=setting.maps.shape, measure=PairMeasure.of(strength, setting.maps))

    def answer(rows):
        made = stored(Rows(rows, np.arange(3)))
        return to_host(pairs(Rows(made, np.arange(3)), Rows(made, np.arange(3))))

    expected = answer(data.reshape(3, -1))
    found = answer(put(data.reshape(3, -1)))
    np.testing.assert_allclose(found, expected, rtol=1e-8 if dtype == "float64" else 1e-3)


def test_maps__refuse_what_is_not_finite_and_colours_out_of_range():
    data = images(2)
    maps = setting_of(data, y_landmarks=3).maps
    with pytest.raises(DataError, match=r"datum 1 of a block has values that are not finite"):
        maps(np.where(np.arange(2)[:, None] == 1, np.nan, data.reshape(2, -1)))
    with pytest.raises(DataError, match=r"colours from 0.* to 2\.9.*; expected"):
        maps(3 * data.reshape(2, -1))


def test_maps__tell_their_scratch_and_cost():
    maps = setting_of(images(1), y_landmarks=3).maps
    finer = replace(maps, y_landmarks=np.concatenate([maps.y_landmarks] * 8))
    assert finer.scratch(2) > maps.scratch(2) > maps.scratch(1) > 0
    assert finer.row_cost(2) > 7 * maps.row_cost(2) > 7 * maps.row_cost(1) > 0
