import math
import pickle
from fractions import Fraction

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigkd.backends import to_host
from bigkd.errors import EmptyInputError, InputError, ShapeError
from bigkd.kernels import FourierFeatures, Gaussian, fourier

TWO_PI = 2 * Fraction("3.14159265358979323846264338327950288419716939937510")


def by_definition(w, x):
    """Phases in rational arithmetic, reduced with fifty digits of pi, then the formula."""
    r = len(w)
    out = np.empty((len(x), 2 * r))
    for i, row in enumerate(x.tolist()):
        for k, frequency in enumerate(w.tolist()):
            pairs = zip(row, frequency, strict=True)
            phase = float(sum(Fraction(a) * Fraction(b) for a, b in pairs) % TWO_PI)
            out[i, k] = math.cos(phase) / math.sqrt(r)
            out[i, r + k] = math.sin(phase) / math.sqrt(r)
    return out


@pytest.mark.parametrize("d", [1, 2, 20])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e4, 1e6])
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-12), ("float32", 2e-6)])
def test_features__match_definition_far_from_origin(put, d, offset, dtype, atol):
    generator = np.random.default_rng(d)
    x = (generator.normal(0, 1.0, (12, d)) + offset).astype(dtype)
    w = Gaussian(math.sqrt(d)).frequencies(6, d)
    got = FourierFeatures(w)(put(x))
    assert to_host(got).dtype == dtype
    np.testing.assert_allclose(to_host(got), by_definition(w, x), rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("dtype", "computed"),
    [("float16", "f4"), ("uint8", "f4"), ("int16", "f4"), ("int64", "f8"), ("bool", "f4")],
)
def test_features__cast_narrow_and_integer_rows(dtype, computed):
    x = np.random.default_rng(0).integers(0, 200, (7, 5)).astype(dtype)
    w = Gaussian(50.0).frequencies(4, 5)
    got = FourierFeatures(w)(x)
    assert got.dtype == computed
    np.testing.assert_allclose(got, by_definition(w, x.astype("f8")), atol=2e-6)


def test_features__do_not_depend_on_the_block(monkeypatch):
    monkeypatch.setattr(fourier, "_TILE_ROWS", 4)
    x = (np.random.default_rng(0).normal(0, 1, (11, 3)) + 1e4).astype("f4")
    features = FourierFeatures(Gaussian(1.0).frequencies(5, 3))
    whole = features(x)
    pieces = np.concatenate([features(x[:3]), features(x[3:4]), features(x[4:])])
    np.testing.assert_allclose(whole, pieces, atol=2e-6)
    np.testing.assert_allclose(whole, by_definition(features.frequencies, x), atol=2e-6)


@given(r=st.integers(1, 300), n=st.integers(1, 5), scale=st.floats(1e-3, 1e3))
def test_features__have_norm_one(r, n, scale):
    x = scale * np.random.default_rng(r).normal(size=(n, 3))
    features = FourierFeatures(Gaussian(1.0).frequencies(r, 3))(x)
    assert features.shape == (n, 2 * r)
    np.testing.assert_allclose(np.sum(features**2, axis=1), 1.0, rtol=1e-13)


def test_features__of_no_rows_are_empty(put):
    features = FourierFeatures(np.ones((3, 2)))
    assert tuple(features(put(np.ones((0, 2), "f4"))).shape) == (0, 6)


def test_features__keep_a_bad_row_to_itself():
    x = np.random.default_rng(0).normal(size=(4, 3))
    features = FourierFeatures(Gaussian(1.0).frequencies(5, 3))
    want = features(x)
    x[2, 1] = np.nan
    got = features(x)
    assert np.isnan(got[2]).all()
    np.testing.assert_allclose(got[[0, 1, 3]], want[[0, 1, 3]], atol=1e-12)


def test_features__tell_their_sizes():
    features = FourierFeatures(np.ones((3, 2), "f4"))
    assert (features.width, features.n_frequencies, features.n_features) == (2, 3, 6)
    assert features.frequencies.dtype == np.float64


def test_features__keep_a_copy_of_their_frequencies(put):
    given_frequencies = np.array([[1.0, 2.0]])
    features = FourierFeatures(put(given_frequencies))
    given_frequencies[:] = 0
    np.testing.assert_array_equal(features.frequencies, [[1.0, 2.0]])
    with pytest.raises(ValueError, match="read-only"):
        features.frequencies[0, 0] = 3.0


