import tracemalloc
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bigkd.backends import to_host
from bigkd.errors import DataError, EmptyInputError, ShapeError
from bigkd.protocols import Rows
from bigkd.summaries.gram import ColumnCombination, ColumnGram, RowCombination
from bigkd.testing import assert_equal_states, check_summary_laws

N_SAMPLES = 4  # a power of two: means of whole numbers are exact


def blocks_of(put, x, cuts):
    """Columns of `x` (samples, features) in blocks between `cuts`."""
    index = np.arange(x.shape[1])
    return [
        Rows(put(np.ascontiguousarray(x[:, a:b].T)), put(index[a:b])) for a, b in pairwise(cuts)
    ]


def grams_of(x, *, scale=None, put=np.array, step=700):
    summary = ColumnGram(width=x.shape[0], n_columns=x.shape[1], scale=scale)
    state = None
    for block in blocks_of(put, x, [*range(0, x.shape[1], step), x.shape[1]]):
        state = summary.init(block.values) if state is None else state
        state = summary.update(state, block)
    return summary, state


def squared_distances(x):
    x = x.astype("f8")
    return ((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=2)


@st.composite
def whole_columns(draw):
    dtype = draw(st.sampled_from(["float64", "float32", "int64", "uint8", "int8", "bool", "int16"]))
    sizes = draw(st.lists(st.integers(0, 5), min_size=3, max_size=5))
    top = 1 if dtype == "bool" else 3
    elements = st.integers(0, top).map(bool) if dtype == "bool" else st.integers(0, top)
    x = draw(hnp.arrays(dtype, (N_SAMPLES, sum(sizes)), elements=elements))
    if np.issubdtype(x.dtype, np.floating) and draw(st.booleans()):
        gone = draw(hnp.arrays("bool", x.shape[1]))
        x[:, gone] = np.nan
        x[draw(st.integers(0, N_SAMPLES - 1)), ~gone & (np.arange(x.shape[1]) % 3 == 0)] = np.inf
    return x, [0, *np.cumsum(sizes).tolist()]


@pytest.mark.parametrize("scaled", [False, True])
@settings(max_examples=30)
@given(drawn=whole_columns())
def test_column_gram__keeps_the_laws(put, scaled, drawn):
    x, cuts = drawn
    scale = 2.0 ** (np.arange(x.shape[1]) % 3) if scaled else None
    summary = ColumnGram(width=N_SAMPLES, n_columns=x.shape[1], scale=scale)
    check_summary_laws(summary, blocks_of(put, x, cuts))


@settings(max_examples=30)
@given(drawn=whole_columns())
def test_combinations__keep_the_laws(put, drawn):
    x, cuts = drawn
    x = np.nan_to_num(x.astype("f8"), nan=1.0, posinf=2.0).astype(x.dtype)
    coefficients = np.arange(N_SAMPLES * 2.0).reshape(N_SAMPLES, 2) - 3.0
    by_columns = ColumnCombination(coefficients=coefficients, n_columns=x.shape[1])
    check_summary_laws(by_columns, blocks_of(put, x, cuts))
    taken = np.array([True, False, True, True])
    by_rows = RowCombination(coefficients=coefficients, taken=taken, n_columns=x.shape[1])
    rows = [Rows(put(x[at : at + 1]), put(np.array([at]))) for at in range(N_SAMPLES)]
    check_summary_laws(by_rows, rows)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool"])
def test_column_gram__is_exact_on_bytes(put, dtype):
    top = np.iinfo(dtype).max if dtype != "bool" else 1
    least = np.iinfo(dtype).min if dtype != "bool" else 0
    x = np.random.default_rng(0).integers(least, top + 1, (5, 5000)).astype(dtype)
    x[0], x[1, 1:] = least, top  # the largest products, all of one sign
    summary, state = grams_of(x, put=put, step=5000)
    wide = x.astype(object) if dtype == "bool" else x.astype("i8")
    expected = (wide.astype("i8") @ wide.astype("i8").T).astype("f8")
    grams = summary.finalize(state)
    np.testing.assert_array_equal(to_host(grams.gram), expected)
    np.testing.assert_array_equal(to_host(grams.squared_distances), squared_distances(x))


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32"])
def test_column_gram__is_exact_on_whole_numbers(dtype):
    x = np.random.default_rng(0).integers(0, 30_000, (5, 3000)).astype(dtype)
    summary, state = grams_of(x)
    grams = summary.finalize(state)
    np.testing.assert_array_equal(grams.gram, x.astype("f8") @ x.astype("f8").T)
    np.testing.assert_array_equal(grams.squared_distances, squared_distances(x))


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-14), ("float32", 1e-7)])
@pytest.mark.parametrize("scaled", [False, True])
def test_column_gram__matches_float64(put, dtype, tolerance, scaled):
    generator = np.random.default_rng(1)
    x = (generator.normal(0, 1, (7, 5000)) + generator.normal(5, 3, 5000)).astype(dtype)
    scale = generator.uniform(0.5, 2, 5000) if scaled else None
    summary, state = grams_of(x, scale=scale, put=put)
    wide = x.astype("f8") * (1.0 if scale is None else scale)
    centred = wide - wide.mean(axis=0)
    grams = [to_host(part) for part in summary.finalize(state)]
    spread = np.abs(centred @ centred.T).max()
    np.testing.assert_allclose(grams[0], wide @ wide.T, rtol=tolerance)
    np.testing.assert_allclose(grams[1], centred @ centred.T, atol=tolerance * spread)
    np.testing.assert_allclose(
        grams[2], squared_distances(wide), atol=tolerance * spread, rtol=tolerance
    )


