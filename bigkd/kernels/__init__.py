"""Kernels, random Fourier features and bandwidths: pure functions of blocks of rows."""

from bigkd.kernels.bandwidth import BandwidthChoice, median_distance, variance_rule
from bigkd.kernels.base import Kernel, RadialKernel
from bigkd.kernels.by_name import from_parameters
from bigkd.kernels.compact import Epanechnikov, Triangle
from bigkd.kernels.covariance import CovarianceGaussian
from bigkd.kernels.distances import squared_distances
from bigkd.kernels.families import Gaussian, InverseMultiquadric, Laplace, Matern
from bigkd.kernels.forms import rounding_bound
from bigkd.kernels.fourier import FourierFeatures
from bigkd.kernels.frequencies import Sampling
from bigkd.kernels.grids import (
    FrequencyGrid,
    inner_product,
    inner_product_error,
    squared_distance,
    squared_distance_error,
)
from bigkd.kernels.products import DotTimes, Polynomial
from bigkd.kernels.sums import pair_sum, potential
from bigkd.kernels.values import KernelValues

__all__ = [
    "BandwidthChoice",
    "CovarianceGaussian",
    "DotTimes",
    "Epanechnikov",
    "FourierFeatures",
    "FrequencyGrid",
    "Gaussian",
    "InverseMultiquadric",
    "Kernel",
    "KernelValues",
    "Laplace",
    "Matern",
    "Polynomial",
    "RadialKernel",
    "Sampling",
    "Triangle",
    "from_parameters",
    "inner_product",
    "inner_product_error",
    "median_distance",
    "pair_sum",
    "potential",
    "rounding_bound",
    "squared_distance",
    "squared_distance_error",
    "squared_distances",
    "variance_rule",
]
