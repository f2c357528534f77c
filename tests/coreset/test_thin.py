import numpy as np
import pytest

from bigkd import coreset
from bigkd.errors import DataError, EmptyInputError, InputError, ShapeError
from bigkd.kernels import Epanechnikov, Gaussian, Laplace, Polynomial, Triangle

KERNEL = Gaussian(0.1)
WIDE = Gaussian(0.4)


@pytest.mark.parametrize("reweight", ["nonnegative", "mass", "equal"])
@pytest.mark.parametrize("selection", ["greedy", "halving"])
@pytest.mark.parametrize("d", [2, 10])
def test_thin__is_near_and_tells_how_near(clusters, mmd, d, selection, reweight):
    rows, kernel = clusters(4000, d), KERNEL if d == 2 else WIDE
    found = coreset.thin(
        rows, 60, kernel=kernel, selection=selection, reweight=reweight, block_rows=700
    )
    true = mmd(rows, found, kernel)
    assert found.sizes["point"] <= 60
    np.testing.assert_array_equal(found["rows"], rows[found["index"]])
    assert float(found["weight"].sum()) == pytest.approx(4000, rel=1e-15)
    assert true <= found["distance_upper"] * (1 + 1e-9)
    if d == 2:
        assert found.attrs["measure"] == "fourier"
        assert float(found["distance_to_full"]) == pytest.approx(true, rel=1e-4)
    else:
        assert found.attrs["measure"] == "features"
        error = abs(float(found["distance_squared"]) - true**2)
        assert error < 4 * float(found["standard_error"])
    random = coreset.sample(rows, 60, seed=1)
    assert true < 0.4 * mmd(rows, random, kernel)
    weight = found["weight"].values
    if reweight == "equal":
        assert set(weight) == {4000 / 60}
    elif reweight == "nonnegative":
        assert weight.min() > 0


@pytest.mark.parametrize("size", [64, 256])
def test_thin__reaches_what_kernel_thinning_does_in_memory(clusters, mmd, size):
    """The best of goodpoints 0.6.3's kt.thin on these rows, all in memory, of seeds 0 to 2."""
    rows = clusters(4096, 2)
    peer = {64: 0.0145, 256: 0.00269}[size]
    equal = coreset.thin(rows, size, kernel=KERNEL, reweight="equal", block_rows=256)
    assert mmd(rows, equal, KERNEL) < peer
    best = coreset.thin(rows, size, kernel=KERNEL, block_rows=256)
    assert mmd(rows, best, KERNEL) < peer / 3


def test_thin__honours_weights(clusters, mmd):
    rows = clusters(3000, 2)
    weights = 10.0 ** np.random.default_rng(0).uniform(-3, 3, 3000)
    weights[::7] = 0.0
    found = coreset.thin(rows, 100, kernel=KERNEL, weights=weights)
    assert (found["index"].values % 7 != 0).all()
    assert float(found["total_weight"]) == pytest.approx(weights.sum(), rel=1e-12)
    assert float(found["weight"].sum()) == pytest.approx(weights.sum(), rel=1e-12)
    true = mmd(rows, found, KERNEL, weights)
    assert true < 0.01
    assert float(found["distance_to_full"]) == pytest.approx(true, rel=1e-3)
    # A row of weight 3 is three rows.
    whole = np.random.default_rng(1).integers(1, 4, 1000)
    once = coreset.thin(rows[:1000], 50, kernel=KERNEL, weights=whole)
    assert mmd(np.repeat(rows[:1000], whole, axis=0), _repeated(once, whole), KERNEL) < 0.01


def _repeated(found, whole):
    first = np.concatenate([[0], np.cumsum(whole)[:-1]])
    return found.assign(index=("point", first[found["index"].values]))


@pytest.mark.parametrize("reweight", ["nonnegative", "equal"])
def test_thin__returns_few_rows_as_they_are(clusters, reweight):
    rows = clusters(20, 3)
    weights = np.arange(1.0, 21.0)
    found = coreset.thin(rows, 50, kernel=KERNEL, reweight=reweight, weights=weights)
    assert found["index"].values.tolist() == list(range(20))
    np.testing.assert_array_equal(found["weight"], weights)
    assert float(found["distance_to_full"]) < 1e-7
    assert float(found["distance_upper"]) == 0.0