def test_column_gram__takes_float16():
    x = np.random.default_rng(1).normal(100, 30, (5, 3000)).astype("f2")
    summary, state = grams_of(x)
    expected = x.astype("f8") @ x.astype("f8").T
    np.testing.assert_allclose(summary.finalize(state).gram, expected, rtol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_column_gram__distances_of_near_equal_rows_keep_their_digits(dtype):
    generator = np.random.default_rng(2)
    common = generator.normal(1000, 300, 20_000)
    x = (common + 0.01 * generator.normal(0, 1, (6, 20_000))).astype(dtype)
    summary, state = grams_of(x)
    expected = squared_distances(x)
    found = summary.finalize(state).squared_distances
    apart = ~np.eye(6, dtype=bool)
    np.testing.assert_allclose(found[apart], expected[apart], rtol=2e-6)
    gram = summary.finalize(state).gram
    lost = np.diag(gram)[:, None] + np.diag(gram)[None, :] - 2 * gram
    assert dtype == "float64" or np.abs(lost - expected)[apart].max() > 1e-6 * expected.max()


def test_column_gram__of_bytes_distances_differ_by_one_pixel():
    x = np.full((2, 300_000), 255, np.uint8)
    x[1, 12_345] = 254
    summary, state = grams_of(x, step=100_000)
    assert summary.finalize(state).squared_distances.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_column_gram__leaves_out_columns_that_are_nan_everywhere(put):
    x = np.random.default_rng(3).normal(2, 1, (5, 3000))
    land = np.zeros(3000, bool)
    land[100:1400] = land[2999] = True
    scale = np.where(land, np.nan, 1.5)
    masked = np.where(land, np.nan, x)
    summary, state = grams_of(masked, put=put, scale=scale)
    sea = 1.5 * x[:, ~land]
    np.testing.assert_allclose(to_host(summary.finalize(state).gram), sea @ sea.T, rtol=1e-13)
    np.testing.assert_array_equal(to_host(state.absent), land)
    assert int(state.columns) == 3000 - land.sum()
    assert not np.any(to_host(state.bad))


def test_column_gram__counts_what_is_not_finite_in_each_sample(put):
    x = np.random.default_rng(4).normal(0, 1, (4, 2500))
    x[:, :50] = np.nan
    x[1, 60:70] = np.nan
    x[3, 65], x[3, 2400] = np.inf, -np.inf
    x[:, 80] = np.inf
    state = grams_of(x, put=put)[1]
    assert to_host(state.bad).tolist() == [1, 11, 1, 3]
    assert np.flatnonzero(to_host(state.absent)).tolist() == list(range(50))


def test_column_gram__refuses():
    summary, state = grams_of(np.full((3, 5), np.nan))
    with pytest.raises(EmptyInputError, match="no columns"):
        summary.finalize(state)
    summary, state = grams_of(np.float32([[1e30, 1], [-1e30, 1]]))
    with pytest.raises(DataError, match="overflow"):
        summary.finalize(state)
    with pytest.raises(ShapeError, match="width 3"):
        ColumnGram(width=3, n_columns=2).update(state, Rows(np.ones((2, 4)), np.arange(2)))


def test_combinations__match_fractions(put):
    x = np.random.default_rng(5).normal(0, 1, (3, 40))
    coefficients = np.random.default_rng(6).normal(0, 1, (3, 2))
    products = [
        [[Fraction(x[a, j]) * Fraction(coefficients[a, c]) for a in range(3)] for c in (0, 1)]
        for j in range(40)
    ]
    exact = [[float(sum(terms)) for terms in both] for both in products]
    columns = Rows(put(x.T.copy()), put(np.arange(40)))
    by_columns = ColumnCombination(coefficients=coefficients, n_columns=40)
    found = to_host(by_columns.update(by_columns.init(columns.values), columns))
    np.testing.assert_allclose(found, exact, rtol=1e-14, atol=1e-15)
    rows = Rows(put(x), put(np.arange(3)))
    by_rows = RowCombination(coefficients=coefficients, taken=np.ones(3, bool), n_columns=40)
    found = to_host(by_rows.update(by_rows.init(rows.values), rows))
    np.testing.assert_allclose(found, exact, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_update__same_bits_for_any_layout(dtype):
    x = np.random.default_rng(0).normal(3, 1, (60, 3000)).astype(dtype)
    strided = np.zeros((60, 6000), dtype)[:, ::2]
    strided[...] = x
    index, coefficients = np.arange(3000), np.random.default_rng(1).normal(0, 1, (60, 4))
    gram = ColumnGram(width=60, n_columns=3000)
    by_columns = ColumnCombination(coefficients=coefficients, n_columns=3000)
    taken = np.ones(60, bool)
    by_rows = RowCombination(coefficients=coefficients, taken=taken, n_columns=3000)
    for other in (np.asfortranarray(x), strided):
        for summary in (gram, by_columns):
            one = summary.update(summary.init(x.T), Rows(x.T, index))
            assert_equal_states(
                summary.update(summary.init(x.T), Rows(other.T, index)), one, "bits"
            )
        one, two = (by_rows.update(by_rows.init(x), Rows(y, np.arange(60))) for y in (x, other))
        assert_equal_states(two, one, "bits")


def peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("shape", [(300, 5000), (20, 100_000)])
def test_footprint__bounds_an_update(dtype, shape):
    n_samples, n_columns = shape
    x = np.random.default_rng(0).uniform(0, 9, shape).astype(dtype)
    columns, rows = Rows(x.T, np.arange(n_columns)), Rows(x, np.arange(n_samples))
    coefficients, taken = np.ones((n_samples, 5)), np.ones(n_samples, bool)
    cases = [
        (ColumnGram(width=n_samples, n_columns=n_columns), columns),
        (ColumnCombination(coefficients=coefficients, n_columns=n_columns), columns),
        (RowCombination(coefficients=coefficients, taken=taken, n_columns=n_columns), rows),
    ]
    for summary, block in cases:
        predicted = summary.footprint(block.values.shape[0], x.dtype.itemsize)
        measured = peak(lambda s=summary, b=block: s.update(s.init(b.values), b))
        assert measured <= predicted.state + predicted.scratch + 100_000, summary
        assert predicted.state + predicted.scratch <= 3 * measured + 2_000_000, summary
