import math

import numpy as np
import pytest

from bigkd.did.masks import blackman, mask_of
from bigkd.errors import InputError, ShapeError


def axes(*shape):
    return [np.linspace(0, 1, n) if n > 1 else np.asarray([0.5]) for n in shape]


@pytest.mark.parametrize("n", [2, 3, 4, 9, 100])
def test_blackman__is_the_formula(n):
    times = [k / (n - 1) for k in range(n)]
    expected = [
        0.42 - 0.5 * math.cos(2 * math.pi * t) + 0.08 * math.cos(4 * math.pi * t) for t in times
    ]
    found = blackman(np.linspace(0, 1, n))
    np.testing.assert_allclose(found, expected, atol=1e-15)
    assert found.min() >= 0.0


def test_mask_of__leaves_an_axis_of_one_position_alone():
    np.testing.assert_allclose(
        mask_of("blackman", axes(1, 7)), blackman(np.linspace(0, 1, 7))[None, :], rtol=1e-15
    )


def test_mask_of__is_a_product_over_axes():
    mask, windows = mask_of("blackman", axes(5, 4, 3)), [blackman(axis) for axis in axes(5, 4, 3)]
    for i, j, k in np.ndindex(5, 4, 3):
        assert mask[i, j, k] == pytest.approx(windows[0][i] * windows[1][j] * windows[2][k])


def test_mask_of__takes_none_bools_and_numbers(put):
    given = np.asarray([[0, 2, 1], [0, 0, 3]], dtype=np.float32)
    np.testing.assert_array_equal(mask_of(None, axes(2, 3)), np.ones((2, 3)))
    np.testing.assert_array_equal(mask_of(put(given), axes(2, 3)), given)
    np.testing.assert_array_equal(mask_of(put(given > 0), axes(2, 3)), given > 0)
    assert mask_of(put(given > 0), axes(2, 3)).dtype == np.float64


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (np.zeros((3, 4)), InputError, "zero everywhere on the grid"),
        (np.ones((4, 3)), ShapeError, r"shape \(3, 4\); got shape \(4, 3\)"),
        (np.full((3, 4), np.nan), InputError, "12 of its 12 weights are not"),
        (-np.eye(3, 4), InputError, "3 of its 12 weights are not"),
        (np.ones((3, 4), dtype=complex), InputError, "real numbers or bools; got complex128"),
        ("hann", InputError, "'blackman', None or an array; got 'hann'"),
        ([[1.0]], InputError, "'blackman', None or an array"),
    ],
)
def test_mask_of__refuses(mask, error, message):
    with pytest.raises(error, match=message):
        mask_of(mask, axes(3, 4))


def test_mask_of__refuses_a_window_with_nothing_but_ends():
    with pytest.raises(InputError, match="zero everywhere"):
        mask_of("blackman", axes(50, 2))
