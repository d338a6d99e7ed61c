"""Records of the engine as events: key and value as they are, the schema once for all of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import jpype

from polynya.formats.debezium.tables import table_of
from polynya.gateway.debezium.jvm import python_offset
from polynya.gateway.debezium.reach import REACHED, number_of
from polynya.gateway.debezium.settings import NAME, TRANSACTIONS
from polynya.gateway.landing.stream import StreamEvent
from polynya.gateway.postgresql.sql import ASKED, PREFIX

_NEW_KEY: Final = "__debezium.newkey"
_KEY_HEADERS: Final = frozenset({_NEW_KEY, "__debezium.oldkey"})
_HEARTBEATS: Final = f"__debezium-heartbeat.{NAME}"
_MESSAGES: Final = f"{NAME}.message"
_DELETE: Final = b'"op":"d"'


@dataclass(frozen=True, slots=True)
class _Known:
    """The schema that a topic's records have now; `table` and `shape` are those of rows."""

    java: Any
    topic: str
    table: str | None = None
    shape: Mapping[str, Any] | None = None


class RecordReader:
    """Turns records into events; remembers the schemas that it has met.

    Each call of Java takes about two microseconds, so a record is asked for as little as can be.
    """

    def __init__(self, *, heartbeats_move: bool) -> None:
        """`heartbeats_move`: the connector's offset in a heartbeat is one to go on from."""
        self._heartbeats_move = heartbeats_move
        converter = jpype.JClass("org.apache.kafka.connect.json.JsonConverter")()
        # Without it the schema of a column with a default says nothing of NULL.
        own = {"schemas.enable": "false", "replace.null.with.default": "false"}
        is_key = False
        converter.configure(jpype.JClass("java.util.HashMap")(own), is_key)
        self._converter = converter
        self._known: dict[str, _Known] = {}
        self._last: _Known | None = None
        self._key_changes = False
        self._is_awaited = False
        #: Number of the newest record of our own.
        self.reached = 0

    def read(self, record: Any) -> StreamEvent | None:
        """A record as an event; None for what neither lands nor moves anything."""
        raw = record.value()
        if raw is None:
            return None
        source = record.sourceRecord()
        known = self._schema(record, source)
        topic = known.topic
        if topic == _MESSAGES:
            self._is_awaited |= asks_for_position(bytes(raw))
            return None
        if topic == REACHED:
            self.reached = number_of(bytes(raw))
            return None
        if topic == _HEARTBEATS:
            return self._end(record, source) if self._heartbeats_move else None
        value, offset = bytes(raw), _Offset(source)
        if topic == TRANSACTIONS:
            # The beginning has `BEGIN` in the same place.
            is_end = b'"status":"END"' in value[:40]
            return self._end(record, source) if is_end else None
        key = record.key()
        line = b'{"key":%b,"value":%b' % (b"null" if key is None else bytes(key), value)
        if topic == NAME:
            return StreamEvent("statement", line + b"}\n", offset, origin=record)
        if known.shape is None:
            known = self._of_rows(known, value)
        line += self._headers(record, value)
        return StreamEvent("row", line, offset, known.table, known.shape, record)

    def _end(self, record: Any, source: Any) -> StreamEvent:
        is_awaited, self._is_awaited = self._is_awaited, False
        return StreamEvent("end", b"", _Offset(source), origin=record, is_awaited=is_awaited)

    def _headers(self, record: Any, value: bytes) -> bytes:
        """The end of a line: headers of a change of key, a delete with an insert right after it."""
        if not self._key_changes and _DELETE not in value:
            return b"}\n"
        pairs = [
            [name, str(header.getValue())]
            for header in record.headers()
            if (name := str(header.getKey())) in _KEY_HEADERS
        ]
        self._key_changes = any(name == _NEW_KEY for name, _ in pairs)
        if not pairs:
            return b"}\n"
        return b',"headers":%b}\n' % json.dumps(pairs, separators=(",", ":")).encode()

    def _schema(self, record: Any, source: Any) -> _Known:
        """The schema of a record, which is that of the record before it as a rule.

        PostgreSQL sends a table's columns anew whenever it has forgotten that it did, so that one
        table has many equal schemas in time. Their names tell tables apart.
        """
        schema, last = source.valueSchema(), self._last
        if last is not None and schema.equals(last.java):
            return last
        topic = str(record.destination())
        known = self._known.get(topic)
        if known is None or not schema.equals(known.java):
            known = self._known[topic] = _Known(schema, topic)
        self._last = known
        return known

    def _of_rows(self, known: _Known, value: bytes) -> _Known:
        text = str(self._converter.asJsonSchema(known.java).toString())
        table = table_of(json.loads(value)["source"])
        full = replace(known, table=table, shape=json.loads(text))
        self._known[known.topic] = self._last = full
        return full


def asks_for_position(message: bytes) -> bool:
    """Whether a logical message of PostgreSQL is that of somebody who waits for the stream."""
    try:
        said = json.loads(message).get("message") or {}
        content = base64.b64decode(said.get("content") or "", validate=True)
    except (ValueError, AttributeError, TypeError):
        return False
    return said.get("prefix") == PREFIX and content == ASKED.encode()


class _Offset:
    """The connector's offset after a record, taken out of Java when it is asked for."""

    __slots__ = ("record",)

    def __init__(self, record: Any) -> None:
        self.record = record

    def __call__(self) -> dict[str, Any]:
        return python_offset(self.record.sourceOffset())
