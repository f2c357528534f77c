import tracemalloc

import numpy as np
import pytest

from bigkd.backends import to_host
from bigkd.kernels import Gaussian, Matern
from bigkd.protocols import Rows
from bigkd.summaries import KernelSum
from bigkd.testing import assert_equal_states, check_pair_laws

GAUSSIAN = KernelSum(kernel=Gaussian(1.5))


def rows(n, *, weighted=True, c=None, seed=0, put=np.array):
    generator = np.random.default_rng([seed, n])
    weights = put(generator.normal(size=n)) if weighted else None
    vectors = None
    if c is not None:
        vectors = generator.normal(size=(n, c))
        vectors = put(vectors / np.linalg.norm(vectors, axis=1)[:, None])
    return Rows(put(generator.normal(size=(n, 3))), put(np.arange(n)), weights, vectors)


def update(summary, left, right, *, mirrored=False, diagonal=False):
    state = summary.init(left.values)
    return summary.update(state, left, right, mirrored=mirrored, diagonal=diagonal)


def by_definition(kernel, left, right):
    left, right = (
        Rows(*(None if part is None else to_host(part) for part in side)) for side in (left, right)
    )
    matrix = kernel(left.values, right.values)
    if left.weights is not None:
        matrix = matrix * np.outer(left.weights, right.weights)
    if left.vectors is not None:
        matrix = matrix * (left.vectors @ right.vectors.T)
    return np.sum(matrix)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("c", [None, 1, 3])
def test_kernel_sum__honours_weights_and_vectors(put, c, weighted, mirrored):
    left = rows(40, weighted=weighted, c=c, put=put)
    right = rows(30, weighted=weighted, c=c, seed=1, put=put)
    state = update(GAUSSIAN, left, right, mirrored=mirrored)
    times = 2 if mirrored else 1
    np.testing.assert_allclose(
        float(state.total), times * by_definition(GAUSSIAN.kernel, left, right), rtol=1e-11
    )
    weight = to_host(left.weights).sum() * to_host(right.weights).sum() if weighted else 1200
    np.testing.assert_allclose(float(state.weight), times * weight, rtol=1e-12)


@pytest.mark.parametrize("c", [None, 3])
def test_kernel_sum__of_a_block_with_itself(put, c):
    block = rows(45, c=c, put=put)
    state = update(GAUSSIAN, block, block, diagonal=True)
    expected = by_definition(GAUSSIAN.kernel, block, block)
    np.testing.assert_allclose(float(state.total), expected, rtol=1e-11)


def test_kernel_sum__keeps_the_laws_with_vectors(put):
    def whole(x, y):
        return x @ y.T

    generator = np.random.default_rng(0)
    blocks = [
        Rows(
            put(generator.integers(0, 4, (n, 3)).astype("f8")),
            put(np.arange(n)),
            put(generator.integers(0, 4, n).astype("f8")),
            put(generator.integers(-2, 3, (n, 2)).astype("f8")),
        )
        for n in (3, 0, 5, 2, 4)
    ]
    summary = KernelSum(kernel=whole)
    check_pair_laws(summary, blocks[:3], blocks[3:])


def test_kernel_sum__of_the_same_tiles_has_the_same_bits():
    one, other = rows(200, c=3), rows(300, c=3, seed=2)
    first, second = (update(GAUSSIAN, one, other) for _ in range(2))
    assert_equal_states(first, second, "same rows, same bits")


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(2.2, 1.0)])
@pytest.mark.parametrize("width", [2, 200])
def test_kernel_sum__needs_tiles_and_not_the_matrix(kernel, width):
    values = np.random.default_rng(0).normal(size=(1200, width))
    block, summary = Rows(values, np.arange(1200), np.ones(1200)), KernelSum(kernel=kernel)
    predicted = summary.footprint(10**6, 10**6, 8)
    assert predicted.scratch < 2 * 10**8
    predicted = summary.footprint(1200, 1200, 8)
    update(summary, rows(5), rows(5))
    tracemalloc.start()
    update(summary, block, block._replace(values=values + 1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= predicted.scratch + values.nbytes + 100_000
