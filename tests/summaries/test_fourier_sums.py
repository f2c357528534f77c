import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from bigkd.backends import to_host
from bigkd.engine.tokens import spec_token
from bigkd.errors import DataError, ShapeError
from bigkd.io.states import load_state, save_state
from bigkd.kernels import (
    CovarianceGaussian,
    FrequencyGrid,
    Gaussian,
    Laplace,
    Matern,
    inner_product,
    inner_product_error,
    squared_distance,
    squared_distance_error,
)
from bigkd.protocols import Rows
from bigkd.summaries import FourierSums, fourier_sums
from bigkd.testing import assert_equal_states

KERNELS = [
    (Gaussian(0.1), 1, 1e-2),
    (Gaussian(0.1), 1, 1e-6),
    (Gaussian(0.1), 1, 1e-12),
    (Gaussian(0.1), 2, 1e-2),
    (Gaussian(0.1), 2, 1e-6),
    (Gaussian(0.1), 2, 1e-12),
    (Gaussian(0.2), 3, 1e-2),
    (Gaussian(0.2), 3, 1e-6),
    (Gaussian(0.3), 3, 1e-12),
    (Matern(1.5, 0.2), 1, 1e-2),
    (Matern(1.5, 0.2), 1, 1e-6),
    (Matern(4.5, 0.5), 1, 1e-12),
    (Matern(2.5, 0.2), 2, 1e-2),
    (Matern(2.5, 0.5), 2, 1e-6),
    (Matern(20.0, 1.0), 2, 1e-12),
    (Matern(2.5, 0.3), 3, 1e-2),
    (Matern(8.0, 1.0), 3, 1e-6),
    (Laplace(0.3), 2, 3e-2),
]


def corners(generator, n, d, sign):
    """Clusters in two opposite corners of the unit box: where aliasing is worst."""
    at = (generator.random((n, 1)) < 0.5) * np.ones((1, d))
    return abs(at - 1e-3 * generator.random((n, d))) if sign else at


def collections(d):
    """Pairs of sets in the unit box, with weights: name, (values, weights) twice."""
    generator = np.random.default_rng(d)
    n = 300
    spread, other = generator.random((2, n, d))
    heavy = 10.0 ** generator.uniform(-3, 3, n)
    signed = generator.choice([-1.0, 1.0], n)
    point, opposite = np.zeros((1, d)), np.ones((1, d))
    ones = np.ones(n)
    return {
        "uniform": ((spread, ones), (other, ones)),
        "corners": ((corners(generator, n, d, 1), ones), (corners(generator, n, d, 0), ones)),
        "opposite points": ((point, ones[:1]), (opposite, ones[:1])),
        "points on an edge": ((point, ones[:1]), (np.eye(d)[:1], ones[:1])),
        "one point": ((np.repeat(point, n, 0), ones), (np.repeat(point, n, 0), ones)),
        "far apart": ((0.02 * spread, ones), (1 - 0.02 * other, ones)),
        "heavy weights": ((spread, heavy), (other, heavy[::-1])),
        "signed weights": ((spread, signed * heavy), (spread, -signed)),
    }


def rows_of(values, weights=None, vectors=None, put=np.asarray):
    parts = (values, np.arange(values.shape[0]), weights, vectors)
    return Rows(*(None if part is None else put(part) for part in parts))


def sums_of(grid, *blocks, n_vectors=1):
    summary = FourierSums(grid=grid, n_vectors=n_vectors)
    state = summary.init(blocks[0].values)
    for block in blocks:
        state = summary.update(state, block)
    return summary.finalize(state)


