"""What a job can make, one file for each key at the top of a job file."""

from collections.abc import Mapping

from bigkd.jobs.comparisons.base import ComparisonPart
from bigkd.jobs.comparisons.coreset import CoresetPart
from bigkd.jobs.comparisons.did import DidMatrixPart, DidNearestPart, DidPart
from bigkd.jobs.comparisons.distance import DistancePart
from bigkd.jobs.comparisons.distance_matrix import DistanceMatrixPart
from bigkd.jobs.comparisons.mmdpca import (
    MmdpcaBackgroundPart,
    MmdpcaDistancePart,
    MmdpcaPart,
    MmdpcaProjectPart,
)
from bigkd.jobs.comparisons.modes import ModesPart
from bigkd.jobs.comparisons.two_sample import TwoSamplePart

COMPARISONS: Mapping[str, type[ComparisonPart]] = {
    "modes": ModesPart,
    "distance": DistancePart,
    "two_sample": TwoSamplePart,
    "distance_matrix": DistanceMatrixPart,
    "coreset": CoresetPart,
    "did": DidPart,
    "did_matrix": DidMatrixPart,
    "did_nearest": DidNearestPart,
    "mmdpca": MmdpcaPart,
    "mmdpca_project": MmdpcaProjectPart,
    "mmdpca_distance": MmdpcaDistancePart,
    "mmdpca_background": MmdpcaBackgroundPart,
}
"""The parts by their keys."""

__all__ = [
    "COMPARISONS",
    "ComparisonPart",
    "CoresetPart",
    "DidMatrixPart",
    "DidNearestPart",
    "DidPart",
    "DistanceMatrixPart",
    "DistancePart",
    "MmdpcaBackgroundPart",
    "MmdpcaDistancePart",
    "MmdpcaPart",
    "MmdpcaProjectPart",
    "ModesPart",
    "TwoSamplePart",
]
