"""States of any summary, as Datasets: a saver that knows no summary.

A state is a NamedTuple, or a tuple, of arrays and of such states. Its fields become variables named
by their path, ``"moment/outer"`` as ``moment.outer``. A state is read back into the shape of a
template, the state of no rows, so a file never decides which class is made.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from bigkd.backends import device, is_array, namespace, to_host
from bigkd.errors import StoreError
from bigkd.io.datasets import is_store, load_dataset, remove_store, save_dataset
from bigkd.io.manifests import MANIFEST, read_attributes
from bigkd.protocols import Array

State = TypeVar("State")

_KIND = "state"


def state_to_arrays(state: Any, prefix: str = "") -> dict[str, np.ndarray[Any, Any]]:
    """Every array of `state` on the host, by the path of its field."""
    return dict(_fields(state, prefix))


def arrays_to_state(template: State, arrays: Mapping[str, Any], prefix: str = "") -> State:
    """State shaped as `template`, on its namespace and device, from `state_to_arrays`.

    Raises
    ------
    StoreError
        If a field is absent, or has another shape or type than in `template`.
    """
    built: Any = _build(template, arrays, prefix)
    return built  # type: ignore[no-any-return]


def save_state(path: str | Path, state: Any, *, token: str) -> None:
    """Write `state` to `path`, whatever is there; `token` names what it is the state of."""
    variables = {
        name: (tuple(f"{name}.{axis}" for axis in range(value.ndim)), value)
        for name, value in state_to_arrays(state).items()
    }
    if not is_store(path):  # a damaged one is of no use, and not always known as a store
        remove_store(path)
    save_dataset(xr.Dataset(variables, attrs={"token": token}), path, kind=_KIND, overwrite=True)


def state_token(path: str | Path) -> str:
    """The `token` of the state at `path`, of which only the root is read.

    Raises
    ------
    StoreError
        If there is no finished state.
    """
    attributes = read_attributes(str(path))
    if attributes[MANIFEST]["kind"] != _KIND:
        raise StoreError(f"{path} holds {attributes[MANIFEST]['kind']!r}, and no state.")
    return str(attributes.get("token"))


def load_state(path: str | Path, template: State, *, token: str) -> State:
    """Read the state at `path` into the shape of `template`.

    Raises
    ------
    StoreError
        If it is absent, corrupted, or not the state that `token` names.
    """
    dataset = load_dataset(path, kind=_KIND)
    if dataset.attrs.get("token") != token:
        raise StoreError(f"{path} belongs to other data or other parameters.")
    return arrays_to_state(template, {str(name): v.values for name, v in dataset.items()})


def _fields(state: Any, prefix: str) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    if is_array(state):
        yield prefix or "value", to_host(state)
        return
    for name, part in _parts(state):
        yield from _fields(part, f"{prefix}.{name}" if prefix else name)


def _parts(state: Any) -> list[tuple[str, Any]]:
    names = getattr(state, "_fields", None) or [str(at) for at in range(len(state))]
    return list(zip(names, state, strict=True))


def _build(template: Any, arrays: Mapping[str, Any], prefix: str) -> Any:
    if is_array(template):
        return _array(template, arrays, prefix or "value")
    parts = [
        _build(part, arrays, f"{prefix}.{name}" if prefix else name)
        for name, part in _parts(template)
    ]
    return type(template)(*parts) if hasattr(template, "_fields") else tuple(parts)


def _array(template: Array, arrays: Mapping[str, Any], name: str) -> Array:
    if name not in arrays:
        raise StoreError(f"the stored state has no field {name!r}; it holds {sorted(arrays)}.")
    value = np.asarray(arrays[name])
    like = to_host(template)
    if value.shape != like.shape or value.dtype != like.dtype:
        raise StoreError(
            f"field {name!r} of the stored state is {value.dtype}{value.shape}; expected "
            f"{like.dtype}{like.shape}."
        )
    xp = namespace(template)
    return xp.asarray(value, device=device(template))
