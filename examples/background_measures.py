"""How near a computed background is to the true one: the six measures of SBI and SBMnet.

Both pictures are taken as they would be in a file: rounded to whole levels from 0 to 255. Where
one number for a pixel is needed, it is the luma 0.299 R + 0.587 G + 0.114 B, not rounded. What
the scripts of these benchmarks do and their texts do not say, is done as there: differences of
luma are rounded to whole levels before they are compared with the threshold, pixels beyond the
border count as wrong, and small pictures have a smaller window.

References
----------
.. [1] L. Maddalena and A. Petrosino, "Towards Benchmarking Scene Background Initialization", ICIAP
   Workshops, 2015.
.. [2] P.-M. Jodoin et al., "Extensive Benchmark and Survey of Modeling Methods for Scene Background
   Initialization", IEEE Transactions on Image Processing 26(11), 2017.
.. [3] Z. Wang, E. P. Simoncelli and A. C. Bovik, "Multiscale Structural Similarity for Image
   Quality Assessment", Asilomar Conference on Signals, Systems and Computers, 2003.
.. [4] Y. Yalman and I. Ertürk, "A New Color Image Quality Measure Based on YUV Transformation and
   PSNR for Human Vision System", Turkish Journal of Electrical Engineering and Computer Sciences
   21, 2013.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import ndimage

LUMA = np.array([0.299, 0.587, 0.114])
THRESHOLD = 20

WHITE = 255.0
SCALES = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
WINDOW, SIGMA = 11, 1.5
STABLE = ((0.01 * WHITE) ** 2, (0.03 * WHITE) ** 2)
LUMA_WEIGHT = 0.9449  # rods of the eye; cones share what is left


class Measures(NamedTuple):
    """The six numbers, and in which direction they are better."""

    age: float
    """Average grey-level error; 0 to 255, less is better."""

    peps: float
    """Share of error pixels, those wrong by more than 20 levels; 0 to 1, less is better."""

    pceps: float
    """Share of clustered error pixels, whose four neighbours are error pixels too; less is better.
    """

    ms_ssim: float
    """Multi-scale structural similarity; up to 1, more is better."""

    psnr: float
    """Peak signal-to-noise ratio, dB; infinite for equal pictures, more is better."""

    cqm: float
    """Colour quality measure, dB, more is better; NaN without colours."""


def measures(computed: np.ndarray, truth: np.ndarray) -> Measures:
    """The six measures of a computed background.

    Parameters
    ----------
    computed, truth
        Pictures of one shape, ``(y, x)`` or ``(y, x, 3)`` for RGB, values from 0 to 255.

    Raises
    ------
    ValueError
        If shapes differ or are no pictures, or a side is shorter than 16 pixels.
    """
    if computed.shape != truth.shape or truth.shape[2:] not in ((), (3,)) or truth.ndim < 2:
        raise ValueError(
            f"both pictures must have one shape, (y, x) or (y, x, 3); got {computed.shape} and "
            f"{truth.shape}."
        )
    levels, true_levels = _levels(computed), _levels(truth)
    grey, true_grey = luma(levels), luma(true_levels)
    gap = np.rint(np.abs(grey - true_grey))
    wrong = gap > THRESHOLD
    clustered = ndimage.binary_erosion(wrong, border_value=1)
    return Measures(
        float(gap.mean()),
        float(wrong.mean()),
        float(clustered.mean()),
        ms_ssim(grey, true_grey),
        psnr(grey, true_grey),
        cqm(levels, true_levels) if levels.ndim == 3 else math.nan,
    )


def luma(picture: np.ndarray) -> np.ndarray:
    """Grey levels of an RGB picture; those of a grey one as they are."""
    return picture @ LUMA if picture.ndim == 3 else picture


def psnr(picture: np.ndarray, truth: np.ndarray) -> float:
    """``10 log10(255^2 / mean squared error)``, dB."""
    error = float(np.mean((picture - truth) ** 2))
    return 10.0 * math.log10(WHITE**2 / error) if error else math.inf


def cqm(picture: np.ndarray, truth: np.ndarray) -> float:
    """PSNR of luma and chroma in the reversible YUV of JPEG 2000, as rods and cones see them, dB.

    Y is rounded down; U = R - G and V = B - G have a sign, as in the paper. (In a Matlab script
    that is passed round, subtraction of 8-bit numbers cuts negative ones off.)
    """
    y, u, v = (psnr(one, other) for one, other in zip(_yuv(picture), _yuv(truth), strict=True))
    return LUMA_WEIGHT * y + (1.0 - LUMA_WEIGHT) * (u + v) / 2.0


def ms_ssim(picture: np.ndarray, truth: np.ndarray) -> float:
    """Structural similarity over five scales, each half of the one before.

    Contrast and structure count on every scale, luminance on the last. Windows are Gaussian, sigma
    1.5, 11 pixels wide, or a sixteenth of the shorter side where that is less, and lie wholly
    inside. A scale whose mean is negative counts as 0.

    Parameters
    ----------
    picture, truth
        Grey levels from 0 to 255, shape ``(y, x)``.

    Raises
    ------
    ValueError
        If a side is shorter than 16 pixels.
    """
    shortest = min(picture.shape)
    if shortest < 16:
        raise ValueError(f"five scales need sides of at least 16 pixels; got {picture.shape}.")
    width = WINDOW if shortest >= 16 * WINDOW else shortest // 16
    taps = np.exp(-((np.arange(width) - (width - 1) / 2.0) ** 2) / (2.0 * SIGMA**2))
    taps /= taps.sum()
    similarity = 1.0
    for scale, weight in enumerate(SCALES):
        if scale:
            picture, truth = _halved(picture), _halved(truth)
        luminance, structure = _similarities(picture, truth, taps)
        last = scale == len(SCALES) - 1
        mean = np.mean(luminance * structure if last else structure)
        similarity *= max(float(mean), 0.0) ** weight
    return similarity


def _similarities(
    picture: np.ndarray, truth: np.ndarray, taps: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of luminance, and of contrast and structure, in each window."""
    mean, true_mean = _windowed(picture, taps), _windowed(truth, taps)
    variances = _windowed(picture**2 + truth**2, taps) - mean**2 - true_mean**2
    covariance = _windowed(picture * truth, taps) - mean * true_mean
    luminance = (2.0 * mean * true_mean + STABLE[0]) / (mean**2 + true_mean**2 + STABLE[0])
    return luminance, (2.0 * covariance + STABLE[1]) / (variances + STABLE[1])


def _windowed(picture: np.ndarray, taps: np.ndarray) -> np.ndarray:
    """Weighted means over the windows that lie inside."""
    for axis in (0, 1):
        picture = ndimage.correlate1d(picture, taps, axis=axis, mode="constant")
    before, after = taps.size // 2, (taps.size - 1) // 2
    return picture[before : picture.shape[0] - after, before : picture.shape[1] - after]


def _halved(picture: np.ndarray) -> np.ndarray:
    """Means of two by two pixels; a last one by itself is repeated."""
    odd = [(0, n % 2) for n in picture.shape]
    padded = np.pad(picture, odd, mode="edge")
    return padded.reshape(padded.shape[0] // 2, 2, -1, 2).mean(axis=(1, 3))


def _yuv(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    red, green, blue = np.moveaxis(picture, 2, 0)
    return np.floor((red + 2.0 * green + blue) / 4.0), red - green, blue - green


def _levels(picture: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(picture), 0.0, WHITE).astype(np.float64)
