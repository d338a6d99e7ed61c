"""Debezium's records as events: the lines that land, their schemas, and the offsets after them.

`RecordLines.java` puts the lines of a batch together, for a call into Java takes Python about two
microseconds, and a record took nine of them. The compiler that Spark brings for its own code makes
a class of it when a capture starts, so that no machine needs a JDK.
"""

from __future__ import annotations

import base64
import json
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import jpype

from polynya.capture.landing.stream import Kind, StreamEvent
from polynya.capture.lists import NestedLists
from polynya.capture.postgresql.session import MESSAGE_PREFIX, POSITION_REQUEST
from polynya.capture.source import NAME, TRANSACTIONS, Offset
from polynya.formats.debezium.tables import table_of

#: Topic of the records of our own; each has a number.
REACHED: Final = f"{NAME}.reached"
NUMBER: Final = "number"

_KEY_HEADERS: Final = ("__debezium.newkey", "__debezium.oldkey")
_HEARTBEATS: Final = f"__debezium-heartbeat.{NAME}"
_MESSAGES: Final = f"{NAME}.message"
#: The end of a line, behind the value.
_END: Final = b"}\n"


@dataclass(frozen=True, slots=True)
class _TopicSchema:
    """The schema that a topic's records have now; `table` and `shape` are those of rows."""

    java: Any
    topic: str
    table: str | None = None
    shape: Mapping[str, Any] | None = None


class RecordReader:
    """Turns records into events; remembers the schemas that it has met."""

    def __init__(self, nested: NestedLists, *, heartbeats_move: bool) -> None:
        """Set up. Java has to run.

        Args:
            nested: marks lists of several dimensions.
            heartbeats_move: a capture can continue from the offset in a heartbeat.
        """
        self._nested, self._heartbeats_move = nested, heartbeats_move
        converter = jpype.JClass("org.apache.kafka.connect.json.JsonConverter")()
        # Without it the schema of a column with a default says nothing of NULL.
        own = {"schemas.enable": "false", "replace.null.with.default": "false"}
        is_key = False
        converter.configure(jpype.JClass("java.util.HashMap")(own), is_key)
        self._converter = converter
        self._key_headers = jpype.JClass("java.util.HashSet")(list(_KEY_HEADERS))
        self._known: dict[str, _TopicSchema] = {}
        self._is_awaited = False
        #: Number of the newest record of our own.
        self.reached = 0

    def read(self, records: Any) -> list[StreamEvent]:
        """A batch of records as events, without those that neither land nor move anything."""
        batch = _record_lines()(records, self._key_headers)
        met = zip(batch.topics, batch.schemas, strict=True)
        schemas = [self._schema(str(topic), schema) for topic, schema in met]
        numbers, has_headers = _whole_numbers(batch.numbers), bytes(batch.hasHeaders)
        offsets, events = batch.offsets, []
        for index, (line, value_at) in enumerate(_lines(batch, records)):
            if not line:
                continue
            offset, record = partial(_offset_at, offsets, index), partial(records.get, index)
            schema = schemas[numbers[index]]
            if schema.shape is None:
                value = line[value_at : -len(_END)]
                kind = self._kind(schema.topic, value)
                if kind == "row":
                    schema = schemas[numbers[index]] = self._of_rows(schema, value)
                elif kind == "statement":
                    events.append(StreamEvent("statement", line, offset, record=record))
                elif kind == "end":
                    is_awaited, self._is_awaited = self._is_awaited, False
                    end = StreamEvent("end", b"", offset, record=record, is_awaited=is_awaited)
                    events.append(end)
            if schema.shape is not None:
                row = self._row(line, value_at, record if has_headers[index] else None)
                events.append(StreamEvent("row", row, offset, schema.table, schema.shape, record))
        return events

    def _row(self, line: bytes, value_at: int, with_headers: Callable[[], Any] | None) -> bytes:
        """The line of a row with what is not in its record's key and value."""
        if self._nested.are_noted:
            line = line[:value_at] + self._nested.marked(line[value_at : -len(_END)]) + _END
        if with_headers is not None:
            line = line[: -len(_END)] + _headers(with_headers()) + _END
        return line

    def _kind(self, topic: str, value: bytes) -> Kind | None:
        """What a record of a topic is; None: it neither lands nor moves anything."""
        if topic == NAME:
            return "statement"
        if topic == _MESSAGES:
            self._is_awaited |= asks_for_position(value)
            return None
        if topic == REACHED:
            self.reached = int(json.loads(value)[NUMBER])
            return None
        if topic == _HEARTBEATS:
            return "end" if self._heartbeats_move else None
        if topic == TRANSACTIONS:
            # The beginning has `BEGIN` in the same place.
            return "end" if b'"status":"END"' in value[:40] else None
        return "row"

    def _schema(self, topic: str, schema: Any) -> _TopicSchema:
        """What is known of a schema, which is the one that its topic had before as a rule.

        PostgreSQL sends a table's columns again whenever it has forgotten that it did, so that one
        table has many equal schemas in time.
        """
        known = self._known.get(topic)
        if known is None or not schema.equals(known.java):
            known = self._known[topic] = _TopicSchema(schema, topic)
        return known

    def _of_rows(self, schema: _TopicSchema, value: bytes) -> _TopicSchema:
        text = str(self._converter.asJsonSchema(schema.java).toString())
        table = table_of(json.loads(value)["source"])
        full = replace(schema, table=table, shape=json.loads(text))
        self._known[schema.topic] = full
        return full


