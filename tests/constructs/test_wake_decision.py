"""Whether what was found at the sources of an empty cluster is worth a node."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from polynya_constructs.functions.wake.decision import (
    Finding,
    WakeDecision,
    Woken,
    decide,
    due_findings,
)

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)

RECORDS = Finding("clicks", waits=True, why="2 records", evidence="ends at 2")
MORE_RECORDS = Finding("clicks", waits=True, why="3 records", evidence="ends at 3")
NOTHING = Finding("shop_db", waits=False, why="all was read")
SILENT = Finding("stock", waits=None, why="no answer in 30 seconds")


def woken(*findings: Finding, at: datetime = NOW) -> Woken:
    """What a group that was woken for these remembers."""
    found = decide(findings, None, at).woken
    assert found is not None
    return found


def test_a_record_that_waits_starts_a_node_with_its_reason() -> None:
    decision = decide([NOTHING, RECORDS], None, NOW)

    assert decision.woken is not None
    assert decision.reason == "clicks: 2 records"


def test_where_nothing_waits_no_node_starts() -> None:
    assert decide([NOTHING], None, NOW) == WakeDecision("none: nothing waits")
    assert decide([], None, NOW) == WakeDecision("none: nothing waits")


def test_a_source_that_does_not_answer_starts_no_node_and_hides_no_other_one() -> None:
    assert decide([SILENT], None, NOW).woken is None
    assert decide([SILENT, RECORDS], None, NOW).reason == "clicks: 2 records"


def test_what_a_node_was_there_for_and_left_is_tried_again_after_a_growing_pause() -> None:
    """Its node goes after a quarter of an hour; without pauses the next one would come at once."""
    tries, before, now = [], woken(RECORDS), NOW
    for _ in range(7 * 24 * 60):
        now += timedelta(minutes=1)
        decision = decide([RECORDS], before, now)
        if decision.woken is not None:
            tries.append(now - NOW)
            before = decision.woken

    hours = [one / HOUR for one in tries]
    assert hours[:6] == [1, 3, 7, 15, 31, 55]
    assert len(hours) == 10


def test_another_record_starts_a_node_without_a_pause() -> None:
    decision = decide([MORE_RECORDS], woken(RECORDS), NOW + timedelta(minutes=1))

    assert decision.woken is not None
    assert decision.woken.times == 1


def test_the_order_of_what_waits_makes_no_difference() -> None:
    both = [RECORDS, Finding("web", waits=True, why="1 record", evidence="1")]

    assert decide(both[::-1], woken(*both), NOW + HOUR / 2).woken is None


def test_a_schedule_is_due_from_its_moment_on_and_each_moment_wakes() -> None:
    night = NOW - timedelta(minutes=1)
    due = due_findings({"shop_db": night, "later": NOW + HOUR}, NOW)

    assert [(finding.task, finding.waits) for finding in due] == [("shop_db", True)]
    # The next night is another moment, whatever became of the last one.
    next_night = due_findings({"shop_db": night + HOUR}, NOW + HOUR)
    assert decide(next_night, woken(*due), NOW + HOUR).woken is not None


@pytest.mark.parametrize("times", [1, 7, 99])
def test_a_tag_says_what_it_was_written_for(times: int) -> None:
    one = Woken("0123456789abcdef", NOW, times)

    assert Woken.of(one.text()) == one
    assert one.pause <= timedelta(days=1)


@pytest.mark.parametrize(
    "text", ["", "x", "x y z", "0123 1 yesterday", "0123 one 2026-11-28", "0123 1 2026-11-28"]
)
def test_a_damaged_tag_is_none(text: str) -> None:
    assert Woken.of(text) is None
