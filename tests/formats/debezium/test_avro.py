"""Change events in Avro containers, as the Avro converter of Kafka Connect shapes them."""

from __future__ import annotations

import io
from copy import deepcopy
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from polynya.formats.batch import WHOLE_FILE, BatchLimits
from polynya.formats.debezium.envelope import PLACEHOLDER, Flattening
from polynya.formats.debezium.tables import DebeziumScope, TableSettings
from tests.formats.debezium.builders import a_source, read_capture, reread_line
from tests.formats.helpers import column, rules, schema

_CONNECT = "org.apache.kafka.connect.data."
_TIME = "io.debezium.time."


def _named(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "connect.version": 1, "connect.name": name, **more}


def _decimal(scale: int, precision: int | None) -> dict[str, Any]:
    """As the converter writes it: 64 digits where Connect does not know how many."""
    said = {"scale": str(scale)}
    if precision is not None:
        said["connect.decimal.precision"] = str(precision)
    return {
        "type": "bytes",
        "scale": scale,
        "precision": precision or 64,
        "connect.version": 1,
        "connect.parameters": said,
        "connect.name": f"{_CONNECT}Decimal",
        "logicalType": "decimal",
    }


_VARIABLE = {
    "type": "record",
    "name": "VariableScaleDecimal",
    "namespace": "io.debezium.data",
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
    "connect.name": "io.debezium.data.VariableScaleDecimal",
}
_ENTRY = {
    "type": "record",
    "name": "MapEntry",
    "namespace": "io.confluent.connect.avro",
    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": ["null", "double"]}],
}
#: column: (Avro type, value as written, column type, value as read)
_COLUMNS: dict[str, tuple[Any, Any, str, Any]] = {
    "id": ("int", 1, "int", 1),
    "small": ({"type": "int", "connect.type": "int16"}, -5, "int", -5),
    "big": ("long", -(1 << 63), "bigint", -(1 << 63)),
    "real": ("float", 0.5, "float", 0.5),
    "ratio": ("double", float("-inf"), "double", float("-inf")),
    "flag": ("boolean", True, "boolean", True),
    "v": ("string", "ä", "string", "ä"),
    "raw": ("bytes", b"\x00\xff", "binary", b"\x00\xff"),
    "price": (_decimal(2, 9), b"\x04\xd2", "decimal(9,2)", Decimal("12.34")),
    "amount": (_decimal(0, None), b"\xff", "decimal(38,0)", Decimal(-1)),
    "free": (_VARIABLE, {"scale": 3, "value": b"\x04\xd2"}, "string", "1.234"),
    "day": (_named("int", f"{_TIME}Date"), -1, "date", date(1969, 12, 31)),
    "day2": (
        _named("int", f"{_CONNECT}Date", logicalType="date"),
        0,
        "date",
        date(1970, 1, 1),
    ),
    "wall": (
        _named("long", f"{_TIME}MicroTimestamp"),
        1,
        "timestamp_ntz",
        datetime(1970, 1, 1, 0, 0, 0, 1),
    ),
    "wall2": (
        _named("long", f"{_CONNECT}Timestamp", logicalType="timestamp-millis"),
        1,
        "timestamp_ntz",
        datetime(1970, 1, 1, 0, 0, 0, 1000),
    ),
    "zoned": (
        _named("string", f"{_TIME}ZonedTimestamp"),
        "2026-01-01T00:00:00.5+01:00",
        "timestamp",
        datetime(2025, 12, 31, 23, 0, 0, 500000, tzinfo=UTC),
    ),
    "clock": (_named("long", f"{_TIME}MicroTime"), 1_000_001, "string", "00:00:01.000001"),
    "mood": (
        _named("string", "io.debezium.data.Enum", **{"connect.parameters": {"allowed": "a,b"}}),
        "a",
        "string",
        "a",
    ),
    "tags": (
        {"type": "array", "items": ["null", _decimal(1, 5)]},
        [b"\x0f", None],
        "array<decimal(5,1)>",
        [Decimal("1.5"), None],
    ),
    "facts": (
        {"type": "map", "values": "bytes"},
        {"a": b"\x01"},
        "map<string,binary>",
        [("a", b"\x01")],
    ),
    "pairs": (
        {"type": "array", "items": _ENTRY},
        [{"key": 1, "value": 0.5}, {"key": 2, "value": None}],
        "map<int,double>",
        [(1, 0.5), (2, None)],
    ),
}


