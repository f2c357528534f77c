import array_api_strict
import numpy as np
import pytest

from bigkd.backends import compute_dtype, is_array, namespace, rng, to_host


@pytest.mark.parametrize(
    ("dtype", "computed"),
    [
        ("?", "f4"), ("u1", "f4"), ("i2", "f4"), ("i4", "f8"), ("u4", "f8"), ("i8", "f8"),
        ("u8", "f8"), ("f2", "f4"), ("f4", "f4"), ("f8", "f8"), (">f4", "f4"), (">f8", "f8"),
        (">i4", "f8"),
    ],
)  # fmt: skip
def test_compute_dtype__loses_no_digits(dtype, computed):
    assert compute_dtype(np, np.dtype(dtype)) == np.dtype(computed)


def test_compute_dtype__of_a_strict_namespace():
    x = array_api_strict.asarray([1], dtype=array_api_strict.int32)
    assert compute_dtype(namespace(x), x.dtype) == array_api_strict.float64


def test_to_host__copies_only_from_elsewhere(put):
    x = put(np.arange(3.0))
    host = to_host(x)
    assert type(host) is np.ndarray
    np.testing.assert_array_equal(host, np.arange(3.0))
    if isinstance(x, np.ndarray):
        assert host is x
    assert to_host(np.float64(3)).shape == ()


def test_is_array(put):
    assert is_array(put(np.ones(2)))
    assert is_array(np.float64(1))
    assert not is_array([1.0])
    assert not is_array(1.0)


def test_rng__depends_on_seed_and_stream_only():
    def draw(*args):
        return rng(*args).integers(0, 2**62)

    assert draw(1, 2) == draw(1, 2)
    assert len({draw(1), draw(2), draw(1, 2), draw(2, 1), draw(1, 2, 3)}) == 5
