"""``did``, ``did_matrix``, ``did_nearest``: data compared up to smooth deformations."""

from pathlib import Path
from typing import Any, ClassVar

import xarray as xr
from pydantic import Field

from bigkd import did
from bigkd.did.matrix import KIND
from bigkd.engine import Options
from bigkd.jobs.base import Whole
from bigkd.jobs.comparisons.base import ComparisonPart, Draw
from bigkd.jobs.comparisons.representation import (
    LamField,
    LamsField,
    RepresentationPart,
    StrengthPart,
)
from bigkd.jobs.data import DataField, DatumField

_LAM = "regularisation: a number, {}or rate for N^(-1/4); small values tell more apart"


class DidPart(RepresentationPart, StrengthPart, ComparisonPart):
    """What `bigkd.did.dissimilarity` is asked for, and `bigkd.did.match` for the picture."""

    kind: ClassVar[str] = "dissimilarity"
    sheet_name: ClassVar[str | None] = "picture"

    f: DatumField = Field(description="the reference, masked: a picture, or an array")
    g: DatumField = Field(description="what is searched for it, on the same grid")
    lam: LamsField = Field(default=1e-2, description=_LAM.format("several, "))
    promise: bool = Field(
        default=False, description="bound what the landmarks change; visits all pairs of positions"
    )

    @property
    def lams(self) -> list[float | str]:
        """One, or several."""
        return [*self.lam] if isinstance(self.lam, list) else [self.lam]

    @property
    def judged(self) -> frozenset[str]:
        """Variables of the result that a threshold may be set for."""
        return frozenset({"dissimilarity"})

    def carry_out(self, options: Options) -> xr.Dataset:
        """What `bigkd.did.dissimilarity` returns; there is no pass, so `options` say nothing."""
        found = did.dissimilarity(
            *self._pair(),
            lam=self.lam,
            relative=self.relative,
            scale=self.scale,
            promise=self.promise,
            **self.representation,
        )
        return found.assign_attrs(f=self.f.name, g=self.g.name)

    def drawing(self, images: str | None) -> Draw:
        """What draws what matches."""
        one: Any = self.lams[0]

        def draw(result: xr.Dataset, path: str) -> Path:
            did.match(
                *self._pair(),
                lam=one,
                relative=self.relative,
                scale=self.scale,
                path=path,
                **self.representation,
            )
            return Path(path)

        return draw

    def _pair(self) -> list[Any]:
        value_dim = self.value_dim
        return [
            part.open_datum(name, value_dim=value_dim)
            for name, part in (("f", self.f), ("g", self.g))
        ]


class DidMatrixPart(RepresentationPart, StrengthPart, ComparisonPart):
    """What `bigkd.did.matrix` is asked for."""

    kind: ClassVar[str] = KIND
    is_tiled: ClassVar[bool] = True

    collection: DataField = Field(description="the references, masked")
    other: DataField | None = Field(
        default=None, description="what is searched for them; by default the collection itself"
    )
    lam: LamsField = Field(default=1e-2, description=_LAM.format("several, "))
    dim: str | None = Field(
        default=None, description="axis that counts data, where axes have names; the first"
    )

    @property
    def judged(self) -> frozenset[str]:
        """Variables of the result that a threshold may be set for."""
        return frozenset({"dissimilarity"})

    def carry_out(self, options: Options) -> xr.Dataset:
        """What `bigkd.did.matrix` returns, in memory."""
        return self._matrix(None, options)

    def carry_out_to(self, store: str, options: Options) -> xr.Dataset:
        """What `bigkd.did.matrix` returns: written tile by tile, and opened."""
        return self._matrix(store, options)

    def _matrix(self, output: str | None, options: Options) -> xr.Dataset:
        parts = (("collection", self.collection), ("other", self.other))
        opened = [
            None if part is None else part.open_data(name, value_dim=self.value_dim)
            for name, part in parts
        ]
        how: Options = {**options, "dim": self.dim}
        return did.matrix(
            *opened,
            lam=self.lam,
            relative=self.relative,
            scale=self.scale,
            output=output,
            overwrite=True,
            **how,
            **self.representation,
        )


class DidNearestPart(RepresentationPart, StrengthPart, ComparisonPart):
    """What `bigkd.did.nearest` is asked for."""

    kind: ClassVar[str] = "nearest"

    query: DatumField = Field(description="the reference, masked: one datum, or a few")
    collection: DataField = Field(description="what is searched for it")
    k: Whole = Field(default=10, description="how many of the nearest")
    lam: LamField = Field(default=1e-2, description=_LAM.format(""))
    dim: str | None = Field(
        default=None, description="axis that counts data, where axes have names; the first"
    )

    @property
    def judged(self) -> frozenset[str]:
        """Variables of the result that a threshold may be set for."""
        return frozenset()

    def carry_out(self, options: Options) -> xr.Dataset:
        """What `bigkd.did.nearest` returns."""
        how: Options = {**options, "dim": self.dim}
        found = did.nearest(
            self.query.open_query("query", value_dim=self.value_dim, dim=self.dim),
            self.collection.open_data("collection", value_dim=self.value_dim),
            self.k,
            lam=self.lam,
            relative=self.relative,
            scale=self.scale,
            **how,
            **self.representation,
        )
        return found.assign_attrs(query=self.query.name, collection=self.collection.name)
