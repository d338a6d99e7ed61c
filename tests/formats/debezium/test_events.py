"""Routing, operations, keys, unsent columns and accounting of change events."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from polynya.formats.batch import WHOLE_FILE, BatchLimits
from polynya.formats.debezium.envelope import PLACEHOLDER
from polynya.formats.debezium.format import UNROUTED
from polynya.formats.debezium.tables import DebeziumScope, TableSettings
from tests.formats.debezium.builders import an_event, capture, read_capture, the_table
from tests.formats.helpers import column, rules, schema, types

_ROW = {"id": 1, "v": "x"}
_KEY = {"id": 1}


@pytest.mark.parametrize(
    ("op", "snapshot", "expected"),
    [
        ("c", "false", "I"),
        ("u", "false", "U"),
        ("r", "first", "L"),
        ("r", "first_in_data_collection", "L"),
        ("r", "true", "L"),
        ("r", True, "L"),
        ("r", "last_in_data_collection", "L"),
        ("r", "last", "L"),
        ("r", "incremental", "U"),
        ("r", None, "U"),
    ],
)
def test_operations(op: str, snapshot: Any, expected: str) -> None:
    batch = the_table(an_event(op, _ROW, key=_KEY, snapshot=snapshot))

    assert column(batch, "__op") == [expected]
    is_read = op == "r" and expected == "U"
    assert column(batch, "__unsent") == [["hdr__read"] if is_read else None]
    assert batch.keys == ("id",)


def test_a_delete_brings_its_key_only() -> None:
    before = {"id": 1, "v": "old"}

    batch = the_table(an_event("c", _ROW, key=_KEY), an_event("d", key=_KEY, before=before))

    assert column(batch, "__op") == ["I", "D"]
    assert (column(batch, "id"), column(batch, "v")) == ([1, 1], ["x", None])


def test_a_delete_without_a_key_brings_the_row_before() -> None:
    batch = the_table(an_event("d", before=_ROW))

    assert (batch.keys, column(batch, "v")) == ((), ["x"])


def test_a_truncate_has_neither_key_nor_row() -> None:
    batch = the_table(an_event("t"), keys={"w.t": ("id",)})

    assert (column(batch, "__op"), batch.keys, column(batch, "id")) == (["T"], ("id",), [None])


def test_configured_keys_win_over_those_of_the_data() -> None:
    scope = DebeziumScope(tables={"w.t": TableSettings(keys=("v",))})

    batch = the_table(
        an_event("c", _ROW, key=_KEY), an_event("d", key=_KEY, before=_ROW), scope=scope
    )

    assert batch.keys == ("v",)
    assert (column(batch, "id"), column(batch, "v")) == ([1, None], ["x", "x"])


def test_keys_come_in_the_order_of_the_key() -> None:
    batch = the_table(an_event("c", {"a": 1, "b": 2}, key={"b": 2, "a": 1}))

    assert batch.keys == ("b", "a")


@pytest.mark.parametrize(
    ("record", "counter"),
    [
        ({"key": _KEY, "value": None, "headers": []}, "tombstones"),
        ({"key": {"id": "1"}, "value": {"status": "BEGIN", "id": "1"}}, "transactions"),
        ({"key": {"id": "1"}, "value": {"status": "END", "id": "1"}}, "transactions"),
        ({"key": None, "value": {"ts_ms": 1}}, "heartbeats"),
        ({"key": None, "destination": "__debezium-heartbeat.x", "value": {"a": 1}}, "heartbeats"),
        ({"key": None, "value": {"source": {}, "ddl": "DROP TABLE x"}}, "ddl_events"),
        ({"key": None, "value": {"source": {}, "ddl": None, "tableChanges": []}}, "ddl_events"),
        ({"key": None, "value": {"op": "m", "message": {}}}, "messages"),
        (an_event("c", _ROW, table="other"), "not_included"),
    ],
)
def test_what_changes_no_row_is_filtered_and_counted(record: Any, counter: str) -> None:
    scope = DebeziumScope(include=("w.t",))

    batch = read_capture(capture(record), scope)

    assert dict(batch.unrouted.counters) == {counter: 1}
    assert dict(batch.datasets) == {}


@pytest.mark.parametrize(
    ("record", "rule"),
    [
        (b"garbage", "bad_json"),
        ({"key": None, "value": 5}, "not_an_event"),
        ({"schema": {}, "payload": {"id": 1}}, "not_an_event"),
        (an_event("x", _ROW), "unknown_op"),
        (an_event("c", _ROW, table=None), "no_dataset"),
        (an_event("c", _ROW, schema=None, db=None), "no_dataset"),
        (an_event("c", _ROW, table={"a": 1}), "no_dataset"),
    ],
)
def test_what_belongs_to_no_table_is_rejected_there(record: Any, rule: str) -> None:
    assert rules(read_capture(capture(record)).unrouted) == [(0, rule)]


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        (an_event("c"), "no_after"),
        (an_event("c", _ROW, connector="vitess"), "no_position"),
        (an_event("c", _ROW, lsn=None, sequence=None), "no_position"),
        (an_event("c", _ROW, sequence="["), "bad_position"),
        (an_event("c", _ROW, sequence=f'["{10**16}"]'), "bad_position"),
        (an_event("c", _ROW, lsn=-5, sequence=None), "bad_position"),
        (an_event("c", {"hdr__x": 1}), "bad_column"),
        (an_event("c", _ROW, headers=[["__debezium.oldkey", "{"]]), "bad_json"),
        (an_event("c", _ROW, headers=[["__debezium.oldkey", "5"]]), "bad_header"),
    ],
)
def test_a_bad_event_is_rejected_in_its_table(event: Any, rule: str) -> None:
    batch = the_table(event, an_event("c", _ROW, key=_KEY))

    assert rules(batch) == [(0, rule)]
    assert batch.rows.num_rows == 1


def test_a_bare_value_is_an_event() -> None:
    assert column(the_table(an_event("c", _ROW)["value"]), "id") == [1]


def test_globs_are_case_sensitive_and_exclude_wins() -> None:
    scope = DebeziumScope(include=("w.*",), exclude=("w.secret*",))

    assert scope.includes("w.t")
    assert not scope.includes("W.t")
    assert not scope.includes("w.secrets")


def test_tables_without_a_schema_are_named_by_their_database() -> None:
    event = an_event("c", _ROW, connector="mysql", schema=None, file="binlog.000003", pos=4, row=0)

    assert set(read_capture(capture(event)).datasets) == {"wl.t"}


@pytest.mark.parametrize(
    "value",
    [
        PLACEHOLDER,
        base64.b64encode(PLACEHOLDER.encode()).decode(),
        PLACEHOLDER.encode().hex(),
        [PLACEHOLDER],
        [base64.b64encode(PLACEHOLDER.encode()).decode()],
        list(PLACEHOLDER.encode()),
        ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"],
        {PLACEHOLDER: PLACEHOLDER},
        json.dumps({PLACEHOLDER: PLACEHOLDER}),
        json.dumps({PLACEHOLDER: PLACEHOLDER}, separators=(",", ":")),
    ],
)
def test_an_unsent_column_is_null_and_named(value: Any) -> None:
    batch = the_table(an_event("u", {"id": 1, "big": value, "v": "x"}, key=_KEY))

    assert column(batch, "big") == [None]
    assert column(batch, "__unsent") == [["big"]]


@pytest.mark.parametrize(
    "value",
    [
        f"{PLACEHOLDER}!",
        [PLACEHOLDER, "and more"],
        [*PLACEHOLDER.encode(), 1],
        {"k": PLACEHOLDER},
        {PLACEHOLDER: "v"},
    ],
)
def test_a_value_that_only_has_the_placeholder_in_it_was_sent(value: Any) -> None:
    batch = the_table(an_event("u", {"id": 1, "big": value}, key=_KEY))

    assert column(batch, "__unsent") == [None]
    assert column(batch, "big") != [None]


@pytest.mark.parametrize(
    ("operation", "source"),
    [
        ("r", {}),
        ("u", {"connector": "mariadb", "file": "binlog.000003", "pos": 4, "row": 0}),
        ("u", {"connector": "mysql", "file": "binlog.000003", "pos": 4, "row": 0}),
    ],
)
def test_where_all_columns_are_sent_the_placeholder_is_a_text(
    operation: str, source: dict[str, Any]
) -> None:
    batch = the_table(an_event(operation, {"id": 1, "v": PLACEHOLDER}, key=_KEY, **source))

    said = ["hdr__read"] if operation == "r" else None
    assert (column(batch, "v"), column(batch, "__unsent")) == ([PLACEHOLDER], [said])


def test_the_placeholder_can_be_configured() -> None:
    scope = DebeziumScope(placeholder="?")

    batch = the_table(an_event("u", {"id": 1, "a": "?", "b": PLACEHOLDER}), scope=scope)

    assert (column(batch, "__unsent"), column(batch, "b")) == ([["a"]], [PLACEHOLDER])


@pytest.mark.parametrize("as_object", [False, True])
@pytest.mark.parametrize("with_schemas", [False, True])
def test_a_key_change_carries_the_old_key(as_object: bool, with_schemas: bool) -> None:
    old: Any = {"id": 1}
    if with_schemas:
        old = {
            "schema": {"type": "struct", "fields": [{"type": "int32", "field": "id"}]},
            "payload": old,
        }
    text = json.dumps(old)
    headers: Any = {"__debezium.oldkey": text} if as_object else [["__debezium.oldkey", text]]

    batch = the_table(
        an_event("d", key=_KEY, headers=[["__debezium.newkey", '{"id":2}']]),
        an_event("c", {"id": 2, "v": "x"}, key={"id": 2}, headers=headers),
    )

    assert column(batch, "__old") == [None, {"id": 1}]


def test_the_time_is_the_source_s() -> None:
    second = datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    times = [
        {"ts_us": 1767225601000000, "ts_ms": 5},
        {"ts_ns": 1767225601000000999, "ts_ms": 5},
        {"ts_ms": 1767225601000},
        {"ts_ms": "1767225601000"},
    ]

    batch = the_table(*(an_event("c", _ROW, **one) for one in times))

    assert column(batch, "__ts") == [second] * 4


def test_a_source_that_does_not_know_the_time_leaves_the_connector_s() -> None:
    batch = the_table(an_event("c", _ROW, ts_ms=0))

    assert column(batch, "__ts") == [datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC)]


def test_a_timestamp_column_falls_back_to_the_source_time() -> None:
    scope = DebeziumScope(default=TableSettings(timestamp="at"))
    row = {"id": 1, "at": "2020-01-01T00:00:00Z"}

    batch = the_table(
        an_event("c", row, key=_KEY),
        an_event("d", key=_KEY),
        an_event("c", {"id": 1, "at": "x"}),
        scope=scope,
    )

    assert [t.year for t in column(batch, "__ts")] == [2020, 2026]
    assert rules(batch) == [(2, "bad_timestamp")]


def test_sequence_by_overrides_the_order_and_keeps_the_position() -> None:
    scope = DebeziumScope(tables={"w.t": TableSettings(sequence_by=("v", "source.lsn"))})

    batch = the_table(
        an_event("c", {"id": 1, "v": 5}, key=_KEY),
        an_event("d", key=_KEY, before={"id": 1, "v": 6}),
        an_event("d", key=_KEY),
        scope=scope,
    )

    assert column(batch, "__ci") == [f"{2**63 + v:020d}{2**63 + 1000:020d}" for v in (5, 6)]
    assert column(batch, "__position") == ["0000000000000900" + "1".zfill(19)] * 2
    assert rules(batch) == [(2, "null_sequence")]


def test_sequence_by_serves_connectors_without_a_position() -> None:
    scope = DebeziumScope(default=TableSettings(sequence_by=("ts_ms",)))

    batch = the_table(an_event("c", _ROW, connector="vitess"), scope=scope)

    assert column(batch, "__ci") == [f"{2**63 + 1767225602000:035d}"]
    assert column(batch, "__position") == [None]


def test_duplicates_after_a_restart_are_the_same_row() -> None:
    batch = the_table(*[an_event("c", _ROW, key=_KEY)] * 2)

    first, second = batch.rows.drop_columns(["__offset"]).to_pylist()
    assert first == second


def test_a_value_of_another_type_is_rejected() -> None:
    batch = the_table(an_event("c", {"id": 1, "c": "now text"}), known={"w.t": types(c="int")})

    assert rules(batch) == [(0, "type_mismatch")]


def test_columns_come_and_go() -> None:
    batch = the_table(
        an_event("c", {"id": 1, "a": 1}),
        an_event("c", {"id": 2, "b": "x"}),
        known={"w.t": types(z="date")},
    )

    assert schema(batch) == {"z": "date", "id": "bigint", "a": "bigint", "b": "string"}


def test_one_pass_serves_tables_that_are_not_equally_far() -> None:
    events = [an_event("c", {"id": i}, table=table) for i in range(3) for table in ("a", "b")]
    content = capture(*events, {"key": None, "value": None})

    done = {"w.a": {"f": 3}, "w.b": {"f": 6}, UNROUTED: {"f": 6}}
    batch = read_capture(content, starts={"f": 1}, done=done)

    assert set(batch.datasets) == {"w.a"}
    assert column(batch.datasets["w.a"], "__offset") == [4]
    assert dict(batch.unrouted.counters) == {"tombstones": 1}
    assert batch.unrouted.files["f"].records == 7


def test_a_batch_ends_at_the_limit_and_goes_on_there() -> None:
    content = capture(*(an_event("c", {"id": i}) for i in range(3)))

    first = read_capture(content, limits=BatchLimits(max_rows=2))
    second = read_capture(content, limits=BatchLimits(max_rows=2), starts={"f": 2})

    assert (first.unrouted.files["f"].records, first.unrouted.files["f"].complete) == (2, False)
    assert column(second.datasets["w.t"], "id") == [2]
    assert second.unrouted.files["f"].complete


def test_an_unreadable_file_is_named_and_does_not_block() -> None:
    batch = read_capture({"a": b"\0", "b": capture(an_event("c", _ROW))})

    assert rules(batch.unrouted) == [(WHOLE_FILE, "unreadable_file")]
    assert batch.datasets["w.t"].rows.num_rows == 1


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("value", "op"), {}),
        (("value", "op"), ["c"]),
        (("value",), {"status": {}, "id": 1}),
        (("value", "source", "ts_ms"), 10**30),
        (("value", "source", "ts_us"), 253402300800000000),
        (("value", "source", "schema"), {"a": 1}),
        (("value", "source", "lsn"), [1]),
        (("key",), [1]),
        (("headers",), [["__debezium.oldkey", 5]]),
    ],
)
def test_no_value_of_an_event_stops_the_reading(path: tuple[str, ...], value: Any) -> None:
    """Whatever stands where: that record is refused, the next is read."""
    good, bad = an_event("c", _ROW, key=_KEY), an_event("c", _ROW, key=_KEY)
    spot: dict[str, Any] = bad
    for name in path[:-1]:
        spot = spot[name]
    spot[path[-1]] = value

    batch = read_capture(capture(bad, good))

    table = batch.datasets["w.t"]
    assert column(table, "__offset")[-1] == 1
    assert len(batch.unrouted.rejected) + table.rows_in == 2


def test_a_time_out_of_the_calendar_is_named() -> None:
    assert rules(the_table(an_event("c", _ROW, key=_KEY, ts_ms=10**30))) == [(0, "bad_timestamp")]
