"""Ridge-regularised projections, against Cholesky's method in extended precision."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigkd.backends import namespace, to_host
from bigkd.errors import InputError, ShapeError
from bigkd.linalg import (
    Factors,
    best_functions,
    dissimilarities,
    factored,
    ridge,
    ridge_plan,
    scratch_bytes,
)
from tests.linalg.plain_ridge import (
    COLUMNS,
    EXTENDED,
    ROWS,
    all_by_definition,
    by_definition,
    collection,
    given_maps,
    graded,
)

LAMS = np.array([1e-2, 1e-4, 1e-6])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.skipif(not EXTENDED, reason="long double is double here")
def test_dissimilarities__match_the_definition(put, seed):
    a, b = collection(seed)
    factors = [factored(maps) for maps in (a, b)]
    expected = all_by_definition(*(given_maps(each) for each in factors), LAMS)
    moved = (Factors(*(put(part) for part in each)) for each in factors)
    found = dissimilarities(*moved, put(LAMS))
    assert namespace(*found) is namespace(put(a))
    value, rounding = (to_host(part) for part in found)
    assert value.shape == (3, 6, 6)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    assert (np.abs(value - expected) <= rounding).all()
    assert (rounding <= 1e-9 * value + 1e-300).all()
    assert (value[:, -1] == 0.0).all()
    norms = np.linalg.norm(a, 2, axis=(1, 2))
    np.testing.assert_allclose(value[..., -1], np.stack([norms**2] * 3), rtol=1e-12)


@pytest.mark.skipif(not EXTENDED, reason="long double is double here")
def test_dissimilarities__of_float32_are_those_of_the_given_factors(put):
    maps = list(collection())
    expected = all_by_definition(*maps, LAMS)
    factors = [Factors(*(p.astype(np.float32) for p in factored(each))) for each in maps]
    of_given = all_by_definition(*(given_maps(each) for each in factors), LAMS)
    found = dissimilarities(*(Factors(*(put(p) for p in each)) for each in factors), LAMS)
    value, rounding = (to_host(part) for part in found)
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    np.testing.assert_allclose(value, of_given, rtol=1e-10)
    assert (np.abs(value - of_given) <= rounding).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dissimilarities__of_factors_with_zeros_for_columns(dtype):
    generator = np.random.default_rng(0)
    a = Factors(*(part.astype(dtype) for part in factored(graded(4, 6, 0))))
    for _ in range(40):
        strength = -np.sort(-(10.0 ** -generator.uniform(0, 30, COLUMNS)))
        empty = np.arange(COLUMNS) >= generator.integers(1, COLUMNS)
        basis = np.linalg.qr(generator.normal(size=(ROWS, COLUMNS)))[0]
        basis[:, empty], strength[empty] = 0.0, 0.0
        b, less = (
            Factors(basis[None, :, at].astype(dtype), strength[None, at].astype(dtype))
            for at in (np.arange(COLUMNS), ~empty)
        )
        found, expected = (dissimilarities(a, each, [1e-2, 1e-7]).value for each in (b, less))
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("tiny", [1e-9, 1e-12, 1e-15])
@pytest.mark.skipif(not EXTENDED, reason="long double is double here")
def test_dissimilarities__stay_within_their_rounding_for_tiny_lambdas(tiny):
    factors = [factored(maps) for maps in collection()]
    expected = all_by_definition(*(given_maps(each) for each in factors), [tiny])
    found = dissimilarities(*factors, [tiny])
    assert (np.abs(found.value - expected) <= found.rounding + 1e-19 / tiny * expected).all()
    assert (found.rounding <= 1e-6 * found.value + 1e-300).all()


@pytest.mark.skipif(not EXTENDED, reason="long double is double here")
def test_dissimilarities__tell_what_the_difference_alone_would_lose(monkeypatch):
    factors = [factored(maps) for maps in collection()]
    lams = [1e-6, 1e-10]
    expected = all_by_definition(*(given_maps(each) for each in factors), lams)
    monkeypatch.setattr(ridge_plan, "_GOAL", np.inf)
    found = dissimilarities(*factors, lams)
    error = np.abs(found.value - expected)
    assert (error <= found.rounding).all()
    assert (error[1, :5, :5] / expected[1, :5, :5]).max() > 1e-8


@pytest.mark.parametrize("tolerance", [1e-10, 1e-8, 1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("lam", [1e-2, 1e-4])
def test_dissimilarities__are_as_near_as_the_tolerance_asks(tolerance, lam):
    maps = graded(6, 8, 0)
    akin = maps * (1 + 1e-4 * np.random.default_rng(0).normal(size=maps.shape))
    factors = [factored(each) for each in (maps, akin)]
    exact = dissimilarities(*factors, [lam], tolerance=0.0)
    found = dissimilarities(*factors, [lam], tolerance=tolerance)
    error = np.abs(found.value - exact.value)
    assert (error <= found.rounding + exact.rounding).all()
    assert (error <= (2.0 * tolerance + 1e-9) * exact.value).all()
    for at in range(2):
        less = list(factors)
        ranks = ridge_plan.planned(*factors, np.full((1, 6), lam), tolerance)
        rank = (ranks.left_rank, ranks.right_rank)[at].max()
        assert rank < COLUMNS or tolerance < 1e-6
        less[at] = Factors(factors[at].basis[:, :, :rank], factors[at].strength[:, :rank])
        cut = np.abs(dissimilarities(*less, [lam], tolerance=0.0).value - exact.value)
        assert (cut <= (tolerance + 1e-10) * exact.value).all()


def test_dissimilarities__count_what_is_left_out_as_rounding():
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 4)))[0][None]
    a = Factors(basis[:, :, :2], np.array([[1.0, 0.6]]))
    b = Factors(basis[:, :, 2:], np.array([[1.0, 0.999]]))
    found = dissimilarities(a, b, [1.0], tolerance=0.9)
    np.testing.assert_allclose(found.value, 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.rounding, 0.6**2, rtol=1e-9)
    # The second direction of B has what A asks for, and is left out.
    a = Factors(basis[:, :, 1:2], np.array([[1.0]]))
    b = Factors(basis[:, :, :2], np.array([[1.0, 0.09]]))
    found = dissimilarities(a, b, [1.0], tolerance=0.9)
    np.testing.assert_allclose(found.value, 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.rounding, 0.09**2, rtol=1e-9)


@pytest.mark.parametrize("part", [0.5, 2.0, 100.0])
def test_dissimilarities__keep_what_adds_all_it_can(part):
    lam, tolerance = 1e-2, 1e-4
    turn = np.sqrt(lam)
    basis = np.array([[[turn, np.sqrt(1 - lam)], [np.sqrt(1 - lam), -turn]]])
    a = Factors(basis, np.array([[1.0, np.sqrt(part * tolerance * lam)]]))
    b = Factors(np.array([[[0.0], [1.0]]]), np.array([[1.0]]))
    exact = dissimilarities(a, b, [lam], tolerance=0.0).value
    found = dissimilarities(a, b, [lam], tolerance=tolerance).value
    assert (exact - found <= tolerance * exact).all()
    assert (exact > found).all() == (part < 1.0)


def test_dissimilarities__take_a_lambda_for_each_searched_map():
    a, b = (factored(maps) for maps in collection())
    each = 10.0 ** -np.random.default_rng(0).uniform(1, 6, size=(2, 6))
    together = dissimilarities(a, b, each).value
    for j in range(6):
        one = Factors(b.basis[j : j + 1], b.strength[j : j + 1])
        alone = dissimilarities(a, one, each[:, j]).value[:, :, 0]
        np.testing.assert_allclose(together[:, :, j], alone, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dissimilarities__do_not_depend_on_how_pairs_are_run(monkeypatch, dtype):
    maps = [np.concatenate([graded(5, d, d) for d in (2, 6, 12)]) for _ in range(2)]
    factors = [Factors(*(part.astype(dtype) for part in factored(each))) for each in maps]
    expected = dissimilarities(*factors, LAMS)
    monkeypatch.setattr(ridge_plan, "_PAIRS", 2**17)
    monkeypatch.setattr(ridge_plan, "_SIDE", 2**15)
    found = dissimilarities(*factors, LAMS)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-9)
    again = dissimilarities(*factors, LAMS)
    assert np.array_equal(found.value, again.value)


@given(
    seed=st.integers(0, 2**20),
    decades=st.sampled_from([0, 3, 8, 14]),
    lam=st.sampled_from([1e-8, 1e-4, 1e-1, 10.0]),
)
def test_dissimilarities__have_the_bounds_of_the_theory(seed, decades, lam):
    a, b = (factored(graded(2, decades, seed + k, rows=30)) for k in range(2))
    lams = [lam, 3.0 * lam]
    value, rounding = dissimilarities(a, b, lams)
    assert (value >= 0.0).all()
    assert (value <= a.strength[None, :, :1] ** 2 + rounding).all()
    assert (value[1] - value[0] >= -rounding.sum(axis=0)).all()
    assert (value[1] / 3.0 <= value[0] + rounding.sum(axis=0)).all()
    same, error = dissimilarities(b, b, lams)
    for at, one in enumerate(lams):
        expected = one * b.strength[:, 0] ** 2 / (b.strength[:, 0] ** 2 + one)
        assert (np.abs(np.diagonal(same[at]) - expected) <= np.diagonal(error[at])).all()


@pytest.mark.parametrize("scale", [2.0**-60, 1e-140, 1e140, 1e150])
def test_dissimilarities__scale_with_maps_and_lambda(scale):
    a, b = (Factors(f.basis, f.strength / 1.01) for f in map(factored, collection()))
    expected = dissimilarities(a, b, LAMS).value
    scaled = (Factors(each.basis, scale * each.strength) for each in (a, b))
    found = dissimilarities(*scaled, scale * LAMS * scale).value
    np.testing.assert_allclose(found / scale / scale, expected, rtol=1e-9)
    alone = Factors(a.basis, scale * a.strength)
    found = dissimilarities(alone, b, LAMS).value
    np.testing.assert_allclose(found / scale / scale, expected, rtol=1e-9)


def test_dissimilarities__of_maps_whose_squares_are_no_numbers():
    a, b = (factored(maps) for maps in collection())
    large = Factors(a.basis, 1e151 * a.strength)
    with pytest.raises(InputError, match=r"reference.*1e\+150"):
        dissimilarities(large, b, LAMS)
    with pytest.raises(InputError, match=r"searched.*1e\+150"):
        dissimilarities(a, large, LAMS)
    small = dissimilarities(Factors(a.basis, 1e-170 * a.strength), b, LAMS)
    exact = dissimilarities(a, b, LAMS)
    assert (np.abs(small.value - 1e-170 * exact.value * 1e-170) <= small.rounding).all()
    apart = dissimilarities(a, Factors(b.basis, 1e149 * b.strength), [1e-299])
    assert np.isfinite(apart.value).all()
    assert (apart.value >= 0.0).all()


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (0, 0)])
def test_dissimilarities__of_no_pairs(shape):
    a, b = (Factors(np.zeros((n, 9, 3)), np.zeros((n, 3))) for n in shape)
    found = dissimilarities(a, b, LAMS)
    assert found.value.shape == found.rounding.shape == (3, *shape)


def test_dissimilarities__refuse_what_does_not_fit():
    a, b = (factored(maps) for maps in collection())
    with pytest.raises(ShapeError, match="as many rows"):
        dissimilarities(a, Factors(b.basis[:, 1:], b.strength), LAMS)
    with pytest.raises(ShapeError, match="reference"):
        dissimilarities(Factors(a.basis, a.strength[:, 1:]), b, LAMS)
    with pytest.raises(ShapeError, match="lams"):
        dissimilarities(a, b, np.ones((2, 5)))
    for lam in (0.0, -1.0, np.nan, np.inf, 1e-310):
        with pytest.raises(InputError, match="lams"):
            dissimilarities(a, b, [1e-2, lam])
    with pytest.raises(InputError, match="finite"):
        dissimilarities(Factors(a.basis, a.strength * np.nan), b, LAMS)
    with pytest.raises(InputError, match="tolerance"):
        dissimilarities(a, b, LAMS, tolerance=-1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "lam"), [(100, 1e-2), (1500, 1e-2), (1500, 1e-12)])
def test_scratch_bytes__are_enough(dtype, rows, lam):
    generator = np.random.default_rng(0)
    basis = np.linalg.qr(generator.normal(size=(40, rows, 40)))[0].astype(dtype)
    strength = np.tile(10.0 ** -np.linspace(0, 3, 40), (40, 1)).astype(dtype)
    factors = Factors(basis, strength)
    tracemalloc.start()
    try:
        dissimilarities(factors, factors, [lam, 1e-3])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= scratch_bytes(rows, 40, 40, 40, n_lams=2) <= 2**27


PAIRS = {
    "akin": lambda: [maps[1] for maps in collection()],
    "masked": lambda: [maps[0] for maps in collection()],
    "apart": lambda: [graded(1, 4, 5)[0], graded(1, 4, 6)[0]],
    "low rank": lambda: [maps[4] for maps in collection()],
    "wide": lambda: [graded(1, 4, seed, rows=COLUMNS)[0, :8] for seed in (1, 2)],
    "answers nothing": lambda: [graded(1, 4, 5)[0], np.zeros((ROWS, 7))],
}


@pytest.mark.parametrize("lam", [10.0, *LAMS, 1e-9])
@pytest.mark.parametrize("pair", PAIRS)
def test_best_functions__attain_the_dissimilarity(put, pair, lam):
    a, b = PAIRS[pair]()
    best = best_functions(put(a), put(b), lam)
    h, q = to_host(best.h), to_host(best.q)
    assert namespace(best.h, best.q) is namespace(put(a))
    assert (h.shape, q.shape) == ((a.shape[1],), (b.shape[1],))
    np.testing.assert_allclose(best.value, by_definition(a, b, lam), rtol=1e-9)
    assert np.linalg.norm(h) == pytest.approx(1.0, rel=1e-12)
    assert h[np.argmax(np.abs(h))] > 0.0
    attained = np.sum((a @ h - b @ q) ** 2) + lam * np.sum(q**2)
    np.testing.assert_allclose(attained, best.value, rtol=1e-9)
    matrix = b @ b.T + lam * np.eye(len(b))
    if lam > 1e-5:
        np.testing.assert_allclose(q, b.T @ np.linalg.solve(matrix, a @ h), atol=1e-9)


@pytest.mark.parametrize("pair", PAIRS)
def test_best_functions__are_beaten_by_no_others(pair):
    a, b = PAIRS[pair]()
    lam, generator = 1e-3, np.random.default_rng(0)
    value, h, q = best_functions(a, b, lam)
    for size in (1e-6, 1e-3, 1.0):
        for _ in range(10):
            other = q + size * generator.normal(size=q.size)
            cost = np.sum((a @ h - b @ other) ** 2) + lam * np.sum(other**2)
            assert cost >= value * (1 - 1e-12)
            unit = h + size * generator.normal(size=h.size)
            unit = a @ (unit / np.linalg.norm(unit))
            answer = np.linalg.lstsq(
                np.concatenate([b, np.sqrt(lam) * np.eye(q.size)]),
                np.concatenate([unit, np.zeros(q.size)]),
                rcond=None,
            )[0]
            least = np.sum((unit - b @ answer) ** 2) + lam * np.sum(answer**2)
            assert least <= value * (1 + 1e-12)


def test_best_functions__agree_with_dissimilarities():
    a, b = collection()
    value = dissimilarities(factored(a), factored(b), LAMS).value
    for i, j in ((0, 0), (0, 1), (1, 1), (3, 4), (5, 0), (0, 5)):
        found = [best_functions(a[i], b[j], lam).value for lam in LAMS]
        np.testing.assert_allclose(found, value[:, i, j], rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_best_functions__scale_with_maps_and_lambda(scale):
    a, b = PAIRS["masked"]()
    expected, found = (best_functions(c * a, c * b, c * 1e-3 * c) for c in (1.0, scale))
    assert found.value / scale / scale == pytest.approx(expected.value, rel=1e-9)
    np.testing.assert_allclose(found.h, expected.h, atol=1e-6)
    np.testing.assert_allclose(found.q, expected.q, atol=1e-6)


def test_best_functions__of_a_zero_map():
    value, h, q = best_functions(np.zeros((9, 4)), graded(1, 2, 0, rows=20)[0, :9], 1e-3)
    assert value == 0.0
    assert np.linalg.norm(h) == pytest.approx(1.0)
    assert (q == 0.0).all()


def test_best_functions__refuse_what_does_not_fit():
    maps = np.ones((9, 4))
    with pytest.raises(ShapeError, match="as many rows"):
        best_functions(maps, maps[1:], 1e-3)
    with pytest.raises(InputError, match="lams"):
        best_functions(maps, maps, 0.0)
    for wrong in (np.nan, np.inf, 1e200):
        with pytest.raises(InputError, match="b_map must be finite"):
            best_functions(maps, maps * wrong, 1e-3)


def test_ridge__uses_what_is_beyond_only_where_it_matters(monkeypatch):
    used = []
    beyond = ridge._beyond

    def spied(*arguments):
        used.append(arguments[-1])
        return beyond(*arguments)

    monkeypatch.setattr(ridge, "_beyond", spied)
    factors = [factored(maps) for maps in collection()]
    dissimilarities(*factors, [1e-2])
    assert used == []
    dissimilarities(*factors, [1e-6])
    assert 0 < max(used) < COLUMNS
    dissimilarities(*factors, [1e-14])
    assert max(used) == COLUMNS
