"""Where a stream ends that would misread rows after a statement."""

from __future__ import annotations

import json
from typing import Any

from polynya.capture.debezium import MisreadStatements
from polynya.capture.landing.stream import StreamEvent

BEFORE = {"gtids": "0-1-7", "file": "binlog.000003", "pos": 70}
AFTER = {"gtids": "0-1-8", "file": "binlog.000003", "pos": 170}
UUID = {"type": "ALTER", "id": '"w"."t"', "table": {"columns": [{"typeName": "UUID"}]}}


def statement(*changes: dict[str, Any], ddl: str = "ALTER …", **offset: Any) -> StreamEvent:
    source = {"connector": "mariadb", "db": "w", "file": "binlog.000003", "pos": 90}
    value = {"source": source, "databaseName": "w", "ddl": ddl, "tableChanges": list(changes)}
    line = json.dumps({"key": None, "value": value}, separators=(",", ":")).encode()
    return StreamEvent("statement", line, lambda: BEFORE | offset)


def row(table: str, offset: dict[str, Any]) -> StreamEvent:
    return StreamEvent("row", b"{}", lambda: offset, table)


def end() -> StreamEvent:
    return StreamEvent("end", b"", lambda: BEFORE)


def of(*tables: str) -> MisreadStatements:
    return MisreadStatements(lambda name: name in tables, set())


def test_it_ends_before_the_transaction_behind_a_statement_with_a_misread_type() -> None:
    misreading = of("w.t")
    events = [
        row("w.t", BEFORE),
        statement(UUID),
        end(),
        row("w.u", AFTER | {"event": 3, "row": 1}),
    ]

    taken = misreading.take(events)

    assert taken.events == events[:3]
    assert (taken.ends, taken.begin, taken.replaced) == (True, AFTER, ())


def test_it_waits_for_that_transaction() -> None:
    misreading = of("w.t")

    first = misreading.take([statement(UUID), end()])
    second = misreading.take([statement(**AFTER)])

    assert (len(first.events), first.ends) == (2, False)
    assert (second.events, second.ends, second.begin) == ([], True, AFTER)


def test_rows_of_the_statement_itself_are_left_to_a_load() -> None:
    misreading = of("w.t")
    events = [statement(UUID), row("w.t", BEFORE | {"event": 2}), row("w.t", AFTER)]

    taken = misreading.take(events)

    assert taken.events == events[:1]
    assert dict(taken.replaced) == {"w.t": (3, 90)}
    assert taken.begin == AFTER


def test_other_statements_and_other_tables_hold_nothing_up() -> None:
    misreading = of("w.u")
    known = {**UUID, "table": {"columns": [{"typeName": "BINARY"}]}}
    events = [statement(UUID), statement(known), row("w.u", AFTER)]

    taken = misreading.take(events)

    assert (taken.events, taken.ends) == (events, False)


def test_it_ends_behind_a_statement_that_replaces_a_table_unless_that_is_known() -> None:
    replaced = statement(ddl="CREATE OR REPLACE TABLE t (id INT)")
    events = [replaced, row("w.t", AFTER)]
    misreading = of("w.t")

    taken = misreading.take(events)

    assert (taken.events, taken.ends, taken.begin) == ([replaced], True, None)
    assert misreading.rewritten == (3, 90)
    known = MisreadStatements(lambda _: True, {(3, 90)})
    assert (known.take(events).events, known.rewritten) == (events, None)
