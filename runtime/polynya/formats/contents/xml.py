"""Decoder of XML messages: elements become fields, repeated ones arrays, attributes `_` fields.

An element with attributes or child elements is a struct whose text is in `_value`. Any other
element is its text, and NULL when empty. All documents of a batch and the known columns together
decide the shape of an element (`XmlDecoder.settle`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from xml.parsers import expat

from typing_extensions import override

from polynya.formats import limits
from polynya.formats.contents.decoded import Decoded, OneByOne, too_many
from polynya.formats.errors import RecordError
from polynya.formats.records.columnar import plain
from polynya.formats.values.exact import json_text
from polynya.model.config.stream_content import XmlContent
from polynya.model.types import Array, DataType, Struct

#: The field with the text of an element that has attributes or elements.
TEXT: Final = "_value"
_Place = tuple[str, ...]


@dataclass(slots=True)
class Shapes:
    """The places of elements that are arrays, and of those that are structs, somewhere."""

    arrays: set[_Place] = field(default_factory=set)
    structs: set[_Place] = field(default_factory=set)

    @classmethod
    def of(cls, known: Mapping[str, DataType]) -> Shapes:
        """What the columns so far say."""
        shapes = cls()
        for name, kind in known.items():
            shapes._know((name,), kind)
        return shapes

    def learn(self, record: Mapping[str, Any], place: _Place = ()) -> None:
        """Take in a record."""
        for name, value in record.items():
            here = (*place, name)
            if isinstance(value, list):
                self.arrays.add(here)
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, dict):
                    self.structs.add(here)
                    self.learn(one, here)

    def give(self, record: dict[str, Any], place: _Place = ()) -> None:
        """Give a record the shape of all, in place."""
        for name, value in record.items():
            here = (*place, name)
            many = isinstance(value, list)
            values = value if many else [value]
            shaped = [self._shaped(value, here) for value in values]
            if many or (here in self.arrays and value is not None):
                record[name] = shaped
            else:
                (record[name],) = shaped

    def _shaped(self, value: Any, here: _Place) -> Any:
        if isinstance(value, dict):
            self.give(value, here)
        elif value is not None and here in self.structs:
            return {TEXT: value}
        return value

    def _know(self, place: _Place, kind: DataType) -> None:
        if isinstance(kind, Array):
            self.arrays.add(place)
            kind = kind.element
        if isinstance(kind, Struct):
            self.structs.add(place)
            for name, inner in kind.fields:
                self._know((*place, name), inner)


_MAX_DEPTH: Final = 64
_INSTANCE: Final = "http://www.w3.org/2001/XMLSchema-instance"
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,14})\.[0-9]{1,15}", re.ASCII)


class XmlDecoder(OneByOne):
    """Documents in any encoding that expat knows; a document type is refused, so no entities."""

    def __init__(self, content: XmlContent) -> None:
        self._content = content

    @override
    def one(self, message: bytes) -> Decoded:
        reading = _Reading(self._content)
        try:
            reading.parser.Parse(message, True)  # noqa: FBT003 - expat takes it so
        except expat.ExpatError as error:
            raise RecordError("bad_xml", f"not XML: {error}") from error
        except (ValueError, LookupError) as error:
            raise RecordError("bad_xml", f"an encoding that is not known: {error}") from error
        records = reading.records
        if self._content.record is None:
            return Decoded(records)
        return Decoded(records, part=lambda at: _spelled(records[at]), is_spelled=True)

    @override
    def settle(self, records: Sequence[dict[str, Any]], known: Mapping[str, DataType]) -> None:
        shapes = Shapes.of(known)
        for record in records:
            shapes.learn(record)
        for record in records:
            shapes.give(record)


@dataclass(slots=True)
class _Element:
    name: str
    fields: dict[str, Any]
    texts: list[str] = field(default_factory=list)
    is_null: bool = False


class _Reading:
    """One document on its way to records."""

    def __init__(self, content: XmlContent) -> None:
        self.records: list[dict[str, Any]] = []
        self._content = content
        self._arrays = frozenset(content.arrays)
        self._open: list[_Element] = []
        self._record: int | None = None if content.record else 0
        self._count = 0
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.namespace_prefixes = True
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = _refuse_type

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1 + len(attributes)
        if self._count > limits.MESSAGE_ELEMENTS:
            raise RecordError(
                "too_large", f"more than {limits.MESSAGE_ELEMENTS:,} elements and attributes"
            )
        if len(self._open) >= _MAX_DEPTH:
            raise RecordError("too_deep", f"nested deeper than {_MAX_DEPTH}")
        element = _Element(self._called(name), {})
        for key, value in attributes.items():
            if key.startswith(f"{_INSTANCE} "):
                element.is_null |= key.split(" ")[1] == "nil" and value in {"true", "1"}
                continue
            _add(element.fields, f"_{self._called(key)}", self._value(value))
        if self._record is None and element.name == self._content.record:
            self._record = len(self._open)
        self._open.append(element)

    def _end(self, name: str) -> None:
        del name
        element = self._open.pop()
        depth = len(self._open)
        if self._record is None or depth < self._record:
            return
        value = self._content_of(element)
        if depth == self._record:
            if len(self.records) >= limits.MESSAGE_RECORDS:
                raise too_many()
            self.records.append(value if isinstance(value, dict) else {TEXT: value})
            self._record = None if self._content.record else 0
            return
        if element.name in self._arrays:
            self._open[-1].fields.setdefault(element.name, []).append(value)
        else:
            _repeat(self._open[-1].fields, element.name, value)

    def _text(self, text: str) -> None:
        if self._open:
            self._open[-1].texts.append(text)

    def _content_of(self, element: _Element) -> Any:
        text = "".join(element.texts)
        if element.is_null:
            return element.fields or None
        if not element.fields:
            return self._value(text) if text else None
        if text.strip():
            _add(element.fields, TEXT, self._value(text.strip()))
        return element.fields

    def _called(self, name: str) -> str:
        """The name of an element or attribute, which is `uri local prefix` in a namespace."""
        parts = name.split(" ")
        if len(parts) == 1:
            return name
        local = parts[1]
        keep = self._content.namespaces == "keep" and len(parts) > 2
        return f"{parts[2]}_{local}" if keep else local

    def _value(self, text: str) -> Any:
        if not self._content.infer_types:
            return text
        if text in {"true", "false"}:
            return text == "true"
        if _INTEGER.fullmatch(text):
            return int(text)
        return float(text) if _NUMBER.fullmatch(text) and repr(float(text)) == text else text


def _repeat(fields: dict[str, Any], name: str, value: Any) -> None:
    if name not in fields:
        fields[name] = value
    elif isinstance(fields[name], list):
        fields[name].append(value)
    else:
        fields[name] = [fields[name], value]


def _add(fields: dict[str, Any], name: str, value: Any) -> None:
    if name in fields:
        raise RecordError("bad_xml", f"two things are called {name!r} in one element")
    fields[name] = value


def _refuse_type(*_: object) -> None:
    raise RecordError("bad_xml", "a document type is not allowed: it could define entities")


def _spelled(record: Any) -> bytes:
    return json_text(plain(record)).encode()
