"""Data of `bigkd.did` in a job file: collections of images, series and fields, and single ones."""

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import xarray as xr
from pydantic import Field

from bigkd.errors import InputError
from bigkd.io import Source, load_array, open_labelled
from bigkd.io.image_folder import holds_pictures
from bigkd.jobs.rows import RowsPart, path_or


class DataPart(RowsPart):
    """A collection of data."""

    def look(self) -> None:
        """Nothing: labelled data are opened by whoever needs them."""

    def open_data(self, name: str, *, value_dim: str | None = None) -> Source | xr.DataArray:
        """The data, with the coordinates that their store has, not read yet.

        Several variables of one Zarr group are the values, along an axis called `value_dim`.
        """
        found = self._labelled(name, value_dim)
        return self.open(name) if found is None else found

    def _labelled(self, name: str, value_dim: str | None) -> xr.DataArray | None:
        axis = value_dim or "variable"
        return open_labelled(self.path, name=name, variable=axis, missing=self.missing)


class DatumPart(DataPart):
    """One datum, or several: of an array its number of axes tells."""

    row: int | None = Field(
        default=None, ge=0, description="number of the datum, where the path holds several"
    )

    @property
    def name(self) -> str:
        """Last part of the path, and the number of the datum."""
        return super().name if self.row is None else f"{super().name}[{self.row}]"

    def open_datum(self, name: str, *, value_dim: str | None = None) -> Any:
        """One datum, as an array or with its coordinates.

        Raises
        ------
        InputError
            If there are several pictures, or rows of a table, and no number of one of them.
        """
        found = self.open_query(name, value_dim=value_dim)
        if not isinstance(found, Source):
            return found
        if found.n_rows != 1:
            raise InputError(
                f"{name}: {self.path} holds {found.n_rows} data; expected one. Give the number of "
                f"one (row in a job file, --{name}-row), or compare all: did_matrix, did_nearest."
            )
        return _datum(found, 0)

    def open_query(self, name: str, *, value_dim: str | None = None, dim: str | None = None) -> Any:
        """One datum, or several along the axis that counts them: `dim`, by default the first.

        Raises
        ------
        InputError
            If there is no datum of the number that was given.
        """
        found = self._labelled(name, value_dim)
        if found is not None:
            axis = found.dims[0] if dim is None else dim
            if self.row is None:
                return found
            if axis not in found.dims:
                raise InputError(f"dim={dim!r} is not a dimension of {name}: {found.dims}.")
            return found.isel({axis: self._row_of(found.sizes[axis], name)})
        if self._is_array:
            array = load_array(self.path, name=name)
            return array if self.row is None else array[self._row_of(len(array), name)]
        source = self.open(name)
        return source if self.row is None else _datum(source, self._row_of(source.n_rows, name))

    @property
    def _is_array(self) -> bool:
        """Whether the path is that of one array, and not of pictures or of a table."""
        path = Path(self.path)
        if "://" in self.path or path.suffix == ".npy":
            return True
        is_table = path.suffix == ".parquet" or any(path.glob("*.parquet"))
        return not is_table and not holds_pictures(path)

    def _row_of(self, n: int, name: str) -> int:
        if self.row is None or self.row >= n:
            raise InputError(f"{name}: {self.path} has no row {self.row}; it has {n}, from 0.")
        return self.row


def _datum(source: Source, row: int) -> Any:
    return source.take(row, row + 1).reshape(source.row_shape)


DataField: TypeAlias = Annotated[DataPart, path_or(DataPart)]
DatumField: TypeAlias = Annotated[DatumPart, path_or(DatumPart)]
