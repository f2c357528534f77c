import itertools
import math
import pickle

import numpy as np
import pytest

from bigkd.engine.tokens import spec_token
from bigkd.errors import InputError, ShapeError
from bigkd.kernels import (
    CovarianceGaussian,
    FrequencyGrid,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Matern,
    Triangle,
    _lattice,
    grids,
    inner_product,
    squared_distance,
    squared_distance_error,
)

CASES = [
    (Gaussian(0.1), (1.0,), 1e-2),
    (Gaussian(0.1), (1.0,), 1e-12),
    (Gaussian(0.1), (1.0, 0.3), 1e-6),
    (Gaussian(0.2), (1.0, 0.3, 2.0), 1e-2),
    (Gaussian(0.2), (1.0, 0.3, 0.7), 1e-6),
    (Gaussian(3.0), (1.0, 1.0), 1e-2),
    (Matern(0.5, 0.5), (1.0,), 1e-3),
    (Matern(1.5, 0.2), (1.0,), 1e-6),
    (Matern(1.5, 0.2), (1.0, 1.0), 1e-2),
    (Matern(1.2, 0.5), (1.0, 1.0), 1e-2),
    (Matern(2.5, 0.3), (1.0, 0.5, 1.0), 1e-2),
    (Matern(8.0, 0.5), (1.0, 0.5), 1e-8),
    (Matern(0.3, 1.0), (1.0,), 0.3),
    (Laplace(0.3), (1.0, 1.0), 3e-2),
    (CovarianceGaussian([[0.04, 0.015], [0.015, 0.02]]), (1.0, 0.6), 1e-6),
]


def grid_of(kernel, extents, eps, offset=0.0):
    lower = np.full(len(extents), offset)
    return FrequencyGrid.for_box(kernel, lower, lower + extents, eps=eps)


def worst_differences(extents):
    """Differences of points in a box where errors are largest: corners, faces, equal points."""
    signs = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=len(extents))))
    near = np.random.default_rng(0).uniform(-1, 1, (40, len(extents)))
    return np.concatenate([signs, near, 0.01 * near]) * np.asarray(extents)


def values_of(grid, differences):
    """The sum of cosines at differences of points."""
    frequencies = grid.frequencies.reshape(-1, grid.width)
    return np.array([grid.weights.reshape(-1) @ np.cos(frequencies @ z) for z in differences])


@pytest.mark.parametrize(("kernel", "extents", "eps"), CASES, ids=str)
def test_grid__keeps_its_bound_and_comes_near_it(kernel, extents, eps):
    grid = grid_of(kernel, extents, eps)
    differences = worst_differences(extents)
    error = values_of(grid, differences) - kernel(differences, np.zeros((1, len(extents))))[:, 0]

    assert grid.error <= eps
    assert abs(error).max() <= grid.truncation + grid.aliasing
    assert abs(error).max() >= (grid.truncation + grid.aliasing) / 4
    assert (grid.weights >= 0).all()
    assert grid.weights.shape == grid.half_shape == grid.frequencies.shape[:-1]


@pytest.mark.parametrize(("kernel", "extents", "eps"), CASES, ids=str)
def test_count_for__predicts(kernel, extents, eps):
    count = FrequencyGrid.count_for(kernel, np.zeros(len(extents)), extents, eps=eps)

    assert count == grid_of(kernel, extents, eps).n_modes


@pytest.mark.parametrize(
    ("d", "eps", "known"),
    [(2, 1e-2, 529), (2, 1e-3, 841), (2, 1e-6, 1681), (3, 1e-2, 15_600), (3, 1e-6, 91_000)],
)
def test_for_box__takes_few_modes(d, eps, known):
    assert grid_of(Gaussian(0.05), (1.0,) * d, eps).n_modes <= 1.25 * known