def _optional(kind: Any) -> list[Any]:
    return ["null", kind]


def _value_schema(added: dict[str, str] | None = None) -> dict[str, Any]:
    columns = [{"name": name, "type": _optional(kind)} for name, (kind, *_) in _COLUMNS.items()]
    more = [{"name": name, "type": _optional(kind)} for name, kind in (added or {}).items()]
    return {
        "type": "record",
        "name": "Value",
        "namespace": "srv.w.t",
        "fields": deepcopy([*columns, *more]),
        "connect.name": "srv.w.t.Value",
    }


def _envelope_schema() -> dict[str, Any]:
    kinds = {str: "string", int: "long"}
    source = [{"name": name, "type": kinds[type(one)]} for name, one in a_source().items()]
    block = {"type": "record", "name": "block", "namespace": "event", "fields": []}
    block["fields"] = [
        {"name": "id", "type": "string"},
        {"name": "total_order", "type": "long"},
        {"name": "data_collection_order", "type": "long"},
    ]
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": "srv.w.t",
        "fields": [
            {"name": "before", "type": ["null", _value_schema()], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {
                "name": "source",
                "type": {
                    "type": "record",
                    "name": "Source",
                    "namespace": "io.debezium.connector.postgresql",
                    "fields": source,
                },
            },
            {"name": "transaction", "type": ["null", block], "default": None},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"], "default": None},
        ],
        "connect.name": "srv.w.t.Envelope",
    }


def _event(order: int, op: str = "c", **values: Any) -> dict[str, Any]:
    row = {name: value for name, (_, value, *_) in _COLUMNS.items()} | values
    place = {"id": "1", "total_order": order, "data_collection_order": order}
    rows = {"before": row} if op == "d" else {"after": row}
    return {"op": op, "source": a_source(), "transaction": place, "ts_ms": 1, **rows}


def _file(records: list[Any], shape: Any = None, codec: str = "null") -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, shape or _envelope_schema(), records, codec=codec)
    return out.getvalue()


_SCOPE = DebeziumScope(default=TableSettings(keys=("id",)))


def test_every_type_of_the_converter_has_an_exact_column() -> None:
    batch = read_capture(_avro([_event(1), _event(2, **dict.fromkeys(_COLUMNS))]), _SCOPE)
    table = batch.datasets["w.t"]

    assert schema(table) == {name: kind for name, (_, _, kind, _) in _COLUMNS.items()}
    for name, (_, _, _, value) in _COLUMNS.items():
        assert column(table, name)[0] == value, name


def test_operations_keys_and_order_are_those_of_the_envelope() -> None:
    batch = read_capture(_avro([_event(1), _event(2, "u", v="y"), _event(3, "d")]), _SCOPE)
    table = batch.datasets["w.t"]

    assert column(table, "__op") == ["I", "U", "D"]
    assert column(table, "v") == ["ä", "y", None]
    assert table.keys == ("id",)
    assert sorted(column(table, "__ci")) == column(table, "__ci")


def test_a_column_that_was_not_sent_keeps_its_value() -> None:
    events = [_event(1, "u", v=PLACEHOLDER), _event(2, "u", raw=PLACEHOLDER.encode())]

    table = read_capture(_avro(events), _SCOPE).datasets["w.t"]

    assert column(table, "__unsent") == [["v"], ["raw"]]


def test_a_value_that_no_calendar_holds_spoils_its_record_only() -> None:
    events = [_event(1, day2=2**31 - 1), _event(2, wall2=2**62), _event(3)]

    table = read_capture(_avro(events), _SCOPE).datasets["w.t"]

    assert rules(table) == [(0, "bad_value"), (1, "bad_value")]
    again = reread_line(table.rejected[0].raw.replace(b"2147483647", b"7"), _SCOPE).datasets["w.t"]
    assert column(again, "day2") == [date(1970, 1, 8)]
    assert schema(again) == schema(table)


