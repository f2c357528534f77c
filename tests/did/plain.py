"""Eqs. 10 to 12 as they are written, in float64: dense, one pair at a time, explicit inverses."""

import numpy as np
import scipy.linalg

IMAGENET = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def gaussian(sigma):
    return lambda x, y: np.exp(-squared(x, y) / (2 * sigma**2))


def laplace(a):
    return lambda x, y: np.exp(-a * np.sqrt(squared(x, y)))


def squared(x, y):
    return ((x[:, None, :] - y[None, :, :]) ** 2).sum(-1)


def positions(shape):
    low, high = (0.0, 1.0) if len(shape) == 1 else (-1.0, 1.0)
    axes = [np.linspace(low, high, n) for n in shape]
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(shape))


def blackman(shape):
    mask = np.ones(())
    for n in shape:
        t = np.linspace(0, 1, n)
        mask = np.multiply.outer(
            mask, 0.42 - 0.5 * np.cos(2 * np.pi * t) + 0.08 * np.cos(4 * np.pi * t)
        )
    return mask.ravel()


def colour_grid(k):
    axis = np.linspace(0, 1, k)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    return (grid - IMAGENET[0]) / IMAGENET[1]


def position_grid(k, d):
    low, high = (0.0, 1.0) if d == 1 else (-1.0, 1.0)
    return np.stack(np.meshgrid(*[np.linspace(low, high, k)] * d, indexing="ij"), -1).reshape(-1, d)


def map_of(values, x, x_landmarks, y_landmarks, k_x, k_y, weights):
    """A or B, from values (N, p) at positions x (N, d)."""
    r_x = np.linalg.cholesky(k_x(x_landmarks, x_landmarks)).T
    r_y = np.linalg.cholesky(k_y(y_landmarks, y_landmarks)).T
    inner = k_y(y_landmarks, values) @ (weights[:, None] * k_x(x, x_landmarks))
    left = scipy.linalg.solve_triangular(r_y, inner, trans="T")
    return scipy.linalg.solve_triangular(r_x, left.T, trans="T").T


def direct(a, b, lam):
    inner = np.linalg.inv(b @ b.T + lam * np.eye(b.shape[0]))
    return lam * np.linalg.norm(a.T @ inner @ a, 2)


def push_through(a, b, lam):
    small = np.linalg.inv(b.T @ b + lam * np.eye(b.shape[1]))
    return np.linalg.norm(a.T @ a - a.T @ b @ small @ b.T @ a, 2)


def residual(a, b, lam):
    u, s, _ = np.linalg.svd(b, full_matrices=False)
    inside = u.T @ a
    both = np.concatenate([a - u @ inside, np.sqrt(lam / (s**2 + lam))[:, None] * inside])
    return np.linalg.norm(both, 2) ** 2
