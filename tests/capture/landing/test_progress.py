"""Which table is loaded next, and what a position remembers."""

from __future__ import annotations

import json

import pytest

from polynya.capture.landing.position import (
    LoadPlan,
    Passed,
    Position,
    StreamPosition,
    TableProgress,
)
from polynya.capture.source import Chunk

NOTHING = Position(StreamPosition({"lsn": 1}))


def waiting(*names: str) -> Position:
    return NOTHING.with_tables(names)


def test_tables_come_by_priority_then_by_name() -> None:
    plan = LoadPlan(order={"w.z": "highest", "w.a": "low", "w.b": "high"})
    position, order = waiting("w.a", "w.b", "w.m", "w.z"), []

    while (name := plan.next_table(position, order)) is not None:
        order.append(name)

    assert order == ["w.z", "w.b", "w.m", "w.a"]


def test_a_table_that_was_begun_comes_first() -> None:
    begun = waiting("w.a", "w.z").with_table("w.z", TableProgress("loading", (5,), 5, 1))

    assert LoadPlan(order={"w.a": "highest"}).next_table(begun, ()) == "w.z"


def test_no_more_are_loaded_at_a_time_than_the_settings_say() -> None:
    plan = LoadPlan(parallel=2)

    assert plan.next_table(waiting("w.a", "w.b", "w.c"), {"w.a"}) == "w.b"
    assert plan.next_table(waiting("w.a", "w.b", "w.c"), {"w.a", "w.b"}) is None


def test_loaded_and_suspended_tables_are_left_alone() -> None:
    position = waiting("w.a", "w.b").with_table("w.a", TableProgress("loaded"))
    position = position.with_table("w.b", TableProgress("suspended", why="no right"))

    assert LoadPlan().next_table(position, ()) is None


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
    position = Position(
        StreamPosition({"lsn": 1, "txId": None}, Passed("7", 9)),
        {
            "w.a": TableProgress("loading", ("x", 5, None), 10, 2),
            "w.b": TableProgress("suspended", why="no right"),
        },
        history=3,
    )

    assert Position.of(json.loads(json.dumps(position.as_dict()))) == position


@pytest.mark.parametrize("says", [{}, {"stream": {}}, {"stream": {"offset": {}}, "tables": {}}])
def test_what_is_no_position_is_refused(says: dict[str, object]) -> None:
    with pytest.raises((ValueError, LookupError)):
        Position.of(says)