def test_flattened_rows_and_their_topic() -> None:
    added = {"__op": "string", "__lsn": "long", "__deleted": "string"}
    shape = _value_schema(added)
    row = {name: value for name, (_, value, *_) in _COLUMNS.items()}
    rows = [
        {**row, "__op": "c", "__lsn": 1, "__deleted": "false"},
        {**row, "__op": "d", "__lsn": 2, "__deleted": "true"},
    ]
    scope = DebeziumScope(flattening=Flattening(), default=TableSettings(keys=("id",)))

    batch = read_capture({"topics/srv.w.t/srv.w.t+0+00.avro": _file(rows, shape)}, scope)
    table = batch.datasets["w.t"]

    assert column(table, "__op") == ["I", "D"]
    assert schema(table) == {name: kind for name, (_, _, kind, _) in _COLUMNS.items()}


def test_a_flattened_table_of_keys_and_values_is_read_as_rows() -> None:
    value = {"type": "record", "name": "V", "fields": [{"name": "r", "type": "int"}]}
    shape = {
        "type": "record",
        "name": "Row",
        "fields": [
            {"name": "key", "type": "string"},
            {"name": "value", "type": ["null", value]},
            {"name": "timestamp", "type": "long"},
        ],
    }
    rows = [
        {"key": "color", "value": {"r": 1}, "timestamp": 1},
        {"key": "size", "value": None, "timestamp": 2},
    ]
    settings = TableSettings(keys=("key",), sequence_by=("timestamp",))
    scope = DebeziumScope(flattening=Flattening(), default=settings)

    batch = read_capture({"topics/srv.w.t/srv.w.t+0+00.avro": _file(rows, shape)}, scope)

    assert column(batch.datasets["w.t"], "value") == [{"r": 1}, None]


def test_a_key_beside_the_value_names_the_key_columns() -> None:
    key = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}
    shape = {
        "type": "record",
        "name": "Line",
        "fields": [
            {"name": "key", "type": ["null", key]},
            {"name": "value", "type": ["null", _envelope_schema()]},
            {"name": "offset", "type": "long"},
        ],
    }
    lines = [
        {"key": {"id": 1}, "value": _event(1), "offset": 0},
        {"key": {"id": 1}, "value": None, "offset": 1},
    ]

    batch = read_capture(_file(lines, shape), DebeziumScope())

    assert batch.datasets["w.t"].keys == ("id",)
    assert batch.unrouted.counters == {"tombstones": 1}


@pytest.mark.parametrize("codec", ["deflate", "snappy", "bzip2", "xz", "zstandard"])
def test_codecs_and_their_damage(codec: str) -> None:
    content = bytearray(_avro([_event(n) for n in range(50)], codec))

    assert read_capture(bytes(content), _SCOPE).datasets["w.t"].rows.num_rows == 50
    content[-60:-20] = bytes(byte ^ 0x5A for byte in content[-60:-20])
    good = _avro([_event(1)])
    batch = read_capture({"a": good, "b": bytes(content), "c": good}, _SCOPE)
    assert [(one.file, one.offset) for one in batch.unrouted.rejected] == [("b", WHOLE_FILE)]
    assert column(batch.datasets["w.t"], "__file") == ["a", "c"]
    assert read_capture(bytes(content), _SCOPE).datasets == {}


@pytest.mark.parametrize(
    "shape",
    [
        {"type": "array", "items": "int"},
        {"type": "record", "name": "R", "fields": [{"name": "u", "type": ["int", "string"]}]},
        {"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]},
    ],
)
def test_what_no_converter_writes_is_refused_whole(shape: Any) -> None:
    out = io.BytesIO()
    fastavro.writer(out, shape, [])

    batch = read_capture(out.getvalue(), _SCOPE)

    assert rules(batch.unrouted) == [(WHOLE_FILE, "unreadable_file")]


def test_a_file_is_read_in_parts() -> None:
    content = _avro([_event(n) for n in range(5)])

    first = read_capture(content, _SCOPE, limits=BatchLimits(max_rows=2))
    rest = read_capture(content, _SCOPE, starts={"f": 2})

    assert column(first.datasets["w.t"], "__offset") == [0, 1]
    assert column(rest.datasets["w.t"], "__offset") == [2, 3, 4]


def _avro(events: list[Any], codec: str = "null") -> bytes:
    return _file(events, codec=codec)
