"""Rows of a table as the event lines that the Debezium reader takes. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polynya.gateway.mysql.catalog import Table, field_schema
from polynya.gateway.mysql.quoting import quoted
from polynya.gateway.mysql.types.encoders import NULL

#: What topics and schemas are named after, in load and stream.
NAME: Final = "capture"
_SOURCE: Final = (
    ("connector", "string"), ("name", "string"), ("ts_ms", "int64"), ("snapshot", "string?"),
    ("db", "string"), ("table", "string?"), ("server_id", "int64"), ("gtid", "string?"),
    ("file", "string"), ("pos", "int64"), ("row", "int32"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A moment of a server: a place in its binlog, and the clock then."""

    connector: str
    file: str
    position: int
    millis: int

    def source(self) -> dict[str, Any]:
        """What rows that were read at that moment carry."""
        return {
            "connector": self.connector, "name": NAME, "ts_ms": self.millis, "snapshot": "true",
            "server_id": 0, "gtid": None, "file": self.file, "pos": self.position, "row": 0,
        }  # fmt: skip


def select_list(table: Table) -> str:
    """The columns of a query whose rows `line_of` takes."""
    captured = table.captured
    return ", ".join(coding.expression.format(quoted(facts.name)) for facts, coding in captured)


def line_of(table: Table, place: Place) -> Callable[[Sequence[bytes | None]], bytes]:
    """What makes an event line of a row that was read at a moment."""
    columns = table.captured
    names = [f"{json.dumps(facts.name)}:".encode() for facts, _ in columns]
    encoders = [coding.encode for _, coding in columns]
    positions = {facts.name: index for index, (facts, _) in enumerate(columns)}
    keys = [positions[name] for name in table.key]
    source = place.source() | {"db": table.database, "table": table.name}
    tail = f',"source":{_compact(source)},"op":"r","ts_ms":{place.millis},"transaction":null}}}}\n'
    end = b"}" + tail.encode()

    def made(row: Sequence[bytes | None]) -> bytes:
        parts = [
            name + (NULL if value is None else encode(value))
            for name, encode, value in zip(names, encoders, row, strict=True)
        ]
        key = b"{" + b",".join([parts[index] for index in keys]) + b"}" if keys else NULL
        before = b'{"key":' + key + b',"value":{"before":null,"after":{'
        return before + b",".join(parts) + end

    return made


def envelope(table: Table, connector: str) -> dict[str, Any]:
    """The Connect schema of the `value` of a table's events."""
    name = f"{NAME}.{table.full_name}"
    row = {
        "type": "struct", "optional": True, "name": f"{name}.Value",
        "fields": [field_schema(facts, coding) for facts, coding in table.captured],
    }  # fmt: skip
    source = {
        "type": "struct", "optional": False, "version": 1, "field": "source",
        "name": f"io.debezium.connector.{connector}.Source",
        "fields": [_field(*one) for one in _SOURCE],
    }  # fmt: skip
    transaction = {
        "type": "struct", "optional": True, "name": "event.block", "version": 1,
        "fields": [_field("id", "string"), _field("total_order", "int64"),
                   _field("data_collection_order", "int64")],
        "field": "transaction",
    }  # fmt: skip
    return {
        "type": "struct", "optional": False, "name": f"{name}.Envelope", "version": 2,
        "fields": [{**row, "field": "before"}, {**row, "field": "after"}, source, transaction,
                   _field("op", "string"), _field("ts_ms", "int64?")],
    }  # fmt: skip


def _field(name: str, kind: str) -> Mapping[str, Any]:
    """A field; a question mark after its type: it is optional."""
    return {"type": kind.rstrip("?"), "optional": kind.endswith("?"), "field": name}


def _compact(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