def test_features__leave_their_rows_alone():
    x = np.ones((4, 2))
    FourierFeatures(np.ones((3, 2)))(x)
    np.testing.assert_array_equal(x, 1.0)


def test_features__serve_several_dtypes_and_namespaces_in_turn():
    features = FourierFeatures(Gaussian(1.0).frequencies(5, 3))
    x = np.random.default_rng(0).normal(size=(4, 3))
    want = by_definition(features.frequencies, x)
    for _ in range(2):
        for block in (x, x.astype("f4"), array_api_strict.asarray(x)):
            got = features(block)
            assert type(got) is type(block)
            assert got.dtype == block.dtype
            np.testing.assert_allclose(to_host(got), want, atol=2e-6)


def test_features__are_pickled_without_what_was_cast():
    features = FourierFeatures(Gaussian(1.0).frequencies(50, 3))
    fresh = len(pickle.dumps(features))
    x = np.random.default_rng(0).normal(size=(4, 3))
    want = features(x)
    assert len(pickle.dumps(features)) == fresh
    again = pickle.loads(pickle.dumps(features))
    np.testing.assert_array_equal(again(x), want)
    assert not again.frequencies.flags.writeable


def test_head__is_the_map_of_the_first_frequencies():
    kernel = Gaussian(1.0)
    x = np.random.default_rng(0).normal(size=(4, 3))
    features = FourierFeatures(kernel.frequencies(50, 3))
    np.testing.assert_array_equal(
        features.head(20)(x), FourierFeatures(kernel.frequencies(20, 3))(x)
    )
    with pytest.raises(InputError, match="k must be at most the 50 frequencies; got 51"):
        features.head(51)
    with pytest.raises(InputError, match="k must be an integer of at least 1; got 0"):
        features.head(0)


@pytest.mark.parametrize(
    ("frequencies", "error", "pattern"),
    [
        (np.ones(3), ShapeError, r"must have shape \(r, d\); got \(3,\)"),
        (np.ones((0, 3)), EmptyInputError, r"at least one element; got \(0, 3\)"),
        (np.ones((2, 0)), EmptyInputError, r"at least one element; got \(2, 0\)"),
        (np.ones((2, 3), int), InputError, "floating point; got int64"),
        (np.array([[1.0, np.nan]]), InputError, "finite; 1 of 2 are not"),
    ],
)
def test_features__refuse_bad_frequencies(frequencies, error, pattern):
    with pytest.raises(error, match=pattern):
        FourierFeatures(frequencies)


@pytest.mark.parametrize("shape", [(3,), (4, 2), (2, 4, 3)])
def test_features__refuse_rows_of_other_shapes(put, shape):
    with pytest.raises(ShapeError, match="FourierFeatures"):
        FourierFeatures(np.ones((5, 3)))(put(np.ones(shape)))


def test_features__refuse_complex_rows():
    with pytest.raises(InputError, match="real rows; got complex128"):
        FourierFeatures(np.ones((5, 3)))(np.ones((2, 3), complex))


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("n", [0, 1, 700])
def test_weighted_sum__is_the_sum_of_features(n, dtype, put):
    generator = np.random.default_rng(n)
    x = generator.uniform(0, 9, (n, 5)).astype(dtype)
    u = generator.normal(size=(n, 2))
    features = FourierFeatures(Gaussian(3.0).frequencies(300, 5))
    found = to_host(features.weighted_sum(put(x), put(u)))
    expected = u.T @ to_host(features(put(x))).astype("f8")
    np.testing.assert_allclose(found, expected, atol=1e-10 if dtype == "float64" else 1e-4)
    assert found.dtype == np.float64


def test_weighted_sum__keeps_its_digits_far_from_the_origin():
    generator = np.random.default_rng(0)
    x = (generator.normal(size=(5000, 3)) + 1e5).astype("f4")
    features = FourierFeatures(Gaussian(2.0).frequencies(50, 3))
    found = features.weighted_sum(x, np.ones((5000, 1)))[0]
    angle = x.astype("f8") @ features.frequencies.T
    expected = np.concatenate([np.cos(angle).sum(axis=0), np.sin(angle).sum(axis=0)]) / 50**0.5
    np.testing.assert_allclose(found, expected, atol=5000 * 2e-6)


def test_weighted_sum__refuses_rows_of_another_width():
    features = FourierFeatures(np.ones((4, 3)))
    with pytest.raises(ShapeError, match="width 3"):
        features.weighted_sum(np.ones((2, 2)), np.ones((2, 1)))
