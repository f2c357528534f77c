import pickle
from concurrent.futures import ThreadPoolExecutor

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bigkd.backends import to_host
from bigkd.errors import InputError, ShapeError
from bigkd.kernels import (
    CovarianceGaussian,
    DotTimes,
    Epanechnikov,
    Gaussian,
    InverseMultiquadric,
    KernelValues,
    Laplace,
    Matern,
    Polynomial,
    Triangle,
    fused,
)
from bigkd.kernels import values as module
from tests.kernels.exact_sums import CLOUDS, KINDS, cloud, spread, values

FLOOR = {"f4": 1e-26, "f8": 1e-295}


def bounds(kernel, exact, width, dtype):
    """Largest errors of values of rows that are less than 16 wide, as documented."""
    roundoff = np.finfo(dtype).eps / 2
    if isinstance(kernel, Triangle | Epanechnikov):
        return (width + 10) * roundoff
    beta = kernel.beta if isinstance(kernel, InverseMultiquadric) else 0.0
    size = -np.log(np.maximum(exact, np.finfo(exact.dtype).tiny))
    return ((width + 10) * size + beta + 16) * roundoff * exact + FLOOR[dtype]


def assert_accurate(kernel, x, y):
    dtype = x.dtype.str[1:]
    got, exact = KernelValues(kernel, y)(x), values(kernel, x, y)
    assert got.dtype == x.dtype
    assert got.shape == exact.shape
    assert got.flags.c_contiguous
    assert np.all(np.abs(got - exact) <= bounds(kernel, exact, x.shape[1], dtype))
    assert_normal(got)


def assert_normal(got):
    assert not np.any((got != 0) & (np.abs(got) < np.finfo(got.dtype).smallest_normal))


@pytest.fixture
def compiled(monkeypatch):
    """Whether each call was left to compiled loops."""
    calls = []

    def spy(self, x, out):
        calls.append(original(self, x, out))
        return calls[-1]

    original = KernelValues._filled
    monkeypatch.setattr(KernelValues, "_filled", spy)
    return calls


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("factor", [0.05, 1.0, 1e6])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CLOUDS)
def test_values__match_definition_on_difficult_rows(compiled, name, kind, factor, dtype):
    for width in (1, 2, 3, 4, 5, 6, 9, 15):
        x, y = cloud(name, 43, width), cloud(name, 9, width)
        kernel = KINDS[kind](spread(x) * factor)
        assert_accurate(kernel, x.astype(dtype), np.concatenate([x[20:], y]).astype(dtype))
    assert all(compiled)


@settings(max_examples=100)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    name=st.sampled_from(sorted(CLOUDS)),
    n=st.integers(1, 70),
    m=st.integers(1, 70),
    d=st.integers(1, 15),
    exponent=st.floats(-3, 3),
    dtype=st.sampled_from(["f4", "f8"]),
)
def test_values__match_definition(kind, name, n, m, d, exponent, dtype):
    both = cloud(name, n + m, d).astype(dtype)
    assert_accurate(KINDS[kind](spread(both) * 10.0**exponent), both[:n], both[n:])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", KINDS)
def test_values__are_never_subnormal(put, kind, dtype):
    """At distances that make values of every size, there are."""
    distances = np.geomspace(1e-3, 1e100 if dtype == "f8" else 1e12, 5000)
    x = np.concatenate([distances, np.linspace(80.0, 800.0, 5000), np.linspace(10.0, 40.0, 5000)])
    for width in (1, 20):
        rows = np.zeros((len(x), width), dtype)
        rows[:, 0] = x
        kernel = KINDS[kind](1.0)
        got = to_host(KernelValues(kernel, put(np.zeros((1, width), dtype)))(put(rows)))
        exact = values(kernel, rows, np.zeros((1, width)))
        assert_normal(got)
        np.testing.assert_allclose(got, exact.astype("f8"), rtol=1e-3, atol=FLOOR[dtype])


