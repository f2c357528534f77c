"""Kernels, random Fourier features and bandwidths: pure functions of blocks of rows."""

from bigkd.kernels.bandwidth import BandwidthChoice, median_distance, variance_rule
from bigkd.kernels.base import Kernel
from bigkd.kernels.distances import squared_distances
from bigkd.kernels.families import (
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Matern,
    from_parameters,
)
from bigkd.kernels.fourier import FourierFeatures
from bigkd.kernels.frequencies import Sampling

__all__ = [
    "BandwidthChoice",
    "FourierFeatures",
    "Gaussian",
    "InverseMultiquadric",
    "Kernel",
    "Laplace",
    "Matern",
    "Sampling",
    "from_parameters",
    "median_distance",
    "squared_distances",
    "variance_rule",
]
