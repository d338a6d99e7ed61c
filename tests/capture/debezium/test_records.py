"""Debezium's records as events, read out of a real Java."""

from __future__ import annotations

import base64
import gc
import json
from collections.abc import Mapping, Sequence
from typing import Any

import jpype
import pytest

from polynya.capture.debezium import start_java
from polynya.capture.landing.stream import StreamEvent
from polynya.capture.lists import NestedLists
from polynya.capture.records import REACHED, RecordReader, asks_for_position
from polynya.capture.source import NAME, TRANSACTIONS
from polynya.lake.spark.jars import DEBEZIUM, compiler_jars, jar_paths
from polynya.lake.spark.java import find_java

_CONNECT = "org.apache.kafka.connect"


@pytest.fixture(scope="module", autouse=True)
def _java() -> None:
    start_java(
        [*jar_paths(groups=(DEBEZIUM,)), *compiler_jars()], str(find_java().runtime), heap_mb=96
    )
    gc.unfreeze()


def schema_of(*columns: str) -> Any:
    """A schema of rows with these columns; each call makes another one."""
    whole = jpype.JClass(f"{_CONNECT}.data.Schema").INT64_SCHEMA
    builder = jpype.JClass(f"{_CONNECT}.data.SchemaBuilder").struct().name("row")
    for column in columns:
        builder = builder.field(column, whole)
    return builder.build()


