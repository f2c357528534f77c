"""Rows of many kinds of spectra, and rows that are hard on the theorems."""

import numpy as np

from bigkd.backends import rng


def rotated(scaled, generator):
    """Rows whose axes are no axes of the spectrum."""
    n = scaled.shape[1]
    return scaled @ np.linalg.qr(generator.standard_normal((n, n)))[0]


def decaying(n_rows, n, seed=0, power=1.0):
    generator = rng(seed)
    scale = np.arange(1, n + 1.0) ** -power
    return rotated(generator.standard_normal((n_rows, n)) * scale * np.sqrt(n), generator)


def flat_tail(n_rows, n, seed=0, rank=6):
    """A few strong directions over white noise."""
    generator = rng(seed)
    scale = np.full(n, 0.5)
    scale[:rank] = np.linspace(6.0, 3.0, rank)[:n]
    return rotated(generator.standard_normal((n_rows, n)) * scale, generator)


def clusters(n_rows, n, seed=0, n_clusters=8):
    generator = rng(seed)
    centres = 2.0 * generator.standard_normal((n_clusters, n))
    share = generator.dirichlet(np.full(n_clusters, 2.0))
    label = generator.choice(n_clusters, n_rows, p=share)
    return centres[label] + 0.4 * generator.standard_normal((n_rows, n))


def heavy_tails(n_rows, n, seed=0, freedom=3.0):
    """Multivariate t: a few rows carry much of every moment."""
    generator = rng(seed)
    scale = np.arange(1, n + 1.0) ** -0.7 * np.sqrt(n)
    length = np.sqrt(freedom / generator.chisquare(freedom, n_rows))
    return rotated(generator.standard_normal((n_rows, n)) * scale * length[:, None], generator)


def shifted(n_rows, n, seed=0):
    """A mean far from the origin beside the spread."""
    return decaying(n_rows, n, seed) + 3.0


SPECTRA = {
    "decaying": decaying,
    "flat tail": flat_tail,
    "clusters": clusters,
    "heavy tails": heavy_tails,
    "shifted": shifted,
}


def one_far_row(n_rows, n, seed=0):
    rows = 0.1 * decaying(n_rows, n, seed)
    rows[0] += 10.0 * np.sqrt(n)
    return rows


def two_far_clusters(n_rows, n, seed=0):
    generator = rng(seed)
    rows = 0.05 * generator.standard_normal((n_rows, n))
    rows[::2, 0] += 5.0 * np.sqrt(n)
    rows[1::2, -1] += 4.0 * np.sqrt(n)
    return rows


def opposite_pairs(n_rows, n, seed=0):
    """Symmetric about the origin: odd moments vanish."""
    rows = decaying(n_rows // 2, n, seed)
    return np.concatenate([rows, -rows])


def nearly_flat(n_rows, n, seed=0):
    """All but a hundred-thousandth within three dimensions: tails near rounding."""
    generator = rng(seed)
    scale = np.full(n, 1e-5)
    scale[:3] = 2.0
    return rotated(generator.standard_normal((n_rows, n)) * scale, generator)


def few_rows(n_rows, n, seed=0):
    """Fewer rows than dimensions, so that k is near the rank."""
    return decaying(max(2, min(n_rows, n // 2 + 1)), n, seed)


def copies(n_rows, n, seed=0):
    """Each row four times."""
    return np.repeat(decaying(max(1, n_rows // 4), n, seed), 4, axis=0)


def far_from_the_origin(n_rows, n, seed=0):
    return 0.3 * decaying(n_rows, n, seed) + 20.0


def signs(n_rows, n, seed=0):
    """Corners of a cube: every row has the same length."""
    return rng(seed).choice([-1.0, 1.0], (n_rows, n))


HARD = {
    "one far row": one_far_row,
    "two far clusters": two_far_clusters,
    "opposite pairs": opposite_pairs,
    "nearly flat": nearly_flat,
    "few rows": few_rows,
    "copies": copies,
    "far from the origin": far_from_the_origin,
    "signs": signs,
    "heavy tails": lambda n_rows, n, seed=0: heavy_tails(n_rows, n, seed, freedom=1.2),
}