@pytest.mark.parametrize("kind", KINDS)
def test_values__of_float64_in_float32_are_never_subnormal(kind):
    x = np.linspace(8.0, 1e3, 20_000)[:, None]
    assert_normal(KernelValues(KINDS[kind](1.0), np.zeros((1, 1)), "f4")(x))
    far = KernelValues(KINDS[kind](1e-14), np.full((1, 1), 1e20), "f4")
    assert_normal(far(np.linspace(1e20, 1e20 + 1e6, 1000)[:, None]))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", KINDS)
def test_values__of_equal_rows_are_one(kind, dtype):
    for width in (1, 3, 7, 20):
        x = (cloud("offset", 33, width) + 1e3).astype(dtype)
        assert np.all(np.diag(KernelValues(KINDS[kind](0.1), x)(x)) == 1.0)


@pytest.mark.parametrize("shape", [(1, 1), (5, 16), (7, 1001), (300, 3), (2, 5000)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_values__of_a_row_do_not_depend_on_the_others(shape, dtype):
    n, m = shape
    x, y = cloud("plain", n, 3).astype(dtype), cloud("plain", m, 3).astype(dtype)
    for kind in KINDS:
        prepared = KernelValues(KINDS[kind](2.0), y)
        fewer = KernelValues(prepared.kernel, y[m // 3 :])
        whole = prepared(x)
        np.testing.assert_array_equal(whole[n // 2 :], prepared(x[n // 2 :]))
        np.testing.assert_array_equal(whole[:, m // 3 :], fewer(x))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("length", [1e-150, 1e-30, 1e-5, 3.0, 1e30, 1e100])
@pytest.mark.parametrize("kind", KINDS)
def test_values__take_any_length(kind, length, dtype):
    x = cloud("plain", 40, 3).astype(dtype)
    assert_accurate(KINDS[kind](length), x, x[::-1].copy())
    scaled = (cloud("plain", 40, 3) * min(length, 1e28 if dtype == "f4" else 1e300)).astype(dtype)
    assert_accurate(KINDS[kind](length), scaled, scaled[::-1].copy())


@pytest.mark.parametrize("length", [1e-38, 1e-25, 3e3, 1e25])
@pytest.mark.parametrize("kind", KINDS)
def test_values__of_float64_are_scaled_before_they_are_rounded(compiled, kind, length):
    """The rows themselves are out of float32's range, but not in lengths of the kernel."""
    x = cloud("plain", 30, 2)
    x *= length * (1e-4 if length < 1 else 1e14 if length > 1e4 else 1)
    x[:3] = x[3]
    kernel = KINDS[kind](length)
    got, exact = KernelValues(kernel, x, "float32")(x), values(kernel, x, x)
    np.testing.assert_allclose(got, exact.astype("f8"), rtol=1e-5, atol=1e-6)
    assert compiled[-1]


@pytest.mark.parametrize(("dtype", "far"), [("f4", 1e37), ("f4", 1e16), ("f8", 1e200)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1, 3])
def test_values__of_rows_far_away(kind, far, dtype, width):
    near = cloud("plain", 5, width).astype(dtype)
    both = np.concatenate([near, (cloud("plain", 4, width) * far).astype(dtype)])
    got = KernelValues(KINDS[kind](2.0), both)(both)
    assert_normal(got)
    exact = values(KINDS[kind](2.0), both, both)
    np.testing.assert_allclose(got[:5, :5], exact[:5, :5].astype("f8"), rtol=1e-5, atol=1e-6)
    assert np.all(np.diag(got) == 1)
    apart = got - np.eye(9)
    apart[:5, :5] = 0
    assert np.all(apart <= 0 if "inverse" not in kind else apart < 1e-8)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("width", [2, 20])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values__of_rows_that_are_not_finite_are_the_kernels(dtype, width, bad):
    x, y = cloud("plain", 9, width).astype(dtype), cloud("plain", 7, width).astype(dtype)
    spoilt = x.copy()
    spoilt[4, 1] = bad
    for kind in ("gaussian", "laplace", "inverse multiquadric"):
        kernel = KINDS[kind](2.0)
        with np.errstate(invalid="ignore"):
            pairs = [
                (KernelValues(kernel, y)(spoilt), kernel(spoilt, y)),
                (KernelValues(kernel, spoilt)(y), kernel(y, spoilt)),
            ]
        for got, expected in pairs:
            np.testing.assert_allclose(got, expected, rtol=1e-5)
            assert np.isfinite(got).sum() < got.size or bad == np.inf


def test_values__beside_rows_that_are_not_finite_are_as_accurate():
    x, y = cloud("plain", 9, 2).astype("f4"), cloud("plain", 7, 2).astype("f4")
    spoilt = np.concatenate([x, np.full((1, 2), np.nan, "f4")])
    got, exact = KernelValues(Laplace(1.0), y, "float64")(spoilt), values(Laplace(1.0), x, y)
    np.testing.assert_allclose(got[:9], exact.astype("f8"), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [2, 7, 20])
def test_values__are_the_same_in_every_namespace(put, monkeypatch, kind, width, dtype):
    monkeypatch.setattr(module, "_TILE_ELEMENTS", 100)
    x, y = cloud("plain", 21, width).astype(dtype), cloud("plain", 13, width).astype(dtype)
    kernel = KINDS[kind](spread(x))
    prepared = KernelValues(kernel, put(y))
    got = prepared(put(x))
    exact = values(kernel, x, y).astype("f8")
    np.testing.assert_allclose(to_host(got), exact, atol=2e-5 if dtype == "f4" else 1e-13)
    assert to_host(got).dtype == x.dtype
    out = put(np.ones((21, 13), dtype))
    if not isinstance(out, np.ndarray) or out.flags.writeable:
        assert prepared(put(x), out) is out
        np.testing.assert_array_equal(to_host(out), to_host(got))


@pytest.mark.parametrize(
    "kernel",
    [
        Matern(2.2, 1.5),
        Polynomial((1.0, 0.0, 2.0)),
        DotTimes(Gaussian(2.0)),
        CovarianceGaussian(np.diag([1.0, 4.0, 9.0])),
        lambda x, y: x @ y.T,
    ],
    ids=["matern", "polynomial", "dot times", "covariance", "function"],
)
def test_values__take_any_kernel(put, monkeypatch, kernel):
    monkeypatch.setattr(module, "_TILE_ELEMENTS", 100)
    x, y = cloud("plain", 31, 3), cloud("plain", 17, 3)
    np.testing.assert_allclose(to_host(KernelValues(kernel, put(y))(put(x))), kernel(x, y), 1e-12)
    single = to_host(KernelValues(kernel, put(y), "float32")(put(x)))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, kernel(x, y), rtol=1e-5, atol=1e-5)
    tiny = KernelValues(lambda x, y: -1e-39 * (x @ y.T), put(y), "float32")(put(x))
    assert not np.any(to_host(tiny))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
@pytest.mark.parametrize("width", [3, 20])
def test_values__of_nothing(put, shape, width):
    n, m = shape
    got = KernelValues(Laplace(1.0), put(np.ones((m, width))))(put(np.ones((n, width))))
    assert got.shape == shape


def test_values__of_rows_of_no_width_are_one():
    assert np.all(KernelValues(Laplace(1.0), np.ones((3, 0)))(np.ones((2, 0))) == np.ones((2, 3)))


def unaligned(x):
    raw = bytearray(x.nbytes + 1)
    out = np.frombuffer(memoryview(raw)[1:], dtype=x.dtype).reshape(x.shape)
    out[...] = x
    return out


LAYOUTS = {
    "columns first": np.asfortranarray,
    "every second": lambda x: np.repeat(x, 2, axis=0)[::2],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "unaligned": unaligned,
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "subclass": lambda x: x.view(np.memmap),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("length", [2.0, 1e-4])
def test_values__do_not_depend_on_the_layout(put, layout, length):
    x, y = cloud("plain", 30, 3), cloud("plain", 20, 3)
    if put is array_api_strict.asarray:
        pytest.skip("it has one layout")
    expected = KernelValues(Laplace(length), y)(x)
    got = KernelValues(Laplace(length), put(layout(y)))(put(layout(x)))
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(x, cloud("plain", 30, 3))


@pytest.mark.parametrize("dtype", ["f2", "f4", "i1", "u1", "i2", "i4", "i8", "u8", "?", "f8"])
def test_values__are_of_the_dtype_of_y_or_as_asked(compiled, dtype):
    y = np.random.default_rng(0).integers(0, 2 if dtype == "?" else 9, (12, 3)).astype(dtype)
    wide = dtype in ("i4", "i8", "u8", "f8")
    exact = values(Laplace(3.0), y, y)
    got = KernelValues(Laplace(3.0), y)(y)
    assert got.dtype == (np.float64 if wide else np.float32)
    np.testing.assert_allclose(got, exact.astype("f8"), rtol=1e-14 if wide else 1e-6)
    for asked in (np.float32, np.float64):
        got = KernelValues(Laplace(3.0), y, asked)(y)
        assert got.dtype == asked
        rtol = 1e-14 if asked == np.float64 else 1e-6
        np.testing.assert_allclose(got, exact.astype("f8"), rtol=rtol)
    assert all(compiled)


@pytest.mark.parametrize("width", [2, 20])
def test_values__are_written_where_asked(width):
    x, y = cloud("plain", 30, width), cloud("plain", 20, width)
    frame = np.full((34, 20), 7.0)
    prepared = KernelValues(Gaussian(1.0), y)
    got = prepared(x, out=frame[2:32])
    assert np.shares_memory(got, frame)
    np.testing.assert_array_equal(got, prepared(x))
    assert np.all(frame[:2] == 7)
    assert np.all(frame[32:] == 7)


def test_values__keep_their_rows():
    y = cloud("plain", 20, 3)
    prepared = KernelValues(Laplace(1.0), y)
    before = prepared(y[:4].copy())
    x = y[:4].copy()
    y[...] = 0
    np.testing.assert_array_equal(prepared(x), before)
    assert not prepared.y.flags.writeable


@pytest.mark.parametrize("dtype", [None, "float32"])
def test_values__pickle_as_what_they_are_made_of(dtype):
    y = cloud("plain", 20, 3)
    prepared = KernelValues(Laplace(1.0), y, dtype)
    expected = prepared(y)
    data = pickle.dumps(prepared)
    assert len(data) < y.nbytes + 500
    again = pickle.loads(data)
    assert again.dtype == prepared.dtype
    np.testing.assert_array_equal(again(y), expected)


def test_values__have_the_same_bits_in_every_thread():
    x, y = cloud("plain", 400, 3).astype("f4"), cloud("plain", 300, 3).astype("f4")
    prepared = KernelValues(Matern(2.5, 2.0), y)
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda _: prepared(x).tobytes(), range(16)))) == 1


def test_fills__are_compiled_for_one_signature():
    for layout in LAYOUTS.values():
        for m in (1, 300, 5000):
            x = layout(cloud("plain", 8, 3))
            KernelValues(Laplace(1.0), layout(cloud("plain", m, 3)))(x, np.empty((8, m)))
    assert len(fused.laplace.fills[np.dtype("f8")].signatures) == 1


def test_values__refuse_what_does_not_fit():
    prepared = KernelValues(Laplace(1.0), np.ones((4, 3)))
    x = np.ones((2, 3))
    for bad in (np.ones(3), np.ones((2, 3, 1))):
        with pytest.raises(ShapeError, match="KernelValues needs rows of shape"):
            prepared(bad)
        with pytest.raises(ShapeError, match="KernelValues needs rows of shape"):
            KernelValues(Laplace(1.0), bad)
    with pytest.raises(ShapeError, match=r"equal width; got \(2, 2\) and \(4, 3\)"):
        prepared(np.ones((2, 2)))
    with pytest.raises(InputError, match="real rows; got complex128"):
        prepared(x * 1j)
    with pytest.raises(ShapeError, match=r"out must have shape \(2, 4\).*got \(4, 2\)"):
        prepared(x, np.empty((4, 2)))
    with pytest.raises(InputError, match="float64; got float32"):
        prepared(x, np.empty((2, 4), "f4"))
    read_only = np.empty((2, 4))
    read_only.flags.writeable = False
    for out in (np.empty((4, 2)).T, read_only, unaligned(np.empty((2, 4)))):
        with pytest.raises(InputError, match="C-contiguous, aligned and writable"):
            prepared(x, out)
    with pytest.raises(InputError, match="float32 or float64; got float16"):
        KernelValues(Laplace(1.0), x, "f2")
