import numpy as np
import pytest
import scipy.sparse.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from bigkd.linalg import eigenvalues, indefinite_spectrum, top_eigenpairs


def symmetric(values, seed=0):
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(0, 1, (len(values), len(values))))
    matrix = (q * np.asarray(values)) @ q.T
    return (matrix + matrix.T) / 2


def operator(matrix):
    return scipy.sparse.linalg.aslinearoperator(matrix)


def falling(n):
    return 1.0 / (1 + np.arange(n)) ** 2


SPECTRA = {
    "falling": falling(640),
    "both signs": np.linspace(-1, 1, 640),
    "degenerate at the top": np.r_[np.ones(12), falling(628) / 2],
    "pairs": np.repeat(falling(320), 2),
    "near degenerate": np.r_[1 + 1e-9 * np.arange(12), falling(628) / 2],
    "identity": np.ones(640),
    "zero": np.zeros(640),
    "rank three": np.r_[3.0, 2.0, 1.0, np.zeros(637)],
    "negative": -falling(640),
    "one large": np.r_[1e8, falling(639)],
    "large": 1e200 * falling(640),
    "small": 1e-200 * falling(640),
    "600, dense": falling(600),
    "five": np.array([2.0, 2.0, 1.0, 0.0, -3.0]),
    "one": np.array([4.0]),
}


@pytest.mark.parametrize("form", [np.asarray, operator])
@pytest.mark.parametrize("name", SPECTRA)
def test_top_eigenpairs__agree_with_a_dense_solver(name, form):
    matrix = symmetric(SPECTRA[name])
    n = len(matrix)
    truth = np.linalg.eigvalsh(matrix)[::-1]
    scale = np.abs(truth).max()
    for k in {1, min(10, n)}:
        values, vectors = top_eigenpairs(form(matrix), k)
        assert (values.shape, vectors.shape) == ((k,), (n, k))
        np.testing.assert_allclose(values, truth[:k], rtol=1e-10, atol=1e-10 * scale)
        assert np.all(np.diff(values) <= 0)
        residual = np.abs(matrix @ vectors - vectors * values).max()
        assert residual <= 1e-10 * scale
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-10)


@pytest.mark.parametrize("form", [np.asarray, operator])
def test_top_eigenpairs__of_all(form):
    matrix = symmetric(SPECTRA["both signs"][::7])
    values, vectors = top_eigenpairs(form(matrix), len(matrix))
    np.testing.assert_allclose(values, eigenvalues(matrix), atol=1e-12)
    np.testing.assert_allclose((vectors * values) @ vectors.T, matrix, atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, operator])
@pytest.mark.parametrize("name", ["falling", "degenerate at the top", "five", "restarts"])
def test_top_eigenpairs__have_the_same_bits_every_time(name, form):
    # of a diagonal matrix of low rank Lanczos meets an invariant space, and starts anew
    matrix = np.diag(SPECTRA["rank three"]) if name == "restarts" else symmetric(SPECTRA[name])
    one, other = (top_eigenpairs(form(matrix), min(5, len(matrix))) for _ in range(2))
    assert one[0].tobytes() == other[0].tobytes()
    assert one[1].tobytes() == other[1].tobytes()


def by_definition(gram, diagonal):
    """Eigenvalues of J A, which are real though J A is not symmetric."""
    values = np.linalg.eigvals(diagonal[:, None] * gram)
    assert np.abs(values.imag).max() <= 1e-6 * max(1e-300, np.abs(values).max())
    return np.sort(values.real)[::-1]


@st.composite
def problems(draw):
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.sampled_from([1, 2, 3, 10, 40, 120]))
    width = draw(st.sampled_from([1, 3, 200]))
    x = generator.normal(0, 1, (n, width)) * draw(st.sampled_from([1e-3, 1.0, 1e3]))
    copies = draw(st.integers(0, n - 1))
    x[generator.integers(0, n, copies)] = x[0]
    n_test = draw(st.integers(0, n))
    rho = draw(st.sampled_from([0.5, 1.0, 5.0]))
    diagonal = np.r_[np.full(n_test, 1.0 / max(1, n_test)), np.full(n - n_test, -rho / n)]
    return x @ x.T, diagonal, draw(st.integers(1, n))


@settings(max_examples=60)
@given(problem=problems())
def test_indefinite_spectrum__agrees_with_the_definition(problem):
    gram, diagonal, k = problem
    truth = by_definition(gram, diagonal)
    scale = max(np.abs(truth).max(), 1e-300)
    values, vectors = indefinite_spectrum(gram).top(diagonal, k)
    assert (values.shape, vectors.shape) == ((k,), (len(gram), k))
    np.testing.assert_allclose(values, truth[:k], rtol=1e-10, atol=1e-10 * scale)
    # A J c = value c, and c^T J c = value
    applied = gram @ (diagonal[:, None] * vectors)
    size = np.abs(gram).max() ** 0.5
    np.testing.assert_allclose(applied, vectors * values, atol=1e-9 * scale * size)
    products = vectors.T @ (diagonal[:, None] * vectors)
    np.testing.assert_allclose(products, np.diag(values), atol=1e-9 * scale)


def gaussian_problem(n):
    x = np.random.default_rng(0).normal(0, 1, (n, 2))
    x[n // 2 :: 7] = x[0]
    squared = ((x[:, None] - x[None, :]) ** 2).sum(axis=2)
    diagonal = np.r_[np.full(n // 2, 2.0 / n), np.full(n - n // 2, -2.0 / n)]
    return np.exp(-squared / 2), diagonal


def test_indefinite_spectrum__of_a_large_kernel_matrix():
    gram, diagonal = gaussian_problem(300)
    spectrum = indefinite_spectrum(gram)
    assert spectrum.factor.shape[1] < 200  # the numerical rank
    np.testing.assert_allclose(spectrum.factor @ spectrum.factor.T, gram, atol=1e-12)
    values, _ = spectrum.top(diagonal, 10)
    np.testing.assert_allclose(values, by_definition(gram, diagonal)[:10], atol=1e-10)


def test_indefinite_spectrum__of_nothing_but_zeros():
    values, vectors = indefinite_spectrum(np.zeros((4, 4))).top(np.array([1.0, 1, -1, -1]), 3)
    np.testing.assert_array_equal(values, np.zeros(3))
    np.testing.assert_array_equal(vectors, np.zeros((4, 3)))


def test_indefinite_spectrum__puts_zeros_between_the_signs():
    x = np.array([[1.0, 0], [0, 1], [0, 1], [1, 0]])
    values, vectors = indefinite_spectrum(x @ x.T).top(np.array([1.0, 0, -1, 0]), 4)
    np.testing.assert_allclose(values, [1, 0, 0, -1], atol=1e-14)
    np.testing.assert_array_equal(vectors[:, 1:3], np.zeros((4, 2)))


def test_indefinite_spectrum__leaves_its_argument_and_has_the_same_bits():
    gram, diagonal = gaussian_problem(100)
    before = gram.copy()
    one, other = (indefinite_spectrum(gram).top(diagonal, 7) for _ in range(2))
    np.testing.assert_array_equal(gram, before)
    assert one[0].tobytes() == other[0].tobytes()
    assert one[1].tobytes() == other[1].tobytes()
