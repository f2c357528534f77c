"""Maps like those of photos, and their dissimilarities in extended precision."""

import numpy as np

from bigkd.backends import to_host

ROWS, COLUMNS = 60, 20
EXTENDED = np.finfo(np.longdouble).eps < 1e-18


def cholesky(matrix):
    lower = np.zeros_like(matrix)
    for j in range(len(matrix)):
        left = matrix[j:, j] - lower[j:, :j] @ lower[j, :j]
        lower[j:, j] = left / np.sqrt(left[0])
    return lower


def by_definition(a, b, lam):
    """``lam |A^T (B B^T + lam I)^-1 A|``, in extended precision but for the eigenvector."""
    a, b, lam = (np.asarray(x, dtype=np.longdouble) for x in (a, b, lam))
    lower = cholesky(b @ b.T + lam * np.eye(len(b), dtype=np.longdouble))
    solved = a.copy()
    for i in range(len(lower)):
        solved[i] = (solved[i] - lower[i, :i] @ solved[:i]) / lower[i, i]
    matrix = solved.T @ solved
    size = np.trace(matrix)
    if size == 0:
        return 0.0
    top = np.linalg.eigh((matrix / size).astype(float))[1][:, -1].astype(np.longdouble)
    return float(lam * (top @ matrix @ top) / (top @ top))


def all_by_definition(a_maps, b_maps, lams):
    return np.array([[[by_definition(a, b, lam) for b in b_maps] for a in a_maps] for lam in lams])


def given_maps(factors):
    basis, strength = (to_host(part).astype(np.float64) for part in factors)
    return basis * strength[:, None, :]


def graded(n, decades, seed, rows=ROWS):
    """Maps like those of photos: singular values of about 1 that fall by so many decades."""
    generator = np.random.default_rng(seed)
    strengths = 10.0 ** -(decades * np.linspace(0, 1, COLUMNS) ** 0.7)
    left = np.linalg.qr(generator.normal(size=(n, rows, COLUMNS)))[0]
    right = np.linalg.qr(generator.normal(size=(n, COLUMNS, COLUMNS)))[0]
    return left * strengths @ np.swapaxes(right, 1, 2)


def collection(seed=0):
    """References and searched maps: some akin, some not; of full and of less rank; zero."""
    generator = np.random.default_rng(seed)
    b = np.concatenate([graded(2, 6, seed), graded(1, 10, seed + 1), graded(2, 2, seed + 2)])
    window = np.hanning(COLUMNS + 2)[1:-1]
    a = b * window
    a[1] = b[1] * (1 + 1e-3 * generator.normal(size=b[1].shape))
    b[4, :, 6:] = 0.0
    return (np.concatenate([part, np.zeros((1, ROWS, COLUMNS))]) for part in (a, b))
