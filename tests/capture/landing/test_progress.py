"""Which table is loaded next, and what a position remembers."""

from __future__ import annotations

import json

import pytest

from polynya.capture.landing.position import (
    CapturePosition,
    Passed,
    ResumePoint,
    TableProgress,
    next_table,
    offset_to_resume,
)
from polynya.capture.source import Chunk

NOTHING = CapturePosition(ResumePoint({"lsn": 1}))


def waiting(*names: str) -> CapturePosition:
    return NOTHING.with_tables(names)


def test_tables_come_by_priority_then_by_name() -> None:
    priorities = {"w.z": "highest", "w.a": "low", "w.b": "high"}
    position, order = waiting("w.a", "w.b", "w.m", "w.z"), []

    while (name := next_table(position, order, order=priorities)) is not None:
        order.append(name)

    assert order == ["w.z", "w.b", "w.m", "w.a"]


def test_a_table_that_was_begun_comes_first() -> None:
    begun = waiting("w.a", "w.z").with_table("w.z", TableProgress("loading", (5,), 5, 1))

    assert next_table(begun, (), order={"w.a": "highest"}) == "w.z"


def test_no_more_are_loaded_at_a_time_than_the_settings_say() -> None:
    assert next_table(waiting("w.a", "w.b", "w.c"), {"w.a"}, parallel=2) == "w.b"
    assert next_table(waiting("w.a", "w.b", "w.c"), {"w.a", "w.b"}, parallel=2) is None


def test_loaded_and_suspended_tables_are_left_alone() -> None:
    position = waiting("w.a", "w.b").with_table("w.a", TableProgress("loaded"))
    position = position.with_table("w.b", TableProgress("suspended", why="no right"))

    assert next_table(position, ()) is None


def test_chunks_add_up_to_a_loaded_table() -> None:
    first = TableProgress().with_chunk(Chunk(b"", 10, (10,), is_last=False))
    last = first.with_chunk(Chunk(b"", 0, None, is_last=True))

    assert first == TableProgress("loading", (10,), 10, 1)
    assert last == TableProgress("loaded", (10,), 10, 2)


def test_tables_that_come_wait_and_those_that_go_are_forgotten() -> None:
    before = waiting("w.a", "w.b").with_table("w.b", TableProgress("loaded", rows=3))

    after = before.with_tables(["w.b", "w.c"])
    again = after.with_tables(["w.b", "w.c"], again=["w.b"])

    assert after.tables == {"w.b": TableProgress("loaded", rows=3), "w.c": TableProgress()}
    assert again.tables["w.b"] == TableProgress()


def test_a_position_survives_its_json() -> None:
    position = CapturePosition(
        ResumePoint({"lsn": 1, "txId": None}, Passed("7", 9)),
        {
            "w.a": TableProgress("loading", ("x", 5, None), 10, 2),
            "w.b": TableProgress("suspended", why="no right"),
        },
        history=3,
    )

    assert CapturePosition.of(json.loads(json.dumps(position.as_dict()))) == position


@pytest.mark.parametrize("says", [{}, {"stream": {}}, {"stream": {"offset": {}}, "tables": {}}])
def test_what_is_no_position_is_refused(says: dict[str, object]) -> None:
    with pytest.raises((ValueError, LookupError)):
        CapturePosition.of(says)


@pytest.mark.parametrize("lsn", [8, 24_690_184, 2**40])
def test_postgresql_continues_where_no_record_of_its_log_begins(lsn: int) -> None:
    behind_commit = {"lsn": lsn, "lsn_proc": lsn, "lsn_commit": lsn, "txId": 7}

    resumed = offset_to_resume("postgresql", behind_commit)

    assert resumed == {"lsn": lsn - 1, "lsn_proc": lsn - 1, "lsn_commit": lsn, "txId": 7}
    assert offset_to_resume("postgresql", resumed) == resumed, "it does not move by itself"


@pytest.mark.parametrize("connector", ["mariadb", "mysql"])
def test_a_binlog_continues_exactly_at_its_position(connector: str) -> None:
    offset = {"file": "bin.000003", "pos": 1_024}

    assert offset_to_resume(connector, offset) == offset
