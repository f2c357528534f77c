"""``two_sample``: whether two collections come from one source."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import xarray as xr
from pydantic import Field

from bigkd import distance
from bigkd.engine import Options
from bigkd.jobs.base import Part, Whole
from bigkd.jobs.comparisons.base import RowsComparisonPart
from bigkd.jobs.comparisons.kernels import MEDIAN, DistanceKernelField, chosen_kernel
from bigkd.jobs.kernels import found_kernel
from bigkd.jobs.rows import WeightedRowsField
from bigkd.kernels import Kernel


class PermutationPart(Part):
    """How a permutation test is made."""

    method: Literal["auto", "features", "exact"] = Field(
        default="auto", description="permute groups of rows, or the rows of small data"
    )
    n_permutations: Whole = Field(default=999, description="random permutations of the test")
    n_frequencies: int = Field(default=500, ge=2, description="number of random frequencies")
    n_groups: int = Field(default=256, ge=64, description="groups of rows that are permuted")
    alpha: float = Field(default=0.05, gt=0, lt=1, description="level of the test")

    def tested(self, x: Any, y: Any, *, kernel: Kernel, seed: int, options: Options) -> xr.Dataset:
        """What `bigkd.distance.two_sample_test` returns."""
        return distance.two_sample_test(
            x,
            y,
            kernel=kernel,
            method=self.method,
            n_permutations=self.n_permutations,
            n_frequencies=self.n_frequencies,
            n_groups=self.n_groups,
            alpha=self.alpha,
            seed=seed,
            **options,
        )


class TwoSamplePart(PermutationPart, RowsComparisonPart):
    """What `bigkd.distance.two_sample_test` is asked for."""

    kind: ClassVar[str] = "two-sample"

    x: WeightedRowsField = Field(description="a collection of rows")
    y: WeightedRowsField = Field(description="the collection to compare it with")
    kernel: DistanceKernelField = Field(default=MEDIAN, description="kernel, or median")

    def choices(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The kernel, where a rule found it."""
        return found_kernel(self.kernel, attrs)

    @property
    def judged(self) -> frozenset[str]:
        """Variables of the result that a threshold may be set for."""
        return frozenset({"rejected"})

    def carry_out(self, options: Options) -> xr.Dataset:
        """What `bigkd.distance.two_sample_test` returns."""
        x, y = self.x.open("x"), self.y.open("y")
        kernel, about = chosen_kernel(self.kernel, {"x": x, "y": y}, seed=self.seed)
        found = self.tested(x, y, kernel=kernel, seed=self.seed, options=options)
        return found.assign_attrs(**about, x=self.x.name, y=self.y.name)
