"""YAML and TOML as plain values, with the line of every key. Nothing in them is ever run."""

import re
import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from bigkd.errors import JobFileError
from bigkd.jobs.explain import Path

_TAGS = ("bool", "float", "int", "map", "null", "seq", "str", "timestamp")
_MOST_BITS = 64
_TOO_LARGE = f"a whole number has more than {_MOST_BITS} bits"
_PLAINER = {
    "found character '\\t' that cannot start any token": "a tab; YAML is indented with spaces",
    "mapping values are not allowed here": (
        "a ':' is out of place; the line above may lack its own, or a space after it"
    ),
    "expected <block end>, but found '<block mapping start>'": (
        "indented otherwise than the keys it stands beside"
    ),
}
"""What YAML's parser complains of most, in other words."""


class Document(NamedTuple):
    """What a job file says, and where."""

    values: Any
    lines: Mapping[Path, int]

    def line(self, path: Path) -> int:
        """Line of the key at `path`, or of the nearest key above it that is there; 1 at the top."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 1


class _Loader(yaml.SafeLoader):
    """YAML's plain values: no aliases, and ``1e-3`` is a number as in YAML 1.2."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a node that is not an alias."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(
                problem="aliases (*name) have no place in a job file", problem_mark=mark
            )
        return super().compose_node(parent, index)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def read_yaml(text: str, name: str) -> Document:
    """The document in `text`, from the file `name`.

    Raises
    ------
    JobFileError
        If it is not YAML, a key stands twice, or a value is not plain.
    """
    loader, lines = None, dict[Path, int]()
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        values = None if node is None else _plain(loader, node, (), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        problem = _PLAINER.get(str(error.problem), error.problem)
        raise JobFileError(f"{name}{at}: {problem}.") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        why = " ".join(str(error).split())
        raise JobFileError(f"{name}: not YAML: {why}.") from error
    except RecursionError as error:
        raise JobFileError(f"{name}: nested too deeply for a job file.") from error
    finally:
        if loader is not None:
            loader.dispose()
    return Document(values, lines)


def read_toml(text: str, name: str) -> Document:
    """The document in `text`, from the file `name`.

    Raises
    ------
    JobFileError
        If it is not TOML.
    """
    try:
        values = tomllib.loads(text)
        if _is_too_large(values):
            raise ValueError(_TOO_LARGE)
    except tomllib.TOMLDecodeError as error:
        found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error))
        if found is None:
            raise JobFileError(f"{name}: {error}.") from error
        problem, line, column = found.groups()
        raise JobFileError(f"{name}, line {line}, column {column}: {problem}.") from error
    except RecursionError as error:
        raise JobFileError(f"{name}: nested too deeply for a job file.") from error
    except ValueError as error:  # numbers of too many digits
        raise JobFileError(f"{name}: {error}.") from error
    return Document(values, _toml_lines(text))


def _plain(loader: _Loader, node: yaml.Node, path: Path, lines: dict[Path, int]) -> Any:
    if node.tag.removeprefix("tag:yaml.org,2002:") not in _TAGS:
        raise yaml.MarkedYAMLError(
            problem=f"the tag {node.tag!r} is refused: a job file holds plain values, never code",
            problem_mark=node.start_mark,
        )
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, path, lines)
    if isinstance(node, yaml.SequenceNode):
        items = []
        for at, item in enumerate(node.value):
            lines[*path, at] = item.start_mark.line + 1
            items.append(_plain(loader, item, (*path, at), lines))
        return items
    if ":" in node.value and node.tag.endswith((":int", ":float")):
        return node.value  # a time such as 10:30:00, and no number to the base of 60
    value = loader.construct_object(node)
    if _is_too_large(value):
        raise yaml.MarkedYAMLError(problem=_TOO_LARGE, problem_mark=node.start_mark)
    return value


def _is_too_large(value: Any) -> bool:
    """Whether a whole number of more than 64 bits is in `value`."""
    if isinstance(value, dict):
        return any(map(_is_too_large, value.values()))
    if isinstance(value, list):
        return any(map(_is_too_large, value))
    return isinstance(value, int) and value.bit_length() > _MOST_BITS


def _mapping(
    loader: _Loader, node: yaml.MappingNode, path: Path, lines: dict[Path, int]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key, line = key_node.value, key_node.start_mark.line + 1
        if not isinstance(key, str) or key_node.tag != "tag:yaml.org,2002:str":
            raise yaml.MarkedYAMLError(
                problem=f"expected the name of a key; got {key!r}",
                problem_mark=key_node.start_mark,
            )
        if key in values:
            raise yaml.MarkedYAMLError(
                problem=f"the key {key} stands twice; its first line is {lines[*path, key]}",
                problem_mark=key_node.start_mark,
            )
        lines[*path, key] = line
        values[key] = _plain(loader, value_node, (*path, key), lines)
    return values


def _toml_lines(text: str) -> dict[Path, int]:
    """Lines of the tables and keys; of what is inside an inline table, there is none."""
    lines: dict[Path, int] = {}
    table: Path = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[\[?([^\[\]]+)\]", line)
        key = re.match(r"""\s*([A-Za-z0-9_."' -]+?)\s*=""", line)
        if header:
            table = _toml_key(header[1])
            lines.setdefault(table, number)
        elif key:
            lines.setdefault(table + _toml_key(key[1]), number)
    return lines


def _toml_key(text: str) -> Path:
    return tuple(part.strip(" \"'") for part in text.split("."))
