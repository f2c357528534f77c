"""Kernel sums by definition, in long double; and the rows and kernels they are tried on."""

import numpy as np

from bigkd.kernels import (
    Epanechnikov,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Matern,
    Triangle,
)

WIDE = np.longdouble


def values(kernel, x, y):
    """The kernel's definition, written out, shape (n, m)."""
    x, y = x.astype(WIDE), y.astype(WIDE)
    squared = sum((np.subtract.outer(x[:, k], y[:, k]) ** 2 for k in range(x.shape[1])), WIDE(0))
    distance = np.sqrt(squared)
    numbers = {name: WIDE(value) for name, value in kernel.parameters.items()}
    length = numbers[kernel.length_name]
    match kernel:
        case Gaussian():
            return np.exp(-squared / (2 * length**2))
        case InverseMultiquadric():
            return (1 + squared / length**2) ** -numbers["beta"]
        case Triangle():
            return np.maximum(0, 1 - distance / length)
        case Epanechnikov():
            return np.maximum(0, 1 - squared / length**2)
    nu = float(numbers.get("nu", 0.5))
    z = np.sqrt(2 * WIDE(nu)) * distance / length
    return {0.5: 1, 1.5: 1 + z, 2.5: 1 + z + z * z / 3}[nu] * np.exp(-z)


def inner(n, m, left, right):
    """Inner products of all strengths, and products of their lengths."""
    left = np.ones((n, 1)) if left is None else left.reshape(n, -1)
    right = np.ones((m, 1)) if right is None else right.reshape(m, -1)
    sizes = np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
    return left.astype(WIDE) @ right.T.astype(WIDE), sizes


def pair_sum_by_definition(kernel, x, y, left=None, right=None):
    """The sum; the scale of its error in float64; and in float32."""
    weights, sizes = inner(x.shape[0], y.shape[0], left, right)
    of_pairs = scale = values(kernel, x, y)
    if isinstance(kernel, Triangle | Epanechnikov):  # whose digits end at the radius
        scale = values(kernel.scaled(1 + 1e-9), x, y) > 0
    return np.sum(weights * of_pairs), np.sum(sizes * scale), np.sum(sizes)


KINDS = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "matern 1/2": lambda length: Matern(0.5, length),
    "matern 3/2": lambda length: Matern(1.5, length),
    "matern 5/2": lambda length: Matern(2.5, length),
    "inverse multiquadric": lambda length: InverseMultiquadric(length, 1.5),
    "flat inverse multiquadric": lambda length: InverseMultiquadric(length, 0.3),
    "triangle": Triangle,
    "epanechnikov": Epanechnikov,
}


def _clusters(generator, x):
    n, d = x.shape
    return generator.normal(size=(5, d))[generator.integers(0, 5, n)] + 1e-7 * x


def _near_the_origin(generator, x):
    del generator
    return x


def _offset(generator, x):
    del generator
    return x + 1e4


def _decades(generator, x):
    return x * 10.0 ** generator.integers(-3, 4, size=x.shape[1])


def _duplicates(generator, x):
    return x[generator.integers(0, max(1, len(x) // 3), len(x))]


CLOUDS = {
    "plain": _near_the_origin,
    "offset": _offset,
    "decades": _decades,
    "clusters": _clusters,
    "duplicates": _duplicates,
}


def cloud(name, n, d, seed=0):
    """Rows of a difficult kind."""
    generator = np.random.default_rng([seed, n, d])
    return CLOUDS[name](generator, generator.normal(size=(n, d)))


def spread(x):
    """Median distance between rows, or 1."""
    return float(np.median(np.linalg.norm(x[: len(x) // 2] - x[-(len(x) // 2) :], axis=1))) or 1.0


def strengths(name, n, c=None, seed=0):
    """Strengths of a kind: None, probabilities, or of either sign over six decades."""
    generator = np.random.default_rng([seed, n, 7])
    shape = (n,) if c is None else (n, c)
    if name == "none":
        return None
    if name == "probability":
        weights = generator.uniform(size=shape)
        return weights / weights.sum()
    return generator.normal(size=shape) * 10.0 ** generator.uniform(-3, 3, size=shape)
