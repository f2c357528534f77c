"""Algorithm 2, the distance and its bounds as they are written: dense, float64 or better, slow.

K(x, y) = (x.y) H(x, y). Here H is a function of a vector and some others, and nothing of bigkd is
used.
"""

import numpy as np


def gauss(n, a=1.0):
    return lambda x, y: np.exp(-a * squared(x, y) / n)


def laplace(n, a=1.0):
    return lambda x, y: np.exp(-a * np.sqrt(squared(x, y)) / np.sqrt(n))


def poisson(n, a=1.0):
    return lambda x, y: np.exp(-(n + 1) / 2 * np.log1p(a * squared(x, y) / n))


def higher_moments(n, shares):
    """H of K = sum_s shares[s - 1] (x.y / n)^s."""
    return lambda x, y: sum(share * (y @ x / n) ** s for s, share in enumerate(shares)) / n


def kurtosis(n, a=None):
    del a
    return higher_moments(n, (1.0, 1.0, 1.0, 1.0))


def squared(x, y):
    return ((x - y) ** 2).sum(-1)


KERNELS = {"gauss": gauss, "laplace": laplace, "poisson": poisson, "kurtosis": kurtosis}


def values(h, x, y):
    """H of every row of x and every row of y."""
    return np.stack([h(one, y) for one in x])


def matrix(h, x):
    """H_f, n by n."""
    x = np.asarray(x, np.longdouble)
    found = np.zeros((x.shape[1], x.shape[1]), np.longdouble)
    for one in x:
        found += np.outer(one, h(one, x) @ x)
    return (found / len(x) ** 2).astype(float)


def eigenpairs(symmetric):
    """Eigenvalues, largest first, and eigenvectors in columns."""
    found, vectors = np.linalg.eigh((symmetric + symmetric.T) / 2)
    return found[::-1], vectors[:, ::-1]


def projector(vectors):
    return vectors @ vectors.T


def sine(one, other):
    """Sine of the largest angle between the spans of orthonormal columns, of equal number."""
    return float(np.linalg.norm(one - other @ (other.T @ one), 2))


def inner(h, x, y, u=None, w=None):
    """<mu, nu> of K, of points with the weights u and w; 1/N each by default."""
    u = np.full(len(x), 1 / len(x)) if u is None else u
    w = np.full(len(y), 1 / len(y)) if w is None else w
    return float(u @ ((x @ y.T) * values(h, x, y)) @ w)


def mmd2(h, x, y, w=None):
    """Squared distance of the rows of x and the rows of y, these with the weights w."""
    return inner(h, x, x) - 2 * inner(h, x, y, None, w) + inner(h, y, y, w, w)


def mmd2_to(h, x, vectors):
    """Squared distance of the rows of x and their projections on the span of `vectors`."""
    return mmd2(h, x, x @ projector(vectors))


def tail(found, k):
    """Theorem 9: no measure on k dimensions is nearer, squared."""
    return float(found[k:].sum())


def gauss_upper(x, vectors, found, a=1.0):
    """Theorem 11's proof up to the inequality of Poincaré."""
    n, k = x.shape[1], vectors.shape[1]
    inside = x @ projector(vectors)
    outside = x - inside
    mixed = (inside @ inside.T) * (outside @ outside.T) * values(gauss(n, a), x, x)
    return tail(found, k) + 2 * a / n * float(mixed.mean())


def damped(x, vectors, a=1.0):
    """What reaches `gauss_upper`: points of the subspace, and their weights."""
    inside = x @ projector(vectors)
    shares = np.exp(-a / x.shape[1] * ((x - inside) ** 2).sum(axis=1))
    return inside, shares / len(x)


class Plain:
    """Algorithm 2 with features weighed, land left out, rows dropped and means taken off.

    Features of the weight 0, or NaN in every row, are left out, then rows with another NaN; weights
    are scaled to a mean of 1 over the features kept; components are in the units of the data.
    """

    def __init__(self, x, k, make, *, a=1.0, weights=None, center=False):
        x = np.asarray(x, float)
        x = x.reshape(len(x), -1)
        w = np.ones(x.shape[1]) if weights is None else np.ravel(weights)
        self.kept = ~np.isnan(x).all(axis=0) & (w > 0)
        x = x[:, self.kept]
        self.used = ~np.isnan(x).any(axis=1)
        x = x[self.used]
        self.weights = w[self.kept] / w[self.kept].mean()
        self.mean = x.mean(axis=0) if center else np.zeros(x.shape[1])
        self.root = np.sqrt(self.weights)
        self.rows = (x - self.mean) * self.root
        self.h = make(x.shape[1], a)
        self.k = k
        self.matrix = matrix(self.h, self.rows)
        self.trace = float(np.trace(self.matrix))
        self.eigenvalues, vectors = eigenpairs(self.matrix)
        self.vectors = vectors[:, :k]

    @property
    def pca(self):
        """PCA's subspace: second moments of the same rows."""
        return eigenpairs(self.rows.T @ self.rows / len(self.rows))[1][:, : self.k]

    @property
    def mmd2(self):
        return mmd2_to(self.h, self.rows, self.vectors)

    def white(self, component):
        """Orthonormal columns from components in the units of the data, shape (k, *features)."""
        flat = np.asarray(component, float).reshape(len(component), -1)
        return (flat[:, self.kept] * self.root).T
