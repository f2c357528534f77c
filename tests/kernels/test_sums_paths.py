"""Every way a kernel sum may be computed: layouts, namespaces, tiles, products, threads."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bigkd.backends import to_host
from bigkd.errors import InputError, ShapeError
from bigkd.kernels import (
    CovarianceGaussian,
    DotTimes,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Matern,
    Polynomial,
    Triangle,
    fused,
    numpy_sums,
    pair_sum,
    potential,
    rounding_bound,
    sums,
)
from tests.kernels.exact_sums import (
    KINDS,
    cloud,
    pair_sum_by_definition,
    spread,
    strengths,
    values,
)


def unaligned(x):
    raw = bytearray(x.nbytes + 1)
    out = np.frombuffer(memoryview(raw)[1:], dtype=x.dtype).reshape(x.shape)
    out[...] = x
    return out


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS = {
    "columns first": np.asfortranarray,
    "every second": lambda x: np.repeat(x, 2, axis=0)[::2],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "unaligned": unaligned,
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "read-only": read_only,
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("width", [3, 20])
def test_sums__do_not_depend_on_the_layout(layout, width):
    x, y, right = cloud("plain", 90, width), cloud("plain", 70, width), strengths("signed", 70)
    before = x.copy()
    total = pair_sum(Gaussian(2.0), layout(x), y, None, layout(right[:, None])[:, 0])
    assert total == pair_sum(Gaussian(2.0), x, y, None, right)
    found = potential(Gaussian(2.0), layout(x), layout(y), right)
    np.testing.assert_array_equal(found, potential(Gaussian(2.0), x, y, right))
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("dtype", ["f2", "i1", "u1", "i2", "i4", "i8", "u8", "?"])
def test_sums__of_narrow_rows_and_integers(dtype):
    x = np.random.default_rng(0).integers(0, 2 if dtype == "?" else 9, (40, 3)).astype(dtype)
    wide = x.astype("f8")
    bound = rounding_bound(Laplace(3.0), "f8" if dtype in ("i4", "i8", "u8") else "f4", 3)
    assert abs(pair_sum(Laplace(3.0), x, x) - pair_sum(Laplace(3.0), wide, wide)) <= bound * 1600


def test_sums__of_float32_with_float64_are_float64():
    x, y = cloud("plain", 40, 3), cloud("plain", 30, 3, seed=1).astype("f4")
    exact, scale, _ = pair_sum_by_definition(Gaussian(1.0), x, y)
    assert abs(pair_sum(Gaussian(1.0), x, y) - exact) <= 1e-12 * scale


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [2, 20])
def test_sums__are_the_same_in_every_namespace(put, monkeypatch, kind, width, dtype):
    monkeypatch.setattr(sums, "TILE_ELEMENTS", 300)
    x, y = cloud("plain", 50, width).astype(dtype), cloud("plain", 40, width, 1).astype(dtype)
    left, right = strengths("signed", 50, 3), strengths("signed", 40, 3)
    kernel = KINDS[kind](spread(x))
    bound = max(rounding_bound(kernel, dtype, width), 1e-14 * width)
    scale = np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
    got = to_host(pair_sum(kernel, put(x), put(y), put(left), put(right)))
    assert got.shape == ()
    assert got.dtype == np.float64
    assert abs(got - pair_sum(kernel, x, y, left, right)) <= 2 * bound * scale.sum()
    found = to_host(potential(kernel, put(x), put(y), put(right)))
    expected = potential(kernel, x, y, right)
    assert np.max(np.abs(found - expected)) <= 2 * bound * np.abs(right).sum()


@pytest.mark.parametrize(
    "kernel",
    [
        Matern(2.2, 1.5),
        Polynomial((1.0, 0.0, 2.0)),
        DotTimes(Gaussian(2.0)),
        lambda x, y: x @ y.T,
    ],
    ids=["matern", "polynomial", "dot times", "function"],
)
def test_sums__take_any_kernel(put, monkeypatch, kernel):
    monkeypatch.setattr(sums, "TILE_ELEMENTS", 100)
    x, y = cloud("plain", 31, 3), cloud("plain", 17, 3, 1)
    left, right = strengths("signed", 31, 2), strengths("signed", 17, 2)
    matrix = kernel(x, y)
    total = pair_sum(kernel, put(x), put(y), put(left), put(right))
    np.testing.assert_allclose(float(total), np.sum(left @ right.T * matrix), rtol=1e-11)
    found = to_host(potential(kernel, put(x), put(y), put(right[:, 0])))
    np.testing.assert_allclose(found, matrix @ right[:, 0], rtol=1e-11)


def test_sums__never_see_more_than_a_tile(monkeypatch):
    monkeypatch.setattr(sums, "TILE_ELEMENTS", 64)
    seen = []

    def kernel(x, y):
        seen.append(x.shape[0] * y.shape[0])
        return x @ y.T

    for n, m in ((50, 70), (1, 500), (500, 1)):
        assert pair_sum(kernel, np.ones((n, 2)), np.ones((m, 2))) == 2.0 * n * m
    assert max(seen) <= 64
    assert len(seen) < 100


@pytest.mark.parametrize("width", [2, 20, 300])
def test_sums__need_little_memory(width):
    x = cloud("plain", 3000, width).astype("f4")
    pair_sum(Gaussian(1.0), x[:9], x[:9])
    tracemalloc.start()
    pair_sum(Gaussian(5.0), x, x[:2999])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * 2**20


def test_sums__of_whitened_rows(put):
    factor = np.array([[2.0, 0.0], [1.0, 0.5]])
    covariance = CovarianceGaussian(factor @ factor.T * 4)
    x, y = cloud("plain", 40, 2), cloud("plain", 30, 2, 1)
    inverse = np.linalg.inv(factor)
    expected = np.sum(values(Gaussian(2.0), x @ inverse.T, y @ inverse.T))
    np.testing.assert_allclose(
        float(pair_sum(covariance, put(x), put(y))), float(expected), rtol=1e-12
    )
    once, twice = pair_sum(covariance, x, x), pair_sum(covariance, x, x.copy())
    np.testing.assert_allclose(once, twice, rtol=1e-13)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_sums__of_nothing(put, shape):
    n, m = shape
    x, y = put(np.ones((n, 3))), put(np.ones((m, 3)))
    assert float(pair_sum(Gaussian(1.0), x, y)) == 0.0
    np.testing.assert_array_equal(to_host(potential(Gaussian(1.0), x, y)), np.zeros(n))
    many = potential(Gaussian(1.0), x, y, put(np.ones((m, 2))))
    assert to_host(many).shape == (n, 2)


def test_sums__of_strengths_that_are_zero():
    x = cloud("plain", 30, 3)
    weights = strengths("signed", 30)
    weights[::2] = 0
    few = pair_sum(Gaussian(1.0), x[1::2], x, weights[1::2])
    np.testing.assert_allclose(pair_sum(Gaussian(1.0), x, x, weights), few, rtol=1e-13)
    assert pair_sum(Gaussian(1.0), x, x, 0 * weights, weights) == 0.0
    tiny = pair_sum(Gaussian(1.0), x.astype("f4"), x.astype("f4"), weights * 1e-250, weights)
    whole = pair_sum(Gaussian(1.0), x.astype("f4"), x.astype("f4"), weights, weights)
    np.testing.assert_allclose(tiny * 1e250, whole, rtol=1e-6)


@pytest.mark.parametrize("c", [None, 3])
@pytest.mark.parametrize("n", [1, 37, 1100])
@pytest.mark.parametrize("width", [2, 20])
def test_pair_sum__of_a_set_with_itself_is_that_of_two(width, n, c):
    x, u = cloud("plain", n, width), strengths("signed", n, c)
    square = pair_sum(Gaussian(3.0), x, x, u, u)
    scale = np.sum(np.abs(u)) ** 2
    assert abs(square - pair_sum(Gaussian(3.0), x, x.copy(), u, u)) <= 1e-13 * scale
    assert abs(square - np.sum(u.T * potential(Gaussian(3.0), x, x, u).T)) <= 1e-13 * scale


@pytest.mark.parametrize("width", [1, 3, 20])
def test_sums__do_not_depend_on_tiles(monkeypatch, width):
    x, u = cloud("decades", 700, width), strengths("signed", 700)
    kernels = [KINDS[kind](spread(x)) for kind in KINDS]
    whole = [pair_sum(kernel, x, x[:600], u) for kernel in kernels]
    monkeypatch.setattr(numpy_sums, "_BLOCK_ROWS", 120)
    monkeypatch.setattr(numpy_sums, "_TILE_BYTES", 400)
    monkeypatch.setattr(numpy_sums, "_PRODUCT_ROWS", 44)
    monkeypatch.setattr(numpy_sums, "_PRODUCT_COLUMNS", 50)
    tiled = [pair_sum(kernel, x, x[:600], u) for kernel in kernels]
    assert np.max(np.abs(np.subtract(whole, tiled))) <= 1e-12 * np.abs(u).sum() * 600


@pytest.fixture
def swept(monkeypatch):
    """Whether each sweep took a product, and below what it was mended."""
    calls = []

    def spy(problem, x, packed, strengths, total, threshold=0.0, product=None):
        calls.append((product is not None, threshold > 0))
        return original(problem, x, packed, strengths, total, threshold, product)

    original = numpy_sums._swept
    monkeypatch.setattr(numpy_sums, "_swept", spy)
    return calls


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums__take_products_only_where_these_are_accurate(swept, dtype):
    def calls(kernel, x):
        swept.clear()
        pair_sum(kernel, x.astype(dtype), x[::-1].astype(dtype))
        return set(swept)

    x = cloud("plain", 100, 32)
    assert calls(Gaussian(6.0), x[:, :15]) == {(False, False)}
    assert calls(Gaussian(6.0), x) == {(True, False)}
    assert calls(InverseMultiquadric(6.0, 1.0), x) == {(True, False)}
    assert calls(Laplace(6.0), x) == {(True, True)}
    assert calls(Triangle(20.0), x) == {(True, True)}
    assert calls(Gaussian(0.1), x) == {(False, False)}
    assert calls(Laplace(0.01), x) == {(False, False)}
    assert calls(Gaussian(6.0), x + 100) == {(True, False)}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n_near", [2, 300])
def test_sums__mend_what_products_lose(dtype, n_near):
    """Few pairs are near each other, or most of them."""
    x = 3 * cloud("plain", 300, 24)
    x[:n_near] = x[0] + 1e-4 * cloud("plain", n_near, 24)
    x = x.astype(dtype)
    for kernel in (Laplace(10.0), Triangle(30.0), Matern(1.5, 10.0)):
        expected, scale, _ = pair_sum_by_definition(kernel, x, x)
        bound = rounding_bound(kernel, dtype, 24)
        assert abs(pair_sum(kernel, x, x.copy()) - expected) <= bound * scale


@pytest.mark.parametrize("width", [2, 40])
def test_sums__have_the_same_bits_in_every_thread(width):
    x, u = cloud("plain", 400, width).astype("f4"), strengths("signed", 400)

    def work(_):
        return pair_sum(Matern(2.5, 2.0), x, x, u, u).tobytes()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(work, range(16)))) == 1


def test_loops__are_compiled_for_one_signature_under_a_name_of_their_own():
    """Otherwise processes that compile at the same time may load each other's from disk."""
    for dtype in ("f4", "f8"):
        for width in (1, 2, 20):
            for n in (1, 3, 900):
                x, u = cloud("plain", n, width).astype(dtype), strengths("signed", n, 3)
                potential(Gaussian(5.0), np.asfortranarray(x), x, np.asfortranarray(u))
                pair_sum(Laplace(5.0), x, x, u[:, 0], u[:, 1])
    kinds = (
        fused.gaussian,
        fused.laplace,
        fused.matern,
        fused.inverse_multiquadric,
        fused.triangle,
        fused.epanechnikov,
    )
    loops = [loop for kind in kinds for each in kind for loop in each.values()]
    assert all(len(loop.signatures) <= 1 for loop in loops)
    assert len(fused.gaussian.sweeps[np.dtype("f4")].signatures) == 1
    assert len({loop.py_func.__qualname__ for loop in loops}) == 24


