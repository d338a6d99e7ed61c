"""Files of a project as YAML, with the place in the export that each part came from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from polynya.model.names import is_name
from polynya.proposal.yaml_lines import one_line, yaml_name, yaml_value

_PLAIN: Final = re.compile(r"[^A-Za-z0-9_]+")


class OwnReference(str):
    """A text of the import itself, such as `${env:NAME}`; what others wrote is never one."""

    __slots__ = ()


class From(dict[str, Any]):
    """A mapping, with the place that it comes from."""

    def __init__(self, place: str, **entries: Any) -> None:
        super().__init__(entries)
        self.place = place


def identifier(text: str) -> str:
    """The nearest usable name of a schema, table, task or connection; never empty."""
    if is_name(text):
        return text
    name = _PLAIN.sub("_", text).strip("_")[:100] or "unnamed"
    return name if is_name(name) else f"n_{name}"


def yaml_file(content: dict[str, Any], *comments: str) -> str:
    """A file of a project."""
    head = "".join(f"# {one_line(text)}\n" for text in comments if text)
    return head + "".join(f"{line}\n" for line in _mapping(content, 0))


def _mapping(content: dict[str, Any], indent: int) -> Iterator[str]:
    space = " " * indent
    for key, value in content.items():
        name = yaml_name(key)
        if isinstance(value, dict) and value:
            comment = f"  # {one_line(value.place)}" if isinstance(value, From) else ""
            yield f"{space}{name}:{comment}"
            yield from _mapping(value, indent + 2)
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            yield f"{space}{name}:"
            for item in value:
                yield from _item(item, indent + 2)
        else:
            yield f"{space}{name}: {_scalar(value)}"


def _item(item: dict[str, Any], indent: int) -> Iterator[str]:
    if isinstance(item, From):
        yield f"{' ' * indent}# {one_line(item.place)}"
    lines = list(_mapping(item, indent + 2))
    yield f"{' ' * indent}- {lines[0].lstrip()}"
    yield from lines[1:]


def _scalar(value: Any) -> str:
    return json.dumps(value) if isinstance(value, OwnReference) else yaml_value(value)
