"""Collections of rows in a job file, and how they are read."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self, TypeAlias, get_args, get_origin

import xarray as xr
from pydantic import BaseModel, BeforeValidator, Field, model_validator

from bigkd import shapes
from bigkd.io import Source, open_rows
from bigkd.io.meshes import FORMATS
from bigkd.io.zarr_rows import Missing
from bigkd.jobs.base import Location, Part, Size, Whole
from bigkd.jobs.snapshot import taken
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

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width that pictures are resampled to."""
        return None if self.image_size is None else (self.image_size[0], self.image_size[1])

    def open(self, name: str) -> Source:
        """The rows, not read yet; messages call them `name`."""
        return self._opened(name)

    def look(self) -> None:
        """Open the rows for all comparisons of a run: see `bigkd.jobs.snapshot`."""
        self.open(self.name)

    def _opened(self, name: str, **beside: str | None) -> Source:
        how: dict[str, Any] = {
            "columns": None if self.columns is None else tuple(self.columns),
            "block_rows": self.block_rows,
            "missing": self.missing,
            "image_size": self.size,
            **{what: path for what, path in beside.items() if path is not None},
        }

        def opened() -> Source:
            return open_rows(self.path, name=name, **how)

        return open_rows(taken(f"{self.path} {how}", opened), name=name)


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

    def look(self) -> None:
        """Open the rows; a surface is read whole by whoever needs it."""
        if not self.is_mesh:
            self.open_shape(self.name)

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


def path_or(part: Any) -> BeforeValidator:
    """What makes a field of type `part` take a path, too; its JSON schema says so."""
    return BeforeValidator(spelled_out, json_schema_input_type=str | part)


RowsField: TypeAlias = Annotated[RowsPart, path_or(RowsPart)]
WeightedRowsField: TypeAlias = Annotated[WeightedRowsPart, path_or(WeightedRowsPart)]
CollectionField: TypeAlias = Annotated[CollectionPart, path_or(CollectionPart)]


def collections_of(part: Any) -> Iterator[RowsPart]:
    """Every collection that a part of a job names."""
    if isinstance(part, RowsPart):
        yield part
    elif isinstance(part, Part):
        for name in type(part).model_fields:
            yield from collections_of(getattr(part, name))
    elif isinstance(part, Mapping):
        for value in part.values():
            yield from collections_of(value)


def named_data(part: type[BaseModel], values: Any, data: Mapping[str, Any], used: set[str]) -> Any:
    """`values` of a `part` with what is in `data` in the place of its names.

    Names and paths that it says are noted in `used`.
    """
    if not isinstance(values, Mapping):
        return values
    found = dict(values)
    for name, value in values.items():
        if name not in part.model_fields or not is_collection(part, name):
            continue
        if isinstance(value, Mapping) and _is_mapping(part, name):
            found[name] = {key: _of_name(one, data, used) for key, one in value.items()}
        else:
            found[name] = _of_name(value, data, used)
    return found


def is_collection(part: type[BaseModel], name: str) -> bool:
    """Whether a field is a collection, or holds several."""
    field = part.model_fields.get(name)
    return field is not None and _holds_rows(field.annotation)


def _holds_rows(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, RowsPart):
        return True
    return any(map(_holds_rows, get_args(annotation)))


def _is_mapping(part: type[BaseModel], name: str) -> bool:
    return get_origin(part.model_fields[name].annotation) is dict


def _of_name(value: Any, data: Mapping[str, Any], used: set[str]) -> Any:
    if not isinstance(value, str):
        return value
    used.add(value)
    return data.get(value, value)