def test_thin__measures_exactly(clusters, mmd):
    rows = clusters(600, 5)
    weights = np.random.default_rng(0).random(600)
    for kernel in (Laplace(1.0), Polynomial((1.0, 0.5, 0.25))):
        found = coreset.thin(rows, 12, kernel=kernel, weights=weights, measure="exact")
        true = mmd(rows, found, kernel, weights)
        assert float(found["distance_to_full"]) == pytest.approx(true, rel=1e-4, abs=1e-7)
        assert found.attrs["promise_kind"] == "deterministic"


def test_thin__without_a_measure_still_promises(clusters, mmd):
    rows = clusters(2000, 5)
    found = coreset.thin(rows, 30, kernel=WIDE, measure="none")
    assert np.isnan(found["distance_to_full"])
    true = mmd(rows, found, WIDE)
    assert true <= float(found["distance_upper"]) < 6 * true


def test_thin__density_differs_by_no_more_than_the_distance(clusters):
    rows = clusters(2000, 2)
    found = coreset.thin(rows, 40, kernel=KERNEL)
    grid = np.stack(np.meshgrid(*[np.linspace(-0.2, 1.2, 30)] * 2), axis=-1).reshape(-1, 2)
    full = KERNEL(grid, rows).mean(axis=1)
    few = KERNEL(grid, found["rows"].values) @ (found["weight"].values / 2000)
    assert np.abs(full - few).max() <= float(found["distance_upper"])


def test_thin__keeps_integer_rows_and_row_numbers(clusters):
    pictures = (clusters(900, 9) * 255).clip(0, 255).astype("u1").reshape(900, 3, 3)
    found = coreset.thin(pictures, 10, kernel=Gaussian(100.0))
    assert found["rows"].dtype == "uint8"
    np.testing.assert_array_equal(found["rows"], pictures.reshape(900, 9)[found["index"]])


@pytest.mark.parametrize("kernel", [Triangle(0.5), Epanechnikov(0.5)])
def test_thin__refuses_kernels_without_a_distance(clusters, kernel):
    with pytest.raises(InputError, match="positive definite"):
        coreset.thin(clusters(50, 2), 5, kernel=kernel)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size must be"),
        ({"size": 2.5}, "size must be"),
        ({"kernel": None}, "kernel must be a kernel"),
        ({"selection": "best"}, "selection must be one of greedy, halving"),
        ({"reweight": "none"}, "reweight must be one of nonnegative, mass, equal"),
        ({"measure": "guess"}, "measure must be one of auto"),
        ({"delta": 1.0}, "delta must be"),
        ({"seed": -1}, "seed must be"),
        ({"weights": np.array([1.0, -1.0] * 25)}, "must not be negative"),
        ({"kernel": Polynomial((0.0, 1.0)), "measure": "fourier"}, "measure='fourier' needs"),
        ({"kernel": Polynomial((0.0, 1.0)), "measure": "features"}, "no spectrum"),
    ],
)
def test_thin__refuses(clusters, options, message):
    given = {"size": 5, "kernel": KERNEL, **options}
    with pytest.raises(InputError, match=message):
        coreset.thin(clusters(50, 2), given.pop("size"), **given)


def test_thin__refuses_bad_data(clusters):
    rows = clusters(50, 2)
    with pytest.raises(TypeError, match="kernel"):
        coreset.thin(rows, 5)
    with pytest.raises(TypeError, match="blocks"):
        coreset.thin(rows, 5, kernel=KERNEL, blocks=3)
    with pytest.raises(ShapeError, match="weights of data"):
        coreset.thin(rows, 5, kernel=KERNEL, weights=np.ones(49))
    with pytest.raises(EmptyInputError, match="sum to zero"):
        coreset.thin(rows, 5, kernel=KERNEL, weights=np.zeros(50))
    rows[7, 0] = np.nan
    with pytest.raises(DataError, match="row 7"):
        coreset.thin(rows, 5, kernel=KERNEL)
    found = coreset.thin(rows, 5, kernel=KERNEL, nonfinite="drop")
    assert (found.attrs["n_rows"], found.attrs["n_dropped"]) == (49, 1)
