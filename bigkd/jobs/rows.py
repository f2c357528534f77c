"""Collections of rows in a job file, and how they are read."""

from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeAlias

import xarray as xr
from pydantic import BeforeValidator, Field, model_validator

from bigkd import shapes
from bigkd.io import Source, open_rows
from bigkd.io.meshes import FORMATS
from bigkd.io.zarr_rows import Missing
from bigkd.jobs.base import Location, Part, Size, Whole
from bigkd.shapes.elements import Degenerate
from bigkd.shapes.results import Orientation


class RowsPart(Part):
    """A collection of rows, and how it is read."""

    path: Location = Field(
        description="Zarr, .npy, Parquet, a picture or a folder of pictures: a path or URL"
    )
    columns: list[str] | None = Field(default=None, description="columns of Parquet files")
    block_rows: Whole | None = Field(default=None, description="rows of one read")
    missing: Missing = Field(default="raise", description="what an absent Zarr chunk means")
    image_size: Size | None = Field(
        default=None, description="height and width that pictures are resampled to"
    )

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    def open(self, name: str) -> Source:
        """The rows, not read yet; messages call them `name`."""
        return self._opened(name)

    def _opened(self, name: str, **beside: str | None) -> Source:
        size = None if self.image_size is None else (self.image_size[0], self.image_size[1])
        return open_rows(
            self.path,
            name=name,
            columns=None if self.columns is None else tuple(self.columns),
            block_rows=self.block_rows,
            missing=self.missing,
            image_size=size,
            **beside,
        )


class WeightedRowsPart(RowsPart):
    """A collection of rows with weights."""

    weights: Location | None = Field(
        default=None, description="weights of the rows, one number each; 1 by default"
    )

    def open(self, name: str) -> Source:
        """The rows with their weights, not read yet."""
        return self._opened(name, weights=self.weights)


class CollectionPart(WeightedRowsPart):
    """A collection of weighted rows that may have directions; or a surface in a mesh file."""

    vectors: Location | None = Field(
        default=None, description="directions of the rows, such as normals, each of length 1"
    )
    shape: Orientation = Field(
        default="current", description="what a mesh file is: with two sides, or without"
    )
    degenerate: Degenerate = Field(
        default="raise", description="what to do with triangles that have no area"
    )

    @property
    def is_mesh(self) -> bool:
        """Whether the path is that of a mesh file."""
        return self.path.lower().endswith(tuple(f".{suffix}" for suffix in FORMATS))

    @property
    def has_vectors(self) -> bool:
        """Whether there are directions."""
        return self.is_mesh or self.vectors is not None

    def open_shape(self, name: str) -> Source | xr.Dataset:
        """The surface of a mesh file, or the rows, not read yet."""
        if not self.is_mesh:
            return self._opened(name, weights=self.weights, vectors=self.vectors)
        return shapes.read_mesh(self.path, orientation=self.shape, degenerate=self.degenerate)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        of_meshes = {"shape", "degenerate"}
        foreign = set(CollectionPart.model_fields) - {"path"} - of_meshes
        unused = sorted(self.model_fields_set & (foreign if self.is_mesh else of_meshes))
        if unused and self.is_mesh:
            raise ValueError(
                f"is a mesh file, which is read whole and has weights and vectors of its own; "
                f"leave out {', '.join(unused)}"
            )
        if unused:
            raise ValueError(
                f"has {', '.join(unused)}, which is for mesh files (.{', .'.join(FORMATS)}); got "
                f"{self.path!r}"
            )
        return self


def spelled_out(value: Any) -> Any:
    """A path is short for a mapping with nothing but the path."""
    if isinstance(value, Mapping | RowsPart):
        return value
    if isinstance(value, str) and value:
        return {"path": value}
    raise ValueError(f"must be a path, or a mapping with a path; got {value!r}")


RowsField: TypeAlias = Annotated[RowsPart, BeforeValidator(spelled_out)]
WeightedRowsField: TypeAlias = Annotated[WeightedRowsPart, BeforeValidator(spelled_out)]
CollectionField: TypeAlias = Annotated[CollectionPart, BeforeValidator(spelled_out)]
