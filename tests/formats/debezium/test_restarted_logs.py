"""Each connector's positions after its log began again."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.formats.debezium.envelope import Flattening
from polynya.formats.debezium.tables import DebeziumScope, TableSettings
from tests.formats.debezium.builders import an_event, capture, read_capture, the_table

HOUR = 3_600_000
ROW = {"id": 1, "v": "a"}
BINLOG: dict[str, Any] = {
    "schema": None, "db": "w", "lsn": None, "sequence": None, "row": 0, "server_id": 1,
}  # fmt: skip
FIRST, THEN = 1767225601000, 1767225601000 + HOUR
#: By connector: a place, and one that is smaller.
PLACES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "postgresql": ({"lsn": 9000, "sequence": '["8900","9000"]'}, {"lsn": 70, "sequence": None}),
    "mysql": (
        {**BINLOG, "file": "mysql-bin.000010", "pos": 900},
        {**BINLOG, "file": "mysql-bin.000001", "pos": 200},
    ),
    "mariadb": (
        {**BINLOG, "file": "maria.000010", "pos": 900},
        {**BINLOG, "file": "other.000002", "pos": 200, "server_id": 2},
    ),
    "sqlserver": (
        {"commit_lsn": "0000002a:00000b10:0004", "change_lsn": "0000002a:00000b10:0003"},
        {"commit_lsn": "0000001a:00000b10:0004", "change_lsn": "0000001a:00000b10:0003"},
    ),
    "oracle": ({"scn": "9000", "commit_scn": "9001"}, {"scn": "70", "commit_scn": "71"}),
}


def event(op: str, connector: str, place: dict[str, Any], millis: int, **more: Any) -> Any:
    """An event at a place and time, delivered a second later."""
    row = None if op == "d" else ROW
    made = an_event(op, row, key={"id": 1}, connector=connector, ts_ms=millis, **place, **more)
    made["value"]["ts_ms"] = millis + 1000
    return made


@pytest.mark.parametrize("connector", PLACES)
@pytest.mark.parametrize("snapshot", ["false", "true"], ids=["changes", "a new snapshot"])
def test_positions_that_begin_again_wait_for_a_decision(connector: str, snapshot: str) -> None:
    before, after = PLACES[connector]
    op = "r" if snapshot == "true" else "u"
    batch = the_table(
        event("c", connector, before, FIRST), event(op, connector, after, THEN, snapshot=snapshot)
    )

    assert [(one.kind, one.policy) for one in batch.changes if one.kind == "restart_log"] == [
        ("restart_log", "suspend")
    ]


@pytest.mark.parametrize("connector", PLACES)
def test_an_old_event_that_is_late_is_no_new_log(connector: str) -> None:
    before, after = PLACES[connector]
    batch = the_table(
        event("c", connector, before, THEN), event("u", connector, after, FIRST),
        event("c", connector, before, THEN),
    )  # fmt: skip

    assert not [one for one in batch.changes if one.kind == "restart_log"]


def test_a_log_that_began_again_is_seen_in_flattened_events() -> None:
    before, after = PLACES["mysql"]
    lines = [
        {
            **ROW, "__op": "u", "__db": "w", "__table": "t", "__file": place["file"],
            "__pos": place["pos"], "__row": 0, "__source_ts_ms": millis,
        }
        for place, millis in ((before, FIRST), (after, THEN))
    ]  # fmt: skip
    scope = DebeziumScope(flattening=Flattening(), default=TableSettings(keys=("id",)))
    batch = read_capture(capture(*lines), scope).datasets["w.t"]

    assert "restart_log" in {one.kind for one in batch.changes}


def test_an_order_of_the_user_does_not_look_at_the_log() -> None:
    before, after = PLACES["mysql"]
    scope = DebeziumScope(default=TableSettings(sequence_by=("ts_ms",)))
    batch = the_table(
        event("c", "mysql", before, FIRST), event("u", "mysql", after, THEN), scope=scope
    )

    assert not [one for one in batch.changes if one.kind == "restart_log"]


def test_an_incremental_snapshot_reads_where_the_stream_is_and_tells_nothing() -> None:
    before, after = PLACES["postgresql"]
    batch = the_table(
        event("c", "postgresql", before, FIRST),
        event("r", "postgresql", after, THEN, snapshot="incremental"),
    )

    assert not [one for one in batch.changes if one.kind == "restart_log"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"gtid": "aaaa-1:900"}, {"gtid": "bbbb-2:3"}),
        ({"gtid": "0-1-900"}, {"gtid": "0-2-901"}),
        ({"server_id": 1}, {"server_id": 2}),
    ],
    ids=["GTID of MySQL", "GTID of MariaDB", "server"],
)
def test_another_server_of_the_same_name_is_told_at_once(before: Any, after: Any) -> None:
    old, new = PLACES["mysql"]
    batch = the_table(
        event("c", "mysql", {**old, **before}, FIRST),
        event("u", "mysql", {**new, **after}, FIRST + 1000),
    )

    assert "restart_log" in {one.kind for one in batch.changes}


def test_servers_that_take_turns_in_one_log_are_one_log() -> None:
    places = [
        {**BINLOG, "file": "bin.000001", "pos": at, "gtid": f"u{at % 3}:{at}", "server_id": at % 2}
        for at in range(1, 40)
    ]
    turns = [event("u", "mysql", one, FIRST + 1000 * one["pos"]) for one in places]
    batch = the_table(*turns, *turns[::-1])

    assert "restart_log" not in {one.kind for one in batch.changes}
