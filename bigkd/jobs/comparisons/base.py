"""What all comparisons have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import xarray as xr
from pydantic import Field

from bigkd.engine import NonFinite, Options
from bigkd.io import save_dataset
from bigkd.jobs.base import Part
from bigkd.jobs.snapshot import require_unchanged_since

Draw: TypeAlias = Callable[[xr.Dataset, str], Path]
"""Draws the sheet of a result to a file."""


class SeededPart(Part):
    """Randomness, and rows that are not finite."""

    seed: int = Field(default=0, ge=0, description="seed of every random choice")
    nonfinite: NonFinite = Field(
        default="raise", description="what to do with rows that hold NaN or infinities"
    )


class ComparisonPart(Part, ABC):
    """What a job makes: a key of its own at the top of a job file."""

    kind: ClassVar[str]
    """Of the store of its result."""

    sheet_name: ClassVar[str | None] = None
    """What ``output.sheet`` is a picture of; None if there is no such picture."""

    is_tiled: ClassVar[bool] = False
    """Whether the store of its result is in tiles, and may be larger than memory."""

    @property
    def policy(self) -> NonFinite:
        """What to do with rows that are not finite."""
        return "raise"

    @property
    @abstractmethod
    def judged(self) -> frozenset[str]:
        """Variables of the result that a threshold may be set for."""

    def choices(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """Fields that a rule decided, and what it decided, by the attributes of a result."""
        del attrs
        return {}

    def with_choices(self, choices: Mapping[str, Any]) -> Self:
        """The same part with `choices` in place of rules."""
        return self.model_validate({**self.model_dump(exclude_unset=True), **choices})

    @abstractmethod
    def carry_out(self, options: Options) -> xr.Dataset:
        """The result; `options` say how rows are read and passes run."""

    def carry_out_to(self, store: str, options: Options) -> xr.Dataset:
        """The result, written to `store`, over an earlier one."""
        result = self.carry_out(options)
        require_unchanged_since()
        save_dataset(result, store, kind=self.kind, overwrite=True)
        return result

    def drawing(self, images: str | None) -> Draw:
        """What draws the sheet, checked as far as that is possible before the long work.

        `images` are the pictures of the rows, if they are not the rows themselves.
        """
        raise NotImplementedError


class RowsComparisonPart(SeededPart, ComparisonPart):
    """A comparison of rows, of which some may be left out."""

    @property
    def policy(self) -> NonFinite:
        """What to do with rows that are not finite."""
        return self.nonfinite
