"""``distance``: how far apart two collections are, and whether the difference is real."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self, TypeAlias

import xarray as xr
from pydantic import BeforeValidator, Field, model_validator

from bigkd import distance
from bigkd.distance.question import Method, Sizing
from bigkd.engine import Options
from bigkd.jobs.base import Positive, Whole
from bigkd.jobs.comparisons.base import RowsComparisonPart, SeededPart
from bigkd.jobs.comparisons.kernels import MEDIAN, DistanceKernelField, chosen_kernel
from bigkd.jobs.comparisons.two_sample import PermutationPart
from bigkd.jobs.kernels import found_kernel
from bigkd.jobs.rows import CollectionField

_OF_THE_TEST = ("method", "n_permutations", "n_frequencies", "n_groups_x", "n_groups_y", "alpha")


def _test(value: Any) -> Any:
    """True is short for a test with all its defaults, False for none."""
    if value is True:
        return {}
    return None if value is False else value


TestField: TypeAlias = Annotated[
    PermutationPart | None,
    BeforeValidator(_test, json_schema_input_type=bool | PermutationPart | None),
]


class PrecisionPart(SeededPart):
    """How accurate a distance is to be."""

    kernel: DistanceKernelField = Field(default=MEDIAN, description="kernel, or median")
    normalize: bool = Field(default=True, description="divide weights by their sum")
    eps: Positive = Field(
        default=0.01, description="error of the squared distance to aim at, weights being 1"
    )
    delta: float = Field(
        default=0.01, gt=0, lt=1, description="probability that a promise may fail"
    )
    n_frequencies: Annotated[int, Field(ge=2)] | None = Field(
        default=None, description="number of random frequencies, instead of what eps needs"
    )

    def choices(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The kernel and the number of frequencies, where rules found them."""
        found = found_kernel(self.kernel, attrs)
        if self.n_frequencies is None and "n_frequencies" in attrs:
            found["n_frequencies"] = int(attrs["n_frequencies"])
        return found


class DistancePart(PrecisionPart, RowsComparisonPart):
    """What `bigkd.distance.kernel_distance` is asked for."""

    kind: ClassVar[str] = "distance"

    x: CollectionField = Field(description="a collection of rows, or a mesh file")
    y: CollectionField = Field(description="the collection to compare it with")
    method: Method = Field(
        default="auto", description="how kernel sums are found; auto: the cheapest for eps"
    )
    sizing: Sizing = Field(default="pilot", description="rule for the number of frequencies")
    coreset_size: Whole | None = Field(
        default=None, description="rows of each sample, instead of what eps needs"
    )
    test: TestField = Field(
        default=None, description="whether, or how, to test if both come from one source"
    )

    @model_validator(mode="after")
    def _test_has_rows(self) -> Self:
        if self.test is not None and (self.x.has_vectors or self.y.has_vectors):
            raise ValueError(
                "has a test, which exchanges rows of the two collections; rows with directions, as "
                "of meshes, cannot be exchanged. Leave out the test"
            )
        return self

    def choices(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The kernel, the method and its size, where rules found them."""
        found = super().choices(attrs)
        if self.method != "auto":
            return found
        found["method"] = str(attrs["method"])
        if self.coreset_size is None and "coreset_size" in attrs:
            found["coreset_size"] = int(attrs["coreset_size"])
        return found

    @property
    def judged(self) -> frozenset[str]:
        """Variables of the result that a threshold may be set for."""
        return frozenset({"distance"} if self.test is None else {"distance", "rejected"})

    def carry_out(self, options: Options) -> xr.Dataset:
        """What `bigkd.distance.kernel_distance` returns, and the variables of the test.

        The attributes of the test begin with ``test_``.
        """
        x, y = self.x.open_shape("x"), self.y.open_shape("y")
        kernel, about = chosen_kernel(self.kernel, {"x": x, "y": y}, seed=self.seed)
        tested = xr.Dataset()
        if self.test is not None:
            tested = self.test.tested(x, y, kernel=kernel, seed=self.seed, options=options)
        result = distance.kernel_distance(
            x,
            y,
            kernel=kernel,
            normalize=self.normalize,
            method=self.method,
            eps=self.eps,
            delta=self.delta,
            n_frequencies=self.n_frequencies,
            sizing=self.sizing,
            coreset_size=self.coreset_size,
            seed=self.seed,
            **options,
        )
        own = {f"test_{name}": tested.attrs[name] for name in _OF_THE_TEST if name in tested.attrs}
        named = result.assign_attrs(**about, x=self.x.name, y=self.y.name, **own)
        return named.assign(tested.data_vars)
