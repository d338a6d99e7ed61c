"""The rows of a table as event lines, written by the server; and the schema that describes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from polynya.gateway.postgresql.sql import identifier, literal
from polynya.gateway.postgresql.tables import PgColumn, PgTable, field_schema

#: What a row is called in statements.
ROW: Final = "t"

_MARKERS: Final = (
    "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
)
_SOURCE_FIELDS: Final = (
    {"type": "string", "optional": False, "field": "version"},
    {"type": "string", "optional": False, "field": "connector"},
    {"type": "string", "optional": False, "field": "name"},
    {"type": "int64", "optional": False, "field": "ts_ms"},
    {
        "type": "string", "optional": True, "name": "io.debezium.data.Enum", "version": 1,
        "parameters": {"allowed": _MARKERS}, "default": "false", "field": "snapshot",
    },
    {"type": "string", "optional": False, "field": "db"},
    {"type": "string", "optional": True, "field": "sequence"},
    {"type": "int64", "optional": True, "field": "ts_us"},
    {"type": "int64", "optional": True, "field": "ts_ns"},
    {"type": "string", "optional": False, "field": "schema"},
    {"type": "string", "optional": False, "field": "table"},
    {"type": "int64", "optional": True, "field": "txId"},
    {"type": "int64", "optional": True, "field": "lsn"},
    {"type": "int64", "optional": True, "field": "xmin"},
    {"type": "string", "optional": True, "field": "origin"},
    {"type": "int64", "optional": True, "field": "origin_lsn"},
)  # fmt: skip
_TRANSACTION: Final = {
    "type": "struct",
    "fields": [
        {"type": "string", "optional": False, "field": "id"},
        {"type": "int64", "optional": False, "field": "total_order"},
        {"type": "int64", "optional": False, "field": "data_collection_order"},
    ],
    "optional": True, "name": "event.block", "version": 1, "field": "transaction",
}  # fmt: skip


def envelope(table: PgTable, prefix: str) -> dict[str, Any]:
    """The Connect schema of the value of a row's event; `prefix` is the capture's own name."""
    place = f"{prefix}.{table.name}"
    row = {
        "type": "struct",
        "fields": [field_schema(one) for one in table.columns],
        "optional": True,
        "name": f"{place}.Value",
    }
    source = {
        "type": "struct",
        "fields": list(_SOURCE_FIELDS),
        "optional": False,
        "name": "io.debezium.connector.postgresql.Source",
        "version": 1,
        "field": "source",
    }
    times = [
        {"type": "int64", "optional": True, "field": name} for name in ("ts_ms", "ts_us", "ts_ns")
    ]
    operation = {"type": "string", "optional": False, "field": "op"}
    return {
        "type": "struct",
        "fields": [
            {**row, "field": "before"}, {**row, "field": "after"},
            source, _TRANSACTION, operation, *times,
        ],
        "optional": False, "name": f"{place}.Envelope", "version": 2,
    }  # fmt: skip


def source_of(*, database: str, prefix: str, lsn: int, micros: int, version: str) -> dict[str, Any]:
    """What rows of a consistent view carry as `source`, without their table."""
    return {
        "version": version, "connector": "postgresql", "name": prefix, "ts_ms": micros // 1000,
        "snapshot": "true", "db": database, "sequence": None, "ts_us": micros,
        "ts_ns": micros * 1000, "schema": "", "table": "", "txId": None, "lsn": lsn,
        "xmin": None, "origin": None, "origin_lsn": None,
    }  # fmt: skip


def line(table: PgTable, source: Mapping[str, Any]) -> str:
    """SQL of the event line of a row, without the end of line; it holds no control characters."""
    place = {**source, "schema": table.schema, "table": table.relation}
    by_name = {one.name: one for one in table.columns}
    key = _object(by_name[name] for name in table.key) if table.key else literal("null")
    times = {name: source[name] for name in ("ts_ms", "ts_us", "ts_ns")}
    rest = {"source": place, "transaction": None, "op": "r", **times}
    tail = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))[1:]
    parts = (
        literal('{"key":'), key, literal(',"value":{"before":null,"after":'),
        _object(table.columns), literal(f",{tail}}}"),
    )  # fmt: skip
    return " || ".join(parts)


def column(name: str) -> str:
    """SQL of a column of the row."""
    return f"{ROW}.{identifier(name)}"


def _object(columns: Iterable[PgColumn]) -> str:
    parts: list[str] = []
    opening = "{"
    for one in columns:
        name = json.dumps(one.name, ensure_ascii=False)
        parts.append(literal(f"{opening}{name}:"))
        parts.append(f"coalesce({one.written.encode(column(one.name))}, 'null')")
        opening = ","
    if not parts:
        return literal("{}")
    return " || ".join([*parts, literal("}")])
