import numpy as np
import pytest

from bigkd.backends import to_host
from bigkd.linalg import largest_eigenvalues
from bigkd.linalg import stacks as module


def graded_stack(n, size, decades, seed=0):
    generator = np.random.default_rng(seed)
    factor = generator.normal(size=(n, size, size)) * 10.0 ** -np.linspace(0, decades, size)
    return np.swapaxes(factor, 1, 2) @ factor


@pytest.mark.parametrize("size", [1, 3, 20, 50])
@pytest.mark.parametrize("decades", [0, 2, 8])
def test_largest_eigenvalues__match_lapack(put, size, decades):
    stack = graded_stack(7, size, decades)
    found = to_host(largest_eigenvalues(put(stack)))
    np.testing.assert_allclose(found, np.linalg.eigvalsh(stack)[:, -1], rtol=1e-12)


def test_largest_eigenvalues__of_graded_matrices_need_no_lapack(monkeypatch):
    stack = graded_stack(7, 50, 4)
    expected = np.linalg.eigvalsh(stack)[:, -1]
    monkeypatch.setattr(module, "_certified", lambda stack, values: np.ones(len(stack), bool))
    np.testing.assert_allclose(largest_eigenvalues(stack), expected, rtol=1e-12)


def test_largest_eigenvalues__are_found_where_the_start_knows_nothing_of_them():
    hidden = np.zeros(30)
    hidden[[2, 3]] = 1.0, -1.0
    stack = np.stack([np.eye(30) + 5 * np.outer(hidden, hidden), np.eye(30)])
    np.testing.assert_allclose(largest_eigenvalues(stack), [11.0, 1.0], rtol=1e-12)


def test_largest_eigenvalues__of_many_that_are_nearly_equal():
    stack = np.stack([np.diag(1 - 1e-6 * np.arange(60)), np.diag(1 - 1e-2 * np.arange(60) / 60)])
    np.testing.assert_allclose(largest_eigenvalues(stack), [1.0, 1.0], rtol=1e-12)


@pytest.mark.parametrize("scale", [0.0, 1e-250, 1e-130, 1e130])
def test_largest_eigenvalues__of_any_size(scale):
    stack = scale * graded_stack(3, 30, 4)
    found = largest_eigenvalues(stack)
    np.testing.assert_allclose(found, np.linalg.eigvalsh(stack)[:, -1], rtol=1e-12)


def test_largest_eigenvalues__of_low_rank():
    vectors = np.random.default_rng(0).normal(size=(4, 40, 2)) * [1.0, 0.999]
    stack = vectors @ np.swapaxes(vectors, 1, 2)
    expected = np.linalg.eigvalsh(stack)[:, -1]
    np.testing.assert_allclose(largest_eigenvalues(stack), expected, rtol=1e-12)


def test_largest_eigenvalues__of_no_matrices():
    assert largest_eigenvalues(np.zeros((0, 30, 30))).shape == (0,)
