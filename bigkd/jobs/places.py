"""Results keep off the data: which places a job reads, and which it writes."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, get_args

from pydantic import AfterValidator

from bigkd.errors import InputError
from bigkd.io.urls import one_place
from bigkd.jobs.base import Part, located


def locations(part: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every path or URL in a part of a job, with the key that it stands at."""
    if isinstance(part, Part):
        for name, field in type(part).model_fields.items():
            value, at = getattr(part, name), f"{key}.{name}" if key else name
            if isinstance(value, str) and (
                _is_location(field.annotation) or _located(field.metadata)
            ):
                yield at, value
            yield from locations(value, at)
    inside = part.items() if isinstance(part, Mapping) else ()
    for name, value in inside:
        yield from locations(value, f"{key}.{name}")


def require_apart(read: Mapping[str, str], written: Mapping[str, str]) -> None:
    """Refuse to write over or into what is read, or twice to one place.

    Parameters
    ----------
    read, written
        Paths and URLs, by the keys that they stand at. Links are followed.

    Raises
    ------
    InputError
        If so; the message names both keys.
    """
    sources = {key: one_place(location) for key, location in read.items()}
    targets = {key: one_place(location) for key, location in written.items()}
    for key, target in targets.items():
        for other, source in sources.items():
            replaced = not key.endswith("checkpoint")  # what else is in that folder stays
            if _holds(source, target) or (replaced and _holds(target, source)):
                raise InputError(
                    f"{key} ({written[key]}) would be written over or into {other} "
                    f"({read[other]}), which is read; name a place apart from it."
                )
    for (key, target), (other, same) in combinations(targets.items(), 2):
        if target == same:
            raise InputError(f"{key} and {other} are both {written[key]}; name two places.")


def require_outside(stores: Iterable[str], written: Mapping[str, str]) -> None:
    """Refuse to write into a store of a result, which is replaced whole by the next run.

    Parameters
    ----------
    stores
        Of results.
    written
        Paths and URLs, by the keys that they stand at.

    Raises
    ------
    InputError
        If one of them is inside a store.
    """
    for store in stores:
        outer = one_place(store)
        for key, location in written.items():
            inner = one_place(location)
            if inner != outer and _holds(outer, inner):
                raise InputError(
                    f"{key} ({location}) is inside {store}, the store of a result, which is "
                    f"replaced whole; name a place beside it."
                )


def _holds(outer: str, inner: str) -> bool:
    """Whether `inner` is `outer`, or in it."""
    return inner == outer or inner.startswith(f"{outer.rstrip('/')}/")


def _is_location(annotation: Any) -> bool:
    metadata = getattr(annotation, "__metadata__", ())
    return _located(metadata) or any(map(_is_location, get_args(annotation)))


def _located(metadata: Iterable[Any]) -> bool:
    return any(isinstance(one, AfterValidator) and one.func is located for one in metadata)
