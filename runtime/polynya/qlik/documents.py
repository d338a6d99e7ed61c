"""Documents of Qlik as trees in which each value knows its place and whether it was used.

A value that no part of the import has used is a loss. So nothing of a document is dropped without
a line in the report, whatever keys it has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from polynya.model.documents.yaml import ListNode, MapNode, Node, Scalar, dotted, read_document
from polynya.model.error_catalogue.qlik import SOURCE_UNREADABLE
from polynya.model.errors import ConfigError
from polynya.model.names import shown

Content: TypeAlias = "Scalar | dict[str, QlikValue] | list[QlikValue]"

#: Levels of a JSON document, as of a YAML document in `model/documents/yaml.py`.
_MAX_DEPTH: Final = 64
#: Values of a JSON document: an export of Replicate has some dozens for each table.
_MAX_VALUES: Final = 1_000_000
#: Replicate writes the name of its host before the document.
_FIRST_LINE: Final = re.compile(r"\A\s*//[^\n]*\n")


@dataclass(slots=True)
class QlikValue:
    """A value of a document.

    Attributes:
        content: the scalar, or further values by key or in order.
        path: keys and indexes from the root.
        where: `file:line:col`, or `file:$.path` in a document of Replicate.
        used: whether the import made something of it.
        told: whether the report has its line already.
    """

    content: Content
    path: tuple[str | int, ...]
    where: str
    used: bool = False
    told: bool = False

    @property
    def name(self) -> str:
        """The path in dotted form."""
        return dotted(self.path)

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing."""
        return self.content is None or self.content == "" or self.content in ([], {})

    @property
    def children(self) -> Iterator[QlikValue]:
        """The values in it, one level down."""
        if isinstance(self.content, dict):
            yield from self.content.values()
        elif isinstance(self.content, list):
            yield from self.content

    def leaves(self) -> Iterator[QlikValue]:
        """Scalars, and lists and mappings with nothing in them."""
        waiting = [self]
        while waiting:
            value = waiting.pop()
            inner = list(value.children)
            if inner:
                waiting.extend(reversed(inner))
            else:
                yield value

    def at(self, *path: str) -> QlikValue | None:
        """The value at a path of keys; None if there is none."""
        value: QlikValue | None = self
        for key in path:
            if value is None or not isinstance(value.content, dict):
                return None
            value = value.content.get(key)
        return value

    def items(self, *path: str) -> list[QlikValue]:
        """The items of a list at a path; none if there is no list."""
        value = self.at(*path)
        return value.content if value is not None and isinstance(value.content, list) else []

    def entries(self, *path: str) -> list[tuple[str, QlikValue]]:
        """The entries of a mapping at a path; none if there is no mapping."""
        value = self.at(*path)
        found = value.content if value is not None else None
        return list(found.items()) if isinstance(found, dict) else []

    def text(self, *path: str) -> str:
        """The text at a path, which counts as used; "" if there is no text."""
        value = self.at(*path)
        if value is None or not isinstance(value.content, str):
            return ""
        value.used = True
        return value.content

    def flag(self, *path: str) -> bool | None:
        """True or false at a path, which counts as used; None if there is neither.

        Qlik writes `ON` and `OFF` for settings that may also be inherited.
        """
        value = self.at(*path)
        if value is None:
            return None
        found = {"ON": True, "OFF": False}.get(str(value.content))
        found = value.content if isinstance(value.content, bool) else found
        value.used = value.used or found is not None
        return found

    def number(self, *path: str) -> int | None:
        """The whole number at a path, which counts as used; None if there is none."""
        value = self.at(*path)
        if value is None or isinstance(value.content, bool) or not isinstance(value.content, int):
            return None
        value.used = True
        return value.content

    def use(self) -> None:
        """Count the value as used, and all that is in it."""
        for leaf in self.leaves():
            leaf.used = True


@dataclass(slots=True)
class QlikDocument:
    """One file: its values, and what could not be read of it."""

    file: str
    root: QlikValue
    faults: list[ConfigError] = field(default_factory=list)


def yaml_document(content: bytes, file: str) -> QlikDocument:
    """A YAML or JSON file of a project.

    Raises:
        ConfigError: it is not readable at all, or beyond the limits of configuration files.
    """
    node, faults = read_document(_text(content, file), file)
    return QlikDocument(file, _value_of(node, (), file, (node.position.line, 1)), faults)


def _text(content: bytes, file: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SOURCE_UNREADABLE("the file is not UTF-8 text", where=file, why=str(error)) from None


def _value_of(
    node: Node, path: tuple[str | int, ...], file: str, place: tuple[int, int]
) -> QlikValue:
    where = f"{file}:{place[0]}:{place[1]}"
    if isinstance(node, MapNode):
        return QlikValue(
            {
                key: _value_of(inner, (*path, key), file, (at.line, at.column))
                for key, (at, inner) in node.entries.items()
            },
            path,
            where,
        )
    if isinstance(node, ListNode):
        return QlikValue(
            [
                _value_of(item, (*path, i), file, (item.position.line, item.position.column))
                for i, item in enumerate(node.items)
            ],
            path,
            where,
        )
    return QlikValue(node.value, path, where)


def json_document(content: bytes, file: str) -> QlikDocument:
    """A JSON document of Replicate; places are paths, since it is written by a program.

    Raises:
        ConfigError: it is not JSON, or too deep or too large.
    """
    faults: list[ConfigError] = []
    text = _FIRST_LINE.sub("", _text(content, file))
    try:
        parsed = json.loads(text, object_pairs_hook=_Pairs, parse_constant=str)
    except (ValueError, RecursionError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise SOURCE_UNREADABLE("this is not a JSON document", where=file, why=why) from None
    return QlikDocument(file, _JsonTree(file, faults).value(parsed, ()), faults)


class _Pairs(list[tuple[str, Any]]):
    """The entries of an object, with keys that occur twice."""


class _JsonTree:
    def __init__(self, file: str, faults: list[ConfigError]) -> None:
        self._file = file
        self._faults = faults
        self._count = 0

    def value(self, parsed: Any, path: tuple[str | int, ...]) -> QlikValue:
        self._count += 1
        where = f"{self._file}:$.{one_line(dotted(path))}" if path else f"{self._file}:$"
        if len(path) > _MAX_DEPTH or self._count > _MAX_VALUES:
            raise SOURCE_UNREADABLE(
                f"more than {_MAX_DEPTH} levels or {_MAX_VALUES} values", where=where[:500]
            )
        content: Content
        if isinstance(parsed, _Pairs):
            content = {}
            for key, inner in parsed:
                if key in content:
                    message = f"the key {shown(key)} occurs twice; the first value counts"
                    self._faults.append(SOURCE_UNREADABLE(message, where=where))
                else:
                    content[key] = self.value(inner, (*path, key))
        elif isinstance(parsed, list):
            content = [self.value(inner, (*path, i)) for i, inner in enumerate(parsed)]
        else:
            content = parsed
        return QlikValue(content, path, where)


def one_line(text: str) -> str:
    """A text of a document as a report may show it: printable, on one line, not without end."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    return plain if len(plain) <= 200 else f"{plain[:200]}…"
