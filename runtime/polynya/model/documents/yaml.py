"""The YAML and JSON reader: values with line and column, and hard limits.

It builds the document from parse events and constructs nothing but text, numbers, booleans, nulls,
lists and mappings: no tag can name a class. Limits apply during the parse, because scanners are
quadratic in nesting depth (10^5 brackets take minutes) and an alias bomb is small on disk.

libyaml parses in a tenth of ruamel's time, but it knows YAML 1.1. It only reads documents without
a mistake in which both say the same; ruamel reads all others, so every error is one of its.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import yaml

from polynya.model.error_catalogue.configuration import (
    CONFIGURATION_FILE_TOO_LARGE,
    CONFIGURATION_FILE_UNREADABLE,
    DUPLICATE_KEY,
    INVALID_YAML,
)
from polynya.model.errors import ConfigError
from polynya.model.names import shown

if TYPE_CHECKING:
    from ruamel.yaml.error import YAMLError

Scalar: TypeAlias = str | int | float | bool | None
Plain: TypeAlias = Scalar | list["Plain"] | dict[str, "Plain"]
NodePath: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class TextPosition:
    """A 1-based line and column in a file."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """One value. `size` counts a shared sub-tree as often as it shows."""

    value: Scalar
    position: TextPosition
    size: int = 1


@dataclass(frozen=True, slots=True)
class ListNode:
    """A sequence."""

    items: tuple[Node, ...]
    position: TextPosition
    size: int


@dataclass(frozen=True, slots=True)
class MapNode:
    """A mapping with unique text keys; each entry also has the position of its key."""

    entries: dict[str, tuple[TextPosition, Node]]
    position: TextPosition
    size: int


Node: TypeAlias = ScalarNode | ListNode | MapNode


def position_of(root: Node, path: Sequence[str | int]) -> TextPosition:
    """Return the position of a path: of the key in a mapping, of the item in a list.

    Follows the path as far as the document goes; parts that are not keys (pydantic's union tags)
    are skipped.
    """
    node, position = root, root.position
    for part in path:
        if isinstance(node, MapNode) and part in node.entries:
            position, node = node.entries[str(part)]
        elif isinstance(node, ListNode) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
            position = node.position
    return position


def node_at(root: Node, path: Sequence[str | int]) -> Node | None:
    """Return the node at a path; None if the document has none."""
    node: Node | None = root
    for part in path:
        if isinstance(node, MapNode) and part in node.entries:
            node = node.entries[str(part)][1]
        elif isinstance(node, ListNode) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
        else:
            return None
    return node


def dotted(path: Sequence[str | int]) -> str:
    """Return a path in dotted form: `datasets[0].keys`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


MAX_FILE_BYTES: Final = 1_000_000
MAX_NODES: Final = 20_000
MAX_DEPTH: Final = 32
MAX_ERRORS: Final = 50
#: The events of libyaml; None where PyYAML was built without it.
_FAST: Final = getattr(yaml, "CSafeLoader", None)
#: What YAML 1.1 and 1.2 read differently: line breaks, tabs, directives and ends of documents.
_UNLIKE: Final = re.compile("[\t\x85\u2028\u2029\ufeff]|^(---|\\.\\.\\.|%)", re.MULTILINE)

_CORE_TAG: Final = "tag:yaml.org,2002:"
_INT: Final = re.compile(r"[-+]?[0-9]{1,400}|0o[0-7]{1,100}|0x[0-9a-fA-F]{1,100}")
_FLOAT: Final = re.compile(
    r"[-+]?(\.[0-9]{1,400}|[0-9]{1,400}(\.[0-9]{0,400})?)([eE][-+]?[0-9]{1,9})?"
)
_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def read_text(path: FilePath, shown_as: str) -> str:
    """Return the text of a file; raises ConfigError when too large, unreadable or not UTF-8."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CONFIGURATION_FILE_UNREADABLE(where=shown_as, reason=error.strerror) from None
    if len(raw) > MAX_FILE_BYTES:
        message = f"the file is larger than {MAX_FILE_BYTES} bytes"
        raise CONFIGURATION_FILE_TOO_LARGE(message, where=shown_as)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise CONFIGURATION_FILE_UNREADABLE(
            "the file is not UTF-8 text",
            where=f"{shown_as}:{line}:{column}",
            fix="save it as UTF-8",
        ) from None


def read_document(text: str, file: str) -> tuple[Node, list[ConfigError]]:
    """Return the document of a text, and the errors that leave the rest of it readable.

    Duplicate keys, keys that are not text, and tags are collected: the first value of a duplicate
    key stays. What makes the text unreadable (syntax, limits) is raised as ConfigError.
    """
    # A tab is white space in JSON but not in YAML; raw tabs inside JSON strings are illegal anyway.
    readable = text.replace("\t", " ") if file.endswith(".json") else text
    if (plain := _plain_document(readable)) is not None:
        return plain, []
    # Start-up time: most projects have plain documents only.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    builder = _Builder(file)
    try:
        return builder.document(YAML(typ="safe", pure=True).parse(readable)), builder.errors
    except YAMLError as error:
        raise _syntax_error(error, file, readable) from None


class _NotPlainError(Exception):
    """A document is ruamel's to read."""


def _plain_document(text: str) -> MapNode | None:
    """The document of a text that both readers of YAML read the same way, else None."""
    if _FAST is None or _UNLIKE.search(text):
        return None
    try:
        document = _PlainBuilder("").document(iter(yaml.parse(text, Loader=_FAST)))
    except (yaml.YAMLError, UnicodeError, ConfigError, _NotPlainError):
        return None
    return document if isinstance(document, MapNode) else None


def _syntax_error(error: YAMLError, file: str, text: str) -> ConfigError:
    # Start-up time: as above.
    from ruamel.yaml.error import MarkedYAMLError

    mark = error.problem_mark or error.context_mark if isinstance(error, MarkedYAMLError) else None
    where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
    problem = error.problem if isinstance(error, MarkedYAMLError) else None
    return INVALID_YAML(
        f"not valid YAML: {problem or str(error).splitlines()[0]}",
        where=where,
        fix="inside { } or [ ] put `${env:NAME}` in quotes"
        if mark and any("${" in line for line in text.splitlines()[mark.line : mark.line + 1])
        else "check indentation, colons and quotes",
    )


class _Builder:
    """Builds nodes from events; recursion is bounded by MAX_DEPTH."""

    def __init__(self, file: str) -> None:
        self.errors: list[ConfigError] = []
        self._file = file
        self._anchors: dict[str, Node] = {}
        self._read = 0

    def document(self, events: Iterator[Any]) -> Node:
        root: Node = ScalarNode(None, TextPosition(1, 1))
        documents = 0
        for event in events:
            if _is(event, "DocumentStart"):
                documents += 1
                if documents > 1:
                    message = "more than one document in a file"
                    raise INVALID_YAML(message, where=self._where(event))
            elif _is(event, "Alias", "Scalar", "SequenceStart", "MappingStart"):
                root = self._node(event, events, 1)
        return root

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self._read += 1
        if self._read > MAX_NODES:
            message = f"more than {MAX_NODES} values"
            raise CONFIGURATION_FILE_TOO_LARGE(message, where=self._where(event))
        if depth > MAX_DEPTH:
            message = f"nested deeper than {MAX_DEPTH} levels"
            raise CONFIGURATION_FILE_TOO_LARGE(message, where=self._where(event))
        if _is(event, "Alias"):
            return self._alias(event)
        self._check_tag(event)
        node: Node
        if _is(event, "Scalar"):
            node = ScalarNode(self._scalar(event), _position(event))
        elif _is(event, "SequenceStart"):
            node = self._list(event, events, depth)
        else:
            node = self._map(event, events, depth)
        if node.size > MAX_NODES:
            message = f"anchors and aliases expand to more than {MAX_NODES} values"
            raise CONFIGURATION_FILE_TOO_LARGE(message, where=self._where(event))
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: Any) -> Node:
        node = self._anchors.get(event.anchor)
        if node is None:
            # Also the alias to a node that is still open: a document that contains itself.
            message = f"unknown anchor {shown(event.anchor)}"
            raise INVALID_YAML(message, where=self._where(event))
        return node

    def _list(self, start: Any, events: Iterator[Any], depth: int) -> ListNode:
        items: list[Node] = []
        for event in events:
            if _is(event, "SequenceEnd"):
                break
            items.append(self._node(event, events, depth + 1))
        return ListNode(tuple(items), _position(start), 1 + sum(item.size for item in items))

    def _map(self, start: Any, events: Iterator[Any], depth: int) -> MapNode:
        entries: dict[str, tuple[TextPosition, Node]] = {}
        size = 1
        for event in events:
            if _is(event, "MappingEnd"):
                break
            key = self._node(event, events, depth + 1)
            value = self._node(next(events), events, depth + 1)
            size += key.size + value.size
            name = key.value if isinstance(key, ScalarNode) else None
            if not isinstance(name, str):
                self._note(INVALID_YAML("a key must be text; put it in quotes"), event)
            elif name in entries:
                line = entries[name][0].line
                self._note(DUPLICATE_KEY(key=shown(name), line=line), event)
            else:
                entries[name] = (_position(event), value)
        return MapNode(entries, _position(start), size)

    def _check_tag(self, event: Any) -> None:
        tag = event.tag
        if tag and not (
            tag.startswith(_CORE_TAG) and tag[len(_CORE_TAG) :] in {"str", "map", "seq"}
        ):
            self._note(INVALID_YAML(f"tag {shown(tag)} is not allowed"), event)

    def _scalar(self, event: Any) -> Scalar:
        text: str = event.value
        if not event.implicit[0] or event.style in ('"', "'", "|", ">"):
            return self._text(text, event)
        if text in _WORDS:
            return _WORDS[text]
        if _INT.fullmatch(text):
            return int(text, {"o": 8, "x": 16}.get(text[1:2], 10))
        return float(text) if _FLOAT.fullmatch(text) else self._text(text, event)

    def _text(self, text: str, event: Any) -> str:
        try:
            # JSON writes characters beyond the BMP as two escapes, which YAML reads one by one.
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            self._note(INVALID_YAML("half of a surrogate pair is not a character"), event)
            return ""

    def _note(self, error: ConfigError, event: Any) -> None:
        """Collect an error that leaves the rest readable; raise it when there are too many."""
        error.where = self._where(event)
        self.errors.append(error)
        if len(self.errors) >= MAX_ERRORS:
            raise error

    def _where(self, event: Any) -> str:
        position = _position(event)
        return f"{self._file}:{position.line}:{position.column}"


class _PlainBuilder(_Builder):
    """Builds nodes from events of libyaml as far as ruamel's would be the same."""

    def _check_tag(self, event: Any) -> None:
        if event.tag:
            raise _NotPlainError

    def _scalar(self, event: Any) -> Scalar:
        # ruamel has another place for nothing, and refuses some blanks before a block of text.
        if not event.value and not event.style:
            raise _NotPlainError
        if event.style in {"|", ">"} and event.value[:1] in {"", "\n"}:
            raise _NotPlainError
        return super()._scalar(event)

    def _note(self, error: ConfigError, event: Any) -> NoReturn:
        del event
        raise _NotPlainError from error


def _is(event: Any, *kinds: str) -> bool:
    """Whether an event, which may be that of either reader, is of one of these kinds."""
    return type(event).__name__.removesuffix("Event") in kinds


def _position(event: Any) -> TextPosition:
    return TextPosition(event.start_mark.line + 1, event.start_mark.column + 1)
