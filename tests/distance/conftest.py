"""Kernel sums by definition, in long double, and collections that are hard for someone."""

import numpy as np

WIDE = np.longdouble


def squared(x, y):
    x, y = np.asarray(x, dtype=WIDE), np.asarray(y, dtype=WIDE)
    total = np.zeros((len(x), len(y)), dtype=WIDE)
    for column in range(x.shape[1]):
        total += (x[:, column][:, None] - y[:, column][None, :]) ** 2
    return total


def dot(x, y):
    return np.asarray(x, dtype=WIDE) @ np.asarray(y, dtype=WIDE).T


def gaussian(sigma):
    return lambda x, y: np.exp(-squared(x, y) / (2 * WIDE(sigma) ** 2))


def laplace(length):
    return lambda x, y: np.exp(-np.sqrt(squared(x, y)) / WIDE(length))


def kappa(kernel, x, y, mu=None, nu=None, u=None, v=None):
    """Sum over all pairs of mu nu K <U, V>."""
    values = kernel(x, y)
    if u is not None:
        values = values * dot(u, v)
    mu = np.ones(len(x)) if mu is None else mu
    nu = np.ones(len(y)) if nu is None else nu
    return mu.astype(WIDE) @ values @ nu.astype(WIDE)


def distance_squared(kernel, x, y, mu=None, nu=None, u=None, v=None, *, normalize=True):
    """kappa(x, x) + kappa(y, y) - 2 kappa(x, y)."""
    mu = np.ones(len(x)) if mu is None else np.asarray(mu)
    nu = np.ones(len(y)) if nu is None else np.asarray(nu)
    if normalize:
        mu, nu = mu.astype(WIDE) / mu.sum(dtype=WIDE), nu.astype(WIDE) / nu.sum(dtype=WIDE)
    own = kappa(kernel, x, x, mu, mu, u, u) + kappa(kernel, y, y, nu, nu, v, v)
    return float(own - 2 * kappa(kernel, x, y, mu, nu, u, v))


def clusters(rng, n, d):
    centres = rng.uniform(-1, 1, size=(5, d))
    return centres[rng.integers(5, size=n)] + 0.02 * rng.normal(size=(n, d))


def outliers(rng, n, d):
    rows = rng.normal(size=(n, d))
    rows[: n // 20] *= 40
    return rows


HARD = {
    "alike": lambda rng, d: (rng.normal(size=(300, d)), rng.normal(size=(250, d)), None, None),
    "clusters": lambda rng, d: (clusters(rng, 300, d), clusters(rng, 200, d), None, None),
    "outliers": lambda rng, d: (outliers(rng, 300, d), rng.normal(size=(200, d)), None, None),
    "one point": lambda rng, d: (np.ones((1, d)), np.ones((1, d)) * 1.5, None, None),
    "all equal": lambda rng, d: (np.ones((200, d)), np.zeros((200, d)), None, None),
    "far apart": lambda rng, d: (
        rng.normal(size=(150, d)),
        rng.normal(size=(150, d)) + 30,
        None,
        None,
    ),
    "offset": lambda rng, d: (
        rng.normal(size=(150, d)) + 1e4,
        rng.normal(size=(150, d)) + 1e4 + 1,
        None,
        None,
    ),
    "heavy weights": lambda rng, d: (
        rng.normal(size=(300, d)),
        rng.normal(size=(200, d)) + 0.5,
        10.0 ** rng.uniform(-6, 0, size=300),
        10.0 ** rng.uniform(-3, 3, size=200),
    ),
}
