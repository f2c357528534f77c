"""Mergeable summaries, one to a file: a frozen spec and a NamedTuple of arrays."""

from bigkd.summaries.compose import Joined, Mapped
from bigkd.summaries.coresets import KernelReducer, Reweighting, Selecting, distance_bound
from bigkd.summaries.cross_moments import CrossMoment, CrossMomentState
from bigkd.summaries.embeddings import MeanEmbedding, MeanEmbeddingState
from bigkd.summaries.extent import Extent, ExtentState
from bigkd.summaries.fourier_sums import FourierSums, FourierSumsState
from bigkd.summaries.grouped import GroupedMomentState, GroupedSecondMoment
from bigkd.summaries.kernel_sum import KernelSum, KernelSumState
from bigkd.summaries.levels import (
    LevelsState,
    MergeReduce,
    Points,
    Reducer,
    Reduction,
    Thinned,
    levels_for,
)
from bigkd.summaries.moments import Mean, MeanState, SecondMoment, SecondMomentState
from bigkd.summaries.pair_moments import PairMoment, PairMomentState
from bigkd.summaries.quantiles import QuantileReducer
from bigkd.summaries.reservoir import Reservoir, ReservoirState
from bigkd.summaries.top_rows import TopRows, TopRowsState

__all__ = [
    "CrossMoment",
    "CrossMomentState",
    "Extent",
    "ExtentState",
    "FourierSums",
    "FourierSumsState",
    "GroupedMomentState",
    "GroupedSecondMoment",
    "Joined",
    "KernelReducer",
    "KernelSum",
    "KernelSumState",
    "LevelsState",
    "Mapped",
    "Mean",
    "MeanEmbedding",
    "MeanEmbeddingState",
    "MeanState",
    "MergeReduce",
    "PairMoment",
    "PairMomentState",
    "Points",
    "QuantileReducer",
    "Reducer",
    "Reduction",
    "Reservoir",
    "ReservoirState",
    "Reweighting",
    "SecondMoment",
    "SecondMomentState",
    "Selecting",
    "Thinned",
    "TopRows",
    "TopRowsState",
    "distance_bound",
    "levels_for",
]
