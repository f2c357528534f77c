import numpy as np
import pytest

from bigkd.backends import namespace, to_host
from bigkd.errors import DataError, ShapeError
from bigkd.linalg import Factors, dissimilarities, factored, truncated


def orthonormal(generator, rows, columns):
    return np.linalg.qr(generator.normal(size=(rows, columns)))[0]


def graded(n, rows, columns, decades, seed=0):
    """Maps whose singular values fall by so many decades."""
    generator = np.random.default_rng(seed)
    strengths = 10.0 ** -np.linspace(0, decades, columns)
    return np.stack(
        [
            orthonormal(generator, rows, columns)
            @ (strengths[:, None] * orthonormal(generator, columns, columns))
            for _ in range(n)
        ]
    )


def assert_factors(maps, factors, eps, *, orthogonality):
    """Within rounding: left singular vectors and values of maps that are within rounding."""
    basis, strength = (to_host(part).astype(np.float64) for part in factors)
    for given, left, found in zip(maps, basis, strength, strict=True):
        scale = max(np.linalg.norm(given, 2), np.finfo(float).tiny)
        one, values = given / scale, found / scale
        rank = values.size
        np.testing.assert_allclose(left.T @ left, np.eye(rank), atol=orthogonality)
        assert (np.diff(values) <= 0).all()
        np.testing.assert_allclose(values, np.linalg.svd(one)[1][:rank], atol=20 * eps)
        right = left.T @ one
        np.testing.assert_allclose(left @ right, one, atol=20 * eps)
        np.testing.assert_allclose(right @ right.T, np.diag(values**2), atol=40 * eps)


SHAPES = [(12, 12), (5, 12), (40, 12), (400, 12), (300, 1)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("decades", [0, 4, 9, 20])
def test_factored__are_singular_vectors_and_values(put, shape, decades):
    maps = graded(3, max(shape), min(shape), decades)
    maps = maps if shape[0] >= shape[1] else np.swapaxes(maps, 1, 2)
    found = factored(put(maps))
    assert namespace(*found) is namespace(put(maps))
    assert found.basis.shape == (3, shape[0], min(shape))
    assert_factors(maps, found, np.finfo(float).eps, orthogonality=1e-14)


@pytest.mark.parametrize("rows", [40, 400])
def test_factored__of_float32(put, rows):
    maps = graded(3, rows, 12, 9).astype(np.float32)
    found = factored(put(maps))
    assert to_host(found.basis).dtype == to_host(found.strength).dtype == np.float32
    assert_factors(maps.astype(float), found, 1e-7, orthogonality=1e-6)


@pytest.mark.parametrize("rows", [40, 400])
@pytest.mark.parametrize("rank", [0, 1, 5])
def test_factored__of_less_than_full_rank(put, rows, rank):
    maps = graded(2, rows, 12, 3)
    maps[:, :, rank:] = 0.0
    maps[1] = maps[1, :, ::-1]
    found = factored(put(maps))
    assert_factors(maps, found, np.finfo(float).eps, orthogonality=1e-14)
    assert (to_host(found.strength)[:, rank:] <= 1e-14).all()


def test_factored__of_equal_columns():
    maps = np.repeat(graded(2, 600, 4, 2), 5, axis=2)
    assert_factors(maps, factored(maps), np.finfo(float).eps, orthogonality=1e-14)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("rows", [40, 400])
def test_factored__of_any_size(scale, rows):
    maps = scale * graded(2, rows, 12, 6)
    assert_factors(maps, factored(maps), np.finfo(float).eps, orthogonality=1e-14)


def test_factored__are_the_same_whoever_stands_beside_them():
    maps = graded(5, 400, 12, 9)
    together, alone = factored(maps), factored(maps[3:4])
    assert np.array_equal(together.basis[3], alone.basis[0])
    assert np.array_equal(together.strength[3], alone.strength[0])
    strided = np.stack([maps, maps], axis=1)[:, 1]
    assert np.array_equal(factored(strided).basis, together.basis)


def test_factored__of_no_maps():
    assert factored(np.zeros((0, 400, 12))).basis.shape == (0, 400, 12)


def test_factored__refuses_what_is_no_stack_and_values_that_are_not_finite(put):
    with pytest.raises(ShapeError, match="stack"):
        factored(put(np.zeros((4, 3))))
    for wrong in (np.nan, np.inf):
        maps = np.ones((2, 90, 3))
        maps[1, 5, 1] = wrong
        with pytest.raises(DataError, match="not finite"):
            factored(put(maps))


def test_truncated__cuts_what_no_item_needs(put):
    strength = np.array([[4.0, 2.0, 1.0, 0.5], [3.0, 1.0, 0.5, 0.25]])
    basis = np.stack([np.eye(6)[:, :4]] * 2)
    found = truncated(Factors(put(basis), put(strength)), 1.0)
    np.testing.assert_array_equal(to_host(found.strength), [[4.0, 2.0], [3.0, 0.0]])
    np.testing.assert_array_equal(to_host(found.basis)[1, :, 1], np.zeros(6))
    each = truncated(Factors(put(basis), put(strength)), put(np.array([4.0, 0.2])))
    np.testing.assert_array_equal(to_host(each.strength), [[4.0, 0.0, 0.0], [3.0, 1.0, 0.5]])
    nothing = truncated(Factors(put(basis), put(strength)), 100.0)
    assert nothing.basis.shape == (2, 6, 1)
    assert (to_host(nothing.strength) == 0.0).all()
    assert truncated(Factors(put(basis), put(strength)), 0.0).basis.shape == basis.shape


@pytest.mark.parametrize("floor", [1e-12, 1e-8, 1e-5, 1e-3, 1e-2])
def test_truncated__changes_dissimilarities_by_no_more_than_it_says(floor):
    maps = graded(6, 60, 20, 6, seed=2)
    maps[3:] = maps[:3] * (1 + 0.1 * np.random.default_rng(0).normal(size=maps[:3].shape))
    a, b = factored(maps[:3]), factored(maps[::-1])
    lams = np.array([1e-2, 1e-4, 1e-6])
    exact = dissimilarities(a, b, lams).value
    less_a = dissimilarities(truncated(a, floor), b, lams).value
    less_b = dissimilarities(a, truncated(b, floor), lams).value
    assert (less_a <= exact * (1 + 1e-9)).all()
    assert (exact <= less_a + floor + 1e-9 * exact).all()
    assert (exact <= less_b * (1 + 1e-9)).all()
    assert (less_b <= exact * (1 + 1e-9 + floor / lams[:, None, None])).all()
    assert floor < 1e-5 or ((less_a < exact).any() and (less_b > exact).any())