@pytest.mark.parametrize("kernel", [Gaussian(0.1), Matern(1.5, 0.1)])
def test_for_box__is_nearly_minimal(kernel):
    """Fewer modes break the bound, at any period."""
    grid = grid_of(kernel, (1.0,), 1e-3)
    allowed = grid.truncation + grid.aliasing
    differences = np.linspace(0, 1, 101)[:, None]
    exact = kernel(differences, np.zeros((1, 1)))[:, 0]
    half = math.floor(grid.shape[0] // 2 * 0.85)
    assert half < grid.shape[0] // 2
    for period in np.linspace(1.0, 3.0, 41):
        numbers = np.arange(-half, half + 1) * 2 * math.pi / period
        fewer = np.cos(differences * numbers)
        spectrum = np.array([_spectral(kernel, w) for w in numbers]) * 2 * math.pi / period
        assert abs(fewer @ spectrum - exact).max() > allowed


def _spectral(kernel, w):
    """Spectral density on the line, by its closed form."""
    if isinstance(kernel, Gaussian):
        return kernel.sigma / math.sqrt(2 * math.pi) * math.exp(-0.5 * (kernel.sigma * w) ** 2)
    rate = math.sqrt(3) / kernel.length_scale  # of Matern-3/2
    return 2 * rate**3 / math.pi / (rate**2 + w**2) ** 2


def test_for_box__of_one_point_has_one_mode():
    grid = FrequencyGrid.for_box(Gaussian(1.0), [3.0, 4.0], [3.0, 4.0], eps=1e-12)

    assert grid.shape == (1, 1)
    assert grid.weights.tolist() == [[1.0]]
    assert grid.error == 0.0


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize("thickness", [0.0, 1e-9])
def test_for_box__spends_nothing_on_a_constant_column(column, thickness):
    extents = [1.0, 1.0, 1.0]
    extents[column] = thickness
    grid = grid_of(Gaussian(0.2), extents, 1e-6)

    assert grid.shape[column] == 1
    assert grid.n_modes == grid_of(Gaussian(0.2), (1.0, 1.0), 1e-6).n_modes


def test_for_box__counts_what_a_short_axis_loses():
    kernel = Gaussian(1.0)
    grid = grid_of(kernel, (5.0, 0.05), 1e-2)
    line = grid_of(kernel, (5.0,), 1e-2 - 0.05**2 / 2)
    lost = 1 - math.exp(-(0.05**2) / 2)

    assert grid.shape == (line.shape[0], 1)
    assert grid.truncation == pytest.approx(line.truncation + lost, rel=0.05)


@pytest.mark.parametrize("gap", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("kernel", [Laplace(1.0), Gaussian(1.0), Matern(2.5, 1.0)])
@pytest.mark.parametrize("extents", [(0.0, 0.0), (1.0, 0.5)])
def test_images__bounds_all_of_them(kernel, extents, gap):
    extents, far = np.asarray(extents), np.arange(-100, 101)
    period = extents + gap
    found = _lattice.images(_lattice.spectrum_of(kernel), extents, period)
    shifts = np.stack(np.meshgrid(*(far * own for own in period)), axis=-1).reshape(-1, 2)
    sums = [
        kernel(at * extents[None, :] + shifts, np.zeros((1, 2))).sum()
        - kernel(at * extents[None, :], np.zeros((1, 2))).sum()
        for at in (np.zeros(2), np.ones(2), np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    ]

    assert max(sums) <= found
    assert gap == 0.2 or found <= 8 * max(sums)


@pytest.mark.parametrize("sigma", [1e-5, 1e-3, 1e-1, 1e1, 1e3])
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_for_box__takes_any_scale(sigma, scale):
    kernel, extent = Gaussian(sigma * scale), scale
    grid = FrequencyGrid.for_box(kernel, [0.0], [extent], eps=1e-6)
    differences = np.array([[0.0], [sigma], [3 * sigma], [0.5], [1.0]]) * scale
    differences = differences[differences[:, 0] <= extent]
    error = values_of(grid, differences) - kernel(differences, np.zeros((1, 1)))[:, 0]

    assert abs(error).max() <= grid.error <= 1e-6


def test_for_box__does_not_see_the_offset():
    near, far = (
        grid_of(Gaussian(0.5), (1.0, 2.0), 1e-6),
        grid_of(Gaussian(0.5), (1.0, 2.0), 1e-6, 2.0**20),
    )

    assert near.shape == far.shape
    np.testing.assert_array_equal(near.weights, far.weights)
    np.testing.assert_array_equal(far.centre, [2.0**20 + 0.5, 2.0**20 + 1.0])


def test_for_box__refuses_what_costs_too_much():
    with pytest.raises(InputError, match=r"needs about .*e\+.. modes .* limit is 4194304"):
        grid_of(Laplace(0.1), (1.0, 1.0, 1.0), 1e-2)
    assert FrequencyGrid.count_for(Laplace(0.1), [0] * 3, [1] * 3, eps=1e-2) > 2**22
    with pytest.raises(InputError, match="out of reach of float64"):
        grid_of(Gaussian(1e-5), (1.0,), 1e-12)
    with pytest.raises(InputError, match="out of reach of float64"):
        grid_of(Gaussian(0.1), (1.0,), 1e-13)
    with pytest.raises(InputError, match="needs about inf modes"):
        grid_of(Gaussian(1e-200), (1e200,), 1e-6)


@pytest.mark.parametrize(
    "kernel", [InverseMultiquadric(1.0, 1.0), Triangle(1.0), CovarianceGaussian(np.eye(3).tolist())]
)
def test_for_box__refuses_kernels_without_a_grid(kernel):
    assert not grids.supports(kernel, 2)
    with pytest.raises(InputError, match="a frequency grid needs a Gaussian"):
        grid_of(kernel, (1.0, 1.0), 1e-2)


def test_for_box__refuses_many_columns():
    assert grids.supports(Gaussian(1.0), 3)
    assert not grids.supports(Gaussian(1.0), 4)
    with pytest.raises(InputError, match="width 4"):
        grid_of(Gaussian(1.0), (1.0,) * 4, 1e-2)


@pytest.mark.parametrize(
    ("lower", "upper", "eps", "message"),
    [
        ([0.0, 1.0], [1.0, 0.0], 1e-2, "upper nowhere less; in column 1"),
        ([0.0, np.nan], [1.0, 1.0], 1e-2, "in column 1"),
        ([-1e308], [1e308], 1e-2, "finite"),
        ([0.0], [1.0, 2.0], 1e-2, "one coordinate for each column"),
        ([], [], 1e-2, "width"),
        ([0.0], [1.0], 0.0, "eps"),
        ([0.0], [1.0], 0.7, "eps must be between 1e-13 and 0.5"),
    ],
)
def test_for_box__refuses_bad_input(lower, upper, eps, message):
    with pytest.raises(InputError, match=message):
        FrequencyGrid.for_box(Gaussian(1.0), lower, upper, eps=eps)


def test_grid__is_a_value():
    grid, same = (grid_of(Matern(1.5, 0.2), (1.0, 1.0), 1e-2) for _ in range(2))
    token = spec_token(grid)
    assert grid.weights.flags.writeable is False

    assert grid == same
    assert hash(grid) == hash(same)
    assert spec_token(grid) == token == spec_token(same)
    assert len(pickle.dumps(grid)) < 1000
    assert pickle.loads(pickle.dumps(grid)) == grid
    assert spec_token(grid_of(Matern(1.5, 0.2), (1.0, 1.0), 1e-3)) != token


def test_products__are_those_of_the_sums(put):
    grid = grid_of(Gaussian(0.3), (1.0, 1.0), 1e-3)
    generator = np.random.default_rng(0)
    left, right = generator.normal(size=(2, 3, *grid.half_shape, 2))
    pairs = np.einsum("cabi,cabi,ab->", left, right, grid.weights)
    squares = np.einsum("cabi,ab->", (left - right) ** 2, grid.weights)

    assert inner_product(grid, put(left), put(right)) == pytest.approx(pairs, rel=1e-12)
    assert squared_distance(grid, put(left), put(right)) == pytest.approx(squares, rel=1e-12)
    assert squared_distance_error(grid, 2.0, 3.0) == pytest.approx(25 * grid.error)


def test_products__refuse_other_shapes():
    grid = grid_of(Gaussian(0.3), (1.0, 1.0), 1e-3)
    sums = np.zeros((1, *grid.half_shape, 2))
    with pytest.raises(ShapeError, match="right must have shape"):
        inner_product(grid, sums, sums[..., 0])
    with pytest.raises(ShapeError, match="as many vectors"):
        squared_distance(grid, sums, np.repeat(sums, 2, axis=0))
