"""Records of the engine as events: key and value as they are, the schema once for all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jpype

from polynya.formats.debezium.tables import table_of
from polynya.gateway.debezium.jvm import python_offset
from polynya.gateway.debezium.settings import NAME, TRANSACTIONS
from polynya.gateway.landing.stream import StreamEvent

_KEY_HEADERS: Final = frozenset({"__debezium.newkey", "__debezium.oldkey"})
_HEARTBEATS: Final = f"__debezium-heartbeat.{NAME}"
_MESSAGES: Final = f"{NAME}.message"
_OPERATIONS_WITH_KEYS: Final = (b'"op":"d"', b'"op":"c"')


@dataclass(frozen=True, slots=True)
class _Known:
    """The schema that a topic's records have now."""

    java: Any
    table: str
    shape: Mapping[str, Any]


class RecordReader:
    """Turns records into events; remembers the schemas that it has met."""

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

    def read(self, record: Any) -> StreamEvent | None:
        """A record as an event; None for what neither lands nor moves anything."""
        topic = str(record.destination())
        if topic == _MESSAGES:
            return None
        source = record.sourceRecord()
        if topic == _HEARTBEATS:
            moves = self._heartbeats_move
            return StreamEvent("end", b"", _Offset(source), origin=record) if moves else None
        raw = record.value()
        if raw is None:
            return None
        value, offset = bytes(raw), _Offset(source)
        if topic == TRANSACTIONS:
            # The beginning has `BEGIN` in the same place.
            is_end = b'"status":"END"' in value[:40]
            return StreamEvent("end", b"", offset, origin=record) if is_end else None
        key = record.key()
        line = b'{"key":%b,"value":%b' % (b"null" if key is None else bytes(key), value)
        if topic == NAME:
            return StreamEvent("statement", line + b"}\n", offset, origin=record)
        known, line = self._schema(topic, source, value), line + self._headers(record, value)
        return StreamEvent("row", line, offset, known.table, known.shape, record)

    def _headers(self, record: Any, value: bytes) -> bytes:
        """The end of a line: headers of a change of key, which deletes and inserts may have."""
        if any(mark in value for mark in _OPERATIONS_WITH_KEYS):
            pairs = [
                [name, str(header.getValue())]
                for header in record.headers()
                if (name := str(header.getKey())) in _KEY_HEADERS
            ]
            if pairs:
                return b',"headers":%b}\n' % json.dumps(pairs, separators=(",", ":")).encode()
        return b"}\n"

    def _schema(self, topic: str, source: Any, value: bytes) -> _Known:
        """The schema of a record; the one before it stays when nothing has changed.

        PostgreSQL sends a table's columns anew whenever it has forgotten that it did, so that one
        table has many equal schemas in time.
        """
        schema = source.valueSchema()
        known = self._known.get(topic)
        if known is None or not schema.equals(known.java):
            text = str(self._converter.asJsonSchema(schema).toString())
            table = table_of(json.loads(value)["source"])
            known = _Known(schema, table, json.loads(text))
            self._known[topic] = known
        return known


class _Offset:
    """The connector's offset after a record, taken out of Java when it is asked for."""

    __slots__ = ("record",)

    def __init__(self, record: Any) -> None:
        self.record = record

    def __call__(self) -> dict[str, Any]:
        return python_offset(self.record.sourceOffset())
