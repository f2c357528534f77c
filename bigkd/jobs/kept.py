"""Which summaries a job with comparisons keeps for its next run."""

from collections.abc import Collection, Mapping
from typing import Any

from bigkd.io.small_files import files_at, read_record, write_record
from bigkd.io.tiled import whole_path

_FILE = "in_use.json"


def to_keep(
    folder: str, used: Mapping[str, Collection[str]], failed: Collection[str]
) -> set[str] | None:
    """The stores to keep after a run; None for all of them. It is noted for the next run.

    A comparison that failed keeps what it used when it last succeeded, and what it used when it
    last got as far as that: it may have failed before it looked for them.

    Parameters
    ----------
    folder
        Of the summaries.
    used
        The stores in `folder` that each comparison used, by name.
    failed
        Names of those that failed.
    """
    files, root = files_at(folder), f"{whole_path(folder)}/"
    before = _noted(read_record(files, _FILE))
    now = {name: sorted(at.removeprefix(root) for at in used[name]) for name in used}
    noted = {
        name: _after_failure(before.get(name), now[name])
        if name in failed
        else {"good": now[name], "tried": []}
        for name in used
    }
    write_record(files, _FILE, noted)
    if any(name not in before for name in failed):
        return None
    kept = {at for one in noted.values() for at in one["good"] + one["tried"]}
    return {f"{root}{at}" for at in kept}


def _after_failure(before: dict[str, list[str]] | None, now: list[str]) -> dict[str, list[str]]:
    good, tried = ([], []) if before is None else (before["good"], before["tried"])
    return {"good": good, "tried": now or tried}


def _noted(found: dict[str, Any] | None) -> dict[str, dict[str, list[str]]]:
    """What earlier runs noted; where it is damaged nothing, so that all is kept."""
    return found if found and all(map(_is_note, found.values())) else {}


def _is_note(one: Any) -> bool:
    return isinstance(one, dict) and all(
        isinstance(one.get(key), list) and all(isinstance(at, str) for at in one[key])
        for key in ("good", "tried")
    )