def exact(kernel, left, right):
    """Sum over all pairs, by definition, of sets of values and strengths (n, c)."""
    (x, mu), (y, nu) = left, right
    gram = kernel(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    return float(np.sum(gram * (mu @ nu.T)))


def column(part):
    return part[0], np.asarray(part[1], dtype=np.float64)[:, None]


@pytest.mark.parametrize(("kernel", "d", "eps"), KERNELS, ids=str)
def test_fourier_sums__keep_the_promise(kernel, d, eps):
    grid = FrequencyGrid.for_box(kernel, np.zeros(d), np.ones(d), eps=eps)
    assert grid.error <= eps
    nearest = np.inf
    for name, pair in collections(d).items():
        masses = [abs(weights).sum() for _, weights in pair]
        one, other = (sums_of(grid, rows_of(*part)) for part in pair)
        left, right = (column(part) for part in pair)
        within, across = exact(kernel, left, left), exact(kernel, left, right)
        distance = within + exact(kernel, right, right) - 2 * across
        rounding = 1e-15 * sum(masses) ** 2  # of the sums above
        checks = [
            (inner_product(grid, one, one) - within, inner_product_error(grid, *masses[:1] * 2)),
            (inner_product(grid, one, other) - across, inner_product_error(grid, *masses)),
            (squared_distance(grid, one, other) - distance, squared_distance_error(grid, *masses)),
        ]
        for error, promise in checks:
            assert abs(error) <= promise + rounding, name
            nearest = min(nearest, promise / max(abs(error), 1e-300))
    assert nearest <= 30  # the promise is not vacuous: the worst sets come that near


@pytest.mark.parametrize("n_vectors", [1, 2, 3, 4])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_fourier_sums__of_vectors(put, d, n_vectors):
    generator = np.random.default_rng(0)
    kernel = Gaussian(0.4)
    sets = []
    for n in (150, 200):
        vectors = generator.normal(size=(n, n_vectors))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        sets.append((generator.random((n, d)), generator.uniform(0, 2, n), vectors))
    grid = FrequencyGrid.for_box(kernel, np.zeros(d), np.ones(d), eps=1e-9)
    one, other = (sums_of(grid, rows_of(*part, put=put), n_vectors=n_vectors) for part in sets)
    left, right = ((x, mu[:, None] * u) for x, mu, u in sets)
    promise = inner_product_error(grid, *(mu.sum() for _, mu, _ in sets))

    assert one.shape == (n_vectors, *grid.half_shape, 2)
    assert abs(inner_product(grid, one, other) - exact(kernel, left, right)) <= promise


@pytest.mark.parametrize("n_vectors", [1, 3])
@pytest.mark.parametrize(
    ("extents", "eps"),
    [((1.0,), 1e-12), ((1.0, 0.4), 1e-12), ((1.0, 0.4, 0.6), 1e-11), ((1.0, 0.0, 0.6), 1e-12)],
)
def test_fourier_sums__agree_for_every_namespace(put, extents, eps, n_vectors):
    generator = np.random.default_rng(1)
    n, d = 120, len(extents)
    values = generator.random((n, d)) * extents
    vectors = generator.normal(size=(n, n_vectors)) if n_vectors > 1 else None
    rows = (values, generator.normal(size=n), vectors)
    grid = FrequencyGrid.for_box(Gaussian(0.3), np.zeros(d), extents, eps=eps)
    frequencies = grid.frequencies.reshape(-1, d)
    waves = np.exp(1j * (frequencies @ (values - grid.centre).T))
    strengths = rows[1][:, None] * (np.ones((n, 1)) if vectors is None else vectors)
    expected = np.moveaxis(waves @ strengths, -1, 0).reshape(n_vectors, *grid.half_shape)

    found = to_host(sums_of(grid, rows_of(*rows, put=put), n_vectors=n_vectors))

    scale = 1e-12 * abs(strengths).sum()
    np.testing.assert_allclose(found[..., 0], expected.real, rtol=0, atol=scale)
    np.testing.assert_allclose(found[..., 1], expected.imag, rtol=0, atol=scale)


def test_fourier_sums__product_is_tiled(put, monkeypatch):
    monkeypatch.setattr(fourier_sums, "_PRODUCT_BYTES", 20_000)
    monkeypatch.setattr(fourier_sums, "_FEWEST_TILE_ROWS", 64)
    values = np.random.default_rng(2).random((500, 2))
    grid = FrequencyGrid.for_box(Gaussian(0.5), [0.0, 0.0], [1.0, 1.0], eps=1e-9)
    small = sums_of(grid, rows_of(values, put=put))
    monkeypatch.undo()

    np.testing.assert_allclose(to_host(small), sums_of(grid, rows_of(values)), atol=500 * 1e-10)


def test_fourier_sums__keep_the_laws_up_to_rounding(put):
    generator = np.random.default_rng(3)
    values, weights = generator.random((90, 3)), generator.normal(size=90)
    grid = FrequencyGrid.for_box(Gaussian(0.4), np.zeros(3), np.ones(3), eps=1e-6)
    summary = FourierSums(grid=grid)

    def of(*parts):
        state = summary.init(put(values))
        for part in parts:
            state = summary.update(state, rows_of(values[part], weights[part], put=put))
        return state

    cuts = slice(0, 20), slice(20, 20), slice(20, 65), slice(65, 90)
    a, b, c, d = (of(cut) for cut in cuts)
    whole, scale = of(slice(0, 90)), 1e-13 * abs(weights).sum()
    assert_equal_states(summary.merge(of(), a), a, "neutral")
    assert_equal_states(summary.merge(a, b), a, "no rows")
    merge = summary.merge
    for other in (
        merge(merge(merge(a, b), c), d),
        merge(a, merge(b, merge(c, d))),
        merge(merge(d, a), merge(c, b)),
        of(*cuts),
    ):
        np.testing.assert_allclose(to_host(other.total), to_host(whole.total), rtol=0, atol=scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
def test_fourier_sums__keep_their_digits_far_from_the_origin(put, dtype, offset):
    generator = np.random.default_rng(4)
    kernel = Gaussian(0.5)
    sets = [(offset + generator.random((100, 2))).astype(dtype) for _ in range(2)]
    both = np.concatenate(sets).astype(np.float64)
    grid = FrequencyGrid.for_box(kernel, both.min(axis=0), both.max(axis=0), eps=1e-11)
    one, other = (sums_of(grid, rows_of(part, put=put)) for part in sets)
    left, right = ((part, np.ones((100, 1))) for part in sets)

    error = inner_product(grid, one, other) - exact(kernel, left, right)
    assert abs(error) <= inner_product_error(grid, 100.0, 100.0)


def test_fourier_sums__of_whole_numbers(put):
    values = np.random.default_rng(5).integers(0, 9, (50, 2)).astype(np.uint8)
    grid = FrequencyGrid.for_box(Gaussian(2.0), [0, 0], [8, 8], eps=1e-9)
    sums = sums_of(grid, rows_of(values, put=put))
    ones = np.ones((50, 1))

    error = inner_product(grid, sums, sums) - exact(grid.kernel, (values, ones), (values, ones))
    assert abs(error) <= inner_product_error(grid, 50.0, 50.0)


def test_fourier_sums__of_a_covariance(put):
    kernel = CovarianceGaussian([[0.05, 0.04], [0.04, 0.06]])
    left, right = np.random.default_rng(6).random((2, 200, 2))
    grid = FrequencyGrid.for_box(kernel, [0.0, 0.0], [1.0, 1.0], eps=1e-8)
    one, other = (sums_of(grid, rows_of(part, put=put)) for part in (left, right))
    ones = np.ones((200, 1))

    error = inner_product(grid, one, other) - exact(kernel, (left, ones), (right, ones))
    assert abs(error) <= inner_product_error(grid, 200.0, 200.0)


def test_fourier_sums__of_one_point_are_its_weight(put):
    values = np.full((7, 2), 3.0)
    grid = FrequencyGrid.for_box(Gaussian(0.1), [3.0, 3.0], [3.0, 3.0], eps=1e-6)

    assert to_host(sums_of(grid, rows_of(values, put=put))).tolist() == [[[[7.0, 0.0]]]]


@pytest.mark.parametrize("bad", [1.25, -0.5, np.nan, np.inf])
def test_fourier_sums__refuse_rows_outside_of_the_box(put, bad):
    values = np.full((9, 2), 0.5)
    values[6, 1] = bad
    grid = FrequencyGrid.for_box(Gaussian(0.5), [0.0, 0.0], [1.0, 1.0], eps=1e-2)
    rows = rows_of(values, put=put)._replace(index=put(np.arange(100, 109)))

    with pytest.raises(DataError, match=r"row 106 has .* in column 1, outside of the box"):
        sums_of(grid, rows)


def test_fourier_sums__refuse_other_widths():
    grid = FrequencyGrid.for_box(Gaussian(0.5), [0.0, 0.0], [1.0, 1.0], eps=1e-2)
    values = np.zeros((4, 2))
    with pytest.raises(ShapeError, match="width 2"):
        sums_of(grid, rows_of(np.zeros((4, 3))))
    with pytest.raises(ShapeError, match="n_vectors=3 needs vectors of that width; got 1"):
        sums_of(grid, rows_of(values), n_vectors=3)
    with pytest.raises(ShapeError, match="n_vectors=1 needs vectors of that width; got 2"):
        sums_of(grid, rows_of(values, None, values))


def test_fourier_sums__are_the_same_bits_in_any_thread_and_memory():
    generator = np.random.default_rng(7)
    values = generator.random((5000, 3))
    grid = FrequencyGrid.for_box(Gaussian(0.2), np.zeros(3), np.ones(3), eps=1e-6)
    other = FrequencyGrid.for_box(Gaussian(0.5), np.zeros(3), np.ones(3), eps=1e-3)
    expected = sums_of(grid, rows_of(values))
    found = {}

    def work(at):
        odd = np.empty(values.nbytes + 16, dtype=np.uint8)[at : at + values.nbytes]
        moved = odd.view(np.float64).reshape(values.shape)
        moved[:] = values
        sums_of(other, rows_of(moved))  # another plan comes between
        found[at] = sums_of(grid, rows_of(moved))

    threads = [threading.Thread(target=work, args=(at,)) for at in (0, 1, 3, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for sums in found.values():
        np.testing.assert_array_equal(sums, expected, strict=True)


def test_fourier_sums__travel(tmp_path):
    values = np.random.default_rng(8).random((100, 2))
    grid = FrequencyGrid.for_box(Matern(1.5, 0.5), [0.0, 0.0], [1.0, 1.0], eps=1e-2)
    summary = FourierSums(grid=grid)
    state = summary.update(summary.init(values), rows_of(values))
    assert grid.weights is grid.weights

    save_state(tmp_path / "state", state, token="a")
    loaded = load_state(tmp_path / "state", summary.init(values), token="a")
    assert_equal_states(loaded, state, "saved and loaded")
    assert pickle.loads(pickle.dumps(summary)) == summary
    assert spec_token(summary) == spec_token(FourierSums(grid=grid))
    assert spec_token(summary) != spec_token(FourierSums(grid=grid, n_vectors=2))


@pytest.mark.parametrize(
    ("digits", "refinement"),
    [(digits, 2.0) for digits in range(2, 15)] + [(digits, 1.25) for digits in range(2, 9)],
)
@pytest.mark.parametrize("size", [5, 45, 301])
def test_transform__is_as_accurate_as_the_grid_counts_on(digits, refinement, size):
    """One point, one axis, all modes, positions over a cell; the weights of a wide kernel."""
    plan = fourier_sums._plan((size,), 1, 10.0**-digits, refinement)
    numbers = np.arange(size) - size // 2
    weights = np.exp(-0.5 * (numbers / (size / 5)) ** 2)
    error = np.zeros(size)
    for at in np.linspace(0, 2 * np.pi / (refinement * size), 25) + 0.3:
        plan.setpts(np.array([at]))
        error = np.maximum(
            error, abs(plan.execute(np.ones(1, complex)) - np.exp(1j * numbers * at))
        )
    rounding = 1e-15 * weights @ abs(numbers) / weights.sum()

    assert weights @ error / weights.sum() <= fourier_sums._PER_AXIS * 10.0**-digits + rounding


PEAK = """
import sys
from pathlib import Path
import numpy as np
from bigkd.kernels import FrequencyGrid, Gaussian
from bigkd.protocols import Rows
from bigkd.summaries import FourierSums

def resident(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))

d, sigma, eps, n_rows, n_vectors = map(float, sys.argv[1:])
d, n_rows, n_vectors = int(d), int(n_rows), int(n_vectors)
values, vectors = np.random.default_rng(0).random((n_rows, d)), np.ones((n_rows, n_vectors))
for at in (1.0, sigma):  # the first call loads the library
    grid = FrequencyGrid.for_box(Gaussian(at), np.zeros(d), np.ones(d), eps=eps)
    summary = FourierSums(grid=grid, n_vectors=n_vectors)
    some = 10 if at == 1.0 else n_rows
    rows = Rows(values[:some], np.arange(some), None, vectors[:some])
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = resident("VmRSS")
    summary.update(summary.init(values), rows)
    predicted = summary.footprint(some, 8)
sys.stdout.write(f"{resident('VmHWM') - before} {predicted.state + predicted.scratch}")
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's process status")
@pytest.mark.parametrize(
    "case", ["2 0.05 1e-2 1e6 1", "3 0.05 1e-6 65536 3", "3 0.012 1e-2 65536 1"]
)
def test_footprint__bounds_the_memory_of_a_process(case):
    command = [sys.executable, "-c", PEAK, *case.split()]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    measured, predicted = map(int, out.split())

    assert measured <= predicted <= 3 * measured


def test_footprint__counts_the_state_and_grows_with_the_grid():
    grids = [
        FrequencyGrid.for_box(Gaussian(sigma), np.zeros(3), np.ones(3), eps=1e-3)
        for sigma in (0.2, 0.1, 0.05)
    ]
    costs = [FourierSums(grid=grid, n_vectors=2).footprint(65_536, 8) for grid in grids]
    state = FourierSums(grid=grids[0], n_vectors=2).init(np.zeros((1, 3)))

    assert costs[0].state == state.total.nbytes
    assert costs[0].scratch < costs[1].scratch < costs[2].scratch
    assert costs[0].row_cost < costs[1].row_cost < costs[2].row_cost
