"""Events that the transform ExtractNewRecordState flattened, as Debezium 2 and 3 write them."""

from __future__ import annotations

import base64
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from polynya.formats.batch import BatchLimits, DatasetBatch
from polynya.formats.debezium.envelope import PLACEHOLDER, Flattening
from polynya.formats.debezium.tables import DebeziumScope, TableSettings
from tests.formats.debezium.builders import capture, read_capture, reread_line
from tests.formats.helpers import column, rules, schema, types

_ADDED = {
    "__op": "c",
    "__table": "t",
    "__schema": "w",
    "__lsn": 1000,
    "__source_ts_ms": 1767225601000,
    "__deleted": "false",
}


def _scope(
    prefix: str = "__", added: tuple[str, ...] | None = None, **settings: Any
) -> DebeziumScope:
    return DebeziumScope(
        flattening=Flattening(prefix, added), default=TableSettings(**{"keys": ("id",), **settings})
    )


def _row(lsn: int = 1000, /, **values: Any) -> dict[str, Any]:
    return {"id": 1, "v": "x", **_ADDED, "__lsn": lsn, **values}


def _read(*records: Any, scope: DebeziumScope | None = None) -> DatasetBatch:
    return read_capture(capture(*records), scope or _scope()).datasets["w.t"]


def test_a_row_keeps_its_columns_and_loses_what_was_added() -> None:
    batch = _read(_row(1000), _row(1001, __op="u", v="y"), _row(1002, __op="r"))

    assert column(batch, "__op") == ["I", "U", "U"]
    assert schema(batch) == {"id": "bigint", "v": "string"}
    assert sorted(column(batch, "__ci")) == column(batch, "__ci")
    assert column(batch, "__ts") == [datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)] * 3


def test_dbz_4_a_rewritten_delete_is_a_delete() -> None:
    """Conformance case DBZ-4: the row before, and `__deleted`, which is a text."""
    written = {"pk": 2, "cola": None, "__deleted": "true"}
    place = {name: _ADDED[name] for name in ("__table", "__schema", "__lsn")}

    batch = _read({**written, **place}, scope=_scope(keys=("pk",)))

    assert (column(batch, "__op"), column(batch, "pk")) == (["D"], [2])


@pytest.mark.parametrize(
    ("fields", "operation"),
    [
        ({"__op": "d", "__deleted": "true"}, "D"),
        ({"__op": None, "__deleted": "true"}, "D"),
        ({"__op": None, "__deleted": True}, "D"),
        ({"__op": None, "__deleted": "false"}, "U"),
        ({"__op": "d", "__deleted": None}, "D"),
        ({"__op": "r", "__snapshot": "first"}, "L"),
        ({"__op": "t"}, "T"),
    ],
)
def test_operations(fields: dict[str, Any], operation: str) -> None:
    assert column(_read(_row(**fields)), "__op") == [operation]


def test_keys_come_from_the_record_and_schemas_type_the_row() -> None:
    micros = {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}
    fields = {
        "id": {"type": "int32"},
        "at": micros,
        "price": {
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "2", "connect.decimal.precision": "9"},
        },
        **{name: {"type": "string"} for name in _ADDED},
    }
    shape = {
        "type": "struct",
        "fields": [{**kind, "field": name, "optional": True} for name, kind in fields.items()],
    }
    row = {**_ADDED, "id": 1, "at": 1, "price": base64.b64encode(b"\x04\xd2").decode()}
    record = {"key": {"id": 1}, "value": {"schema": shape, "payload": row}, "headers": []}

    batch = _read(record, scope=_scope(keys=()))

    assert batch.keys == ("id",)
    assert schema(batch) == {"id": "int", "at": "timestamp_ntz", "price": "decimal(9,2)"}
    assert column(batch, "price") == [Decimal("12.34")]


def test_a_column_that_was_not_sent_keeps_its_value() -> None:
    batch = _read(_row(), _row(1001, __op="u", v=PLACEHOLDER))

    assert column(batch, "__unsent") == [None, ["v"]]


@pytest.mark.parametrize(
    ("fields", "prefix", "added"),
    [
        ({"op": "d", "schema": "w", "table": "t", "lsn": 5}, "", "op schema table lsn"),
        (
            {"_op": "d", "_source_schema": "w", "_source_table": "t", "_source_lsn": 5},
            "_",
            "op source.schema source.table source.lsn",
        ),
        (
            {"__kind": "d", "__space": "w", "__name": "t", "__lsn": 5},
            "__",
            "op:kind schema:space table:name lsn",
        ),
        ({"_op": "d", "_schema": "w", "_table": "t", "_lsn": 5}, "_", None),
    ],
)
def test_the_transforms_own_settings_name_what_was_added(
    fields: dict[str, Any], prefix: str, added: str | None
) -> None:
    scope = _scope(prefix, None if added is None else tuple(added.split()))
    row = {"id": 1, "name": "a column", **fields}

    batch = _read(row, scope=scope)

    assert column(batch, "__op") == ["D"]
    assert schema(_read({**row, **dict.fromkeys(_names(fields, "d"), "c")}, scope=scope)) == {
        "id": "bigint",
        "name": "string",
    }


