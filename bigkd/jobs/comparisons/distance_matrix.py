"""``distance_matrix``: the distances of many collections from one another."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import xarray as xr
from pydantic import Field, field_validator

from bigkd import distance
from bigkd.engine import Options
from bigkd.jobs.comparisons.base import RowsComparisonPart
from bigkd.jobs.comparisons.distance import PrecisionPart
from bigkd.jobs.comparisons.kernels import chosen_kernel
from bigkd.jobs.rows import CollectionField, CollectionPart


class DistanceMatrixPart(PrecisionPart, RowsComparisonPart):
    """What `bigkd.distance.matrix` is asked for."""

    kind: ClassVar[str] = "distance-matrix"

    collections: dict[str, CollectionField] = Field(description="two or more collections by name")
    method: Literal["auto", "exact", "rff", "nufft"] = Field(
        default="auto", description="how kernel sums are found"
    )

    @field_validator("collections")
    @classmethod
    def _several(cls, value: dict[str, CollectionPart]) -> dict[str, CollectionPart]:
        if len(value) < 2:
            raise ValueError(f"must be two or more collections by name; got {len(value)}")
        return value

    def choices(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The kernel, the method and the number of frequencies, where rules found them."""
        found = super().choices(attrs)
        if self.method == "auto":
            found["method"] = str(attrs["method"])
        return found

    @property
    def judged(self) -> frozenset[str]:
        """Variables of the result that a threshold may be set for."""
        return frozenset({"distance"})

    def carry_out(self, options: Options) -> xr.Dataset:
        """What `bigkd.distance.matrix` returns."""
        opened = {name: part.open_shape(name) for name, part in self.collections.items()}
        kernel, about = chosen_kernel(self.kernel, opened, seed=self.seed)
        found = distance.matrix(
            opened,
            kernel=kernel,
            normalize=self.normalize,
            method=self.method,
            eps=self.eps,
            delta=self.delta,
            n_frequencies=self.n_frequencies,
            seed=self.seed,
            **options,
        )
        return found.assign_attrs(about)