@pytest.mark.parametrize(
    ("x", "left", "right", "message"),
    [
        (np.ones((2, 2)), None, None, r"equal width; got \(2, 2\) and \(3, 4\)"),
        (np.ones(4), None, None, "rows of shape"),
        (np.ones((2, 4)), np.ones(3), None, r"left must have shape \(2,\) or \(2, c\).*got \(3,\)"),
        (np.ones((2, 4)), None, np.ones((3, 1, 1)), r"right must have shape \(3,\)"),
        (np.ones((2, 4)), np.ones((2, 3)), np.ones((3, 2)), "got 3 and 2"),
        (np.ones((2, 4)), np.ones((2, 3)), None, "got 3 and 1"),
    ],
)
def test_pair_sum__refuses_what_does_not_fit(x, left, right, message):
    with pytest.raises(ShapeError, match=message):
        pair_sum(Gaussian(1.0), x, np.ones((3, 4)), left, right)


def test_potential__refuses_what_does_not_fit():
    with pytest.raises(ShapeError, match="potential needs two row blocks of equal width"):
        potential(Gaussian(1.0), np.ones((2, 2)), np.ones((3, 4)))


def test_rounding_bound__refuses_what_has_none():
    with pytest.raises(InputError, match="largest value is 1"):
        rounding_bound(Polynomial((0, 1)), "f8", 3)
    with pytest.raises(InputError, match="float32 or float64; got float16"):
        rounding_bound(Gaussian(1.0), "f2", 3)
