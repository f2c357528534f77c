"""``coreset``: few rows that stand for a collection."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import xarray as xr
from pydantic import Field, model_validator

from bigkd import coreset
from bigkd.coreset.measured import Measure
from bigkd.coreset.thinning import Reweight
from bigkd.engine import Options
from bigkd.jobs.base import Whole
from bigkd.jobs.comparisons.base import RowsComparisonPart
from bigkd.jobs.comparisons.kernels import MEDIAN, DistanceKernelField, chosen_kernel
from bigkd.jobs.kernels import found_kernel
from bigkd.jobs.rows import WeightedRowsField
from bigkd.summaries import Selecting

_OF_ONE_METHOD = {
    "thin": ("kernel", "selection", "reweight", "measure", "n_frequencies"),
    "sample": ("replacement",),
}


class CoresetPart(RowsComparisonPart):
    """What `bigkd.coreset.thin` or `bigkd.coreset.sample` is asked for."""

    kind: ClassVar[str] = "coreset"

    data: WeightedRowsField = Field(description="the collection to choose rows from")
    size: Whole = Field(description="rows to choose")
    method: Literal["thin", "sample"] = Field(
        default="thin", description="rows that a kernel hardly tells from all, or random ones"
    )
    kernel: DistanceKernelField = Field(default=MEDIAN, description="kernel, or median")
    selection: Selecting = Field(default="greedy", description="how thin chooses rows")
    reweight: Reweight = Field(
        default="nonnegative", description="which weights thin gives: the best, or equal ones"
    )
    measure: Measure = Field(
        default="auto", description="how thin measures the distance to all rows"
    )
    n_frequencies: int = Field(
        default=1024, ge=2, description="number of random frequencies of that measure"
    )
    replacement: bool | None = Field(
        default=None, description="whether sample may draw a row again; by default if weighted"
    )
    delta: float = Field(
        default=0.01, gt=0, lt=1, description="probability that a promise may fail"
    )

    @model_validator(mode="after")
    def _fits_method(self) -> Self:
        for method, names in _OF_ONE_METHOD.items():
            foreign = sorted(self.model_fields_set.intersection(names))
            if foreign and self.method != method:
                raise ValueError(
                    f"has {', '.join(foreign)}, which goes with method {method!r}; the method is "
                    f"{self.method!r}"
                )
        return self

    def choices(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The kernel, where a rule found it."""
        return found_kernel(self.kernel, attrs) if self.method == "thin" else {}

    @property
    def judged(self) -> frozenset[str]:
        """Variables of the result that a threshold may be set for."""
        return frozenset()

    def carry_out(self, options: Options) -> xr.Dataset:
        """What `bigkd.coreset.thin` or `bigkd.coreset.sample` returns."""
        found = self._sampled(options) if self.method == "sample" else self._thinned(options)
        return found.assign_attrs(data=self.data.name)

    def _sampled(self, options: Options) -> xr.Dataset:
        return coreset.sample(
            self.data.open("data"),
            self.size,
            replacement=self.replacement,
            seed=self.seed,
            delta=self.delta,
            **options,
        )

    def _thinned(self, options: Options) -> xr.Dataset:
        data = self.data.open("data")
        kernel, about = chosen_kernel(self.kernel, {"data": data}, seed=self.seed)
        found = coreset.thin(
            data,
            self.size,
            kernel=kernel,
            selection=self.selection,
            reweight=self.reweight,
            measure=self.measure,
            n_frequencies=self.n_frequencies,
            seed=self.seed,
            delta=self.delta,
            **options,
        )
        return found.assign_attrs(about)
