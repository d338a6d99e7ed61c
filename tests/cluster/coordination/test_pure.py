"""Decisions apart from effects: silence of a lease, claims, which plans are written next."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from polynya.cluster.coordination.documents import NodePlan, UnitOwnership
from polynya.cluster.coordination.leases import Sightings, Verdict
from polynya.cluster.coordination.ownership import Claim, ClaimLater, Decision, decide
from polynya.cluster.coordination.planner import assignment, changes
from polynya.cluster.unit import JobKey

AT = datetime(2026, 11, 23, tzinfo=UTC)
A, B, C = (JobKey("t", name) for name in "abc")


def test_silence_counts_from_the_first_answer_to_the_last_question() -> None:
    sightings = Sightings(longest_gap=10)

    sightings.look({"n1": "v1"}, asked=0, answered=2)
    assert sightings.silent("n1") == 0
    sightings.look({"n1": "v1"}, asked=5, answered=9)
    assert sightings.silent("n1") == 3
    sightings.look({"n1": "v1"}, asked=12, answered=13)
    assert sightings.silent("n1") == 10
    sightings.look({"n1": "v2"}, asked=15, answered=16)
    assert sightings.silent("n1") == 0
    sightings.look({}, asked=20, answered=21)
    assert sightings.silent("n1") is None


def test_time_in_which_nobody_could_look_is_hardly_silence() -> None:
    sightings = Sightings(longest_gap=10)
    sightings.look({"n1": "v1"}, asked=0, answered=0)

    sightings.look({"n1": "v1"}, asked=600, answered=600)

    assert sightings.silent("n1") == 10


def decided(
    record: UnitOwnership | None, owner: Verdict = "ready", waited: float = 0, floor: int = 0
) -> Decision:
    return decide(record, me="n1.x", owner=owner, waited=waited, hand_off=90, floor=floor)


def owned(owner: str | None, epoch: int = 4) -> UnitOwnership:
    return UnitOwnership(owner=owner, node="n2", epoch=epoch, since=AT)


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (decided(None), Claim(1, "it had no owner before")),
        (decided(None, floor=7), Claim(8, "it had no owner before")),
        (decided(owned(None)), Claim(5, "its last owner released it")),
        (decided(owned(None), floor=9), Claim(10, "its last owner released it")),
        (decided(owned("n1.x")), Claim(5, "the record says that it is ours")),
        (decided(owned("n2.y"), "gone"), Claim(5, "n2 left")),
        (decided(owned("n2.y"), "dead"), Claim(5, "n2 did not renew its lease")),
        (decided(owned("n2.y"), "ready", 89), ClaimLater("n2 still has it")),
        (decided(owned("n2.y"), "draining", 89), ClaimLater("n2 still has it")),
        (decided(owned("n2.y"), "unknown", 89), ClaimLater("n2 still has it")),
        (decided(owned("n2.y"), waited=90), Claim(5, "n2 did not release it within 90 s")),
        # Nobody waits for ever for a store that does not tell either.
        (decided(owned("n2.y"), "unknown", 90), Claim(5, "n2 did not release it within 90 s")),
    ],
)
def test_a_unit_is_claimed_from_who_cannot_have_it_any_more(
    decision: Decision, expected: Decision
) -> None:
    assert decision == expected


def test_a_move_leaves_its_old_plan_before_it_is_in_the_new_one() -> None:
    stored = {"n1": {A: "", B: ""}, "n2": {C: ""}}
    desired = {"n1": {A: ""}, "n2": {B: "", C: ""}}

    first = changes(stored, desired)
    assert [(one.incarnation, set(one.units), one.loses) for one in first] == [("n1", {A}, True)]

    second = changes({**stored, "n1": {A: ""}}, desired)
    assert [(one.incarnation, set(one.units)) for one in second] == [("n2", {B, C})]

    assert changes(desired, desired) == []


def test_a_plan_that_gains_and_loses_gets_at_once_what_is_free() -> None:
    first = changes({"n1": {A: ""}, "n2": {B: ""}}, {"n1": {B: "", C: ""}, "n2": {A: ""}})

    assert [(one.incarnation, set(one.units)) for one in first] == [("n1", {C}), ("n2", set())]


def test_the_plan_of_a_dead_node_is_emptied_and_a_new_reason_alone_is_not_written() -> None:
    assert [one.units for one in changes({"dead": {A: ""}}, {})] == [{}]
    assert changes({"n1": {A: "old"}}, {"n1": {A: "new"}}) == []


def test_of_two_plans_with_one_unit_that_of_the_living_node_counts_and_then_the_newest() -> None:
    def plan(term: int, number: int) -> NodePlan:
        return NodePlan(term=term, number=number, units=(("t", "a", ""),))

    both = [("n1", plan(3, 1)), ("n2", plan(2, 9))]

    assert assignment(both, frozenset({"n1", "n2"})) == {A: "n1"}
    assert assignment(both, frozenset({"n2"})) == {A: "n2"}
