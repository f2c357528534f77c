"""Locations without secrets: URLs say where something is, never who may read it."""

import os
from pathlib import Path

from bigkd.errors import InputError

_HIDDEN = {"@": "a user name", "?": "a query", "#": "a fragment"}


def url_problem(location: str) -> str | None:
    """What is wrong with `location`, without any part of it that could be secret; or None.

    Paths are never wrong. URLs would be written to results, logs and reports, so that they may
    not hold what lets somebody in; an ``@`` anywhere counts, for keys may hold slashes.
    """
    scheme, found, rest = location.partition("://")
    held = [what for mark, what in _HIDDEN.items() if mark in rest]
    if not found or not held:
        return None
    kind = "URL" if "@" in scheme else f"{scheme}:// URL"
    return (
        f"is a {kind} with {' and '.join(held)}, which may be secret and is not shown here; "
        f"expected one without @, ? and #. Credentials come from the environment "
        f"(AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, DASK_DISTRIBUTED__COMM__TLS__...), or from "
        f"files that it names (AWS_PROFILE, AWS_SHARED_CREDENTIALS_FILE)"
    )


def plain_location(location: str | Path, *, name: str = "the location") -> str:
    """`location` as text, if it is a path, or a URL that holds no secrets.

    Raises
    ------
    InputError
        If it is a URL with a user name, a query or a fragment; the message, which calls it `name`,
        shows none of them.
    """
    problem = url_problem(str(location))
    if problem is not None:
        raise InputError(f"{name} {problem}.")
    return str(location)


def one_place(location: str | Path) -> str:
    """The same text for every spelling of a place: links followed, nothing after the last name."""
    text = str(location)
    return text.rstrip("/") if "://" in text else os.path.realpath(text)
