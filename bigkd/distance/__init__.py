"""Kernel distances: how far apart two collections are, and whether the difference is real."""

from bigkd.distance.costs import Costs, measure_costs
from bigkd.distance.matrices import matrix
from bigkd.distance.measure import kernel_distance, unbiased_mmd2
from bigkd.distance.permutation import two_sample_test

__all__ = [
    "Costs",
    "kernel_distance",
    "matrix",
    "measure_costs",
    "two_sample_test",
    "unbiased_mmd2",
]
