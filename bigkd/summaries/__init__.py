"""Mergeable summaries, one to a file: a frozen spec and a NamedTuple of arrays."""

from bigkd.summaries.compose import Joined, Mapped
from bigkd.summaries.grouped import GroupedMomentState, GroupedSecondMoment
from bigkd.summaries.kernel_sum import KernelSum, KernelSumState
from bigkd.summaries.moments import Mean, MeanState, SecondMoment, SecondMomentState
from bigkd.summaries.top_rows import TopRows, TopRowsState

__all__ = [
    "GroupedMomentState",
    "GroupedSecondMoment",
    "Joined",
    "KernelSum",
    "KernelSumState",
    "Mapped",
    "Mean",
    "MeanState",
    "SecondMoment",
    "SecondMomentState",
    "TopRows",
    "TopRowsState",
]