def _names(fields: dict[str, Any], value: str) -> list[str]:
    return [name for name, one in fields.items() if one == value]


def test_names_that_only_look_added_stay_columns() -> None:
    batch = _read(_row(__mine=1, __before_v="y", value=2, schema="s", payload=None))

    assert {"__mine", "__before_v", "value", "schema", "payload"} < set(batch.schema)


def test_a_table_of_keys_and_values_is_no_wrapper() -> None:
    batch = _read({"key": 1, "value": "v", **_ADDED}, scope=_scope(keys=("key",)))

    assert (column(batch, "key"), column(batch, "value")) == ([1], ["v"])


_SETTINGS = DebeziumScope(
    flattening=Flattening(),
    default=TableSettings(keys=("key",), sequence_by=("timestamp",)),
)
_TOPIC = "srv.w.t+0+0000000000.json"


def test_a_table_of_key_value_and_timestamp_is_read_as_rows() -> None:
    rows = [
        {"key": "color", "value": "red", "timestamp": 1},
        {"key": "size", "value": None, "timestamp": 2},
        {"key": "", "value": None, "timestamp": 3},
    ]
    batch = read_capture({_TOPIC: capture(*rows)}, _SETTINGS)

    assert batch.unrouted.counters == {}
    assert column(batch.datasets["w.t"], "value") == ["red", None, None]


@pytest.mark.parametrize(
    "record",
    [
        {"key": "color", "value": {"r": 1}, "timestamp": 1},
        {"key": {"r": 1}, "value": {"g": 2}, "timestamp": 1},
        {"key": None, "value": None, "timestamp": 1},
        {"value": None, "timestamp": 1},
        {"value": {"id": 1}},
        {"key": "a", "value": None, "topic": "srv.w.t"},
        {"schema": None, "payload": {"id": 1}},
    ],
)
def test_what_can_be_a_row_or_a_message_is_refused_until_a_setting_says_it(record: Any) -> None:
    batch = read_capture({_TOPIC: capture(record)}, _SETTINGS)
    rows = DebeziumScope(flattening=Flattening(wrapped=False), default=_SETTINGS.default)
    row = read_capture({_TOPIC: capture(record)}, rows).datasets["w.t"]

    assert rules(batch.unrouted) == [(0, "ambiguous_record")]
    assert set(record) <= set(row.schema)


def test_a_document_in_a_column_called_schema_is_no_schema() -> None:
    row = {"schema": {"type": "object", "title": "x"}, "payload": {"id": 1}}
    settings = TableSettings(keys=("schema",), sequence_by=("schema",))
    scope = DebeziumScope(flattening=Flattening(), default=settings)

    batch = read_capture({_TOPIC: capture(row)}, scope).datasets["w.t"]

    assert set(batch.schema) == {"schema", "payload"}


def test_a_setting_says_that_records_are_messages() -> None:
    scope = DebeziumScope(
        flattening=Flattening(wrapped=True), default=TableSettings(("id",), sequence_by=("n",))
    )
    batch = read_capture({_TOPIC: capture({"key": 1, "value": {"id": 1, "n": 5}})}, scope)

    assert column(batch.datasets["w.t"], "n") == [5]


def test_a_message_of_a_landed_stream_is_one_whatever_its_table_is_called() -> None:
    message = {"key": "a", "value": {"id": 1, "n": 5}, "headers": [], "destination": "srv.w.t"}
    scope = _scope(sequence_by=("n",))

    assert column(read_capture(capture(message), scope).datasets["w.t"], "n") == [5]


def test_rows_that_are_called_like_metadata_stay_rows() -> None:
    rows = [
        {"id": 1, "status": "END", "event_count": 2, "data_collections": "x", **_ADDED},
        {"id": 2, "source": "web", "ddl": "x", "tableChanges": 1, **_ADDED, "__lsn": 1001},
        {"id": 3, "schema": {"a": 1}, "payload": {"b": 2}, **_ADDED, "__lsn": 1002},
        {"polynya_capture": 5, "id": 4, **_ADDED, "__lsn": 1003},
    ]
    batch = read_capture(capture(*rows), _scope())

    assert batch.unrouted.counters == {}
    assert column(batch.datasets["w.t"], "id") == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("added", "place"),
    [
        ({"__lsn": 7}, ("0" * 15 + "7" + "0" * 18 + "7")),
        ({"__lsn": 7, "__sequence": '["5","7"]', "__total_order": 3}, "5" + "0" * 18 + "3"),
        ({"__source_lsn": 7, "__transaction_total_order": 2}, "7" + "0" * 18 + "2"),
        ({"__file": "bin.000002", "__pos": 9, "__row": 1}, "2" + "0" * 12 + "9" + "0" * 11 + "1"),
        ({"__commit_scn": "8", "__scn": "6", "__ssn": 0}, "8" + "0" * 18 + "6" + "0" * 10),
        (
            {"__commit_lsn": "00000000:00000000:0002", "__change_lsn": "00000000:00000000:0001"},
            "2" + "0" * 24 + "1",
        ),
    ],
)
def test_the_order_is_that_of_the_source(added: dict[str, Any], place: str) -> None:
    named = {"__table": "t", "__schema": "w"}

    batch = _read({"id": 1, "v": "x", **named, **added})

    assert column(batch, "__ci")[0].lstrip("0") == place.lstrip("0")