def record(
    topic: str,
    value: bytes | None,
    *,
    schema: Any = None,
    key: bytes | None = None,
    at: int = 0,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """A record as the engine gives it; `at` is the LSN of its offset."""
    offset = jpype.JClass("java.util.HashMap")()
    offset.put("lsn", jpype.java.lang.Long(at))
    # What has no value has no schema either.
    of_value = None if value is None else schema or schema_of()
    source = jpype.JClass(f"{_CONNECT}.source.SourceRecord")(offset, offset, topic, of_value, None)
    (made,) = jpype.JClass(
        "io.debezium.embedded.EmbeddedEngineChangeEvent"
    ).class_.getDeclaredConstructors()
    made.setAccessible(True)
    header = jpype.JClass("io.debezium.embedded.EmbeddedEngineHeader")
    listed = jpype.JClass("java.util.ArrayList")()
    for name, text in (headers or {}).items():
        listed.add(header(name, text))
    return made.newInstance([_bytes(key), _bytes(value), listed, source])


def _bytes(content: bytes | None) -> Any:
    return None if content is None else jpype.JArray(jpype.JByte)(content)


def row_of(table: str, number: int, **more: object) -> bytes:
    """The value of an event."""
    source = {"connector": "postgresql", "schema": "public", "table": table}
    value = {"op": "u", "after": {"id": number, **more}, "source": source, "ts_ns": number}
    return json.dumps(value, separators=(",", ":")).encode()


def reader(nested: NestedLists | None = None, *, heartbeats_move: bool = False) -> RecordReader:
    return RecordReader(nested or NestedLists(), heartbeats_move=heartbeats_move)


def events_of(records: Sequence[Any], by: RecordReader | None = None) -> list[StreamEvent]:
    return (by or reader()).read(jpype.JClass("java.util.ArrayList")(list(records)))


def test_a_row_is_the_line_of_its_key_and_its_value() -> None:
    value = row_of("t", 1, name="ä\u2028\U0001f40b")
    (event,) = events_of([record("shop.t", value, key=b'{"id":1}', at=7)])

    assert event.line == b'{"key":{"id":1},"value":%b}\n' % value
    assert (event.kind, event.table, event.offset()) == ("row", "public.t", {"lsn": 7})


def test_a_row_of_a_table_without_key_has_none() -> None:
    (event,) = events_of([record("shop.t", row_of("t", 1))])

    assert event.line.startswith(b'{"key":null,"value":{"op":"u"')


def test_a_very_long_value_comes_whole_and_in_its_place() -> None:
    long = row_of("t", 1, name="x" * (17 << 20))
    values = [row_of("t", 0), long, row_of("t", 2)]

    events = events_of([record("shop.t", value, key=b'{"id":1}') for value in values])

    assert [event.line for event in events] == [
        b'{"key":{"id":1},"value":%b}\n' % v for v in values
    ]


def test_each_event_confirms_its_own_record() -> None:
    records = [record("shop.t", row_of("t", n), at=n) for n in range(3)]
    records[1:1] = [record("shop.t", None)]

    events = events_of(records)

    assert [json.loads(event.line)["value"]["after"]["id"] for event in events] == [0, 1, 2]
    assert [event.offset()["lsn"] for event in events] == [0, 1, 2]
    confirmed = [event.record() for event in events]
    assert all(one.equals(records[n]) for one, n in zip(confirmed, (0, 2, 3), strict=True))


def test_rows_of_several_tables_have_their_own_schemas() -> None:
    one, other = schema_of("a"), schema_of("b")
    events = events_of(
        [record(f"shop.{t}", row_of(t, 1), schema=s) for t, s in [("x", one), ("y", other)] * 2]
    )

    assert [event.table for event in events] == ["public.x", "public.y"] * 2
    assert [event.shape["fields"][0]["field"] for event in events if event.shape] == ["a", "b"] * 2
    assert events[0].shape is events[2].shape


def test_a_schema_that_is_sent_again_stays_one_object_and_a_new_one_is_another() -> None:
    by = reader()
    first = events_of([record("shop.t", row_of("t", 1), schema=schema_of("a"))], by)
    second = events_of(
        [
            record("shop.t", row_of("t", 2), schema=schema_of("a")),
            record("shop.t", row_of("t", 3), schema=schema_of("a", "b")),
            record("shop.t", row_of("t", 4), schema=schema_of("a", "b")),
        ],
        by,
    )

    assert second[0].shape is first[0].shape
    assert second[1].shape is second[2].shape
    assert second[1].shape is not None
    assert [one["field"] for one in second[1].shape["fields"]] == ["a", "b"]


def test_both_halves_of_a_change_of_key_name_the_other_key() -> None:
    halves = [
        record("shop.t", row_of("t", 1), headers={"__debezium.newkey": '{"id":2}', "other": "x"}),
        record("shop.t", row_of("t", 2), headers={"__debezium.oldkey": '{"id":1}'}),
        record("shop.t", row_of("t", 3), headers={"other": "x"}),
    ]

    lines = [json.loads(event.line) for event in events_of(halves)]

    assert [line.get("headers") for line in lines] == [
        [["__debezium.newkey", '{"id":2}']],
        [["__debezium.oldkey", '{"id":1}']],
        None,
    ]
    assert [line["value"]["after"]["id"] for line in lines] == [1, 2, 3]


def test_only_the_end_of_a_transaction_is_an_event() -> None:
    events = events_of(
        [
            record(TRANSACTIONS, b'{"status":"BEGIN","id":"7"}', at=1),
            record("shop.t", row_of("t", 1), at=2),
            record(TRANSACTIONS, b'{"status":"END","id":"7"}', at=3),
        ]
    )

    assert [(event.kind, event.offset()["lsn"]) for event in events] == [("row", 2), ("end", 3)]
    assert events[1].line == b""


@pytest.mark.parametrize("moves", [True, False])
def test_a_heartbeat_is_an_end_where_a_capture_can_continue_from_it(moves: bool) -> None:
    beat = record(f"__debezium-heartbeat.{NAME}", b'{"ts_ms":1}', at=9)

    events = events_of([beat], reader(heartbeats_move=moves))

    assert [(event.kind, event.offset()) for event in events] == [("end", {"lsn": 9})] * moves


def test_a_statement_is_its_line() -> None:
    (event,) = events_of([record(NAME, b'{"ddl":"DROP TABLE t"}', key=b"{}")])

    assert (event.kind, event.line) == (
        "statement",
        b'{"key":{},"value":{"ddl":"DROP TABLE t"}}\n',
    )


def test_the_end_after_a_request_says_that_somebody_waits() -> None:
    records = [
        record(f"{NAME}.message", message("polynya", "compare")),
        record(TRANSACTIONS, b'{"status":"END"}'),
        record(TRANSACTIONS, b'{"status":"END"}'),
    ]

    assert [event.is_awaited for event in events_of(records)] == [True, False]


def test_the_number_of_a_record_of_our_own_is_kept() -> None:
    by = reader()

    assert events_of([record(REACHED, b'{"number":12}')], by) == []
    assert by.reached == 12


def test_a_list_that_a_warning_names_is_marked_in_its_event_alone() -> None:
    nested = NestedLists()
    nested.note(2, "Unexpected value for JDBC type 4 and column list-element INTEGER")
    records = [record("shop.t", row_of("t", n, list=[None, None]), key=b"{}") for n in (2, 3)]

    lists = [
        json.loads(event.line)["value"]["after"]["list"]
        for event in events_of(records, reader(nested))
    ]

    assert lists == ["[1:2][1:…]", [None, None]]


def message(prefix: str, content: str) -> bytes:
    said = {"prefix": prefix, "content": base64.b64encode(content.encode()).decode()}
    return json.dumps({"op": "m", "ts_ms": 1, "source": {}, "message": said}).encode()


def test_the_message_of_a_comparison_asks_for_the_position() -> None:
    assert asks_for_position(message("polynya", "compare"))


@pytest.mark.parametrize(
    "other",
    [
        message("polynya", "alive"),
        message("other", "compare"),
        message("polynya", ""),
        b'{"op":"m"}',
        b'{"op":"m","message":{"prefix":"polynya","content":"%%%"}}',
        b'{"op":"m","message":{"prefix":"polynya","content":7}}',
        b'{"op":"m","message":"compare"}',
        b"[]",
        b"\xff",
    ],
)
def test_other_messages_ask_for_nothing(other: bytes) -> None:
    assert not asks_for_position(other)
