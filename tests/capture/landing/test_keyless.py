"""What of the stream of a table without key lands, by what the view of its load has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from polynya.capture.landing.position import CapturePosition, ResumePoint, TableProgress
from polynya.capture.landing.stream import (
    StreamEvent,
    divide_keyless,
    has_all,
    is_seen,
    position_after,
    would_load_twice,
)
from polynya.capture.postgresql.slots import transactions_seen
from polynya.capture.source import SourceColumn, SourceTable

POSTGRESQL, MARIADB = "postgresql", "mariadb"
VIEW = transactions_seen(5000, "100:105:102,104")
AT_PLACE = {"file": "binlog.000002", "pos": 400}


def line(**source: Any) -> bytes:
    return json.dumps({"key": None, "value": {"op": "c", "source": source}}).encode() + b"\n"


def event(table: str, **source: Any) -> StreamEvent:
    return StreamEvent("row", line(**source), dict, table)


@pytest.mark.parametrize(
    ("number", "seen"),
    [(99, True), (101, True), (102, False), (103, True), (104, False), (105, False), (900, False)],
)
def test_a_view_of_postgresql_has_what_had_ended_before_it(number: int, seen: bool) -> None:
    assert is_seen(POSTGRESQL, VIEW, line(txId=number)) == seen


def test_numbers_of_transactions_begin_anew_after_32_bits() -> None:
    around = transactions_seen(5000, f"{(3 << 32) - 2}:{(3 << 32) + 3}:{(3 << 32) + 1}")

    seen = [is_seen(POSTGRESQL, around, line(txId=n)) for n in (2**32 - 9, 2**32 - 1, 0, 1, 2, 3)]

    assert seen == [True, True, True, False, True, False]


@pytest.mark.parametrize(
    ("file", "pos", "seen"),
    [("binlog.000001", 900, True), ("binlog.000002", 399, True), ("binlog.000002", 442, False)],
)
def test_a_view_of_mariadb_has_what_stands_before_its_place(
    file: str,
    pos: int,
    seen: bool,
) -> None:
    assert is_seen(MARIADB, AT_PLACE, line(file=file, pos=pos)) == seen


def test_a_view_that_is_behind_what_was_left_out_is_not_taken() -> None:
    assert has_all(MARIADB, AT_PLACE, (2, 399))
    assert not has_all(MARIADB, AT_PLACE, (2, 442))


def test_nothing_lands_before_the_load_and_then_what_its_view_has_not() -> None:
    events = [
        event("s.waits", file="binlog.000002", pos=350),
        event("s.loaded", file="binlog.000002", pos=350),
        event("s.loaded", file="binlog.000002", pos=450),
        event("s.unknown", file="binlog.000002", pos=460),
        event("s.waits", file="binlog.000002", pos=470),
    ]
    tables = {"s.waits": TableProgress(), "s.loaded": TableProgress().with_whole(3, AT_PLACE)}

    found = divide_keyless(MARIADB, events, CapturePosition(ResumePoint({}), tables))

    assert found.landing == [events[2]]
    assert found.kept == [events[0], events[3], events[4]]
    assert found.left_out == {"s.waits": (2, 470), "s.unknown": (2, 460)}


def test_what_a_view_has_is_forgotten_when_the_stream_has_passed_it() -> None:
    loaded = TableProgress().with_whole(3, VIEW)
    begin = CapturePosition(ResumePoint({"lsn": 4000}), {"s.t": loaded})

    before = position_after(POSTGRESQL, begin, ResumePoint({"lsn": 4999}), {})
    after = position_after(POSTGRESQL, begin, ResumePoint({"lsn": 5000}), {})

    assert before.tables["s.t"].seen == VIEW
    assert after.tables["s.t"].seen is None


def test_a_position_is_read_as_it_was_written() -> None:
    tables = {"s.t": TableProgress().with_whole(3, VIEW)}
    position = CapturePosition(ResumePoint({"lsn": 1}), tables, left_out={"s.u": (2, 470)})

    assert CapturePosition.of(json.loads(json.dumps(position.as_dict()))) == position


def test_only_rows_that_have_landed_and_of_the_same_table_would_come_twice() -> None:
    columns = (SourceColumn("id", "integer", nullable=True, connect={"type": "int32"}),)
    table = SourceTable("s.t", columns, (), identity="first")
    landed = TableProgress(state="loaded", chunks=1, identity="first")

    assert would_load_twice(landed, table)
    assert not would_load_twice(TableProgress(identity="first"), table)
    assert not would_load_twice(landed, SourceTable("s.t", columns, ("id",), identity="first"))
    assert not would_load_twice(landed, SourceTable("s.t", columns, (), identity="second"))
