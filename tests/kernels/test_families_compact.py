import math

import numpy as np
import pytest

from bigkd.backends import to_host
from bigkd.errors import InputError
from bigkd.kernels import Epanechnikov, Triangle

FORMULAS = [
    (Triangle(1.5), lambda r: max(0.0, 1 - r / 1.5)),
    (Epanechnikov(1.5), lambda r: max(0.0, 1 - r**2 / 1.5**2)),
]
by_kernel = pytest.mark.parametrize(("kernel", "formula"), FORMULAS, ids=["triangle", "epan"])


@by_kernel
@pytest.mark.parametrize("d", [1, 3, 5, 40])
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-9), ("float32", 2e-6)])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_gram__matches_definition(put, kernel, formula, d, dtype, atol, offset):
    generator = np.random.default_rng(0)
    x, y = (generator.normal(offset, 1 / math.sqrt(d), (n, d)).astype(dtype) for n in (9, 7))
    y[2] = x[1]
    got = to_host(kernel(put(x), put(y)))
    want = [[formula(math.dist(a, b)) for b in y.astype("f8")] for a in x.astype("f8")]
    assert got.dtype == dtype
    assert got[1, 2] == 1.0
    assert 0 < np.count_nonzero(got == 0) < got.size
    np.testing.assert_allclose(got, want, rtol=0, atol=atol)


@by_kernel
def test_kernel__is_zero_at_its_radius_and_beyond(kernel, formula):
    del formula
    values = kernel(np.zeros((1, 1)), np.array([[0.0], [1.5], [np.nextafter(1.5, 2)], [1e150]]))
    np.testing.assert_array_equal(values, [[1.0, 0.0, 0.0, 0.0]])
    assert not np.signbit(values).any()


@by_kernel
def test_kernel__keeps_a_bad_row_to_itself(kernel, formula):
    del formula
    values = kernel(np.zeros((1, 2)), np.array([[0.0, np.nan], [0.0, 0.0]]))
    assert np.isnan(values[0, 0])
    assert values[0, 1] == 1.0


@by_kernel
def test_kernel__of_single_precision_keeps_the_range_of_lengths(kernel, formula):
    del formula
    small = kernel.with_length(1e-18)
    values = small(np.zeros((1, 1), "f4"), np.array([[0.0], [1.0]], "f4"))
    np.testing.assert_array_equal(values, [[1.0, 0.0]])


@pytest.mark.parametrize("family", [Triangle, Epanechnikov])
@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "1", True])
def test_kernel__refuses_a_bad_radius(family, bad):
    with pytest.raises(InputError, match=f"{family.__name__}.radius must be a finite positive"):
        family(bad)