def test_without_a_position_the_configuration_orders() -> None:
    row = {"id": 1, "n": 5, "__table": "t", "__schema": "w", "__source_ts_ms": 1767225601000}

    assert rules(_read(row)) == [(0, "no_position")]
    for name in ("n", "source.ts_ms", "__source_ts_ms"):
        assert _read(row, scope=_scope(sequence_by=(name,))).rows.num_rows == 1


@pytest.mark.parametrize(
    ("path", "wrap"),
    [
        ("topics/srv.w.t/partition=0/srv.w.t+0+0000000000.json.gz", {}),
        ("srv.w.t-0-12.json", {}),
        ("landing/srv.w.t/2026/01/part.json", {}),
        ("part.json", {"topic": "srv.w.t", "partition": 0, "offset": 7}),
        ("part.json", {"destination": "srv.w.t"}),
    ],
)
def test_the_topic_names_the_table_where_the_row_does_not(path: str, wrap: dict[str, Any]) -> None:
    row: dict[str, Any] = {"id": 1, "v": "x", "__lsn": 1}
    record = {"key": {"id": 1}, "value": row, **wrap} if wrap else row

    batch = read_capture({path: capture(record)}, _scope())

    assert set(batch.datasets) == {"w.t"}


def test_a_row_of_no_table_is_refused() -> None:
    batch = read_capture(capture({"id": 1, "__lsn": 1}), _scope())

    assert rules(batch.unrouted) == [(0, "no_dataset")]


def test_headers_may_hold_what_was_added() -> None:
    pairs = [["__op", '"c"'], ["__table", '{"schema":null,"payload":"t"}'], ["__schema", "w"]]
    first = {"key": {"id": 1}, "value": {"id": 1, "v": "x"}, "headers": [*pairs, ["__lsn", "5"]]}
    gone = {
        "key": {"id": 1},
        "value": None,
        "headers": {"__op": "d", "__table": "t", "__schema": "w", "__lsn": 6},
    }

    batch = _read(first, gone)

    assert (column(batch, "__op"), column(batch, "id")) == (["I", "D"], [1, 1])


def test_a_tombstone_behind_its_delete_is_filtered_and_a_lone_one_is_refused() -> None:
    """A delete that is nothing but a tombstone has no order, and must not get lost silently."""

    def tombstone(key: int) -> dict[str, Any]:
        return {"key": {"id": key}, "value": None}

    def wrapped(row: dict[str, Any]) -> dict[str, Any]:
        return {"key": {"id": row["id"]}, "value": row}

    deleted = wrapped(_row(__op="d", __deleted="true"))

    batch = read_capture(
        capture(wrapped(_row()), deleted, tombstone(1), tombstone(1), deleted, tombstone(2)),
        _scope(),
    )

    assert batch.unrouted.counters == {"tombstones": 1}
    assert rules(batch.unrouted) == [(3, "lone_tombstone"), (5, "lone_tombstone")]
    again = reread_line(batch.unrouted.rejected[0].raw, _scope(), offset=3)
    assert rules(again.unrouted) == [(3, "lone_tombstone")]


def test_a_tombstone_at_the_start_of_a_batch_may_belong_to_the_delete_before() -> None:
    deleted = {"key": {"id": 1}, "value": _row(__op="d", __deleted="true")}
    content = capture(deleted, {"key": {"id": 1}, "value": None})

    first = read_capture(content, _scope(), limits=BatchLimits(max_rows=1))
    second = read_capture(content, _scope(), starts={"f": 1})

    assert not first.unrouted.files["f"].complete
    assert second.unrouted.counters == {"tombstones": 1}


def test_what_is_no_row_is_filtered_or_refused() -> None:
    transaction = {"status": "END", "id": "7", "event_count": 1, "data_collections": []}
    order = {"id": 1, "status": "END", **_ADDED}
    heartbeat = {"key": {}, "value": {"ts_ms": 1}, "topic": "__debezium-heartbeat.srv"}

    batch = read_capture(
        capture(transaction, order, heartbeat, _row(__op="x"), {"value": 5}, b"[]", b"{"), _scope()
    )

    assert batch.unrouted.counters == {"transactions": 1, "heartbeats": 1}
    assert [rule for _, rule in rules(batch.unrouted)] == [
        "unknown_op",
        "no_dataset",
        "not_an_object",
        "bad_json",
    ]
    assert column(batch.datasets["w.t"], "status") == ["END"]


def test_a_refused_row_is_read_again_as_it_would_be_today() -> None:
    scope = _scope(columns=types(day="date"))
    (one,) = _read(_row(day="soon"), scope=scope).rejected

    again = reread_line(one.raw.replace(b"soon", b"2026-01-02"), scope).datasets["w.t"]

    assert column(again, "day") == [date(2026, 1, 2)]
