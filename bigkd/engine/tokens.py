"""Names of specs: equal for equal parameters, on every machine."""

import dataclasses
import hashlib
from types import MethodType
from typing import Any

import numpy as np

from bigkd.backends import is_array, to_host


def spec_token(*parts: Any) -> str:
    """Digest of numbers, text, arrays, tuples, dataclasses and module-level functions.

    Raises
    ------
    TypeError
        For anything whose content it cannot see: a silent guess would reuse wrong results.
    """
    hashed = hashlib.sha256()
    for part in parts:
        _add(hashed, part)
    return hashed.hexdigest()[:32]


def _add(hashed: Any, part: Any) -> None:
    if part is None or isinstance(part, bool | int | float | str | bytes | np.generic):
        hashed.update(f"{type(part).__name__}:{part!r};".encode())
    elif isinstance(part, tuple | list):
        hashed.update(f"{len(part)}[".encode())
        for item in part:
            _add(hashed, item)
        hashed.update(b"]")
    elif dataclasses.is_dataclass(part) and not isinstance(part, type):
        _add_dataclass(hashed, part)
    elif is_array(part):
        values = np.ascontiguousarray(to_host(part))
        hashed.update(f"array{values.shape}{values.dtype.str}".encode())
        hashed.update(values.data)
    elif isinstance(part, MethodType):
        _add(hashed, (part.__func__, part.__self__))
    elif "<" not in getattr(part, "__qualname__", "<"):
        hashed.update(f"{part.__module__}.{part.__qualname__};".encode())
    else:
        raise TypeError(f"a checkpoint cannot be keyed by {part!r}; pass a module-level function.")


def _add_dataclass(hashed: Any, part: Any) -> None:
    hashed.update(f"{type(part).__module__}.{type(part).__qualname__}(".encode())
    for field in dataclasses.fields(part):
        hashed.update(f"{field.name}=".encode())
        _add(hashed, getattr(part, field.name))
    hashed.update(b")")
