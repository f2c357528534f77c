"""Choices that a first run made by a rule, for later ones: nights compare only with equal kernels.

A median bandwidth, or a number of frequencies, would change a little with every row that is added,
and with it every summary and every distance.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bigkd.io.small_files import Files, files_at, read_record, write_record
from bigkd.io.sources import digest
from bigkd.jobs.comparisons import ComparisonPart
from bigkd.jobs.rows import is_collection

logger = logging.getLogger(__name__)

_FILE = "pins.json"


class Pins:
    """What the comparisons of a job have chosen, in the folder of its summaries.

    With `anew` what was chosen before is forgotten.
    """

    def __init__(self, folder: str | Path | None, run_id: str, *, anew: bool = False) -> None:
        self._run_id = run_id
        self._files = None if folder is None else files_at(str(folder))
        self._pins: dict[str, dict[str, Any]] = {}
        if self._files is not None and not anew:
            self._pins = _read(self._files)

    def applied(self, name: str, part: ComparisonPart) -> ComparisonPart:
        """`part` with what it chose in an earlier run in place of its rules.

        A run that takes up an interrupted one is the same run: it finds the same by its rules.
        """
        earlier = self._earlier(name, part)
        if not earlier:
            return part
        try:
            return part.with_choices({field: made["value"] for field, made in earlier.items()})
        except ValidationError:  # of another version of bigkd
            logger.warning("%s holds choices that %s cannot use; it chooses anew", _FILE, name)
            del self._pins[name]
            return part

    def note(self, name: str, part: ComparisonPart, attrs: Mapping[str, Any]) -> None:
        """Keep what `part` chose, as the attributes of its result tell, but for earlier choices."""
        earlier = self._earlier(name, part)
        choices = {
            field: {"value": value, "run_id": self._run_id}
            for field, value in part.choices(attrs).items()
        } | earlier
        if self._files is not None and choices != earlier:
            self._pins[name] = {"part": _token(part), "choices": choices}
            write_record(self._files, _FILE, self._pins)

    def _earlier(self, name: str, part: ComparisonPart) -> dict[str, dict[str, Any]]:
        """Choices of earlier runs that were asked for the same, by field."""
        pin = self._pins.get(name)
        if pin is None or pin.get("part") != _token(part):
            return {}
        made = pin["choices"].items()
        return {field: one for field, one in made if one["run_id"] != self._run_id}


def _read(files: Files) -> dict[str, dict[str, Any]]:
    found = read_record(files, _FILE)
    if found is not None and all(map(_is_pin, found.values())):
        return found
    logger.warning("%s is damaged; what it held is chosen anew", _FILE)
    return {}


def _is_pin(pin: Any) -> bool:
    choices = pin.get("choices") if isinstance(pin, dict) else None
    return isinstance(choices, dict) and all(
        isinstance(one, dict) and {"value", "run_id"} <= one.keys() for one in choices.values()
    )


def _token(part: ComparisonPart) -> str:
    """Name of what was asked for; the data may change from night to night."""
    asked = part.model_dump(mode="json")
    return digest(
        type(part).__name__,
        *((name, asked[name]) for name in sorted(asked) if not is_collection(type(part), name)),
    )
