"""What strikes next, and how long moves took."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cluster.later_version import MORE
from tests.cluster_faults import figures
from tests.cluster_faults.faults import Kind, Struck, alone, drawn
from tests.cluster_faults.figures import Spread
from tests.cluster_faults.judging import COMMIT, CRASH, LIMITS, NOTICE, by_phase, too_late, vacuous
from tests.cluster_faults.versions import AGAIN, BY_LATER, Launch, claims, forgotten, met

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def said(second: float, node: str, kind: str, unit: str = "s.t") -> dict[str, Any]:
    moment = NOW + timedelta(seconds=second)
    return {"type": kind, "subject": unit, "node": node, "at": moment.isoformat()}


def struck(kind: Kind, node: str, second: float, lasts: float = 0.0) -> Struck:
    return Struck(kind, node, NOW + timedelta(seconds=second), lasts)


def test_one_node_is_left_alone_by_all_but_errors() -> None:
    dice = random.Random(1)
    drawings = [
        drawn(dice, {"a": "works", "b": "down"}, {"b"}, lease=30, now=NOW) for _ in "x" * 200
    ]
    faults = [one for one in drawings if one is not None]
    assert {(one.kind, one.node) for one in faults} == {(Kind.ERRORS, "a")}
    assert len(faults) < 100
    assert drawn(dice, {"a": "down", "b": "starts"}, set(), lease=30, now=NOW) is None


def test_every_kind_strikes_and_owners_are_struck_most() -> None:
    dice = random.Random(2)
    states = {"a": "works", "b": "works", "c": "works"}
    faults = [drawn(dice, states, {"c"}, lease=30, now=NOW) for _ in range(300)]  # type: ignore[arg-type]

    assert {one.kind for one in faults if one is not None} == set(Kind)
    assert sum(one is not None and one.node == "c" for one in faults) > 200


def test_what_strikes_alone_takes_turns_and_only_strikes_owners() -> None:
    dice = random.Random(3)
    faults = [alone(dice, number, {"b", "c"}, lease=30, now=NOW) for number in range(40)]

    assert [one.kind for one in faults[:5]] == [
        Kind.SPOT, Kind.KILL, Kind.END, Kind.STOP, Kind.SPOT
    ]  # fmt: skip
    assert {one.node for one in faults} == {"b", "c"}
    # Long enough to be a crash.
    assert {one.seconds for one in faults if one.kind is Kind.STOP} == {60.0}


def test_a_hand_over_is_timed_from_the_notice_and_from_the_release() -> None:
    events = [
        said(0, "a", "unit.claimed"),
        said(12, "a", "unit.released"),
        said(12.5, "a", "agent.stopped", "a"),
        said(13, "b", "unit.claimed"),
        said(14, "a", "batch.copied"),
        said(17, "b", "batch.copied"),
        said(99, "a", "unit.released"),
    ]

    assert list(figures.notice_to_released(events, [struck(Kind.SPOT, "a", 10)])) == [2.0]
    assert list(figures.release_to_commit(events)) == [5.0]


def test_a_crash_is_timed_for_each_unit_that_the_node_had() -> None:
    events = [
        said(0, "a", "unit.claimed"),
        said(0, "a", "unit.claimed", "s.u"),
        said(0, "b", "unit.claimed", "s.v"),
        said(5, "a", "unit.released", "s.u"),
        said(40, "b", "unit.claimed"),
    ]

    crash = struck(Kind.KILL, "a", 10)
    short, long = (struck(Kind.STOP, "a", 10, lasts) for lasts in (20, 50))
    assert list(figures.crash_to_claimed(events, [crash, short, long], lease=30)) == [30.0, 30.0]
    assert figures.owned(events, "a", NOW + timedelta(seconds=3)) == {"s.t", "s.u"}


def test_what_struck_alone_is_timed_apart_from_what_overlapped() -> None:
    events = [
        said(0, "a", "unit.claimed"),
        said(40, "b", "unit.claimed"),
        said(60, "b", "unit.released"),
        said(61, "a", "unit.claimed"),
        said(62, "a", "batch.copied"),
        said(172, "b", "unit.claimed"),
    ]
    faults = [struck(Kind.KILL, "a", 10), struck(Kind.END, "b", 55), struck(Kind.KILL, "a", 100)]

    first, later = by_phase(events, faults, 2, lease=30)
    assert {what: one and one.most for what, one in first.items()} == {
        NOTICE: 5.0, COMMIT: 2.0, CRASH: 30.0
    }  # fmt: skip
    assert {what: one and one.most for what, one in later.items()} == {
        NOTICE: None, COMMIT: None, CRASH: 72.0
    }  # fmt: skip
    assert by_phase(events, faults[:2], 2, lease=30) == (first, dict.fromkeys(LIMITS))


NEVER = dict.fromkeys(LIMITS)
GOOD = {NOTICE: Spread(9, 5.0, 60.0, 60.0), COMMIT: Spread(9, 3.0, 15.0, 15.0)}
GOOD |= {CRASH: Spread(9, 40.0, 60.0, 60.0)}
ASKED = {"alone": 4, "overlapping": 96}
BUSY = {
    "faults": 100, "claims": 40, "batches": 100, "rows": 1500, "requests: applied, answer lost": 1,
    BY_LATER: 1, AGAIN: 1,
}  # fmt: skip


@pytest.mark.parametrize("what", LIMITS)
def test_each_figure_is_judged_by_the_lease(what: str) -> None:
    late = {**GOOD, what: Spread(9, 1.0, GOOD[what].p99 + 0.1, 99.0)}

    assert too_late(GOOD, NEVER, lease=30.0) == ()
    assert [what in why for why in too_late(late, NEVER, lease=30.0)] == [True]
    # A shorter lease makes the protocol faster, not the work.
    assert len(too_late(GOOD, NEVER, lease=6.0)) == 3
    assert too_late({**GOOD, CRASH: Spread(9, 8.0, 12.0, 12.0)}, NEVER, lease=6.0)[0].startswith(
        f"too late: {NOTICE}: p99 60.0 s, at most 36.0 s"
    )


@pytest.mark.parametrize("what", LIMITS)
def test_of_overlapping_faults_the_median_is_judged(what: str) -> None:
    most = GOOD[what].p99
    slow = {**GOOD, what: Spread(9, most + 0.1, 99.0, 99.0)}

    assert too_late(GOOD, {**GOOD, what: Spread(9, most, 99.0, 99.0)}, lease=30.0) == ()
    assert [what in why for why in too_late(GOOD, slow, lease=30.0)] == [True]


def test_what_was_never_measured_is_not_late() -> None:
    assert too_late(NEVER, NEVER, lease=30.0) == ()


@pytest.mark.parametrize("what", BUSY)
def test_a_run_in_which_too_little_happened_proves_nothing(what: str) -> None:
    less = {**BUSY, what: BUSY[what] - 1}
    none = {one: n for one, n in BUSY.items() if one != what}

    assert vacuous(BUSY, GOOD, NEVER, faults=ASKED) == ()
    assert len(vacuous(less, GOOD, NEVER, faults=ASKED)) == 1
    assert len(vacuous(none, GOOD, NEVER, faults=ASKED)) == 1


def test_where_no_error_of_the_store_was_asked_for_none_has_to_be() -> None:
    machines = {**BUSY, "requests: applied, answer lost": 0}

    assert vacuous(machines, GOOD, NEVER, faults={"alone": 100, "overlapping": 0}) == ()


def test_faults_without_a_crash_of_an_owner_prove_nothing() -> None:
    never = {**GOOD, CRASH: None}
    why = f"it proves nothing: never measured: {CRASH}"
    many, few = {"alone": 0, "overlapping": 100}, {"alone": 0, "overlapping": 30}

    assert vacuous(BUSY, NEVER, never, faults=many) == (why,)
    assert vacuous(BUSY, NEVER, never, faults=few) == ()
    assert vacuous(BUSY, never, NEVER, faults=ASKED) == (why.replace("measured", "measured alone"),)


def test_what_the_later_version_wrote_has_to_be_there_at_the_end() -> None:
    starts = [("a", 0, False), ("b", 0, True), ("a", 20, True)]
    launches = [Launch(node, NOW + timedelta(seconds=at), later) for node, at, later in starts]
    events = [
        said(1, "a", "unit.claimed"),
        said(1, "b", "unit.claimed", "s.u"),
        said(15, "a", "unit.claimed", "s.u"),
    ]

    claimed = claims(events, launches)
    assert claimed == {"s.t": [False], "s.u": [True, False]}
    assert met(claimed) == {BY_LATER: 1, AGAIN: 1}
    assert forgotten(claimed, {"s.t": {"epoch": 1}, "s.u": {"epoch": 2, **MORE}}) == []
    assert forgotten(claimed, {"s.t": {"epoch": 1}, "s.u": {"epoch": 2}}) == [
        "s.u: what a later version added to its record is gone"
    ]
    assert claims([said(25, "a", "unit.claimed")], launches) == {"s.t": [True]}
