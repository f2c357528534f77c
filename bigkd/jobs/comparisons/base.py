"""What all comparisons have in common."""

from abc import ABC, abstractmethod
from typing import ClassVar

import xarray as xr
from pydantic import Field

from bigkd.engine import NonFinite, Options
from bigkd.jobs.base import Part


class SeededPart(Part):
    """Randomness, and rows that are not finite."""

    seed: int = Field(default=0, ge=0, description="seed of every random choice")
    nonfinite: NonFinite = Field(
        default="raise", description="what to do with rows that hold NaN or infinities"
    )


class ComparisonPart(SeededPart, ABC):
    """What a job makes: a key of its own at the top of a job file."""

    kind: ClassVar[str]
    """Of the store of its result."""

    @property
    @abstractmethod
    def judged(self) -> frozenset[str]:
        """Variables of the result that a threshold may be set for."""

    @abstractmethod
    def carry_out(self, options: Options) -> xr.Dataset:
        """The result; `options` say how rows are read and passes run."""
