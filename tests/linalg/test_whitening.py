import numpy as np
import pytest

from bigkd.errors import InputError, ShapeError
from bigkd.kernels import Gaussian
from bigkd.linalg import whitening

EPS = np.finfo(float).eps


def gaussian_gram(points, sigma=0.3):
    return np.exp(-((points[:, None] - points) ** 2) / (2 * sigma**2))


def test_whitening__is_an_upper_factor_of_the_gram_matrix():
    gram = gaussian_gram(np.linspace(-1, 1, 8))
    found = whitening(gram)
    assert found.jitter == 0.0
    assert found.upper.dtype == np.float64
    assert np.array_equal(found.upper, np.triu(found.upper))
    np.testing.assert_allclose(found.upper.T @ found.upper, gram, atol=1e-15)


def test_whitening__adds_the_jitter_that_is_asked_for_and_leaves_the_gram_matrix_alone():
    gram = gaussian_gram(np.linspace(-1, 1, 8))
    before = gram.copy()
    gram.flags.writeable = False
    found = whitening(gram, jitter=0.25)
    assert found.jitter == 0.25
    np.testing.assert_allclose(found.upper.T @ found.upper, before + 0.25 * np.eye(8), atol=1e-15)
    assert np.array_equal(gram, before)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 2.0**40])
def test_whitening__climbs_a_fixed_ladder_where_landmarks_coincide(scale):
    points = np.array([0.0, 0.1, 0.1, 0.7, 0.7, 0.7])
    gram = scale * gaussian_gram(points)
    found = whitening(gram)
    steps = np.log10(found.jitter / (EPS * scale))
    assert steps == pytest.approx(round(steps), abs=1e-9)
    assert 0 <= steps <= 3
    expected = gram + found.jitter * np.eye(6)
    np.testing.assert_allclose(found.upper.T @ found.upper, expected, rtol=1e-14)
    assert np.diagonal(found.upper).min() ** 2 >= 6 * EPS * scale
    assert whitening(gram).jitter == found.jitter


def test_whitening__never_takes_less_than_was_asked_for():
    points = np.repeat(np.linspace(-1, 1, 4), 2)
    assert whitening(gaussian_gram(points), jitter=1e-3).jitter == 1e-3
    assert whitening(gaussian_gram(points), jitter=1e-20).jitter > 1e-16


def test_whitening__factors_the_gram_matrix_of_too_many_landmarks():
    points = np.linspace(-1, 1, 60)[:, None]
    gram = Gaussian(0.5)(points, points)
    found = whitening(gram)
    assert 0.0 < found.jitter < 1e-10
    assert np.isfinite(np.linalg.inv(found.upper)).all()


def test_whitening__takes_float32():
    gram = gaussian_gram(np.linspace(-1, 1, 4)).astype(np.float32)
    found = whitening(gram)
    assert found.upper.dtype == np.float64
    np.testing.assert_allclose(found.upper.T @ found.upper, gram, atol=1e-15)


@pytest.mark.parametrize(
    ("gram", "says"),
    [
        ([[1.0, np.nan], [np.nan, 1.0]], "not finite"),
        ([[1.0, np.inf], [np.inf, 1.0]], "not finite"),
        ([[1.0, 0.5], [0.4, 1.0]], "symmetric"),
        ([[-1.0, 0.0], [0.0, 1.0]], "diagonal"),
        ([[0.0, 0.0], [0.0, 0.0]], "diagonal"),
        ([[1.0, 2.0], [2.0, 1.0]], "not positive semi-definite"),
    ],
)
def test_whitening__refuses_what_has_no_factor(gram, says):
    with pytest.raises(InputError, match=says):
        whitening(np.array(gram))


@pytest.mark.parametrize("shape", [(3,), (2, 3), (0, 0)])
def test_whitening__refuses_what_is_not_a_square(shape):
    with pytest.raises(ShapeError, match="square"):
        whitening(np.ones(shape))


@pytest.mark.parametrize("jitter", [-1e-3, np.nan, np.inf])
def test_whitening__refuses_a_jitter_that_is_none(jitter):
    with pytest.raises(InputError, match="jitter"):
        whitening(np.eye(2), jitter=jitter)
