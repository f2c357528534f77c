"""``modes``: what one collection has more of than another."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import xarray as xr
from pydantic import Field

from bigkd import finc
from bigkd.engine import Options
from bigkd.io.images import as_pictures, html_page
from bigkd.jobs.base import Count, Part, Positive, Whole
from bigkd.jobs.comparisons.base import Draw, RowsComparisonPart, SeededPart
from bigkd.jobs.kernels import AUTO, SpectralKernelField, found_kernel
from bigkd.jobs.rows import RowsField, RowsPart
from bigkd.kernels import Sampling


class FeaturesPart(SeededPart):
    """The feature map, and what goes through it."""

    kernel: SpectralKernelField = Field(
        default=AUTO, description="kernel, or rule that chooses one"
    )
    n_frequencies: Count = Field(default="auto", description="number of random frequencies")
    sampling: Sampling = Field(default="iid", description="how frequencies are drawn")
    frequency_tolerance: Positive = Field(
        default=0.01, description="relative error that n_frequencies = auto aims at"
    )


class ChoicesPart(Part):
    """Which modes count."""

    rho: float = Field(
        default=1.0, ge=0, description="how many times more frequent than in the reference"
    )
    n_modes: Whole = Field(default=10, description="modes to return, significant or not")
    alpha: float = Field(
        default=0.01, gt=0, lt=1, description="probability that noise alone gives a mode"
    )
    n_draws: Whole = Field(default=199, description="noise spectra behind the p-values")


class ModesPart(ChoicesPart, FeaturesPart, RowsComparisonPart):
    """What `bigkd.finc.modes` is asked for."""

    kind: ClassVar[str] = "modes"
    sheet_name: ClassVar[str | None] = "contact sheet"

    test: RowsField = Field(description="the collection whose modes are wanted")
    reference: RowsField = Field(description="the collection to compare it with")
    method: Literal["finc", "ken"] = Field(
        default="finc", description="random features, or the exact spectrum of small data"
    )
    n_top: int = Field(default=25, ge=0, description="top rows of each mode; 0 saves a pass")
    top_share: float = Field(
        default=1.0, gt=0, le=1, description="share of the rows that top rows are looked for among"
    )

    @property
    def judged(self) -> frozenset[str]:
        """Variables of the result that a threshold may be set for."""
        return frozenset({"significant"})

    def carry_out(self, options: Options) -> xr.Dataset:
        """What `bigkd.finc.modes` returns."""
        result = finc.modes(
            self.test.open("test"),
            self.reference.open("reference"),
            kernel=self.kernel.build(),
            n_frequencies=self.n_frequencies,
            rho=self.rho,
            n_modes=self.n_modes,
            method=self.method,
            sampling=self.sampling,
            frequency_tolerance=self.frequency_tolerance,
            n_top=self.n_top,
            top_share=self.top_share,
            alpha=self.alpha,
            n_draws=self.n_draws,
            seed=self.seed,
            **options,
        )
        # Names only: equal inputs give equal files, wherever they lie.
        return result.assign_attrs(test=self.test.name, reference=self.reference.name)

    def choices(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The kernel and the number of frequencies, where rules found them."""
        found = found_kernel(self.kernel, attrs)
        if self.n_frequencies == "auto" and "n_frequencies" in attrs:
            found["n_frequencies"] = int(attrs["n_frequencies"])
        return found

    def drawing(self, images: str | None) -> Draw:
        """What draws the contact sheet."""
        size = self.test.image_size
        where = self.test if images is None else RowsPart(path=images, image_size=size)
        source = where.open("images")
        blank = np.zeros((1, source.width), source.dtype)
        html_page(as_pictures([blank], source.row_shape, None), [""])

        def draw(result: xr.Dataset, path: str) -> Path:
            return finc.contact_sheet(source, result, path)

        return draw