@cache
def _record_lines() -> Any:
    """The class that puts the lines of a batch together."""
    compiler = jpype.JClass("org.codehaus.janino.SimpleCompiler")()
    debezium = jpype.JClass("io.debezium.embedded.EmbeddedEngineChangeEvent").class_
    compiler.setParentClassLoader(debezium.getClassLoader())
    source = Path(__file__).with_name("RecordLines.java")
    compiler.cook(source.name, source.read_text(encoding="utf-8"))
    return jpype.JClass(compiler.getClassLoader().loadClass(source.stem))


def _whole_numbers(java_array: Any) -> array[int]:
    return array("i", bytes(java_array))


def _lines(batch: Any, records: Any) -> Iterator[tuple[bytes, int]]:
    """The line of each record, empty without a value, and where in it the value begins."""
    text, begin = bytes(batch.text), 0
    places = zip(_whole_numbers(batch.values), _whole_numbers(batch.ends), strict=True)
    for index, (value_begin, end) in enumerate(places):
        if value_begin < 0:
            yield _long_line(records.get(index))
        else:
            yield text[begin:end], value_begin - begin
        begin = end


def _long_line(record: Any) -> tuple[bytes, int]:
    """A line that is not in the text, and where its value begins."""
    key = b"null" if record.key() is None else bytes(record.key())
    start = b'{"key":%b,"value":' % key
    return start + bytes(record.value()) + _END, len(start)


def _headers(record: Any) -> bytes:
    """The part of a line for a change of key: a delete with an insert right after it."""
    pairs = [
        [name, str(header.getValue())]
        for header in record.headers()
        if (name := str(header.getKey())) in _KEY_HEADERS
    ]
    return b',"headers":%b' % json.dumps(pairs, separators=(",", ":")).encode()


def asks_for_position(message: bytes) -> bool:
    """Whether a logical message of PostgreSQL is that of somebody who waits for the stream."""
    try:
        content_of_message = json.loads(message).get("message") or {}
        content = base64.b64decode(content_of_message.get("content") or "", validate=True)
    except (ValueError, AttributeError, TypeError):
        return False
    return (
        content_of_message.get("prefix") == MESSAGE_PREFIX and content == POSITION_REQUEST.encode()
    )


def _offset_at(offsets: Any, number: int) -> Offset:
    """The connector's offset after a record, taken out of Java when it is asked for."""
    return _plain_offset(offsets[number])


def _plain_offset(java_offset: Any) -> dict[str, Any]:
    """An offset out of Java: texts, numbers, truth values and nothing else."""
    return {str(entry.getKey()): _plain(entry.getValue()) for entry in java_offset.entrySet()}


def _plain(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, jpype.JClass("java.lang.Boolean")):
        return bool(value)
    if isinstance(value, (jpype.JClass("java.lang.Float"), jpype.JClass("java.lang.Double"))):
        return float(value)
    if isinstance(value, jpype.JClass("java.lang.Number")):
        return int(value)
    if isinstance(value, jpype.JClass("java.util.Map")):
        return _plain_offset(value)
    return str(value)
