"""When what was read of a stream lands, and what of it is kept until then."""

from __future__ import annotations

from typing import Any

from polynya.capture.landing.position import ResumePoint
from polynya.capture.landing.stream import Pending, RollLimits, StreamEvent

ROLL = RollLimits(bytes=100, seconds=2.0, idle_seconds=60.0)


def row(text: bytes = b"x\n", shape: Any = None) -> StreamEvent:
    return StreamEvent("row", text, dict, "w.t", shape)


def pending(*events: StreamEvent) -> Pending:
    one = Pending(position=ResumePoint({"lsn": 1}))
    one.add(events)
    return one


def test_what_comes_after_a_rest_lands_at_once() -> None:
    assert ROLL.wait(pending(row()), since_landed=30.0) == 0.0


def test_a_stream_that_never_rests_lands_once_in_a_while() -> None:
    assert ROLL.wait(pending(row()), since_landed=0.5) == 1.5


def test_a_batch_that_is_full_does_not_wait() -> None:
    assert ROLL.wait(pending(row(b"x" * 100)), since_landed=0.0) == 0.0


def test_a_place_without_events_is_not_worth_an_object_before_long() -> None:
    assert ROLL.wait(Pending(position=ResumePoint({"lsn": 1})), since_landed=2.0) == 58.0


def test_a_place_that_somebody_waits_for_lands_like_an_event() -> None:
    awaited = Pending(position=ResumePoint({"lsn": 1}), is_awaited=True)

    assert ROLL.wait(awaited, since_landed=30.0) == 0.0
    assert ROLL.wait(awaited, since_landed=0.5) == 1.5


def test_nothing_is_waited_for_when_there_is_nothing() -> None:
    assert ROLL.wait(Pending(), since_landed=1000.0) is None


def test_lines_stay_in_their_order_and_their_size_is_known() -> None:
    one = pending(row(b"a\n"), row(b"b\n"))
    one.add([row(b"c\n")])

    assert (one.lines, one.size, one.events) == (b"a\nb\nc\n", 6, 3)


def test_each_schema_is_there_once_from_the_line_on_that_has_it() -> None:
    old, new = {"type": "old"}, {"type": "new"}
    one = pending(row(shape=old), row(shape=old), row(shape=new))
    one.add([row(shape=new)])

    (shapes,) = one.shapes.values()

    assert [(each.first, each.schema) for each in shapes] == [(1, old), (3, new)]
